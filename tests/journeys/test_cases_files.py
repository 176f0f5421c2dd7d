"""Public reports of names that collide and of writers' files that were lost, replayed against workspaces.

Each test is named after its case, whose number is only a name, and cites the report.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import smartwriter
from faces import converse, refused, run

import smartwriter.files.change as document
from smartwriter.errors import DraftBusy, SessionMissing
from smartwriter.memory.files import MAX_FILE_BYTES
from smartwriter.memory.versions import MemoryVersions
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import MAIN
from smartwriter.workspace import Workspace

# Names and places -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [("新聞", "暫存"), ("a-b", "a b"), ("My_Book", "My-Book"), ("小说", "散文"), ("a/b", "a-b")],
    ids=str,
)
def test_case_039_collections_that_a_lossy_key_mixes_up(workspace: Workspace, names: tuple[str, str]) -> None:
    """Each collection keeps its own memory, sessions and texts, however alike the names are to a lossy key
    (anthropics/claude-code#40946, #69245, #70076)."""
    tasks = []
    for name in names:
        collection = workspace.new_collection(name)
        (collection.path / "memory.md").write_text(f"Only of {name}.")
        task = workspace.new_task("Fog", name)
        workspace.text(task, MAIN).write(f"Text of {name}.", author="model", turn=1)
        tasks.append(task)
    assert tasks[0].project_key != tasks[1].project_key
    for task, name in zip(tasks, names, strict=True):
        assert workspace.text(task, MAIN).read() == f"Text of {name}."
        memory = OpenDraft(workspace, task, MAIN).memory().render()
        assert f"Only of {name}." in memory
        other = names[1 - names.index(name)]
        assert f"Only of {other}." not in memory or name == f"{other}/{name.rpartition('/')[2]}"


def test_case_043_a_renamed_workspace_keeps_its_memory(workspace: Workspace, tmp_path: Path) -> None:
    """Moving the folder orphans nothing: tasks, texts, memory and its versions are found where they went
    (anthropics/claude-code#91735)."""
    workspace.new_collection("rivers")
    task = workspace.new_task("Fog", "rivers")
    before = OpenDraft(workspace, task, MAIN).memory()
    workspace.root.rename(tmp_path / "new 名")
    moved = Workspace(tmp_path / "new 名")
    assert OpenDraft(moved, moved.tasks.find("Fog"), MAIN).memory().render() == before.render()
    assert len(MemoryVersions(moved.storage).log("rivers")) == 1


def test_case_044_a_link_to_the_workspace_is_the_same_one(workspace: Workspace, tmp_path: Path) -> None:
    """Through a link there are the same collections with the same memory (anthropics/claude-code#24271)."""
    workspace.new_collection("rivers")
    (tmp_path / "link").symlink_to(workspace.root, target_is_directory=True)
    linked = Workspace(tmp_path / "link")
    assert [one.name for one in linked.collections()] == ["rivers"]
    assert linked.collection("rivers").memory().hashes == workspace.collection("rivers").memory().hashes


def test_case_048_a_long_path_loses_no_session(tmp_path: Path) -> None:
    """A workspace 260 characters deep stores under the task's own short key
    (Digital-Process-Tools/claude-remember#157)."""
    workspace = Workspace.create(tmp_path / ("x" * 130) / ("y" * 130))
    task = workspace.new_task("Fog")
    converse(workspace, task, "雾。")
    assert OpenDraft(workspace, task, MAIN).transcript.path.parent.name == "unfiled"
    assert OpenDraft(workspace, task, MAIN).transcript.has_entries()


# Writers' files -------------------------------------------------------------------------------


def test_case_091_what_is_said_to_be_saved_is_on_the_disk(workspace: Workspace) -> None:
    """The file read back has the very text of the revision that was reported (Zettlr/Zettlr#4628)."""
    task = workspace.new_task("Fog")
    revision = workspace.text(task, MAIN).write("雾。\r\n\ud83d", author="model", turn=1)
    assert workspace.text(task, MAIN).path.read_bytes() == revision.text.encode("utf-8", "surrogatepass")


def test_case_092_a_touched_file_is_no_change(workspace: Workspace) -> None:
    """A new time on the same content is nothing new: no version, no revision, the same prompt
    (Zettlr/Zettlr#1080)."""
    collection = workspace.new_collection("rivers")
    task = workspace.new_task("Fog", "rivers")
    workspace.text(task, MAIN).write("Fog.", author="model", turn=1)
    before = OpenDraft(workspace, task, MAIN).memory()
    for path in (collection.path / "memory.md", workspace.text(task, MAIN).path):
        os.utime(path, (2**31, 2**31))
    assert OpenDraft(workspace, task, MAIN).take_hand_edit().revision is None
    assert OpenDraft(workspace, task, MAIN).memory().render() == before.render()
    assert len(MemoryVersions(workspace.storage).log("rivers")) == 1


def test_case_092_an_older_file_over_newer_typing_keeps_both(workspace: Workspace) -> None:
    """A sync tool that puts an old version over the new one is a change like any other: both are versions."""
    task = workspace.new_task("Fog")
    text = workspace.text(task, MAIN)
    text.write("Old.", author="model", turn=1)
    text.path.write_text("Newer typing.")
    OpenDraft(workspace, task, MAIN).take_hand_edit()
    text.path.write_text("Old.")
    os.utime(text.path, (1, 1))
    OpenDraft(workspace, task, MAIN).take_hand_edit()
    assert [revision.text for revision in text.revisions()] == ["Old.", "Newer typing.", "Old."]


def test_case_094_a_kill_while_a_memory_file_is_saved(tmp_path: Path) -> None:
    """Killed at any moment of a save, a memory file is the old one or the new one, never empty and never
    NULs (typora/typora-issues#748, #1474, notepad-plus-plus#1137)."""
    path = tmp_path / "memory.md"
    path.write_bytes(b"0" * 50_000)
    code = (
        "import sys, itertools; from pathlib import Path; import smartwriter.files.change as document\n"
        "print('ready', flush=True)\n"
        "for number in itertools.cycle(range(10)):\n"
        f"    document.change(Path(sys.argv[1]), lambda _: b'%d' % number * 50_000, {MAX_FILE_BYTES})\n"
    )
    chance = random.Random(94)
    for _ in range(25):
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0, 0.02))  # a random moment is what is tested
            os.kill(process.pid, signal.SIGKILL)
        data = path.read_bytes()
        assert len(data) == 50_000 and len(set(data)) == 1 and data[0] != 0
    document.change(path, lambda _: b"whole", MAX_FILE_BYTES)
    assert path.read_bytes() == b"whole"


