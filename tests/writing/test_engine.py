"""The engine under faults: the real CLI, and a stand-in that is scripted to fail."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from commands import command, environment
from engines import run, then_fine, until
from turns import take_turn, take_turns

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import ApiError, Cut, Reply, Request, Stop, Text, ToolUse, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.errors import Invalid, JournalError, NotSavedYet
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.store import FileSessionStore
from smartwriter.system.config import Config
from smartwriter.tasks.values import Finished, Task, Turn, TurnState
from smartwriter.trials.what_if import adopt_memory, what_if
from smartwriter.turns.spool import Spool
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine

SILENCE_S = 2.5


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


@pytest.mark.parametrize(
    ("steps", "words", "partial"),
    [
        pytest.param(
            [ApiError(400, "invalid_request_error", "no such thing")], "no such thing", "", id="bad"
        ),
        pytest.param([ApiError(401, "authentication_error", "bad key")], "log in", "", id="login"),
        pytest.param([ApiError(403, "permission_error", "not yours")], "not yours", "", id="forbidden"),
        pytest.param([ApiError(429, "rate_limit_error", "too fast")], "429", "", id="rate-limit"),
        pytest.param([ApiError(529, "overloaded_error", "too busy")], "529", "", id="overload"),
        pytest.param([Text("Half a sen"), Cut()], "", "", id="cut"),
        pytest.param([Text("Half a sen"), Stop("max_tokens")], "", "Half a sen", id="length"),
    ],
)
def test_a_failed_turn_is_recorded_in_the_apis_words_and_the_next_one_goes_on(
    workspace: Workspace,
    claude: ClaudeAgent,
    model: OfflineModel,
    task: Task,
    steps: list[Any],
    words: str,
    partial: str,
) -> None:
    """Whatever ends a turn, it is a recorded outcome with the reason, the session id stays unless the turn
    is left out, and the next turn has the whole history."""
    model.script = then_fine(*steps)
    take_turn(workspace, claude, task.id, "First.")
    (failed,), events = take_turns(workspace, claude, [(task.id, "Now fail.")])
    assert failed.state is TurnState.failed
    assert words in failed.detail and failed.detail
    assert partial in failed.partial
    assert events[-1].kind == "failed"
    after = take_turn(workspace, claude, task.id, "Third.")
    assert after.state is TurnState.finished and after.number == 3
    assert "First." in model.requests[-1].said
    sessions = workspace.tasks.find(task.id).drafts["main"]
    ids = (*sessions.earlier_sessions, sessions.session_id)
    assert ids[0] == task.drafts["main"].session_id and len(ids) == 1 + failed.left_out


def test_retries_are_seen(workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task) -> None:
    """While the API is asked again after an overload, whoever listens knows, and for how long."""
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return [ApiError(529, "overloaded_error", "busy")] if len(asked) == 1 else [Text("Here.")]

    model.script = script
    (turn,), events = take_turns(workspace, claude, [(task.id, "Go.")])
    assert turn.state is TurnState.finished
    (retry,) = [event for event in events if event.kind == "retrying"]
    assert retry.attempt == 1 and retry.wait_s > 0 and retry.why == "overloaded"


def test_a_silent_cli_is_given_up(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """When no word comes for silence_s, the turn fails with what was heard, and the next one works."""
    model.script = then_fine(Text("Half a sentence"), Wait(threading.Event()))

    async def go() -> Turn:
        async with Engine(workspace, claude, Config(silence_s=2)) as engine:
            return await engine.send(task, task.drafts["main"], "fail").outcome()

    turn = run(go)
    assert turn.state is TurnState.failed and "nothing for 2 s" in turn.detail
    assert turn.partial == "Half a sentence"
    assert take_turn(workspace, claude, task.id, "Again.").state is TurnState.finished


def test_stop_keeps_what_was_written(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """A stopped turn says so, keeps its partial text, in the transcript too, and the draft goes on."""
    model.script = then_fine(Text("Half a sentence"), Wait(threading.Event()))

    async def go() -> Turn:
        async with Engine(workspace, claude, Config()) as engine, engine.events() as events:
            sent = engine.send(task, task.drafts["main"], "fail")
            await until(events, "text_delta")
            assert await engine.stop(task, task.drafts["main"])
            await until(events, "stopped")
            after = engine.send(task, task.drafts["main"], "Go on.")
            assert (await after.outcome()).state is TurnState.finished
            return await sent.outcome()

    turn = run(go)
    assert turn.state is TurnState.stopped and turn.partial == "Half a sentence"
    assert "Half a sentence" in model.requests[-1].said


def test_another_process_can_stop_a_turn(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """``smartwriter stop`` ends a turn that runs in another process."""
    from commands import smartwriter

    model.script = then_fine(Text("Half"), Wait(threading.Event()))

    async def go() -> Turn:
        async with Engine(workspace, claude, Config()) as engine, engine.events() as events:
            sent = engine.send(task, task.drafts["main"], "fail")
            await until(events, "text_delta")
            status = await anyio.to_thread.run_sync(smartwriter, workspace.root, "status")
            assert "writing, in process" in status.stdout.decode()
            done = await anyio.to_thread.run_sync(smartwriter, workspace.root, "stop", task.id)
            assert done.returncode == 0, done.stderr
            return await sent.outcome()

    assert run(go).state is TurnState.stopped
    assert b"is not being written" in smartwriter(workspace.root, "stop", task.id).stdout
    assert b"Nothing is being written" in smartwriter(workspace.root, "status").stdout


def test_a_waiting_prompt_can_be_taken_back(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """A prompt that waits behind a turn is shown as queued, and can be withdrawn; a running one not."""
    gate = threading.Event()
    model.script = lambda request: [Text("One"), Wait(gate), Text(" two.")]
    draft = task.drafts["main"]

    async def go() -> list[str]:
        async with Engine(workspace, claude, Config()) as engine, engine.events() as events:
            first = engine.send(task, draft, "First.")
            await until(events, "text_delta")
            second = engine.send(task, draft, "Second.")
            assert (await until(events, "queued")).kind == "queued"
            assert not await engine.withdraw(task, draft, first)
            assert await engine.withdraw(task, draft, second)
            gate.set()
            with pytest.raises(Invalid):
                await second.outcome()
            assert (await first.outcome()).state is TurnState.finished
        turns = await anyio.to_thread.run_sync(workspace.tasks.turns, task, "main")
        return [turn.prompt for turn in turns]

    assert run(go) == ["First."]


def test_an_idle_process_is_kept_and_gives_way(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """An idle draft's next turn uses its live process; with one place, another draft gets it at once."""
    one, two = workspace.new_task("One"), workspace.new_task("Two")

    async def go() -> None:
        async with Engine(workspace, claude, Config(parallel=1, idle_s=60)) as engine:
            for task in (one, one, two, one):
                turn = await engine.send(task, task.drafts["main"], "Go.").outcome()
                assert turn.state is TurnState.finished
                assert len(engine._actors) == 1

    run(go)
    assert [turn.number for turn in workspace.tasks.turns(one, "main")] == [1, 2, 3]


