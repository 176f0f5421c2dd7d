"""The doctor: reads everything in a workspace and proves that it can be used.

Each check yields findings; none changes anything. A repair only ever writes new files and keeps
the old ones beside them, or moves leftovers to the trash.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
from pydantic import ValidationError

import smartwriter.files.durable as durable
import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading
import smartwriter.system.bounds as bounds
from smartwriter.agent.environment import config_folder
from smartwriter.doctor.finding import Finding as Finding
from smartwriter.doctor.lost import examine_lost, examine_sessions
from smartwriter.doctor.safety import examine_safety
from smartwriter.memory.proposal import UNDER_WAY
from smartwriter.memory.proposals import Proposals
from smartwriter.memory.versions import MemoryVersions
from smartwriter.sessions.sdk import sdk_reads
from smartwriter.sessions.transcript import Message, answer_to, messages, relinked, stretches
from smartwriter.storage.lease import left_by
from smartwriter.storage.records import now
from smartwriter.storage.salvage import Entry
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.draft_text import current_number, sha256_of, sha256_of_bytes
from smartwriter.tasks.values import ANSWERED, UNFILED, Draft, Revision, Task, Turn, TurnState
from smartwriter.text.sameness import normal
from smartwriter.workspace import Workspace
from smartwriter.writing.recovery import orphans_of, recover

_CONFLICT = re.compile(
    r"sync-conflict-|conflicted copy|\(.*'s conflicted|冲突|\.orig$|[^/]* \(\d+\)\.(md|jsonl)$", re.IGNORECASE
)

_RESTS_S = 60.0  # what is moved at once, and was not for so long, nobody moves any more


def examine(workspace: Workspace) -> Iterator[Finding]:
    """All findings, in the order of the checks. Blocking."""
    tasks = workspace.tasks.all()
    yield from _damaged_journals(workspace)
    yield from examine_lost(workspace, tasks)
    known: set[Path] = set()
    for task in tasks:
        yield from _task(workspace, task)
        for draft in task.drafts.values():
            for session_id in (draft.session_id, *draft.earlier_sessions):
                known.add(
                    workspace.transcript(task, draft.model_copy(update={"session_id": session_id})).path
                )
            if not draft.dropped:
                yield from _draft(workspace, task, draft)
    yield from _memory_versions(workspace)
    yield from _proposals(workspace)
    of_nobody = examine_sessions(workspace, known)
    yield from (finding for finding in of_nobody if not _CONFLICT.search(finding.path.name))
    yield from _dead_leases(workspace)
    yield from _leftovers(workspace)
    yield from _conflict_copies(workspace, tasks)
    yield from examine_safety(workspace)


# Journals ---------------------------------------------------------------------------------------


def _damaged_journals(workspace: Workspace) -> Iterator[Finding]:
    for path in sorted(workspace.hidden.rglob("*.jsonl")):
        if path.is_relative_to(workspace.hidden / "trash"):
            continue
        try:
            contents = reading.read(path)
        except FileNotFoundError:  # another process has just moved it
            continue
        except OSError as error:
            yield Finding(
                "unreadable", path, f"cannot be read: {error.strerror}", "what it holds is out of reach"
            )
            continue
        if contents.size == 0:
            yield Finding(
                "empty",
                path,
                "is empty",
                "whatever was to be written there never was",
                "move it to the trash",
                partial(_put_away_empty, workspace, path),
            )
        damage = contents.damage
        if not damage:
            continue
        places = ", ".join(f"{stretch.length} bytes at {stretch.offset}" for stretch in damage[:8])
        more = f" and {len(damage) - 8} more stretches" if len(damage) > 8 else ""
        cache = path.is_relative_to(workspace.hidden / "cache")
        yield Finding(
            "damage",
            path,
            f"is damaged: {places}{more}",
            "only a cache" if cache else "no whole entry is in there; all others are used",
            f"write the whole entries to a new file, and keep the old one as {path.name}.damaged-…",
            partial(journal.rewrite, path, list),
        )


def _put_away_empty(workspace: Workspace, path: Path) -> None:
    with journal.Journal(path).locked() as transaction:  # somebody may just be about to write there
        if transaction.size == 0:
            _put_away(workspace, path)


# Memory -------------------------------------------------------------------------------------------


def _memory_versions(workspace: Workspace) -> Iterator[Finding]:
    for path in sorted(MemoryVersions(workspace.hidden).folder.glob("*.md")):
        if not _is_version(path):
            yield Finding(
                "memory",
                path,
                "is not the version that it is named for",
                "what some turns had of a memory file cannot be shown any more",
            )


def _is_version(path: Path) -> bool:
    try:
        return sha256_of_bytes(bounds.read_record(path)) == path.stem
    except OSError:
        return False


def _proposals(workspace: Workspace) -> Iterator[Finding]:
    for collection in workspace.collections():
        proposals = Proposals(workspace.hidden, collection)
        half_done = [one for one in proposals.all() if one.state in UNDER_WAY]
        if half_done:
            yield Finding(
                "memory",
                collection.path,
                f"{len(half_done)} decisions on proposals for its memory were cut off",
                "the program died in between; the next review completes them",
                "complete them",
                proposals.complete,
            )


# Tasks and drafts -------------------------------------------------------------------------------


def _task(workspace: Workspace, task: Task) -> Iterator[Finding]:
    collection = workspace.task_collection(task)
    if task.collection != UNFILED and not collection.path.is_dir():
        yield Finding(
            "collection",
            collection.path,
            f"is missing, and {task.id} belongs to it",
            "its sessions get no memory; they resume all the same",
        )
    if task.finished is not None and task.finished.state == "finishing":
        yield Finding(
            "finish",
            collection.path / task.finished.article,
            f"was being made of {task.id} when the program died",
            f"the article or the index may not have it yet; complete it: smartwriter finish {task.id}",
        )


def _draft(workspace: Workspace, task: Task, draft: Draft) -> Iterator[Finding]:
    address = task.address(draft.name)
    try:
        turns = workspace.tasks.turns(task, draft.name)
    except OSError as error:
        path = workspace.hidden / "turns" / task.id / f"{draft.name}.jsonl"
        yield Finding("turns", path, f"cannot be read: {error.strerror}", f"{address} cannot go on")
        turns = []
    yield from _transcript(workspace, task, draft, turns)
    yield from _turns(workspace, task, draft, turns)
    yield from _revisions(workspace, task, draft, turns)


def _transcript(workspace: Workspace, task: Task, draft: Draft, turns: list[Turn]) -> Iterator[Finding]:
    transcript = workspace.transcript(task, draft)
    address = task.address(draft.name)
    answered = [turn for turn in turns if turn.state in ANSWERED]
    try:
        entries = transcript.read().entries
    except OSError:
        entries = []
    if not entries:
        if answered:
            yield Finding(
                "session",
                transcript.path,
                f"is missing or empty, and {address} has finished turns",
                "the draft cannot go on until the file is back; its text is safe",
            )
        return
    uuids = {entry.get("uuid") for entry in entries}
    for turn in answered:
        if turn.uuid not in uuids:
            yield Finding(
                "turns",
                transcript.path,
                f"does not have the prompt of turn {turn.number} of {address}",
                "the model does not know of it any more",
            )
    yield from _unanswered(workspace, task, draft, entries, answered)
    shown = messages(entries)
    missed = _missed(shown, entries)
    if missed:
        helps = len(_missed(shown, relinked(entries))) < len(missed)
        yield Finding(
            "reader",
            transcript.path,
            f"the SDK's own reader reaches {len(shown) - len(missed)} of {len(shown)} messages",
            "an entry is missing in between; SmartWriter shows them all, and resuming gets past it",
            f"link past it in a new file, and keep the old one as {transcript.path.name}.damaged-…"
            if helps
            else "",
            partial(journal.rewrite, transcript.path, relinked) if helps else None,
        )


def _missed(shown: list[Message], entries: list[Entry]) -> list[Message]:
    """The messages that the SDK's own reader does not reach, in the stretch between two compactions that
    they are in: past a compaction it goes by design in none."""
    reached = set[str]().union(*(sdk_reads(stretch) for stretch in stretches(entries)))
    said = (message for message in shown if message.role != "compaction")
    return [message for message in said if message.uuid not in reached]


def _unanswered(
    workspace: Workspace, task: Task, draft: Draft, entries: list[Entry], answered: list[Turn]
) -> Iterator[Finding]:
    """Turns that came to their end, but whose answer is not in the transcript."""
    path = workspace.transcript(task, draft).path
    prompts = {entry.get("uuid") for entry in entries}
    for turn in answered:
        later = {other.uuid for other in answered if other.number > turn.number}
        if turn.uuid not in prompts or is_command(turn.prompt):
            continue
        if answer_to(entries, turn.uuid, later) is None and not answer_to(
            entries, turn.uuid, later, whole=False
        ):
            waiting = ", ".join(str(part) for part in workspace.spool.paths())
            yield Finding(
                "turns",
                path,
                f"does not have the answer of turn {turn.number} of {task.address(draft.name)}",
                f"it waits to be stored, or a part of it: {waiting}" if waiting else "its words are lost",
            )


def _turns(workspace: Workspace, task: Task, draft: Draft, turns: list[Turn]) -> Iterator[Finding]:
    path = workspace.hidden / "turns" / task.id / f"{draft.name}.jsonl"
    address = task.address(draft.name)
    numbers = [turn.number for turn in turns]
    if numbers != list(range(1, len(numbers) + 1)):
        yield Finding("turns", path, f"has the turns {numbers} for {address}", "a line of it was lost")
    if (
        any(turn.state is TurnState.running for turn in turns)
        and not workspace.lease(task, draft.name).is_held()
    ):
        yield Finding(
            "cut-off",
            path,
            f"the last turn of {address} was cut off",
            "its process died; the next turn goes on from there",
            "take in what the CLI may still have written",
            partial(recover, workspace, [config_folder()], [(task, draft)]),
        )


def _revisions(workspace: Workspace, task: Task, draft: Draft, turns: list[Turn]) -> Iterator[Finding]:
    path = workspace.hidden / "revisions" / task.id / f"{draft.name}.jsonl"
    text = workspace.text(task, draft.name)
    try:
        revisions = text.revisions()
    except (OSError, ValidationError):
        yield Finding("revisions", path, "has lines that cannot be used", "some versions are out of reach")
        return
    if not revisions:
        return
    yield from _bad_revisions(path, revisions, len(turns))
    if text.is_behind() and not workspace.lease(task, draft.name).is_held():
        yield Finding(
            "text",
            text.path,
            f"does not have the last version of {task.address(draft.name)} yet",
            "the program died while it was saved; that version is safe beside it",
            "put it in its place",
            partial(workspace.take_hand_edit, task, draft.name),
        )
    elif not bounds.is_inside(text.path):
        yield Finding(
            "text",
            text.path,
            f"leads to {text.path.resolve()}",
            "nothing is read or written there; if it is your own doing, allow that folder in your own config",
        )
    elif current_number(revisions) and not text.path.exists():
        yield Finding(
            "text",
            text.path,
            f"is missing, though {task.address(draft.name)} has had a text",
            "the text is safe in the last of them",
            "write it again",
            partial(workspace.take_hand_edit, task, draft.name, restore=True),
        )


def _bad_revisions(path: Path, revisions: list[Revision], turns: int) -> Iterator[Finding]:
    numbers = [revision.number for revision in revisions]
    if numbers != list(range(1, len(numbers) + 1)):
        yield Finding("revisions", path, f"has the revisions {numbers}", "a version of the text was lost")
    for revision in revisions:
        if revision.sha256 != sha256_of(revision.text):
            yield Finding(
                "revisions", path, f"revision {revision.number} has changed", "it is not what was written"
            )
        if revision.turn > turns + 1:
            yield Finding(
                "revisions", path, f"revision {revision.number} is of turn {revision.turn}", "there is none"
            )


# What processes left ----------------------------------------------------------------------------


def _dead_leases(workspace: Workspace) -> Iterator[Finding]:
    leases = (*workspace.hidden.glob("turns/*/*.lease"), *workspace.hidden.glob("locks/*/*"))
    for path in sorted((*leases, *workspace.hidden.glob("turns/*/fork"))):
        if bounds.is_own_record(path) and path.is_file() and (holder := left_by(path)):
            yield Finding(
                "lease",
                path,
                f"was left by {holder}",
                "that process is gone; it blocks nobody",
                "empty it",
                partial(path.write_bytes, b""),
            )


def _leftovers(workspace: Workspace) -> Iterator[Finding]:
    for path in sorted(workspace.root.rglob(".*.tmp")):
        if not _was_given_up(path):
            continue
        yield Finding(
            "leftover",
            path,
            "is half a document",
            "a process died while it saved; the document itself is whole",
            "move it to the trash",
            partial(_put_away, workspace, path),
        )
    for path in sorted((workspace.root / "collections").rglob(".*.md.next")):
        if not _is_of_memory(path):
            continue
        yield Finding(
            "leftover",
            path,
            f"was to take the place of {path.name[1 : -len('.next')]}",
            "a process died before it did; the file is whole, as it was",
            "move it to the trash",
            partial(_put_away, workspace, path),
        )
    for path in sorted({*(workspace.hidden / "spool").glob("*"), *workspace.spool.paths()}):
        yield Finding(
            "spool",
            path,
            "waits to be stored",
            "a part of a turn that is not in its place yet",
            "store it",
            workspace.spool.replay,
        )
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


def _put_away(workspace: Workspace, path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        durable.move(path, workspace.hidden / "trash" / "leftovers" / _stamped(path.name))


def _conflict_copies(workspace: Workspace, tasks: list[Task]) -> Iterator[Finding]:
    # An article is named for its task, which may be called anything.
    articles = {normal(f"{task.folder}.md") for task in tasks}
    for path in sorted(workspace.root.rglob("*")):
        if path.parent.name == "articles" and normal(path.name) in articles:
            continue
        if path.is_file() and _CONFLICT.search(path.name):
            yield Finding(
                "conflict",
                path,
                "looks like a sync tool's second copy",
                "two machines wrote at once; compare it with the other, then remove one",
            )


def _stamped(name: str) -> str:
    return f"{now():%Y%m%dT%H%M%S%f}{name}"
