"""After a crash: what the CLI still wrote is taken in, and the writer is told, once."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from commands import command, environment, smartwriter, written
from crashes import answered, crashed, orphan, turn_of
from transcripts import entry

import smartwriter.files.durable as durable
import smartwriter.storage.reading as reading
from smartwriter.agent.offline.script import Reply, Request, Text, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.doctor.examine import examine
from smartwriter.events import parse
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.orphans import HOMES
from smartwriter.tasks.values import Finished, Task, TurnState
from smartwriter.turns.parts import Part
from smartwriter.workspace import Workspace
from smartwriter.writing.orphans import orphans_of
from smartwriter.writing.recovery import recover
from smartwriter.writing.status import statuses

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def test_an_answer_finished_into_an_orphaned_folder_is_taken_in(workspace: Workspace, task: Task) -> None:
    """The entries that we lack are appended, the turn is recovered, the folder with its copy of
    credentials is gone, and it is told once."""
    crashed(workspace, task, stored=1)
    folder = orphan(task, answered(2))
    (told,) = recover(workspace)
    assert "was finished after the program had died" in str(told)
    assert turn_of(workspace, task).state is TurnState.recovered
    entries = OpenDraft(workspace, task, "main").transcript.read().entries
    assert [item["uuid"] for item in entries] == [entry(n)["uuid"] for n in range(2)]
    assert not folder.exists()
    assert recover(workspace) == []


def test_a_first_turn_is_found_in_the_clis_own_folder(
    workspace: Workspace, task: Task, tmp_path: Path
) -> None:
    """On a first turn the CLI writes into its own projects folder, which is read and left alone."""
    crashed(workspace, task)
    config = tmp_path / "config"
    folder = orphan(task, answered(2))
    folder.rename(config)
    (told,) = recover(workspace, [config])
    assert told.turn.state is TurnState.recovered
    assert len(OpenDraft(workspace, task, "main").transcript.read().entries) == 2
    assert list(config.rglob("*.jsonl"))


@pytest.mark.parametrize("reason", [None, "tool_use"])
def test_an_answer_that_never_ended_is_interrupted(
    workspace: Workspace, task: Task, reason: str | None
) -> None:
    """A turn without a whole answer keeps what had been heard of it."""
    crashed(workspace, task, stored=1)
    orphan(task, answered(2, reason))
    (told,) = recover(workspace)
    turn = turn_of(workspace, task)
    assert turn.state is TurnState.interrupted and turn.partial == "Half a sen"
    assert "10 characters of the answer are kept" in str(told)


def test_nobody_is_told_to_write_on_in_a_finished_draft(workspace: Workspace, task: Task) -> None:
    """Whoever tells of a turn that was cut off says how it goes on: where its task is finished, by
    reopening it first, in status, doctor and recovery alike."""
    crashed(workspace, task, stored=1)
    (status,), (found,) = statuses(workspace), [one for one in examine(workspace) if one.kind == "cut-off"]
    assert status.state.endswith("just write on") and "the next turn goes on" in found.meaning
    finished = Finished(draft="main", revision=0, article="articles/Herons.md")
    workspace.tasks.update(task.id, lambda known: known.model_copy(update={"finished": finished}))
    (status,), (found,) = statuses(workspace), [one for one in examine(workspace) if one.kind == "cut-off"]
    (told,) = recover(workspace)
    for said in (status.state, found.meaning, str(told)):
        assert said.endswith(f"Herons is finished; to write on: smartwriter reopen {task.id}")
        assert "rite on." not in said and "just write" not in said


def test_others_are_left_alone(workspace: Workspace, task: Task) -> None:
    """A draft that is being written, another program's folder, and one that a live process uses stay."""
    crashed(workspace, task, stored=1)
    mine = orphan(task, answered(2))
    others = Path(tempfile.mkdtemp(prefix="claude-resume-"))
    stranger = others / "projects" / "x" / "22222222-2222-4333-8444-555555555555.jsonl"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("{}\n")
    with OpenDraft(workspace, task, "main").lease():
        assert recover(workspace) == []
        assert mine.exists() and turn_of(workspace, task).state is TurnState.running
    recover(workspace)
    assert not mine.exists() and others.exists()


