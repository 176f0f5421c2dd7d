"""Renaming a collection: its folder, and what refers to it by name.

A folder that the writer has renamed already is taken as it is. The tasks are told last, each by a
line of its own: where a crash came in between, the same command completes it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

import smartwriter.journal as journal
from smartwriter.errors import AlreadyExists, CollectionNotFound, DraftBusy, Invalid
from smartwriter.memory import NO_COLLECTIONS, Collection, normal, plain_key
from smartwriter.memory_versions import MemoryVersions
from smartwriter.names import readable_name
from smartwriter.tasks import Task
from smartwriter.workspace import Workspace


def rename_collection(workspace: Workspace, old: str, new: str) -> tuple[Collection, list[Task]]:
    """Give a collection, and those in it, another name. It stays in the collection that it is in.

    Sessions stay where they are: a task keeps its project key for life. Blocking.
    :returns: the collection, and the tasks that refer to it by its new name now.
    :raises CollectionNotFound: when there is none of the old name, and no task of it.
    :raises AlreadyExists: when both are there.
    :raises Invalid: for a name that no folder can have. :raises DraftBusy: while a draft is written.
    """
    old, new = normal(old).strip().rstrip("/"), normal(new).strip().rstrip("/")
    _check(old, new)
    there, target = _found(workspace, old), _found(workspace, new)
    if there is not None and target is not None:
        raise AlreadyExists("collection", new)
    tasks = [task for task in workspace.tasks.all() if _renamed(task.collection, old, new)]
    if there is None and (target is None or not tasks):
        raise CollectionNotFound(old)
    with contextlib.ExitStack() as leases:
        for task in tasks:
            for name in task.live_drafts:
                if workspace.lease(task, name).is_held():
                    raise DraftBusy(task.address(name), workspace.lease(task, name).holder())
                leases.enter_context(workspace.lease(task, name))
        if there is not None:
            journal.move(there.path, there.path.with_name(new.rpartition("/")[2]))
        collection = workspace.collection(new)
        _move_proposals(workspace, collection, old, new)
        for name in _names(workspace, collection):
            MemoryVersions(workspace.hidden).carry_over(old + name[len(new) :], name)
        for task in tasks:
            workspace.tasks.update(task.id, partial(_moved, name=_renamed(task.collection, old, new)))
    return collection, tasks


def _moved(task: Task, name: str) -> Task:
    return task.model_copy(update={"collection": name})


def _check(old: str, new: str) -> None:
    outer, _, name = new.rpartition("/")
    if outer != old.rpartition("/")[0]:
        raise Invalid(f"{new!r} would be in another collection than {old!r}; only its own name can change.")
    if not name or readable_name(name) != name or name.startswith(".") or name.lower() in NO_COLLECTIONS:
        raise Invalid(f"{new!r} cannot name a collection: it must be usable as a folder's name.")


def _found(workspace: Workspace, name: str) -> Collection | None:
    try:
        return workspace.collection(name)
    except CollectionNotFound:
        return None


def _renamed(name: str, old: str, new: str) -> str:
    """What the name of a collection becomes; empty for one that has nothing to do with it."""
    name = normal(name)
    return new + name[len(old) :] if f"{name}/".startswith(f"{old}/") else ""


def _move_proposals(workspace: Workspace, collection: Collection, old: str, new: str) -> None:
    """What waits for review goes along, also for the collections in it."""
    for name in _names(workspace, collection):
        before = workspace.hidden / "proposals" / f"{plain_key(old + name[len(new) :])}.jsonl"
        after = workspace.hidden / "proposals" / f"{plain_key(name)}.jsonl"
        if before.exists() and not after.exists():
            journal.move(before, after)


def _names(workspace: Workspace, collection: Collection) -> Iterator[str]:
    for one in workspace.collections():
        if f"{normal(one.name)}/".startswith(f"{normal(collection.name)}/"):
            yield normal(one.name)
