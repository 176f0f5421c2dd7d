"""A workspace: the folder that a writer owns. See the README for all that lies in it."""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import smartwriter.files.durable as durable
import smartwriter.system.bounds as bounds
import smartwriter.system.config as config
import smartwriter.system.roots as roots
from smartwriter.errors import (
    AlreadyExists,
    CollectionNotFound,
    Invalid,
    NotAWorkspace,
)
from smartwriter.files.names import readable_name
from smartwriter.memory.collection import NO_COLLECTIONS, Collection
from smartwriter.memory.lock import memory_lock
from smartwriter.memory.versions import MemoryVersions
from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage.files import FileStorage
from smartwriter.storage.identity import Identity, identify
from smartwriter.storage.interface import Lease, Storage
from smartwriter.storage.places import Places
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.manager import TaskManager
from smartwriter.tasks.values import UNFILED, Task
from smartwriter.text.sameness import folded, normal
from smartwriter.turns.parts import knows, place
from smartwriter.turns.spool import Spool

if TYPE_CHECKING:
    from smartwriter.memory.series import Series

_MAX_DEPTH = 8  # of collections in collections


class Workspace:
    """All that is kept in one folder. Calls block."""

    def __init__(self, root: Path) -> None:
        """:raises NotAWorkspace: unless :meth:`create` made it one.

        :raises Invalid: for one of another user, unless the writer's own settings allow it.
        """
        self.root = _absolute(root)
        self.hidden = self.root / bounds.HIDDEN
        self.places = Places(self.hidden)
        self.storage: Storage = FileStorage(self.hidden)
        if not self.hidden.is_dir():
            raise NotAWorkspace(root)
        bounds.checked(self.places.config, of_records=True)
        bounds.check_owner(self.root)
        for folder in (self.root, self.hidden):  # gone in a turn, they are not made anew at the old place
            roots.hold(folder)
        self._identity: Identity | None = None
        self.store = FileSessionStore(self.hidden, storage=self.storage)
        self.tasks = TaskManager(self.storage)
        self.versions = MemoryVersions(self.storage)
        self.spool = Spool(self.hidden, partial(place, self), partial(knows, self))

    @classmethod
    def create(cls, root: Path) -> Workspace:
        """Make a folder a workspace. One that is one already stays as it is."""
        root = _absolute(root)  # what is private is known by where it lies
        places = Places(root / bounds.HIDDEN)
        durable.make_folder(places.hidden)
        durable.make_folder(root / "collections")
        if not places.config.exists():
            durable.write_document(places.config, config.TEMPLATE)
        workspace = cls(root)
        workspace.identify()
        return workspace

    @classmethod
    def around(cls, folder: Path) -> Workspace:
        """The workspace that a folder lies in. :raises NotAWorkspace:"""
        folder = _absolute(folder)
        for candidate in [folder, *folder.parents]:
            if bounds.is_workspace(candidate):
                return cls(candidate)
        raise NotAWorkspace(folder)

    def identify(self) -> Identity:
        """What it goes by on this machine; given here where it has no id yet. :raises OSError:"""
        if self._identity is None:
            self._identity = identify(self.hidden)
        return self._identity

    def config(self) -> config.Config:
        """:raises Invalid: when config.toml is wrong, or the writer's own."""
        return config.load(self.config_path)

    @property
    def config_path(self) -> Path:
        return self.places.config

    def config_problems(self) -> list[str]:
        """A sentence for each setting here that has no effect. :raises Invalid: as :meth:`config`."""
        return [
            f"{self.config_path} sets {name}, which is not used: a workspace may come from somebody else. "
            f"If it is your own, put it into {config.own_path()}."
            for name in config.passed_over(self.config_path)
        ]

    # Collections -----------------------------------------------------------------------------

    def collections(self) -> list[Collection]:
        """Sorted by name, each before those in it. Links count at the top only, with nothing in them."""
        found: list[Collection] = []
        level = _collections_in(self._collections)
        for _ in range(_MAX_DEPTH):
            found += level
            level = [inner for outer in level for inner in _collections_in(outer)]
        return sorted(found, key=lambda collection: collection.name.split("/"))

    def collection(self, name: str) -> Collection:
        """The one that a name, or for one in another a path such as ``series/book``, means.

        :raises CollectionNotFound:
        """
        found = self._collections
        for part in normal(name).rstrip("/").split("/"):
            inner = (one for one in _collections_in(found) if normal(one.path.name) == part)
            if (one := next(inner, None)) is None:
                raise CollectionNotFound(name)
            found = one
        return found

    def new_collection(self, name: str) -> Collection:
        """Make a collection, and those that it is in.

        :raises AlreadyExists: :raises Invalid: for a name that no folder can have.
        """
        name = normal(name).strip()
        parts = name.split("/")
        _check_name(name, parts)
        made = self._collections
        for number, part in enumerate(parts, start=1):
            # In any case: some disks do not tell them apart.
            inside = _collections_in(made)
            there = [one for one in inside if folded(one.path.name) == folded(part)]
            if there and number == len(parts):
                raise AlreadyExists("collection", name)
            made = there[0] if there else _inner(made, part)
            if not there:
                made.create()
        return made

    @property
    def _collections(self) -> Collection:
        return Collection("", self.root / "collections")

    def series(self, collection: Collection) -> Series:
        """A collection together with what is recorded of it."""
        # What proposals are compared with takes its time to load, and most commands never need it.
        from smartwriter.memory.proposals import Proposals
        from smartwriter.memory.series import Series

        proposals = Proposals(self.storage, collection)
        return Series(collection, proposals, self.versions, lambda: self.config().memory_tokens)

    def memory_lock(self, collection: str) -> AbstractContextManager[object]:
        """As :meth:`Series.lock`, by name; the empty one is of the memory file in the workspace itself."""
        return memory_lock(self.storage, collection)

    def add_sample(self, source: Path) -> Collection:
        """Copy a collection from elsewhere. :raises AlreadyExists:"""
        target = self.root / "collections" / source.name
        if target.exists():
            raise AlreadyExists("collection", source.name)
        shutil.copytree(source, target)
        return Collection(source.name, target)

    # Tasks -----------------------------------------------------------------------------------

    def new_task(self, title: str, collection: str | None = None, target: int | None = None) -> Task:
        """:param target: how long it is to become, in words.

        :raises CollectionNotFound: :raises Invalid: for an empty title.
        """
        found = self.collection(collection) if collection else self._unfiled()
        drafts = found.path / "drafts"  # also those of tasks whose record was lost
        folders = frozenset(path.name for path in drafts.iterdir()) if drafts.is_dir() else frozenset()
        return self.tasks.create(title, found.name, found.project_key, folders, target)

    def task_collection(self, task: Task) -> Collection:
        """The collection of a task, even where its folder is gone."""
        try:
            return self.collection(task.collection)
        except CollectionNotFound:
            return self._lost(task.collection)

    def task_series(self, task: Task) -> Series:
        """As :meth:`task_collection`."""
        return self.series(self.task_collection(task))

    def check_folder(self, task: Task) -> None:
        """:raises Invalid: when the folder of a task's collection has another name by now.

        There the writer goes on with the text; a second one under the old name would go unnoticed. One
        that is gone altogether is made again.
        """
        if task.collection == UNFILED or self.task_collection(task).path.is_dir():
            return
        for collection in self.collections():
            if (collection.path / "drafts" / task.folder).is_dir():
                raise Invalid(
                    f"There is no folder of {task.collection} any more, but {collection.name} has the texts "
                    f"of {task.title}; if it is the same one, say so first: "
                    f"smartwriter collection rename {task.collection} {collection.name}"
                )

    def _lost(self, name: str) -> Collection:
        """A collection whose folder is gone. Its name is a task's: from a file, so not to be trusted."""
        parts = name.split("/")
        path = self.root.joinpath("collections", *parts)
        if any(part in ("", ".", "..") or not set(part).isdisjoint("\\:\0") for part in parts) or (
            len(parts) > 1 and not path.resolve().is_relative_to(self.root.resolve())
        ):
            return _inner(self._collections, readable_name(name))
        return Collection(name, path)

    def text(self, task: Task, draft: str) -> DraftText:
        folder = self.task_collection(task).path / "drafts" / task.folder
        return DraftText(
            folder / f"{draft}.md",
            self.storage.journal("revisions", task.id, draft),
            partial(self.places.trash, "drafts", f"{task.id}-{draft}", ".md"),
            task.address(draft),
        )

    def fork_lease(self, task: Task) -> Lease:
        """Held while a fork of a task is made: of one at a time."""
        return self.storage.lease("forks", task.id, address=f"A fork of {task.id}")

    def _unfiled(self) -> Collection:
        return Collection(UNFILED, self.root / "collections" / UNFILED)


