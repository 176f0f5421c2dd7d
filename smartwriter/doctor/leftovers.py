"""What the doctor finds that processes left: locks, halves of files, a CLI's folder, a sync tool's copy."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil

import smartwriter.files.durable as durable
import smartwriter.system.bounds as bounds
from smartwriter.doctor.finding import Finding
from smartwriter.storage.lease import left_by
from smartwriter.storage.records import now
from smartwriter.tasks.values import Task
from smartwriter.text.sameness import normal
from smartwriter.workspace import Workspace
from smartwriter.writing.orphans import orphans_of
from smartwriter.writing.recovery import recover

_CONFLICT = re.compile(
    r"sync-conflict-|conflicted copy|\(.*'s conflicted|冲突|\.orig$|[^/]* \(\d+\)\.(md|jsonl)$", re.IGNORECASE
)

_RESTS_S = 60.0  # what is moved at once, and was not for so long, nobody moves any more


def examine_leases(workspace: Workspace) -> Iterator[Finding]:
    """Locks of processes that are gone."""
    for path in workspace.places.leases():
        if bounds.is_own_record(path) and path.is_file() and (holder := left_by(path)):
            yield Finding(
                "lease",
                path,
                f"was left by {holder}",
                "that process is gone; it blocks nobody",
                "empty it",
                partial(path.write_bytes, b""),
            )


def examine_leftovers(workspace: Workspace) -> Iterator[Finding]:
    """Halves of files, parts of turns that are not in their place yet, folders of a CLI."""
    yield from _half_documents(workspace)
    yield from _next_versions(workspace)
    yield from _parts(workspace)
    yield from _orphans(workspace)


def _half_documents(workspace: Workspace) -> Iterator[Finding]:
    for path in sorted(workspace.root.rglob(".*.tmp")):
        if not _was_given_up(path):
            continue
        yield Finding(
            "leftover",
            path,
            "is half a document",
            "a process died while it saved; the document itself is whole",
            "move it to the trash",
            partial(put_away, workspace, path),
        )


def _next_versions(workspace: Workspace) -> Iterator[Finding]:
    for path in sorted((workspace.root / "collections").rglob(".*.md.next")):
        if not _is_of_memory(path):
            continue
        yield Finding(
            "leftover",
            path,
            f"was to take the place of {path.name[1 : -len('.next')]}",
            "a process died before it did; the file is whole, as it was",
            "move it to the trash",
            partial(put_away, workspace, path),
        )


def _parts(workspace: Workspace) -> Iterator[Finding]:
    for path in sorted({*workspace.places.spool.glob("*"), *workspace.spool.paths()}):
        yield Finding(
            "spool",
            path,
            "waits to be stored",
            "a part of a turn that is not in its place yet",
            "store it",
            workspace.spool.replay,
        )


def _orphans(workspace: Workspace) -> Iterator[Finding]:
    for folder in orphans_of(workspace):
        yield Finding(
            "orphan",
            folder.path,
            "was left by a CLI whose program died",
            "it may hold a copy of your credentials, and the end of an answer",
            "take in what it has, and remove it",
            partial(recover, workspace),
        )


def _was_given_up(path: Path) -> bool:
    """Whether a file is a document of ours whose process died before it was whole."""
    process = durable.half_written_by(path)
    if process is None:
        return False
    try:
        return psutil.Process(process).create_time() > path.stat().st_mtime + 1  # another one, of the same id
    except psutil.Error:
        return True
    except FileNotFoundError:  # it has become whole
        return False


def _is_of_memory(path: Path) -> bool:
    """Whether a next version of a memory file or article was left, not one of a draft's text."""
    try:
        rests = now().timestamp() - path.stat().st_mtime > _RESTS_S
    except FileNotFoundError:  # it took its place
        return False
    return rests and path.parent.parent.name != "drafts" and path.with_name(path.name[1:-5]).exists()


def put_away(workspace: Workspace, path: Path) -> None:
    """Move a file to the trash."""
    with contextlib.suppress(FileNotFoundError):
        durable.move(path, workspace.places.trash("leftovers", path.name))


def examine_conflicts(workspace: Workspace, tasks: list[Task]) -> Iterator[Finding]:
    """Files that a sync tool put beside others."""
    # An article is named for its task, which may be called anything.
    articles = {normal(f"{task.folder}.md") for task in tasks}
    for path in sorted(workspace.root.rglob("*")):
        if path.parent.name == "articles" and normal(path.name) in articles:
            continue
        if path.is_file() and is_conflict_copy(path):
            yield Finding(
                "conflict",
                path,
                "looks like a sync tool's second copy",
                "two machines wrote at once; compare it with the other, then remove one",
            )


def is_conflict_copy(path: Path) -> bool:
    """Whether a sync tool has named it so."""
    return _CONFLICT.search(path.name) is not None
