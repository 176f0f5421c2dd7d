"""Turns on a disk that takes no more, or that goes away: the real CLI, and not a word lost."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync
from commands import smartwriter
from disks import in_place_of_os
from turns import take_turns

import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.doctor.examine import examine
from smartwriter.events import Event
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.transcript import answer_to
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task, TurnState
from smartwriter.turns.parts import Part
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine
from smartwriter.writing.recovery import recover

WORDS = " ".join(f"word{number}" for number in range(120))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc where a file is")


@dataclass
class Disks:
    """Which folders lie on a disk that is full now."""

    full: set[Path] = field(default_factory=set)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, fd: int, data: bytes) -> int:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if any(path.is_relative_to(folder) for folder in self.full):
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(fd, data)


@pytest.fixture
def disks() -> Iterator[Disks]:
    found = Disks()
    with in_place_of_os(found):
        yield found
    found.full.clear()


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def then(act: Callable[[], object], *, article: bool) -> Callable[[Request], Reply]:
    """A script that does something when the prompt is there, and then writes."""

    def script(request: Request) -> Reply:
        if request.tool_results:
            return [Text("Done.")]
        act()
        return [ToolUse("write_draft", {"text": WORDS}, chunk_chars=80)] if article else [Text(WORDS)]

    return script


def written(workspace: Workspace, task: Task, *, article: bool) -> str:
    """What is in its place."""
    (turn,) = workspace.tasks.turns(task, "main")
    assert turn.state is TurnState.finished
    if article:
        return workspace.text(task, "main").read()
    draft = workspace.tasks.find(task.id).drafts["main"]
    return answer_to(OpenDraft(workspace, task, draft.name).transcript.read().entries, turn.uuid) or ""


@pytest.mark.parametrize("article", [False, True])
def test_a_turn_waits_for_room(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task, disks: Disks, article: bool
) -> None:
    """While a disk is full, a turn is not finished and says so, with the file; emptied, it finishes with
    every word in its place and nothing anywhere else, the answer and the article alike."""
    model.script = then(lambda: disks.full.add(workspace.root), article=article)
    said: list[Event] = []

    async def go() -> TurnState:
        async with Engine(workspace, claude, Config()) as engine, engine.events() as events:
            sent = engine.send(task, task.drafts["main"], "Write.")
            async for event in events:
                said.append(event)
                if event.kind == "not_saved" and "Tried again" in event.detail:
                    (turn,) = await run_sync(workspace.tasks.turns, task, "main")
                    assert turn.state is TurnState.running
                    disks.full.clear()
                if event.kind == "saved":
                    break
            return (await sent.outcome()).state

    assert anyio.run(go) is TurnState.finished
    told = " ".join(event.detail for event in said if event.kind == "not_saved")
    assert f"Could not write {workspace.root}" in told and "bytes needed" in told
    assert written(workspace, task, article=article) == WORDS
    assert workspace.spool.paths() == []


@pytest.mark.parametrize("article", [False, True])
@pytest.mark.parametrize("gone", [False, True])
def test_what_a_disk_does_not_take_is_kept_on_another(
    workspace: Workspace,
    claude: ClaudeAgent,
    model: OfflineModel,
    task: Task,
    disks: Disks,
    article: bool,
    gone: bool,
) -> None:
    """Full to the end, or renamed in the turn (case 110): every word is kept outside, nothing is made at
    the old place, and the next start, under whatever name, takes it in and leaves nothing behind."""
    renamed = workspace.root.with_name("renamed")

    def act() -> None:
        if gone:
            workspace.root.rename(renamed)
        else:
            disks.full.add(workspace.root)

    model.script = then(act, article=article)
    (turn,), events = take_turns(workspace, claude, [(task.id, "Write.")], patience_s=0)
    assert turn.state is TurnState.finished
    why = "renamed, unmounted" if gone else "No space left"
    assert any(event.kind == "not_saved" and why in event.detail for event in events)
    assert WORDS in " ".join(path.read_text() for path in workspace.spool.paths())
    assert workspace.root.exists() != gone
    disks.full.clear()
    found = Workspace(renamed if gone else workspace.root)
    assert {finding.kind for finding in examine(found)} >= {"spool"}
    recover(found)
    assert written(found, task, article=article) == WORDS
    assert found.spool.paths() == []
    assert [finding for finding in examine(found) if finding.kind in ("spool", "turns", "text")] == []


FACT = "The ferry is green."


def proposes(act: Callable[[], object]) -> Callable[[Request], Reply]:
    """A script that does something when the prompt is there, and then proposes a line for the memory."""

    def script(request: Request) -> Reply:
        if request.tool_results:
            return [Text("Done.")]
        act()
        return [ToolUse("propose_memory", {"line": FACT})]

    return script


def test_a_proposal_is_kept_as_the_rest_of_its_turn_is(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, disks: Disks
) -> None:
    """A line that the disk does not take waits elsewhere, the model is told so, and the writer what waits;
    the next start proposes it, once, and not what was decided meanwhile."""
    workspace.new_collection("rivers")
    task = workspace.new_task("Herons", "rivers")
    model.script = proposes(lambda: disks.full.add(workspace.root))
    _, events = take_turns(workspace, claude, [(task.id, "Write.")], patience_s=0)
    assert "This is kept all the same" in model.requests[-1].tool_results[-1]
    assert any(event.kind == "not_saved" and "No space left" in event.detail for event in events)
    proposals = workspace.task_series(task).proposals
    assert proposals.pending() == []
    assert FACT in " ".join(path.read_text() for path in workspace.spool.paths())
    disks.full.clear()
    recover(workspace)
    recover(workspace)
    (proposed,) = proposals.pending()
    assert (proposed.text, proposed.task, proposed.turn) == (FACT, task.id, 1)
    assert workspace.spool.paths() == []
    proposals.reject(proposed.id)
    workspace.spool.put(Part("proposal", task.id, "main", [{"line": FACT}], at={"turn": 1}))
    recover(workspace)
    assert proposals.pending() == [] and workspace.spool.paths() == []


def test_a_proposal_that_no_disk_takes_is_said(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, disks: Disks, tmp_path: Path
) -> None:
    """With no room anywhere the turn failed, and the proposed line is among the words that are said."""
    workspace.new_collection("rivers")
    task = workspace.new_task("Herons", "rivers")
    model.script = proposes(lambda: disks.full.add(tmp_path))
    (turn,), events = take_turns(workspace, claude, [(task.id, "Write.")], patience_s=0)
    assert turn.state is TurnState.failed
    (said,) = [event for event in events if event.kind == "not_kept"]
    assert FACT in said.text.splitlines()


def test_what_no_disk_takes_is_said_in_full(
    workspace: Workspace,
    claude: ClaudeAgent,
    model: OfflineModel,
    task: Task,
    disks: Disks,
    tmp_path: Path,
) -> None:
    """With no room anywhere, the turn failed, and an event has all of the words."""
    model.script = then(lambda: disks.full.add(tmp_path), article=True)
    (turn,), events = take_turns(workspace, claude, [(task.id, "Write.")], patience_s=0)
    assert turn.state is TurnState.failed and "No other disk takes it" in turn.detail
    (said,) = [event for event in events if event.kind == "not_kept"]
    assert WORDS in said.text and "Done." in said.text


def test_a_command_whose_words_are_kept_elsewhere_fails_and_says_where(
    workspace: Workspace, model: OfflineModel, task: Task
) -> None:
    """``write`` in a workspace that is renamed meanwhile: exit code 1, and the folder; the next one
    under the new name says all that was said, and answers."""
    renamed = workspace.root.with_name("renamed")
    (workspace.hidden / "config.toml").write_text("patience_s = 0\n")
    model.script = then(lambda: workspace.root.rename(renamed), article=False)
    done = smartwriter(workspace.root, "write", task.id, "Write.", model=model)
    assert done.returncode == 1 and WORDS in done.stdout.decode()
    assert f"bring {workspace.root} back" in done.stderr.decode()
    model.script = lambda request: [Text("More.")]
    assert smartwriter(renamed, "write", task.id, "Go on.", model=model).returncode == 0
    assert WORDS in model.requests[-1].said
    assert WORDS in smartwriter(renamed, "show", task.id).stdout.decode().replace("\n", " ")
    assert not workspace.root.exists()


def test_a_copy_does_not_take_in_what_is_the_others(workspace: Workspace, task: Task, disks: Disks) -> None:
    """What is kept elsewhere is its workspace's, not that of a copy with the same tasks and sessions, nor
    another's when its own is gone."""
    copy = workspace.root.with_name("copy")
    shutil.copytree(workspace.root, copy)
    disks.full.add(workspace.root)
    workspace.spool.put(Part("turns", task.id, "main", []))
    disks.full.clear()
    assert Workspace(copy).spool.paths() == []
    assert len(Workspace(workspace.root).spool.paths()) == 1
    workspace.root.rename(workspace.root.with_name("renamed"))
    other = Workspace.create(workspace.root.with_name("other"))
    assert other.new_task("Herons") and other.spool.paths() == []