def _finish(workspace: Workspace, task: Task) -> None:
    finished = Finished(draft="main", revision=1, article="articles/x.md")
    workspace.tasks.update(task.id, lambda task: task.model_copy(update={"finished": finished}))


def _rename_by_hand(workspace: Workspace, task: Task) -> None:
    folder = workspace.root / "collections" / "Rivers"
    folder.rename(folder.with_name("Streams"))


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [(_finish, "is finished; to write on"), (_rename_by_hand, "There is no folder of Rivers any more")],
)
def test_an_idle_process_notices_what_happened_meanwhile(
    workspace: Workspace,
    claude: ClaudeAgent,
    model: OfflineModel,
    meanwhile: Callable[[Workspace, Task], None],
    said: str,
) -> None:
    """A live process writes no further in a task that was finished, nor into a folder that is gone."""
    workspace.new_collection("Rivers")
    task = workspace.new_task("Herons", "Rivers")
    workspace.text(task, "main").write("Fog.", author="writer", turn=1)

    async def go() -> None:
        async with Engine(workspace, claude, Config(idle_s=60)) as engine:
            await engine.send(task, task.drafts["main"], "Go.").outcome()
            await anyio.to_thread.run_sync(meanwhile, workspace, task)
            with pytest.raises(Invalid, match=said):
                await engine.send(task, task.drafts["main"], "Go on.").outcome()

    run(go)
    assert len(workspace.tasks.turns(task, "main")) == 1
    assert meanwhile is _finish or not (workspace.root / "collections" / "Rivers").exists()


