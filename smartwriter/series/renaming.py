"""Renaming a collection: its folder, and what refers to it by name.

A folder that the writer has renamed already is taken as it is. The tasks are told last, all at once:
where a crash came in between, the same command completes it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from functools import partial

import smartwriter.files.durable as durable
from smartwriter.errors import AlreadyExists, CollectionNotFound, DraftBusy, Invalid
from smartwriter.files.names import readable_name
from smartwriter.memory.collection import NO_COLLECTIONS, Collection, lies_in, plain_key
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.interface import Lease
from smartwriter.tasks.values import Draft, Task
from smartwriter.text.sameness import normal
from smartwriter.workspace import Workspace


def rename_collection(workspace: Workspace, old: str, new: str) -> tuple[Collection, list[Task]]:
    """Give a collection, and those in it, another name. It stays in the collection that it is in.

    Sessions stay where they are: a task keeps its project key for life. Blocking.
    :returns: the collection, and the tasks that refer to it by its new name now.
    :raises CollectionNotFound: when there is none of the old name, and no task of it.
    :raises AlreadyExists: when both are there, and more than texts of the old one.
    :raises Invalid: for a name that no folder can have. :raises DraftBusy: while a draft is written.
    """
    old, new = normal(old).strip().rstrip("/"), normal(new).strip().rstrip("/")
    _check(old, new)
    there, target = _found(workspace, old), _found(workspace, new)
    tasks = [task for task in workspace.tasks.all() if _renamed(task.collection, old, new)]
    if there is not None and target is not None and not _is_shell(workspace, there, tasks, new):
        raise AlreadyExists("collection", new)
    if there is None and (target is None or not tasks):
        raise CollectionNotFound(old)
    with contextlib.ExitStack() as leases:
        wanted = [lease for task in tasks for lease in _leases(workspace, task)]
        _allow_open_files(len(wanted))
        for address, lease in wanted:
            if lease.is_held():
                raise DraftBusy(address, lease.holder())
            leases.enter_context(lease)
        if there is not None and target is not None:
            durable.move(there.path, workspace.places.trash("collections", plain_key(old)))
        elif there is not None:
            _move(workspace, there, new)
        collection = workspace.collection(new)
        _move_proposals(workspace, collection, old, new)
        for name in _names(workspace, collection):
            workspace.versions.carry_over(old + name[len(new) :], name)
        tasks = workspace.tasks.update_each([task.id for task in tasks], partial(_moved, old=old, new=new))
    return collection, tasks


def _is_shell(workspace: Workspace, there: Collection, tasks: Iterable[Task], new: str) -> bool:
    """Whether a turn that was under way made a folder anew, when it was renamed by hand.

    Then it holds texts alone, which are revisions, too, and the other one has the same tasks' texts.
    """
    files = [path.relative_to(there.path) for path in there.path.rglob("*") if not path.is_dir()]
    if any("drafts" not in path.parts for path in files):
        return False
    names = ((_renamed(task.collection, there.name, new), task.folder) for task in tasks)
    return any((workspace.root / "collections" / name / "drafts" / folder).is_dir() for name, folder in names)


def _leases(workspace: Workspace, task: Task) -> Iterator[tuple[str, Lease]]:
    """Those of all who write into the task's folder: each with its address."""
    yield f"A fork of {task.id}", workspace.fork_lease(task)
    for name in task.live_drafts:
        yield task.address(name), OpenDraft(workspace, task, name).lease()


def _allow_open_files(count: int) -> None:
    """Each lease is an open file, and some systems give a process few."""
    if os.name == "nt":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 100
    with contextlib.suppress(ValueError, OSError):  # it does with what it has
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _move(workspace: Workspace, there: Collection, new: str) -> None:
    """Move the folder while nobody changes the memory in it: they would make the old one again."""
    with contextlib.ExitStack() as locks:
        for collection in workspace.collections():
            if _renamed(collection.name, there.name, new):
                locks.enter_context(workspace.series(collection).lock())
        durable.move(there.path, there.path.with_name(new.rpartition("/")[2]))


def _moved(task: Task, old: str, new: str) -> Task:
    drafts = {name: _with_memory_of(draft, old, new) for name, draft in task.drafts.items()}
    return task.model_copy(update={"collection": _renamed(task.collection, old, new), "drafts": drafts})


def _with_memory_of(draft: Draft, old: str, new: str) -> Draft:
    """A what-if names a file of an outer collection, where that is needed, with the collection."""
    if not draft.memory:
        return draft
    memory = {}
    for file, what_if in draft.memory.items():
        collection, slash, name = file.rpartition("/")
        memory[f"{_renamed(collection, old, new) or collection}{slash}{name}"] = what_if
    return draft.model_copy(update={"memory": memory})


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
    return new + name[len(old) :] if lies_in(name, old) else ""


def _move_proposals(workspace: Workspace, collection: Collection, old: str, new: str) -> None:
    """What waits for review goes along, also for the collections in it."""
    for name in _names(workspace, collection):
        before = old + name[len(new) :]
        series = workspace.series(Collection(name, collection.path))
        series.proposals.take_over(before)


def _names(workspace: Workspace, collection: Collection) -> Iterator[str]:
    for one in workspace.collections():
        if lies_in(one.name, collection.name):
            yield normal(one.name)
