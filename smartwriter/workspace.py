"""A workspace: the folder that a writer owns. See the README for all that lies in it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import smartwriter.config as config
import smartwriter.journal as journal
from smartwriter.drafts import DraftText
from smartwriter.errors import AlreadyExists, CollectionNotFound, Invalid, NotAWorkspace
from smartwriter.lease import Lease
from smartwriter.memory import Collection, normal
from smartwriter.names import readable_name
from smartwriter.session_store import FileSessionStore
from smartwriter.spool import Spool
from smartwriter.task_manager import TaskManager
from smartwriter.tasks import UNFILED, Draft, Task
from smartwriter.transcript import Transcript

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey

_HIDDEN = ".smartwriter"


class Workspace:
    """All that is kept in one folder. Calls block."""

    def __init__(self, root: Path) -> None:
        """:raises NotAWorkspace: unless :meth:`create` made it one."""
        self.root = root.absolute()
        self.hidden = self.root / _HIDDEN
        if not self.hidden.is_dir():
            raise NotAWorkspace(root)
        self.store = FileSessionStore(self.hidden)
        self.tasks = TaskManager(self.hidden)
        self.spool = Spool(self.hidden / "spool", self.hidden / "trash" / "spool")

    @classmethod
    def create(cls, root: Path) -> Workspace:
        """Make a folder a workspace. One that is one already stays as it is."""
        journal.make_folder(root / _HIDDEN)
        journal.make_folder(root / "collections")
        if not (root / _HIDDEN / "config.toml").exists():
            journal.write_document(root / _HIDDEN / "config.toml", config.TEMPLATE)
        return cls(root)

    @classmethod
    def around(cls, folder: Path) -> Workspace:
        """The workspace that a folder lies in. :raises NotAWorkspace:"""
        folder = folder.absolute()
        for candidate in [folder, *folder.parents]:
            if (candidate / _HIDDEN).is_dir():
                return cls(candidate)
        raise NotAWorkspace(folder)

    def config(self) -> config.Config:
        """:raises Invalid: when config.toml is wrong."""
        return config.load(self.hidden / "config.toml")

    # Collections -----------------------------------------------------------------------------

    def collections(self) -> list[Collection]:
        """Sorted by name."""
        folder = self.root / "collections"
        if not folder.is_dir():
            return []
        found = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
        return [Collection(path.name, path) for path in sorted(found)]

    def collection(self, name: str) -> Collection:
        """:raises CollectionNotFound:"""
        for collection in self.collections():
            if normal(collection.name) == normal(name):
                return collection
        raise CollectionNotFound(name)

    def new_collection(self, name: str) -> Collection:
        """:raises AlreadyExists: :raises Invalid: for a name that no folder can have."""
        name = normal(name).strip()
        if not name or readable_name(name) != name:
            raise Invalid(f"{name!r} cannot name a collection: it must be usable as a folder's name.")
        if any(normal(other.name).casefold() == name.casefold() for other in self.collections()):
            raise AlreadyExists("collection", name)
        collection = Collection(name, self.root / "collections" / name)
        collection.create()
        return collection

    def add_sample(self, source: Path) -> Collection:
        """Copy a collection from elsewhere. :raises AlreadyExists:"""
        target = self.root / "collections" / source.name
        if target.exists():
            raise AlreadyExists("collection", source.name)
        shutil.copytree(source, target)
        return Collection(source.name, target)

    # Tasks -----------------------------------------------------------------------------------

    def new_task(self, title: str, collection: str | None = None) -> Task:
        """:raises CollectionNotFound: :raises Invalid: for an empty title."""
        found = self.collection(collection) if collection else self._unfiled()
        drafts = found.path / "drafts"  # also those of tasks whose record was lost
        folders = frozenset(path.name for path in drafts.iterdir()) if drafts.is_dir() else frozenset()
        return self.tasks.create(title, found.name, found.project_key, folders)

    def task_collection(self, task: Task) -> Collection:
        """The collection of a task, even where its folder is gone."""
        try:
            return self.collection(task.collection)
        except CollectionNotFound:
            return Collection(task.collection, self.root / "collections" / task.collection)

    def text(self, task: Task, draft: str) -> DraftText:
        folder = self.task_collection(task).path / "drafts" / task.folder
        when = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{time.time_ns() % 10**9:09d}"
        return DraftText(
            folder / f"{draft}.md",
            self.hidden / "revisions" / task.id / f"{draft}.jsonl",
            self.hidden / "trash" / "drafts" / f"{task.id}-{draft}.{when}.md",
        )

    def transcript(self, task: Task, draft: Draft) -> Transcript:
        key: SessionKey = {"project_key": task.project_key, "session_id": draft.session_id}
        return Transcript(self.store.path(key))

    def live_path(self, task: Task, draft: str) -> Path:
        """Where the events of a draft's last turn are."""
        return self.hidden / "live" / task.id / f"{draft}.jsonl"

    def stop_path(self, task: Task, draft: str) -> Path:
        """The file that asks the process that writes a draft to stop."""
        return self.hidden / "locks" / task.id / f"{draft}.stop"

    def lease(self, task: Task, draft: str) -> Lease:
        return Lease(self.hidden / "locks" / task.id / f"{draft}.lock", task.address(draft))

    def _unfiled(self) -> Collection:
        return Collection(UNFILED, self.root / "collections" / UNFILED)
