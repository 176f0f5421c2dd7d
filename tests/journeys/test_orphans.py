"""CLIs that outlive their programs: nothing that they finish is thrown away, and nobody forges it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from commands import command, environment, smartwriter, written
from crashes import answered, crashed, orphan, turn_of
from faces import data, printed
from transcripts import entry, entry_uuid

import smartwriter.files.durable as durable
import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading
from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.notes import half_article
from smartwriter.agent.offline.script import Reply, Request, Text, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.events import ArticleDelta, CallBegun, Event, TurnRecovered
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.orphans import HOMES, cli_mark, end, history_mark, mark_home
from smartwriter.tasks.cut_off import to_be_told
from smartwriter.tasks.values import Task, TurnState
from smartwriter.turns.live import LiveJournal
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine
from smartwriter.writing.orphans import orphans_of, still_writing
from smartwriter.writing.recovery import recover


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


@contextmanager
def a_process(env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """One that lives until its input is closed, or it is ended."""
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def marked(workspace: Workspace, task: Task) -> dict[str, str]:
    return cli_mark(workspace.identify().id, task.drafts["main"].session_id)


# Alive --------------------------------------------------------------------------------------------


def test_a_living_cli_is_left_to_end(workspace: Workspace, task: Task) -> None:
    """As long as it lives its turn is not settled and its folder stays; then all of it is taken in."""
    crashed(workspace, task, stored=1)
    folder = orphan(task, [history_mark(workspace.identify().id), *answered(1)])
    with a_process({**marked(workspace, task), "CLAUDE_CONFIG_DIR": str(folder)}) as process:
        assert recover(workspace) == [] and folder.exists()
        assert turn_of(workspace, task).state is TurnState.running
        (transcript,) = folder.rglob("*.jsonl")
        transcript.write_text("".join(json.dumps(item) + "\n" for item in answered(2)))
        assert [found.process.pid for found in still_writing(OpenDraft(workspace, task, "main"))] == [
            process.pid
        ]
        end(still_writing(OpenDraft(workspace, task, "main")))
    assert still_writing(OpenDraft(workspace, task, "main")) == []
    assert [found.turn.state for found in recover(workspace)] == [TurnState.recovered]
    assert not folder.exists()


def test_a_running_host_looks_again(workspace: Workspace, task: Task, claude: ClaudeAgent) -> None:
    """It takes an answer in when the CLI that writes it has ended, and tells so, without being asked."""
    crashed(workspace, task, stored=1)
    folder = orphan(task, answered(2))

    async def told_when_it_has_ended() -> Event:
        async with Engine(workspace, claude) as engine, engine.events() as events:
            while not engine.orphans:  # noqa: ASYNC110 (it is found by looking)
                await anyio.sleep(0.01)
            await anyio.to_thread.run_sync(end, list(engine.orphans))
            with anyio.fail_after(30):
                return await events.receive()

    with a_process({**marked(workspace, task), "CLAUDE_CONFIG_DIR": str(folder)}):
        event = anyio.run(told_when_it_has_ended)
    assert isinstance(event, TurnRecovered) and event.turn.state is TurnState.recovered
    assert "was finished after the program had died" in event.detail
    assert not folder.exists()


def _in_two_halves(gate: threading.Event) -> Any:
    def script(request: Request) -> Reply:
        if request.prompt.endswith("slowly."):
            return [Text("The first half,"), Wait(gate), Text(" and the second half.")]
        return [Text(f"You said: {request.prompt}")]

    return script


@pytest.mark.parametrize("turns_before", [0, 1])
def test_asked_again_at_once_after_the_crash(
    workspace: Workspace, task: Task, tmp_path: Path, turns_before: int
) -> None:
    """The next turn waits for the CLI that still writes, and has its whole answer; a copy of the workspace,
    with the same sessions, neither waits for it nor eats it, and says that it is a copy."""
    gate = threading.Event()
    with OfflineModel(_in_two_halves(gate)) as model:
        for number in range(turns_before):
            written(workspace.root, task.id, f"Turn {number}.", model=model)
        with started(workspace, "write", task.id, "Answer slowly.", model=model) as process:
            assert process.stdout is not None
            process.stdout.read(8)
            os.kill(process.pid, signal.SIGKILL)
        copy = Workspace(Path(shutil.copytree(workspace.root, tmp_path / "copy")))
        in_copy = smartwriter(copy.root, "write", task.id, "Go on.", model=model)
        assert in_copy.returncode == 0 and "is a copy of another one" in in_copy.stderr.decode()
        assert copy.tasks.turns(task, "main")[turns_before].state is TurnState.interrupted
        with started(workspace, "write", task.id, "Go on.", model=model) as process:
            assert process.stderr is not None
            assert b"it is waited for" in process.stderr.readline()
            gate.set()
            said = process.stderr.read().decode()
        assert process.returncode == 0, said
        assert "was finished after the program had died, and is saved" in said
        assert workspace.tasks.turns(task, "main")[turns_before].state is TurnState.recovered
        assert "The first half, and the second half." in model.requests[-1].said
    assert [path.name for path in Path(tempfile.gettempdir()).iterdir()] == []


def test_stop_ends_the_one_that_is_waited_for(workspace: Workspace, task: Task) -> None:
    """Who does not want to wait for a dead program's CLI ends it with ``stop``, and the turn goes ahead."""
    with OfflineModel(_in_two_halves(threading.Event())) as model:
        with started(workspace, "write", task.id, "Answer slowly.", model=model) as process:
            assert process.stdout is not None
            process.stdout.read(8)
            os.kill(process.pid, signal.SIGKILL)
        with started(workspace, "write", task.id, "Go on.", model=model) as process:
            assert process.stderr is not None
            assert b"it is waited for" in process.stderr.readline()
            assert smartwriter(workspace.root, "stop", task.id).returncode == 0
            said = process.stderr.read().decode()
        assert process.returncode == 0, said
        states = [turn.state for turn in workspace.tasks.turns(task, "main")]
        assert states == [TurnState.interrupted, TurnState.finished]
        assert "15 characters of the answer are kept" in said