def test_an_idle_process_has_the_memory_that_was_adopted(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, tmp_path: Path
) -> None:
    """Once a what-if's memory is the collection's own, its session gets what becomes of that, too."""
    folder = workspace.new_collection("Rivers").path
    task = workspace.new_task("Herons", "Rivers")
    (tmp_path / "bold.md").write_text("A bold voice.")
    other = what_if(OpenDraft(workspace, task, "main"), [f"profile.md={tmp_path / 'bold.md'}"])
    draft = task.drafts["main"].model_copy(update={"memory": other})
    task = workspace.tasks.update(task.id, lambda task: task.with_draft(draft))

    def adopt() -> None:
        adopt_memory(OpenDraft(workspace, task, draft.name))
        (folder / "profile.md").write_text("A calm voice.")

    async def go() -> None:
        async with Engine(workspace, claude, Config(idle_s=60)) as engine:
            await engine.send(task, draft, "Go.").outcome()
            await anyio.to_thread.run_sync(adopt)
            await engine.send(task, draft, "Go on.").outcome()

    run(go)
    assert "A bold voice." in model.requests[0].system
    assert "A calm voice." in model.requests[-1].system


def test_a_dropped_attempt_does_not_count(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """When the connection breaks mid-answer and the API is asked anew, the first text is taken back."""
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return [Text("The first attempt"), Cut()] if len(asked) == 1 else [Text("The second, whole.")]

    model.script = script
    (turn,), events = take_turns(workspace, claude, [(task.id, "Go.")])
    assert turn.state is TurnState.finished
    text = ""
    for event in events:
        if event.kind == "text_delta":
            text += event.text
        elif event.kind == "text_dropped":
            text = text[: len(text) - event.characters]
    assert "The first attempt" not in text


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Which of the store and the spool find the disk full now."""
    found: set[str] = set()

    def failing(name: str, path: Path, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if name in found:
                raise JournalError(path, OSError(28, "No space left on device"))
            return function(*arguments)

        return call

    append_now, put = FileSessionStore.append_now, Spool.put
    monkeypatch.setattr(FileSessionStore, "append_now", failing("store", Path("session"), append_now))
    monkeypatch.setattr(Spool, "put", failing("spool", Path("spool"), put))
    return found


def test_case_102_what_cannot_be_stored_waits_in_the_spool(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task, full: set[str]
) -> None:
    """With the transcript unwritable, its entries go to the spool, loudly, and into their place, in
    order, as soon as that can be written again."""
    take_turn(workspace, claude, task.id, "First.")
    full.add("store")
    (turn,), events = take_turns(workspace, claude, [(task.id, "Second.")], patience_s=0)
    assert turn.state is TurnState.finished
    assert any(event.kind == "not_saved" and "spool" in event.detail for event in events)
    assert list((workspace.hidden / "spool").iterdir())
    full.clear()
    assert workspace.spool.replay() > 0
    assert list((workspace.hidden / "spool").iterdir()) == []
    assert take_turn(workspace, claude, task.id, "Third.").state is TurnState.finished
    said = model.requests[-1].said
    assert said.index("First.") < said.index("Second.") < said.index("Third.")


def test_what_is_only_in_memory_holds_up_the_draft(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task, full: set[str]
) -> None:
    """When the spool fails too, the draft takes no further turn until its last one is stored."""
    draft = task.drafts["main"]

    async def go() -> None:
        async with Engine(workspace, claude, Config(patience_s=0)) as engine:
            full.update(("store", "spool"))
            turn = await engine.send(task, draft, "First.").outcome()
            assert turn.state is TurnState.failed and "No space left on device" in turn.detail
            assert "No other disk takes it" in turn.detail and "First." in turn.partial
            with pytest.raises(NotSavedYet, match="takes no turn"):
                await engine.send(task, draft, "Second.").outcome()

    run(go)


def test_what_is_only_in_memory_is_stored_later(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task, full: set[str]
) -> None:
    """What was only in memory is stored before the next turn, as soon as there is room."""
    draft = task.drafts["main"]

    async def go() -> None:
        async with Engine(workspace, claude, Config(patience_s=0)) as engine:
            full.update(("store", "spool"))
            await engine.send(task, draft, "First.").outcome()
            full.clear()
            assert (await engine.send(task, draft, "Second.").outcome()).state is TurnState.finished

    run(go)
    assert take_turn(workspace, claude, task.id, "Third.").state is TurnState.finished
    assert "First." in model.requests[-1].said and "Second." in model.requests[-1].said


def test_a_host_that_slept_hears_what_came_meanwhile(
    workspace: Workspace, model: OfflineModel, task: Task
) -> None:
    """Stopped (ctrl-Z, a closed lid) for longer than the CLI may be silent, the host looks at what is
    waiting before it says that the CLI was silent."""
    gate = threading.Event()
    model.script = lambda request: [Text("The first half"), Wait(gate), Text(" and the rest.")]
    (workspace.hidden / "config.toml").write_text(f"silence_s = {SILENCE_S}\n")
    live = OpenDraft(workspace, task, "main").live_path
    host = subprocess.Popen(
        command(workspace.root, "write", task.id, "Go.", "--offline"),
        env=environment(model),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not (live.exists() and b"The first half" in live.read_bytes()):
        assert host.poll() is None
        time.sleep(0.02)
    host.send_signal(signal.SIGSTOP)
    gate.set()
    time.sleep(SILENCE_S + 0.5)  # the very thing that is shown
    host.send_signal(signal.SIGCONT)
    said, errors = host.communicate(timeout=30)
    assert host.returncode == 0, errors.decode()
    assert said.decode().strip() == "The first half and the rest."


def test_usage_of_each_turn_is_its_own(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """Tokens and cost are those of the turn alone, also in one process for several turns."""
    turns, _ = take_turns(workspace, claude, [(task.id, "Go.")] * 3)
    assert all(turn.usage.output_tokens > 0 and turn.usage.duration_ms > 0 for turn in turns)
    costs = [turn.usage.cost_usd for turn in turns]
    assert max(costs) < 3 * min(costs) or max(costs) == 0
    assert turns[0].model == "smartwriter-offline"


def test_tools_are_heard(workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task) -> None:
    """Each use of a tool, and what it answered, is an event."""

    def script(request: Request) -> Reply:
        if request.tool_results:
            return [Text("Done.")]
        return [ToolUse("edit_draft", {"edits": [{"old_text": "x", "new_text": "y"}]})]

    model.script = script
    _, events = take_turns(workspace, claude, [(task.id, "Go.")])
    (used,) = [event for event in events if event.kind == "tool_used"]
    (answered,) = [event for event in events if event.kind == "tool_answered"]
    assert used.name == "edit_draft" and answered.failed and "0 times" in answered.text


def test_positions_grow_over_restarts(
    workspace: Workspace, claude: ClaudeAgent, task: Task, tmp_path: Path
) -> None:
    """Every kept event has a position, and they only grow, also in a new engine."""
    positions: list[int] = []
    for _ in range(2):
        _, events = take_turns(workspace, claude, [(task.id, "Go.")])
        positions += [event.position for event in events if event.kind != "queued"]
    assert positions == sorted(set(positions)) and positions[0] > 0
