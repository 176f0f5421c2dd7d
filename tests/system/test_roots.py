"""Folders that go away while they are used: renamed, unmounted, replaced."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import anyio
import pytest
from claude_agent_sdk.types import SessionKey, SessionStoreEntry

import smartwriter.files.durable as durable
from smartwriter.errors import FolderGone
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage import journal
from smartwriter.system import roots
from smartwriter.workspace import Workspace

KEY: SessionKey = {"project_key": "p", "session_id": "5f0c0000-0000-4000-8000-000000000000"}
ENTRIES = cast("list[SessionStoreEntry]", [{"type": "user", "uuid": "u"}])


def test_a_store_whose_root_is_gone_says_so_and_makes_nothing(tmp_path: Path) -> None:
    """A root that was there and is gone is an error, in writing and in reading, whatever lies in its
    place now; and back again, everything is as it was."""
    store = FileSessionStore(tmp_path / "store")

    async def go() -> None:
        await store.append(KEY, ENTRIES)
        for replaced in (False, True):
            (tmp_path / "store").rename(tmp_path / "away")
            if replaced:
                (tmp_path / "store").mkdir()
            with pytest.raises(FolderGone, match="renamed, unmounted or pulled out"):
                await store.append(KEY, ENTRIES)
            for reading in (store.load(KEY), store.list_subkeys(KEY), store.delete(KEY), store.projects()):
                with pytest.raises(FolderGone):
                    await reading
            for listing in (store.list_sessions("p"), store.list_session_summaries("p")):
                with pytest.raises(FolderGone):
                    await listing
            assert (tmp_path / "store").exists() == replaced
            if replaced:
                assert list((tmp_path / "store").iterdir()) == []
                (tmp_path / "store").rmdir()
            (tmp_path / "away").rename(tmp_path / "store")
            assert await store.load(KEY) == ENTRIES

    anyio.run(go)


def test_a_store_that_never_was_is_made_and_may_be_made_again_by_another(tmp_path: Path) -> None:
    """A root that was not there yet is no error, nor is one that a later store finds in its place."""
    first = FileSessionStore(tmp_path / "store")
    assert anyio.run(first.load, KEY) is None
    first.append_now(KEY, ENTRIES)
    (tmp_path / "store").rename(tmp_path / "away")
    (tmp_path / "store").mkdir()
    roots.hold(tmp_path / "store")
    FileSessionStore(tmp_path / "store").append_now(KEY, ENTRIES)
    assert (tmp_path / "store" / "sessions").is_dir()


def test_nothing_of_a_workspace_is_made_anew(workspace: Workspace) -> None:
    """Journals, documents, folders and leases alike: nothing comes to be at the old place of a workspace."""
    task = workspace.new_task("Herons")
    away = workspace.root.with_name("away")
    workspace.root.rename(away)
    writes: list[Callable[[], object]] = [
        lambda: durable.write_document(workspace.root / "collections" / "a.md", "text"),
        lambda: journal.Journal(workspace.hidden / "turns" / "x.jsonl").append([{"a": 1}]),
        lambda: durable.make_folder(workspace.hidden / "cache"),
        lambda: workspace.text(task, "main").write("Words.", author="model", turn=1),
        lambda: OpenDraft(workspace, task, "main").lease().acquire(),
        lambda: workspace.new_task("Reeds"),
        lambda: workspace.tasks.find(task.id),
        lambda: workspace.tasks.turns(task, "main"),
    ]
    for mounted_on in (False, True):
        if mounted_on:
            workspace.root.mkdir()
        for write in writes:
            with pytest.raises(FolderGone):
                write()
        assert list(workspace.root.parent.glob("workspace/**")) == [workspace.root] * mounted_on
    workspace.root.rmdir()
    away.rename(workspace.root)
    assert workspace.tasks.find(task.id) == task


def test_a_document_that_finds_no_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever cannot be written on a full disk: the sentence names the file, the folder, and how much
    room it takes and there is."""

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    said = rf"Could not write {tmp_path}/a.*: No space left on device \([0-9,]+ bytes needed, .* free in "
    with pytest.raises(OSError, match=said):
        durable.write_document(tmp_path / "a.md", "text")
    with pytest.raises(OSError, match=said):
        journal.Journal(tmp_path / "a.jsonl").append([{"a": 1}])
