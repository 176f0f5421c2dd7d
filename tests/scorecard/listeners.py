"""A listener is cut off after every one of 200 events and comes back by position.

The events are those of real turns, streamed by the CLI; two other listeners watch without a break.
Half-way the host is restarted. Each event must be heard exactly once by each of the three, with all that
was told of it; and the words of all events together are those that the API sent.
"""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import anyio
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Reply, Request, Text
from smartwriter.events import Event, TextDelta
from smartwriter.open_draft import OpenDraft
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task
from smartwriter.turns.broadcast import MERGE_S, follow
from smartwriter.writing.engine import Engine

EVENTS = 200


def _measure(run: Run) -> Outcome:
    wanted = run.scaled(EVENTS)

    pieces = "".join(f"{number:04d} " for number in range(wanted // 2))

    def script(request: Request) -> Reply:
        # Each piece comes later than pieces are merged, so that each is an event.
        return [Text(pieces, chunk_chars=5, pause_s=MERGE_S * 1.2)]

    with stage(run, script) as scene:
        task = scene.workspace.new_task("Herons")
        heard = anyio.run(_listen, scene, task, wanted)
    told, *others = heard
    wrong = sum(other != told for other in others)
    breaks = len(others[0]) - 1
    said = "".join(event.text for event in told if isinstance(event, TextDelta))
    turns = sum(event.kind == "turn_started" for event in told)
    got = f"{len(told)} events, {breaks} breaks and a restart: {wrong} of 3 listeners heard otherwise"
    if said != pieces * turns:
        got += f"; {len(said)} characters were told of {len(pieces) * turns} that were sent"
    return Outcome(got, not wrong and said == pieces * turns and len(told) >= wanted)


async def _listen(scene: Stage, task: Task, wanted: int) -> list[list[Event]]:
    """What was told, and what each listener heard."""
    path = OpenDraft(scene.workspace, task, "main").live_path
    told: list[Event] = []
    heard: list[list[Event]] = [[], [], []]
    async with anyio.create_task_group() as group:
        group.start_soon(_often_cut_off, path, heard[0])
        group.start_soon(_steady, path, heard[1])
        group.start_soon(_steady, path, heard[2])
        while len(told) < wanted:  # an engine, and then another one: a host that is restarted
            async with Engine(scene.workspace, scene.claude, Config()) as engine, engine.events() as events:
                await engine.send(task, task.drafts["main"], "Go.").outcome()
                while events.statistics().current_buffer_used:
                    event = events.receive_nowait()
                    told += [event] * bool(event.position)
            with anyio.move_on_after(20):
                # They poll the disk, as other processes do.
                while any(listener[-1:] != told[-1:] for listener in heard):  # noqa: ASYNC110
                    await anyio.sleep(0.05)
        group.cancel_scope.cancel()
    return [told, *heard]


async def _steady(path: Path, heard: list[Event]) -> None:
    async for event in follow(path, 0):
        _hear(event, heard)


async def _often_cut_off(path: Path, heard: list[Event]) -> None:
    known = 0
    while True:
        async with aclosing(follow(path, known)) as events:
            event = await anext(events)
        known = event.position
        _hear(event, heard)


def _hear(event: Event, heard: list[Event]) -> None:
    # The first reload only says that nothing is known of a time before this test.
    if event.kind != "reload" or heard:
        heard.append(event)


FIGURES = [
    Figure(
        "a listener cut off after every event of an answer",
        f"{EVENTS} events, one break each and a restart of the host, two others watching: each once for each",
        _measure,
    )
]