def _absolute(path: Path) -> Path:
    """Without ``..``: what is in a workspace is known by its path."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _collections_in(outer: Collection) -> list[Collection]:
    """Those directly in a collection, or in the folder of all, sorted. There may be no such folder."""
    if outer.name and outer.path.is_symlink():
        return []  # it may lead anywhere, and round in circles
    try:
        with os.scandir(outer.path) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=not outer.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        if outer.name:  # that it cannot be read is said where its memory is
            return []
        raise
    names = [name for name in names if name[0] != "." and name.casefold() not in NO_COLLECTIONS]
    return [_inner(outer, name) for name in sorted(names)]


def _inner(outer: Collection, name: str) -> Collection:
    return Collection(f"{outer.name}/{name}".lstrip("/"), outer.path / name)


def _check_name(name: str, parts: list[str]) -> None:
    """:raises Invalid: for a new collection's name that some file system does not take."""
    if any(not part or readable_name(part) != part for part in parts):
        raise Invalid(f"{name!r} cannot name a collection: it must be usable as a folder's name.")
    if not NO_COLLECTIONS.isdisjoint(part.casefold() for part in parts):
        raise Invalid(f"{name!r} cannot name a collection: drafts and articles are folders of its texts.")
    if len(parts) > _MAX_DEPTH:
        raise Invalid(f"{name!r} cannot name a collection: it is more than {_MAX_DEPTH} folders deep.")