def test_case_096_a_lock_file_that_lingers_locks_nobody_out(workspace: Workspace) -> None:
    """What a sync tool left of a lock file, with whatever host, process and time in it, is only a file: the
    lock is the system's, on the open file (saga-soft/novelWriter#1051)."""
    task = workspace.new_task("Fog")
    lock = workspace.hidden / "turns" / task.id / f"{MAIN}.lease"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text('{"pid": 1, "host": "elsewhere", "since": "2999-01-01T00:00:00+00:00"}')
    with (
        OpenDraft(workspace, task, MAIN).lease(),
        pytest.raises(DraftBusy),
        OpenDraft(workspace, task, MAIN).lease(),
    ):
        pass
    assert not OpenDraft(workspace, task, MAIN).lease().is_held()


def test_case_097_a_folder_that_may_not_be_read_is_one_sentence(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system refuses, a command says so in one sentence and writes nothing
    (saga-soft/novelWriter#2671)."""
    workspace.new_task("Fog")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted", str(workspace.hidden / "tasks.jsonl"))

    monkeypatch.setattr("smartwriter.storage.growing.read", refuse)
    said = refused(workspace, "tasks")
    assert said == f"Operation not permitted: {workspace.hidden / 'tasks.jsonl'}."


def test_case_100_a_transcript_that_a_cloud_drive_lost(workspace: Workspace) -> None:
    """A task whose transcript is gone is still listed, says which file it looked for, and keeps its text
    (anthropics/claude-code#55418)."""
    task = workspace.new_task("Fog")
    converse(workspace, task, "雾。")
    workspace.text(task, MAIN).write("雾。", author="model", turn=1)
    path = OpenDraft(workspace, task, MAIN).transcript.path
    path.unlink()
    assert refused(workspace, "show", task.id) == str(SessionMissing(f"{task.id}@main", path))
    assert run(workspace, "text", task.id).stdout == "雾。\n"
    done = smartwriter(workspace.root, "tasks")
    assert task.id in done.stdout.decode()