def test_stop_ends_the_one_that_nobody_waits_for(workspace: Workspace, task: Task) -> None:
    """``stop`` means whatever writes the draft: a dead program's CLI too, before anybody asks again."""
    crashed(workspace, task, stored=1)
    with a_process(marked(workspace, task)) as process:
        done = smartwriter(workspace.root, "stop", task.id)
        assert done.returncode == 0 and "was ended" in done.stdout.decode(), done.stderr.decode()
        assert process.wait(10) == -signal.SIGTERM
    assert "is not being written" in smartwriter(workspace.root, "stop", task.id).stdout.decode()


def started(workspace: Workspace, name: str, *arguments: str, model: OfflineModel) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(workspace.root, name, "--offline", *arguments),
        env=environment(model),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


# Kept ---------------------------------------------------------------------------------------------


def test_the_answer_of_a_turn_that_was_given_up(workspace: Workspace, task: Task) -> None:
    """It is taken in when it comes to light later, and the turn has its answer after all."""
    crashed(workspace, task, stored=1)
    assert [found.turn.state for found in recover(workspace)] == [TurnState.interrupted]
    folder = orphan(task, answered(2))
    assert [found.turn.state for found in recover(workspace)] == [TurnState.recovered]
    assert turn_of(workspace, task).partial == "" and not folder.exists()


def test_the_answer_of_a_turn_that_others_followed(workspace: Workspace, task: Task) -> None:
    """Where the draft has gone on since, the conversation is not turned back to there; before its folder is
    removed, what it holds is put away."""
    turn = crashed(workspace, task, stored=1)
    recover(workspace)
    later = turn.model_copy(update={"number": 2, "uuid": entry_uuid(8), "state": TurnState.finished})
    workspace.tasks.record(task, "main", [later])
    transcript = OpenDraft(workspace, task, "main").transcript
    journal.Journal(transcript.path).append([entry(8, parentUuid=entry_uuid(0)), entry(9)])
    folder = orphan(task, answered(2))
    assert recover(workspace) == [] and not folder.exists()
    assert entry_uuid(1) not in transcript.path.read_text()
    (kept,) = (workspace.hidden / "trash" / "orphans").iterdir()
    assert reading.read(kept).entries == answered(2)


