"""What is acknowledged is on the disk: every record of a workspace, and not only its sessions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from claude_agent_sdk._internal import transcript_mirror_batcher as mirror
from disks import in_place_of_os

from smartwriter.memory.proposals import Proposals
from smartwriter.open_draft import OpenDraft
from smartwriter.series.finishing import finish
from smartwriter.series.summary import Summary
from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage.journal import Journal
from smartwriter.tasks.values import Choice, Task, Turn, TurnState
from smartwriter.turns.parts import Part
from smartwriter.workspace import Workspace


class Synced:
    """Stands in for ``os`` where records are written, and notes what a power cut would leave."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}  # of files and folders, by inode, as they were synced

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def fsync(self, fd: int) -> None:
        status = os.fstat(fd)
        self._sizes[status.st_ino] = status.st_size

    fdatasync = fsync

    def has(self, path: Path) -> bool:
        """All of a file."""
        return self._sizes.get(path.stat().st_ino) == path.stat().st_size

    def has_name(self, path: Path) -> bool:
        return path.parent.stat().st_ino in self._sizes


TURN = Turn(number=1, uuid="u", session_id="s", prompt="Go.", state=TurnState.running)


def _accepted(workspace: Workspace, task: Task) -> None:
    proposals = Proposals(workspace.storage, workspace.task_collection(task))
    proposals.accept(proposals.propose("The ferry runs at dawn.", task=task.id, draft="main", turn=1).id)


def _finished(workspace: Workspace, task: Task) -> None:
    text = "# Herons\n\nThey stand.\n"
    workspace.text(task, "main").write(text, author="model", turn=1)
    finish(workspace, task, text, Summary("They stand."))


def _cut_off(workspace: Workspace, task: Task) -> None:
    workspace.text(task, "main").keep_cut_off("Half", 1)


def _spooled(workspace: Workspace, task: Task) -> None:
    workspace.spool.put(Part("turns", task.id, "main", [{"number": 1}]))


def _deleted(workspace: Workspace, task: Task) -> None:
    workspace.text(task, "main").write("Old.\n", author="model", turn=1)
    workspace.text(task, "main").put_away()


ACTS: dict[str, Callable[[Workspace, Task], object]] = {
    "task": lambda workspace, task: workspace.new_task("Fog", "series"),
    "choice": lambda workspace, task: workspace.tasks.choose(task.id, Choice(chosen="a:1", other="b:1")),
    "turn": lambda workspace, task: workspace.tasks.record(task, "main", [TURN]),
    "revision": lambda workspace, task: workspace.text(task, "main").write("A.\n", author="model", turn=1),
    "cut-off version": _cut_off,
    "hand edit": lambda workspace, task: OpenDraft(workspace, task, "main").take_hand_edit(),
    "waiting prompt": lambda workspace, task: OpenDraft(workspace, task, "main").outbox().put("u", "Go."),
    "spooled part": _spooled,
    "proposal": _accepted,
    "memory version": lambda workspace, task: OpenDraft(workspace, task, "main").memory(),
    "what is put away": _deleted,
    "article": _finished,
}


@pytest.mark.parametrize("act", ACTS)
def test_what_is_kept_is_on_the_disk(workspace: Workspace, act: str) -> None:
    """After any act each file of a workspace is synced to its end, and its name is, but for what can be made
    again: the turn in flight, and caches."""
    workspace.new_collection("series")
    task = workspace.new_task("Herons", "series")
    if act == "hand edit":  # the file is the writer's, and their editor's to sync
        text = workspace.text(task, "main").path
        text.parent.mkdir(parents=True)
        text.write_text("Mine.\n")
    before = {path: _state(path) for path in _files(workspace)}
    synced = Synced()
    with in_place_of_os(synced):
        ACTS[act](workspace, task)
    changed = [path for path in _files(workspace) if before.get(path) != _state(path)]
    assert changed
    assert [path.name for path in changed if not synced.has(path)] == []
    named = [path for path in changed if path not in before or before[path][0] != _state(path)[0]]
    assert [path.name for path in named if not synced.has_name(path)] == []


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _files(workspace: Workspace) -> list[Path]:
    """Those that have to outlive a power cut."""
    again = {"live", "cache", "locks"}
    return [
        path
        for path in workspace.root.rglob("*")
        if path.is_file()
        and path.suffix != ".lease"
        and again.isdisjoint(path.relative_to(workspace.root).parts)
    ]


def test_an_append_gives_up_before_the_sdk_does(tmp_path: Path) -> None:
    """However often the SDK tries an append, waiting for locks all the while, it hears of it from the store:
    what it times out itself it would not try again, and drops."""
    tries = mirror.MIRROR_APPEND_MAX_ATTEMPTS
    for store in (FileSessionStore(tmp_path), FileSessionStore(tmp_path, durability="os")):
        journal = store.journal({"project_key": "p", "session_id": "s"})
        assert isinstance(journal, Journal)
        assert journal._lock_timeout_s * tries <= mirror.SEND_TIMEOUT_SECONDS
