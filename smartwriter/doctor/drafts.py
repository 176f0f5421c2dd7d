"""What the doctor finds of a task and its drafts: sessions, turns and versions that do not agree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pydantic import ValidationError

import smartwriter.storage.journal as journal
import smartwriter.system.bounds as bounds
from smartwriter.agent.environment import config_folder
from smartwriter.doctor.finding import Finding
from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.sdk import sdk_reads
from smartwriter.sessions.transcript import Message, answer_to, messages, relinked, stretches
from smartwriter.storage.salvage import Entry
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.revisions import current_number, sha256_of
from smartwriter.tasks.values import ANSWERED, UNFILED, Revision, Task, Turn, TurnState, why_closed
from smartwriter.text.wording import counted
from smartwriter.workspace import Workspace
from smartwriter.writing.recovery import recover


def examine_task(workspace: Workspace, task: Task) -> Iterator[Finding]:
    """What a task belongs to is missing, or half done."""
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


def examine_draft(draft: OpenDraft) -> Iterator[Finding]:
    """What is missing of a draft, or does not agree with the rest of it."""
    address = draft.address
    try:
        turns = draft.turns()
    except OSError as error:
        path = draft.workspace.places.turns(draft.task.id, draft.name)
        yield Finding("turns", path, f"cannot be read: {error.strerror}", f"{address} cannot go on")
        turns = []
    yield from _transcript(draft, turns)
    yield from _turns(draft, turns)
    yield from _revisions(draft, turns)


def _transcript(draft: OpenDraft, turns: list[Turn]) -> Iterator[Finding]:
    transcript = draft.transcript
    address = draft.address
    answered = [turn for turn in turns if turn.state in ANSWERED]
    try:
        entries = transcript.read().entries
    except OSError:
        entries = []
    if entries:
        yield from _unasked(transcript.path, address, entries, answered)
        yield from _unanswered(draft, entries, answered)
        yield from _unreached(transcript.path, entries)
    elif answered:
        yield Finding(
            "session",
            transcript.path,
            f"is missing or empty, and {address} has finished turns",
            "the draft cannot go on until the file is back; its text is safe",
        )


def _unreached(path: Path, entries: list[Entry]) -> Iterator[Finding]:
    """Messages that the SDK's own reader does not come to."""
    shown = messages(entries)
    missed = _missed(shown, entries)
    if not missed:
        return
    helps = len(_missed(shown, relinked(entries))) < len(missed)
    yield Finding(
        "reader",
        path,
        f"the SDK's own reader reaches {len(shown) - len(missed)} of {counted(len(shown), 'message')}",
        "an entry is missing in between; SmartWriter shows them all, and resuming gets past it",
        f"link past it in a new file, and keep the old one as {path.name}.damaged-…" if helps else "",
        partial(journal.rewrite, path, relinked) if helps else None,
    )


def _missed(shown: list[Message], entries: list[Entry]) -> list[Message]:
    """The messages that the SDK's own reader does not reach, in the stretch between two compactions that
    they are in: past a compaction it goes by design in none."""
    reached = set[str]().union(*(sdk_reads(stretch) for stretch in stretches(entries)))
    said = (message for message in shown if message.role != "compaction")
    return [message for message in said if message.uuid not in reached]


def _unasked(path: Path, address: str, entries: list[Entry], answered: list[Turn]) -> Iterator[Finding]:
    """Turns whose prompt is not in the transcript."""
    uuids = {entry.get("uuid") for entry in entries}
    for turn in answered:
        if turn.uuid not in uuids:
            yield Finding(
                "turns",
                path,
                f"does not have the prompt of turn {turn.number} of {address}",
                "the model does not know of it any more",
            )


def _unanswered(draft: OpenDraft, entries: list[Entry], answered: list[Turn]) -> Iterator[Finding]:
    """Turns that came to their end, but whose answer is not in the transcript."""
    path = draft.transcript.path
    prompts = {entry.get("uuid") for entry in entries}
    for turn in answered:
        later = {other.uuid for other in answered if other.number > turn.number}
        if turn.uuid not in prompts or is_command(turn.prompt):
            continue
        if answer_to(entries, turn.uuid, later) is None and not answer_to(
            entries, turn.uuid, later, whole=False
        ):
            waiting = ", ".join(str(part) for part in draft.workspace.spool.paths())
            yield Finding(
                "turns",
                path,
                f"does not have the answer of turn {turn.number} of {draft.address}",
                f"it waits to be stored, or a part of it: {waiting}" if waiting else "its words are lost",
            )


def _turns(draft: OpenDraft, turns: list[Turn]) -> Iterator[Finding]:
    path = draft.workspace.places.turns(draft.task.id, draft.name)
    address = draft.address
    numbers = [turn.number for turn in turns]
    if numbers != list(range(1, len(numbers) + 1)):
        yield Finding("turns", path, f"has the turns {numbers} for {address}", "a line of it was lost")
    if any(turn.state is TurnState.running for turn in turns) and not draft.lease().is_held():
        yield Finding(
            "cut-off",
            path,
            f"the last turn of {address} was cut off",
            f"its process died; {why_closed(draft.task, draft.name) or 'the next turn goes on from there'}",
            "take in what the CLI may still have written",
            partial(recover, draft.workspace, [config_folder()], [draft]),
        )


def _revisions(draft: OpenDraft, turns: list[Turn]) -> Iterator[Finding]:
    path = draft.workspace.places.revisions(draft.task.id, draft.name)
    text = draft.text
    try:
        revisions = text.revisions()
    except (OSError, ValidationError):
        yield Finding("revisions", path, "has lines that cannot be used", "some versions are out of reach")
        return
    if not revisions:
        return
    yield from _bad_revisions(path, revisions, len(turns))
    yield from _text(draft, current_number(revisions) > 0)


def _text(draft: OpenDraft, written: bool) -> Iterator[Finding]:
    """What is not as it should be with the file of a draft's text. :param written: it has had one."""
    text = draft.text
    if text.is_behind() and not draft.lease().is_held():
        yield Finding(
            "text",
            text.path,
            f"does not have the last version of {draft.address} yet",
            "the program died while it was saved; that version is safe beside it",
            "put it in its place",
            draft.take_hand_edit,
        )
    elif not bounds.is_inside(text.path):
        yield Finding(
            "text",
            text.path,
            f"leads to {text.path.resolve()}",
            "nothing is read or written there; if it is your own doing, allow that folder in your own config",
        )
    elif written and not text.path.exists():
        yield Finding(
            "text",
            text.path,
            f"is missing, though {draft.address} has had a text",
            "the text is safe in the last of them",
            "write it again",
            partial(draft.take_hand_edit, restore=True),
        )
    elif why := _unreadable(text):
        yield Finding(
            "text",
            text.path,
            f"cannot be read: {why}",
            f"{draft.address} cannot go on until it can; its versions are safe",
        )


def _unreadable(text: DraftText) -> str:
    """Why a draft's file cannot be read; empty where it can, or is not there."""
    try:
        text.read()
    except OSError as error:
        return error.strerror or str(error)
    except Invalid as error:
        return str(error).rstrip(".")
    return ""


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