def test_the_home_of_a_dead_stand_in_is_removed(workspace: Workspace, tmp_path: Path) -> None:
    """Where its process is gone and no session in it; that of a live one stays, as does a folder without a
    session that nothing tells to be ours."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    dead, live, foreign = (
        tmp_path / "tmp" / name
        for name in (f"{HOMES}{gone.pid}-x", f"{HOMES}{os.getpid()}-x", "claude-resume-x")
    )
    for folder in (dead, live, foreign):
        (folder / ".claude").mkdir(parents=True)
    recover(workspace)
    assert [folder.exists() for folder in (dead, live, foreign)] == [False, True, True]


def test_the_spool_is_replayed_first(workspace: Workspace, task: Task) -> None:
    """What waited in the spool is in its place after a start."""
    draft = task.drafts["main"]
    key: Any = {"project_key": task.project_key, "session_id": draft.session_id}
    workspace.spool.put(Part("transcript", task.id, "main", answered(2)[:1], key))
    workspace.spool.put(Part("transcript", task.id, "main", answered(2)[1:], key))
    recover(workspace)
    entries = OpenDraft(workspace, task, draft.name).transcript.read().entries
    assert [item["uuid"] for item in entries] == [entry(n)["uuid"] for n in range(2)]


def _finish_later(gate: threading.Event) -> Any:
    def script(request: Request) -> Reply:
        if request.prompt.endswith("slowly."):
            return [Text("The first half,"), Wait(gate), Text(" and the second half.")]
        return [Text(f"You said: {request.prompt}")]

    return script


@pytest.mark.parametrize("turns_before", [0, 1])
def test_the_cli_outlives_its_host(workspace: Workspace, task: Task, turns_before: int) -> None:
    """When only the host is killed, the real CLI finishes the answer, and the next start has it."""
    gate = threading.Event()
    with OfflineModel(_finish_later(gate)) as model:
        for number in range(turns_before):
            written(workspace.root, task.id, f"Turn {number}.", model=model)
        with subprocess.Popen(
            command(workspace.root, "run", "--json", "--offline", f"{task.id}=Answer slowly."),
            env=environment(model),
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if parse(line).kind == "text_delta":
                    break
            clis = psutil.Process(process.pid).children(recursive=True)
            os.kill(process.pid, signal.SIGKILL)
        gate.set()
        psutil.wait_procs(clis, timeout=30)
        done = smartwriter(workspace.root, "write", task.id, "Go on.", model=model)
        assert done.returncode == 0, done.stderr.decode()
        turn = workspace.tasks.turns(task, "main")[turns_before]
        assert turn.state is TurnState.recovered, (turn, done.stderr.decode())
        assert "was finished after the program had died" in done.stderr.decode()
        assert "The first half, and the second half." in model.requests[-1].said
    left = [path.name for path in Path(tempfile.gettempdir()).iterdir()]
    assert not [name for name in left if name.startswith("claude-resume-")], left


def test_a_folder_that_another_process_removes_is_passed_over(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that start after a crash look at the same folder: neither fails, whoever is faster."""
    crashed(workspace, task, stored=1)
    folder = orphan(task, answered(2))
    glob = Path.glob

    def gone(self: Path, pattern: str) -> Iterator[Path]:
        if self != folder or pattern.startswith("claude-"):
            return glob(self, pattern)
        raise FileNotFoundError(2, "No such file or directory", str(self))

    monkeypatch.setattr(Path, "glob", gone)
    (told,) = recover(workspace)
    assert told.turn.state is TurnState.interrupted
    assert orphans_of(workspace) == []


@pytest.mark.parametrize(("module", "when"), [(reading, "read"), (durable, "move")])
def test_a_batch_that_another_process_stores(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch, module: ModuleType, when: str
) -> None:
    """What waits in the spool may be stored by two at once: both go on, and each entry is there once."""
    key: SessionKey = {"project_key": task.project_key, "session_id": task.drafts["main"].session_id}
    workspace.spool.put(Part("transcript", task.id, "main", answered(2), key))
    function, other = getattr(module, when), Workspace(workspace.root)

    def slower(*arguments: Any) -> Any:
        monkeypatch.setattr(module, when, function)
        assert other.spool.replay() == 1
        return function(*arguments)

    monkeypatch.setattr(module, when, slower)
    assert workspace.spool.replay() == 0
    assert len(OpenDraft(workspace, task, "main").transcript.read().entries) == 2