@pytest.mark.parametrize("hostile", ["open", "link"])
def test_a_folder_that_others_could_have_made_is_left_alone(
    workspace: Workspace, task: Task, disks: Disks, tmp_path: Path, hostile: str
) -> None:
    """A folder for what is kept that others may write to, or a link, is neither written nor read."""
    folder = tmp_path / "tmp" / f"smartwriter-kept-{os.getuid()}"
    if hostile == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "theirs")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    disks.full.add(workspace.root)
    path = workspace.spool.put(Part("turns", task.id, "main", []))
    assert path.is_relative_to(tmp_path / "home") and list(folder.iterdir()) == []
    (folder / "workspace").mkdir()
    shutil.copy(path, folder / "workspace")
    assert workspace.spool.paths() == [path]


def test_a_finished_turn_without_its_answer_is_found(
    workspace: Workspace, claude: ClaudeAgent, task: Task
) -> None:
    """``doctor`` is not content with a transcript that has the prompt of a finished turn alone."""
    take_turns(workspace, claude, [(task.id, "Write.")])
    path = OpenDraft(workspace, task, "main").transcript.path
    assert list(examine(workspace)) == []
    entries = [entry for entry in reading.read(path).entries if entry.get("type") != "assistant"]
    path.write_bytes(b"".join(map(encoding.encode, entries)))
    found = [finding for finding in examine(workspace) if finding.kind == "turns"]
    assert [finding.what for finding in found] == [f"does not have the answer of turn 1 of {task.id}@main"]
    assert "lost" in found[0].meaning
