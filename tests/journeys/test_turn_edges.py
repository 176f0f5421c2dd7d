"""Where a turn begins and where it ends: what must be there before something else may go."""

from __future__ import annotations

import functools
from typing import Any

import anyio
import psutil
import pytest
from blockbuster import BlockBuster
from dying import killed_before
from engines import run

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Text
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.events import ArticleDelta, CallBegun, Event, TextDelta, TurnStarted
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.orphans import living, of_sessions
from smartwriter.storage.lease import Lease
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.turns.live import LiveJournal
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine
from smartwriter.writing.writer import DraftWriter


def _cut_off(workspace: Workspace, number: int) -> Task:
    """A task whose only turn was cut off after it had said and typed something, in the live journal alone."""
    task = workspace.new_task(f"Herons {number}")
    turn = Turn(
        number=1,
        uuid="u",
        session_id=task.drafts["main"].session_id,
        prompt="Go.",
        state=TurnState.running,
    )
    workspace.tasks.record(task, "main", [turn])
    live = LiveJournal(OpenDraft(workspace, task, "main").live_path)
    of: dict[str, Any] = {"task": task.id, "draft": "main", "turn": 1}
    live.begin()
    heard: list[Event] = [
        TurnStarted(**of, prompt="Go."),
        TextDelta(**of, text="I begin."),
        CallBegun(**of, call="a", tool="write_draft"),
        ArticleDelta(**of, call="a", field="text", text="# Fog"),
    ]
    live.append(heard)
    return task


def _next_turn(workspace: Workspace, task: Task) -> None:
    """As its writer takes it, which finds the turn before it still said to run."""
    silent: list[Event] = []
    nobody = ClaudeAgent(cli_path=workspace.root / "no-such-program")
    writer = DraftWriter(workspace, nobody, task, task.drafts["main"], silent.append, Config(silence_s=1.0))
    anyio.run(functools.partial(writer.take_turn, "Go on."))


def test_killed_at_any_write_of_the_next_turn_what_was_cut_off_is_there(workspace: Workspace) -> None:
    """SIGKILL before each thing that the beginning of a turn does to the disk: what was heard of the one
    before it, answer and article, is shown by every command, and the article is one version."""
    step = 0
    while True:
        task = _cut_off(workspace, step)
        died = killed_before(step, functools.partial(_next_turn, workspace, task))
        first = OpenDraft(workspace, task, "main").turns_now()[0]
        assert (first.state, first.partial) == (TurnState.interrupted, "I begin."), step
        assert [one.text for one in workspace.text(task, "main").revisions()] == ["# Fog"], step
        if not died:
            break
        step += 1
    assert step > 10


def test_a_lease_outlives_the_cli(
    workspace: Workspace,
    claude: ClaudeAgent,
    model: OfflineModel,
    monkeypatch: pytest.MonkeyPatch,
    blockbuster: BlockBuster,
) -> None:
    """When the right to write a draft is given up, no process writes it any more: the CLI has come to its
    end."""
    blockbuster.deactivate()  # processes are looked at right where the lease ends
    task = workspace.new_task("Herons")
    mine, session = workspace.identify().id, task.drafts["main"].session_id
    model.script = lambda request: [Text("Fine.")]
    left: list[list[psutil.Process]] = []
    release = Lease.release

    def looked_at(lease: Lease) -> None:
        if lease._held is not None and lease._address == task.address("main"):
            left.append([cli.process for cli in of_sessions(living(), mine, [session])])
        release(lease)

    monkeypatch.setattr(Lease, "release", looked_at)

    async def go() -> None:
        async with Engine(workspace, claude, Config()) as engine:
            await engine.send(task, task.drafts["main"], "Go.").outcome()
            assert await anyio.to_thread.run_sync(lambda: len(of_sessions(living(), mine, [session]))), (
                "this one would be seen"
            )

    run(go)
    assert left == [[]]
