"""Prompts that wait: on disk, shown, taken back, and sent exactly once whatever dies."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from anyio.to_thread import run_sync
from commands import command, environment, smartwriter, written
from dying import killed_before
from engines import run, until

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Reply, Request, Text, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.cli.interrupts import kill_tree
from smartwriter.errors import DraftBusy, Invalid
from smartwriter.events import parse
from smartwriter.open_draft import OpenDraft
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.trials.edits import put_back
from smartwriter.trials.version import version
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def _slow(request: Request) -> Reply:
    if request.prompt.endswith("slowly."):
        return [Text("Half"), Wait(threading.Event())]
    return [Text(f"You said: {request.prompt}")]


def _begin(workspace: Workspace, task: Task, id: str) -> None:
    """What starting a turn does on disk."""
    outbox = OpenDraft(workspace, task, "main").outbox()
    outbox.put(id, "Go.")
    assert outbox.take(id)
    session = task.drafts["main"].session_id
    turn = Turn(
        number=1, uuid=id, session_id=session, prompt="Go.", memory={}, state=TurnState.running, revision=0
    )
    workspace.tasks.record(task, "main", [turn])
    outbox.tidy()


def test_killed_at_any_write_a_prompt_waits_or_has_its_turn(workspace: Workspace, task: Task) -> None:
    """SIGKILL before each thing that sending and starting do to the disk: once sent, a prompt waits or
    its turn is recorded, never both, never neither."""
    step, sent = 0, False
    while True:
        task = workspace.new_task(f"Herons {step}")
        id = str(uuid4())
        died = killed_before(step, partial(_begin, workspace, task, id))
        waits = [one.id for one in OpenDraft(workspace, task, "main").outbox().waiting()]
        turns = [turn.uuid for turn in workspace.tasks.turns(task, "main")]
        assert waits + turns in ([id], [] if not sent else [id]), step
        sent = sent or bool(waits)
        if not died:
            break
        step += 1
    assert step > 5 and sent and turns == [id]
    assert not workspace.places.outbox(task.id, "main").exists()


def _killed_while_one_waits(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    jobs = [f"{task.id}={prompt}" for prompt in ("Write slowly.", "Then this.", "Then that.")]
    with subprocess.Popen(
        command(workspace.root, "run", "--json", "--offline", *jobs),
        env=environment(model),
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        while parse(process.stdout.readline()).kind != "text_delta":
            pass
        while len(OpenDraft(workspace, task, "main").outbox().waiting()) < 2:
            threading.Event().wait(0.01)
        kill_tree(process.pid)


def test_prompts_that_wait_survive_a_kill(workspace: Workspace, task: Task) -> None:
    """Killed in a turn, the prompts behind it are shown by every list, one can be taken back, and the
    next write sends the other first, says so, and no prompt twice."""
    with OfflineModel(_slow) as model:
        _killed_while_one_waits(workspace, task, model)
        assert b"2 prompts wait" in smartwriter(workspace.root, "status").stdout
        assert b"[2 prompts wait]" in smartwriter(workspace.root, "tasks").stdout
        shown = smartwriter(workspace.root, "show", task.id).stdout.decode()
        assert "[waits, 1] Then this." in shown and "[waits, 2] Then that." in shown
        asked = smartwriter(workspace.root, "withdraw", task.id)
        assert asked.returncode == 1 and b"1: Then this.; 2: Then that." in asked.stderr
        assert smartwriter(workspace.root, "withdraw", task.id, "2").stdout == b"Then that.\n"
        done = smartwriter(workspace.root, "write", task.id, "At last.", model=model)
        assert done.returncode == 0, done.stderr.decode()
        assert "still waiting and is sent first:\n  Then this." in done.stderr.decode()
        prompts = [turn.prompt for turn in workspace.tasks.turns(task, "main")]
        assert prompts == ["Write slowly.", "Then this.", "At last."]
        assert not workspace.places.outbox(task.id, "main").exists()


def test_the_same_command_again_is_the_same_prompt(workspace: Workspace, task: Task) -> None:
    """Who starts a killed ``run`` again gets each prompt that had waited once."""
    with OfflineModel(_slow) as model:
        _killed_while_one_waits(workspace, task, model)
        jobs = [f"{task.id}={prompt}" for prompt in ("Then this.", "Then that.")]
        done = smartwriter(workspace.root, "run", *jobs, model=model)
        assert done.returncode == 0, done.stderr.decode()
    prompts = [turn.prompt for turn in workspace.tasks.turns(task, "main")]
    assert prompts == ["Write slowly.", "Then this.", "Then that."]


@pytest.mark.parametrize(("number", "wait"), [(signal.SIGINT, 0), (signal.SIGTERM, 1)])
def test_what_waits_at_a_stop(workspace: Workspace, task: Task, number: signal.Signals, wait: int) -> None:
    """Ctrl-C takes back what waits; a machine that shuts down leaves it there, and it is said."""
    with OfflineModel(_slow) as model:
        jobs = [f"{task.id}={prompt}" for prompt in ("Write slowly.", "Then this.")]
        with subprocess.Popen(
            command(workspace.root, "run", "--json", "--offline", *jobs),
            env=environment(model),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            while parse(process.stdout.readline()).kind != "text_delta":
                pass
            process.send_signal(number)
            events = [json.loads(line) for line in process.stdout]
            said = process.stderr.read().decode()
    assert [event["kept"] for event in events if event["kind"] == "withdrawn"] == [bool(wait)]
    assert len(OpenDraft(workspace, task, "main").outbox().waiting()) == wait
    assert ("smartwriter withdraw" in said) == bool(wait)
    assert [turn.state for turn in workspace.tasks.turns(task, "main")] == [TurnState.stopped]


def test_a_prompt_to_a_draft_that_another_process_writes(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """It is refused at once, even when no place is free; it waits nowhere, and what was typed is printed."""
    model.script = _slow
    other = workspace.new_task("Granite")

    async def go() -> None:
        async with Engine(workspace, claude, Config()) as engine, engine.events() as events:
            engine.send(task, task.drafts["main"], "Write slowly.")
            await until(events, "text_delta")
            refused = await run_sync(
                lambda: smartwriter(workspace.root, "write", task.id, "-", stdin=b"A long page.", model=model)
            )
            assert refused.returncode == 1 and b"is being written by process" in refused.stderr
            async with Engine(workspace, claude, Config(parallel=1)) as second:
                second.send(other, other.drafts["main"], "Write slowly.")
                late = second.send(task, task.drafts["main"], "Me too.")
                with anyio.fail_after(20), pytest.raises(DraftBusy):
                    await late.kept()
                await second.stop_all()
            await engine.stop_all()

    run(go)
    assert OpenDraft(workspace, task, "main").outbox().waiting() == []


def test_the_same_id_is_the_same_prompt_and_its_turn(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """A prompt that is sent again by its id while it waits is one; its id is its turn's; and another
    process that takes it back is heeded."""
    model.script = _slow
    draft, id = task.drafts["main"], str(uuid4())

    async def go() -> None:
        async with Engine(workspace, claude, Config()) as engine, engine.events() as events:
            first = engine.send(task, draft, "Write slowly.")
            await until(events, "text_delta")
            second, third = engine.send(task, draft, "Once.", id), engine.send(task, draft, "Taken back.")
            assert engine.send(task, draft, "Once.", id) is second
            await third.kept()
            done = await run_sync(smartwriter, workspace.root, "withdraw", task.id, "2")
            assert done.stdout == b"Taken back.\n", done.stderr
            await engine.stop(task, draft)
            assert (await first.outcome()).state is TurnState.stopped
            assert (await second.outcome()).uuid == id
            with pytest.raises(Invalid):
                await third.outcome()

    run(go)
    assert [turn.prompt for turn in workspace.tasks.turns(task, "main")] == ["Write slowly.", "Once."]


def _restore(workspace: Workspace, task: Task) -> None:
    assert put_back(version(workspace, f"{task.id}:1")).text == "Fog."


def _restore_elsewhere(workspace: Workspace, task: Task) -> None:
    done = smartwriter(workspace.root, "restore", f"{task.id}:1")
    assert done.returncode == 0, done.stderr.decode()


def _write_elsewhere(workspace: Workspace, task: Task) -> None:
    with OfflineModel() as model:
        written(workspace.root, task.id, "From elsewhere.", model=model)


@pytest.mark.parametrize("use", [_restore, _restore_elsewhere, _write_elsewhere])
def test_an_idle_process_refuses_nobody(
    workspace: Workspace,
    claude: ClaudeAgent,
    model: OfflineModel,
    task: Task,
    use: Callable[[Workspace, Task], None],
) -> None:
    """Right after a turn, while its process is kept for the next one, the draft can be restored and
    written, from the same process and from another; and then the next turn goes on."""
    for text in ("Fog.", "Rain."):
        workspace.text(task, "main").write(text, author="writer", turn=1)

    async def go() -> None:
        async with Engine(workspace, claude, Config(idle_s=60)) as engine:
            await engine.send(task, task.drafts["main"], "Go.").outcome()
            await run_sync(use, workspace, task)
            assert (await engine.send(task, task.drafts["main"], "Go on.").outcome()).number >= 2
            async with engine.borrow(task, task.drafts["main"]):
                assert not engine._actors

    run(go)


def test_a_damaged_outbox_costs_nothing_else(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """A line that is no prompt is passed over, and the file that has it is kept."""
    outbox = OpenDraft(workspace, task, "main").outbox()
    outbox.put("a", "One.")
    with open(workspace.places.outbox(task.id, "main"), "ab") as file:
        file.write(b'{"type":"waiting","id":5}\n{"type":"waiting","id":"b","pro\n')
    outbox.put("c", "Three.")
    assert [one.prompt for one in outbox.waiting()] == ["One.", "Three."]
    assert outbox.withdraw("a") and outbox.withdraw("c") and not outbox.withdraw("c")
    assert workspace.places.outbox(task.id, "main").exists() and outbox.waiting() == []