def test_a_folder_stays_until_all_of_it_is_kept(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where what it holds cannot be put anywhere, as on a full disk, it is not removed."""
    folder = orphan(task, answered(2))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "move", full)
    assert recover(workspace) == [] and len(list(folder.rglob("*.jsonl"))) == 1


@pytest.mark.parametrize("home", [False, True])
def test_a_copy_of_the_workspace_leaves_the_folder(
    workspace: Workspace, task: Task, tmp_path: Path, home: bool
) -> None:
    """A copy reads what the CLI of the other one has left, and leaves it there for that one."""
    crashed(workspace, task, stored=1)
    mine = workspace.identify().id
    folder = orphan(task, [history_mark(mine), *answered(2)])
    if home:
        gone = subprocess.Popen(["true"])
        gone.wait()
        folder = folder.rename(folder.with_name(f"{HOMES}{gone.pid}-x"))
        mark_home(folder, mine)
    copy = Workspace(Path(shutil.copytree(workspace.root, tmp_path / "copy")))
    copy.identify()
    assert orphans_of(copy) == []
    assert [found.turn.state for found in recover(copy)] == [TurnState.recovered]
    assert folder.exists()
    assert [found.turn.state for found in recover(workspace)] == [TurnState.recovered]
    assert not folder.exists()


def with_a_call(tool: str, input: dict[str, Any], answer: str | None) -> list[dict[str, Any]]:
    """A turn in which the model used a tool; without an answer, as the CLI of a dead program ends it."""
    call = {"type": "tool_use", "id": "toolu_1", "name": f"mcp__draft__{tool}", "input": input}
    failed = answer is None
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": answer or "…", "is_error": failed}
    used, answered_, done = entry(1), entry(2), entry(3)
    used["message"] = {"role": "assistant", "content": [call], "stop_reason": "tool_use"}
    answered_["message"] = {"role": "user", "content": [result]}
    done["message"]["stop_reason"] = "end_turn"
    return [entry(0), used, answered_, done]


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("write_draft", {"text": "# Herons\n\nOne stands still.\n"}, "# Herons\n\nOne stands still.\n"),
    ("edit_draft", {"edits": [{"old_text": "Fog.", "new_text": "Rain."}]}, "Rain.\n"),
    ("append_draft", {"text": "And rain.", "after": ""}, "Fog.\n\nAnd rain.\n"),
]


@pytest.mark.parametrize(("tool", "input", "text"), CALLS, ids=[tool for tool, _, _ in CALLS])
@pytest.mark.parametrize("heard", [0, 12])
def test_a_call_that_nobody_answered_becomes_a_version(
    workspace: Workspace, task: Task, tool: str, input: dict[str, Any], text: str, heard: int
) -> None:
    """What an orphan's call would have made of the draft is a version beside its text, whole and once,
    however much of it had been heard before the crash; and it is said which one."""
    workspace.text(task, "main").write("Fog.\n", author="writer", turn=1)
    turn = crashed(workspace, task, stored=1)
    if heard and tool != "edit_draft":
        of_call: dict[str, Any] = {"task": task.id, "draft": "main", "turn": 1, "call": "toolu_1"}
        LiveJournal(OpenDraft(workspace, task, "main").live_path).append(
            [
                CallBegun(**of_call, tool=tool),
                ArticleDelta(**of_call, field="text", text=input["text"][:heard]),
            ]
        )
    orphan(task, with_a_call(tool, input, None))
    (told,) = recover(workspace)
    assert told.turn.state is TurnState.recovered and told.turn.number == turn.number
    first, version = workspace.text(task, "main").revisions()
    assert (version.text, version.cut_off, version.turn) == (text, True, 1)
    assert f"{task.id}@main:2" in str(told)
    assert workspace.text(task, "main").read() == first.text == "Fog.\n"


def test_what_an_orphan_finished_is_said_to_be_whole(workspace: Workspace, task: Task) -> None:
    """An article whose last word had arrived is nowhere called cut off, also if it was taken for that before
    its end came to light: in show, log, the history and the note to the model."""
    crashed(workspace, task, stored=1)
    text = "# Herons\n\nOne stands still.\n"
    of_call: dict[str, Any] = {"task": task.id, "draft": "main", "turn": 1, "call": "toolu_1"}
    LiveJournal(OpenDraft(workspace, task, "main").live_path).append(
        [CallBegun(**of_call, tool="write_draft"), ArticleDelta(**of_call, field="text", text=text)]
    )
    assert f"(cut off here; kept as {task.id}@main:1)" in printed(workspace, "show", task.id)
    orphan(task, with_a_call("write_draft", {"text": text}, None))
    recover(workspace)
    shown = printed(workspace, "show", task.id)
    assert f"(whole, but never put into the draft; kept as {task.id}@main:2)" in shown
    assert "cut off" not in shown
    assert ":2  model  +4 −0 words  whole" in printed(workspace, "log", task.id)
    page = workspace.root.parent / "history.md"
    printed(workspace, "export", task.id, "--history", "-o", str(page))
    assert "Revision 2: by the model in turn 1; whole; kept aside" in page.read_text()
    known = workspace.text(task, "main").revisions()
    assert [one.number for one in to_be_told(turn_of(workspace, task), known)] == [2]
    assert half_article(known[1], "").startswith("[What you wrote into the draft had arrived as a whole")
    assert data(workspace, "show", task.id)["cut_off"][0]["whole"]


def test_a_call_that_was_answered_becomes_none(workspace: Workspace, task: Task) -> None:
    """What the program had still done before it died is in the draft, and not beside it once more."""
    crashed(workspace, task, stored=1)
    workspace.text(task, "main").write("Fog.\n", author="model", turn=1)
    orphan(task, with_a_call("write_draft", {"text": "Fog.\n"}, "Saved as revision 1."))
    recover(workspace)
    assert [one.cut_off for one in workspace.text(task, "main").revisions()] == [False]


# Forged -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["writable", "link", "link inside", "another user's"])
def test_a_forged_folder_is_not_looked_at(workspace: Workspace, task: Task, tmp_path: Path, how: str) -> None:
    """Only a real folder of this user's, into which no other one can write, is taken for the CLI's."""
    crashed(workspace, task, stored=1)
    folder = orphan(task, answered(2))
    if how == "writable":
        folder.chmod(0o777)
    elif how == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    elif how == "link inside":
        (folder / "projects").rename(tmp_path / "elsewhere")
        (folder / "projects").symlink_to(tmp_path / "elsewhere")
    elif os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    else:
        pytest.skip("only root makes a folder of another user's")
    assert [found.turn.state for found in recover(workspace)] == [TurnState.interrupted]
    assert folder.exists() and orphans_of(workspace) == []


def test_only_what_goes_back_to_the_prompt_is_taken_in(workspace: Workspace, task: Task) -> None:
    """Whatever else a transcript of the CLI's says was not said in this turn."""
    crashed(workspace, task, stored=1)
    forged = [entry(6, parentUuid=None), entry(7)]
    orphan(task, [*forged, *answered(2)])
    recover(workspace)
    stored = OpenDraft(workspace, task, "main").transcript.read().entries
    assert [item["uuid"] for item in stored] == [entry_uuid(0), entry_uuid(1)]


def test_what_is_made_is_private(tmp_path: Path) -> None:
    """Nobody else reads in ``.smartwriter``, whatever the umask."""
    before = os.umask(0)
    try:
        workspace = Workspace.create(tmp_path / "w")
    finally:
        os.umask(before)
    assert stat.S_IMODE(workspace.hidden.stat().st_mode) == 0o700
