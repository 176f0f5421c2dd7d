"""1,000 open tasks, each with a session, 8 of them live: how soon an idle one answers.

The time from a prompt to its first word through the engine, for a task that has to take another's
place, beside the SDK's own plain resume of a session of the same size from the same store; paired, in
turn. One session was written by the CLI; those of all others are copies of it, under ids of their own.
"""

from __future__ import annotations

import statistics
import time

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, StreamEvent
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Reply, Request, Text
from smartwriter.open_draft import OpenDraft
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task
from smartwriter.writing.engine import Engine

TASKS = 1000
LIVE = 8
_PAIRS = 21
_RATIO = 1.1
_QUICK_RATIO = 1.5  # of the median of 5, beside whatever else runs


def _answer(request: Request) -> Reply:
    return [Text("Fine.")]


def _measure(run: Run) -> Outcome:
    pairs, limit = (5, _QUICK_RATIO) if run.quick else (_PAIRS, _RATIO)
    with stage(run, _answer) as scene:
        tasks = [scene.workspace.new_task(f"task-{number}") for number in range(run.scaled(TASKS))]
        anyio.run(_begin, scene, tasks[0])
        for task in tasks[1:]:
            _copy(scene, tasks[0], task)
        without = sum(not _has_session(scene, task) for task in tasks)
        sample = run.random().sample(tasks, 2 * (LIVE + 1))
        ours, theirs = anyio.run(_compare, scene, sample[: LIVE + 1], sample[LIVE + 1 :], pairs)
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    ratio = statistics.median(ratios)
    got = (
        f"{len(tasks)} tasks, {without} without a session, {pairs} pairs: {ratio:.2f}× "
        f"({min(ratios):.2f}-{max(ratios):.2f}); ours {statistics.median(ours) * 1000:.0f} ms, "
        f"the SDK {statistics.median(theirs) * 1000:.0f} ms"
    )
    return Outcome(got, not without and ratio <= limit)


async def _begin(scene: Stage, task: Task) -> None:
    async with Engine(scene.workspace, scene.claude, Config()) as engine:
        await engine.send(task, task.drafts["main"], "Begin.").outcome()


def _copy(scene: Stage, origin: Task, task: Task) -> None:
    """Give a task the session and the turn of another one, under its own id."""
    theirs, mine = origin.drafts["main"], task.drafts["main"]
    data = OpenDraft(scene.workspace, origin, theirs.name).transcript.path.read_bytes()
    path = OpenDraft(scene.workspace, task, mine.name).transcript.path
    path.write_bytes(data.replace(theirs.session_id.encode(), mine.session_id.encode()))
    turns = scene.workspace.tasks.turns(origin, "main")
    scene.workspace.tasks.record(
        task, "main", [turn.model_copy(update={"session_id": mine.session_id}) for turn in turns]
    )


def _has_session(scene: Stage, task: Task) -> bool:
    path = scene.workspace.hidden / "sessions" / task.project_key / f"{task.drafts['main'].session_id}.jsonl"
    return path.exists() and path.stat().st_size > 0


async def _compare(
    scene: Stage, ours: list[Task], theirs: list[Task], pairs: int
) -> tuple[list[float], list[float]]:
    """The seconds to the first word, of each pair."""
    mine: list[float] = []
    other: list[float] = []
    async with Engine(scene.workspace, scene.claude, Config(parallel=LIVE)) as engine:
        for task in ours:  # from here on the last 8 are live
            await engine.send(task, task.drafts["main"], "Begin.").outcome()
        for number in range(pairs):
            at = number % len(ours)  # the least recently used: it is not live
            _copy(scene, ours[at], theirs[at])  # as it is now: both are of one size
            mine.append(await _first_word(engine, ours[at]))
            other.append(await _sdk_first_word(scene, theirs[at]))
    return mine, other


async def _first_word(engine: Engine, task: Task) -> float:
    async with engine.events() as events:
        started = time.perf_counter()
        sent = engine.send(task, task.drafts["main"], "Go on.")
        async for event in events:
            if event.kind == "text_delta":
                break
        seconds = time.perf_counter() - started
        await sent.outcome()
    return seconds


async def _sdk_first_word(scene: Stage, task: Task) -> float:
    options = ClaudeAgentOptions(
        session_store=scene.workspace.store.bind(task.project_key),
        session_store_flush="eager",
        resume=task.drafts["main"].session_id,
        include_partial_messages=True,
        setting_sources=[],
        tools=[],
        system_prompt="You are the writing partner of an author.",
        env=dict(scene.claude.env),
    )
    client = ClaudeSDKClient(options)
    first = None
    started = time.perf_counter()
    await client.connect()
    try:
        await client.query("Go on.")
        async for message in client.receive_response():
            is_word = isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta"
            if is_word and first is None:
                first = time.perf_counter() - started
    finally:
        await client.disconnect()
    assert first is not None
    return first


FIGURES = [
    Figure(
        "an idle task among many answers",
        f"{TASKS} open tasks with a session each, {LIVE} live: to the first word at most {_RATIO}× of the "
        f"SDK's own plain resume ({_QUICK_RATIO}× in a quick run of 5 pairs)",
        _measure,
    )
]
