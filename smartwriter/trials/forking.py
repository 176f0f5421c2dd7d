"""Forks: a new draft that shares a draft's past up to a turn and goes its own way from there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from anyio.to_thread import run_sync

import smartwriter.files.durable as durable
import smartwriter.storage.reading as reading
from smartwriter.errors import AlreadyExists, SessionMissing, TurnNotFound
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.transcript import compacted_since, cut
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.manager import free_draft_name
from smartwriter.tasks.revisions import check_text, current_number, known_after, shared_turn, text_of
from smartwriter.tasks.values import (
    ANSWERED,
    DIED,
    Draft,
    Origin,
    Revision,
    Source,
    Task,
    Turn,
    TurnState,
    WhatIf,
)
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry

_WAIT_S = 20.0  # for another fork of the same task


async def fork(
    workspace: Workspace,
    task: Task,
    draft: Draft,
    *,
    at: int | None = None,
    revision: int | None = None,
    name: str | None = None,
    memory: Mapping[str, WhatIf] | None = None,
) -> Draft:
    """Start a trial draft. The origin is only read; it may be running.

    The new draft is recorded in the task last: before that, nothing refers to what a crash left.

    :param at: the last turn to share, 0 for none; None: the one of the revision, else the last one
        that has ended, however it did.
    :param revision: whose text to start from; None: the text as the turn left it.
    :param memory: other versions of memory files, beside those that the origin has itself.
    :raises TurnNotFound, RevisionNotFound, SessionMissing, AlreadyExists, Invalid:
    """
    await run_sync(_plan, workspace, task, draft, at, revision, name)  # what is refused leaves no lock file
    lease = workspace.fork_lease(task)
    await run_sync(lease.acquire, _WAIT_S)
    try:
        task = await run_sync(workspace.tasks.find, task.id)
        name = await run_sync(_free_name, workspace, task, name)
        await run_sync(clear_leftovers, workspace, task, name)
        plan = await run_sync(_plan, workspace, task, draft, at, revision, name)
        session_id = await run_sync(_fork_session, workspace, task, draft, plan, name)
        await run_sync(_record_turns, workspace, task, name, plan, session_id)
        await run_sync(_copy_texts, workspace, task, draft.name, name, plan)
        origin = Origin(draft=draft.name, turn=plan.last, revision=revision)
        what_if = {**draft.memory, **(memory or {})}
        return await run_sync(workspace.tasks.add_draft, task.id, name, session_id, origin, what_if)
    finally:
        lease.release()


async def rewind(workspace: Workspace, task: Task, draft: Draft, to: int, name: str | None = None) -> Draft:
    """Go back to a turn: a fork there becomes the task's current draft, and the old line stays.

    :param to: the last turn to keep, 0 for none. :raises: as :func:`fork`.
    """
    rewound = await fork(workspace, task, draft, at=to, name=name)
    await run_sync(workspace.tasks.adopt, task.id, rewound.name)
    return rewound


# What is shared ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """A version of a text, and where it comes from; no source: the writer has just edited it."""

    text: str
    source: Source | None
    forgotten: bool = False
    """The model knew it, but has only a summary of that any more."""


@dataclass(frozen=True)
class _Plan:
    shared: list[Turn]
    later: list[Turn]
    known: _Text | None
    """What the model knew at the end of the last shared turn; None: no text yet."""
    text: _Text | None
    cut_off: list[Revision]
    """What the model was writing into the draft when shared turns were cut off."""

    @property
    def last(self) -> int:
        """The last turn that is shared; 0 for none."""
        return self.shared[-1].number if self.shared else 0


def _plan(
    workspace: Workspace, task: Task, draft: Draft, at: int | None, revision: int | None, name: str | None
) -> _Plan:
    """Everything that can be refused is, before anything is written."""
    free_draft_name(task, name)
    workspace.check_folder(task)
    text = workspace.text(task, draft.name)
    turns = OpenDraft(workspace, task, draft.name).turns_now()
    if revision is not None and at is None:
        at = _turn_of(text, revision, turns)
    shared, later = _split(task.address(draft.name), turns, at)
    transcript = OpenDraft(workspace, task, draft.name).transcript
    if _in_conversation(shared) and not transcript.has_entries():
        raise SessionMissing(task.address(draft.name), transcript.path)
    known = _known_text(workspace, task, draft, shared, later)
    numbers = {turn.number for turn in shared}
    cut_off = [one for one in text.revisions() if one.cut_off and one.turn in numbers]
    if revision is not None:
        chosen = _Text(text.revision(revision).text, _source(task, draft.name, revision))
        return _Plan(shared, later, known, chosen, cut_off)
    start = _text_after(workspace, task, draft, shared, latest=not later)
    return _Plan(shared, later, known, start, cut_off)


def _in_conversation(turns: list[Turn]) -> bool:
    """Whether any of some turns must be part of the session: one that was cut off may not have come to it."""
    return any(turn.state in ANSWERED and not turn.left_out for turn in turns)


def _turn_of(text: DraftText, revision: int, turns: list[Turn]) -> int:
    ended = [turn.number for turn in turns if turn.state is not TurnState.running]
    wanted = shared_turn(text.revision(revision))
    return max((number for number in ended if number <= wanted), default=0)


def _split(address: str, turns: list[Turn], at: int | None) -> tuple[list[Turn], list[Turn]]:
    ended = [turn for turn in turns if turn.state is not TurnState.running]
    if at is None:
        at = max((turn.number for turn in ended), default=0)
    if at != 0 and at not in {turn.number for turn in ended}:
        raise TurnNotFound(address, at, sum(turn.state in ANSWERED for turn in turns))
    return [turn for turn in turns if turn.number <= at], [turn for turn in turns if turn.number > at]


def _owner(task: Task, draft: Draft, turn: int) -> Draft:
    """The draft in which a turn was taken: a fork has no texts of the turns that it shares."""
    while draft.origin is not None and turn < draft.origin.turn:
        draft = task.drafts[draft.origin.draft]
    return draft


def _known_text(
    workspace: Workspace, task: Task, draft: Draft, shared: list[Turn], later: list[Turn]
) -> _Text | None:
    reached = list(_reached(workspace, task, draft, shared))
    for number, turn in enumerate(reached):
        if number == 0 and _was_forgotten(workspace, task, draft, turn, shared, later):
            continue
        if known := _known_at(workspace, task, draft, turn):
            return known if number == 0 else _forgotten(workspace, task, draft, reached)
    return None


def _was_forgotten(
    workspace: Workspace, task: Task, draft: Draft, last: Turn, shared: list[Turn], later: list[Turn]
) -> bool:
    """Whether there was a compaction since the beginning of the last turn, of which nobody lived to tell."""
    if not any(turn.state in DIED for turn in shared if turn.number >= last.number):
        return False
    entries = [*OpenDraft(workspace, task, draft.name).transcript.entries()]
    return compacted_since(entries, last.uuid, {turn.uuid for turn in later})


def _forgotten(workspace: Workspace, task: Task, draft: Draft, reached: list[Turn]) -> _Text | None:
    """The text as the last turn left it that was no command: what changed since is told."""
    last = next((turn.number for turn in reached if not is_command(turn.prompt)), 0)
    owner = _owner(task, draft, last)
    revisions = [one for one in workspace.text(task, owner.name).revisions() if one.turn <= last]
    number = current_number(revisions)
    return _Text(text_of(revisions), _source(task, owner.name, number), forgotten=True) if number else None


def _known_at(workspace: Workspace, task: Task, draft: Draft, last: Turn) -> _Text | None:
    owner = _owner(task, draft, last.number)
    revisions = workspace.text(task, owner.name).revisions()
    if owner is not draft:
        (last,) = [turn for turn in workspace.tasks.turns(task, owner.name) if turn.number == last.number]
    known = known_after(last, revisions)
    if last.revision is None:  # recorded by a version that did not say
        known = current_number(revision for revision in revisions if revision.turn <= last.number)
    if not known:
        return None
    text = text_of(revision for revision in revisions if revision.number <= known)
    return _Text(text, _source(task, owner.name, known))


def _reached(workspace: Workspace, task: Task, draft: Draft, shared: list[Turn]) -> Iterator[Turn]:
    """The turns whose prompts, with all that was told in them, reached the model; the last one first."""
    transcript = OpenDraft(workspace, task, draft.name).transcript
    return (turn for turn in reversed(shared) if transcript.has_told(turn))


def _text_after(
    workspace: Workspace, task: Task, draft: Draft, shared: list[Turn], *, latest: bool
) -> _Text | None:
    """The text as the last shared turn left it; at the end of the draft, with what came after."""
    number = shared[-1].number if shared else 0
    owner = draft if latest else _owner(task, draft, number)
    text = workspace.text(task, owner.name)
    revisions = [revision for revision in text.revisions() if latest or revision.turn <= number]
    recorded = text_of(revisions)
    if latest and (now := text.read()) != recorded:
        check_text(now, f" ({text.path})")
        return _Text(now, None)
    number = current_number(revisions)
    return _Text(recorded, _source(task, owner.name, number)) if number else None


def _source(task: Task, draft: str, revision: int) -> Source:
    return Source(task=task.id, draft=draft, revision=revision)


# The copies -----------------------------------------------------------------------------------


def _fork_session(workspace: Workspace, task: Task, draft: Draft, plan: _Plan, name: str) -> str:
    """A session of the same bytes up to the end of the last shared turn.

    So the model is sent, entry for entry, what it is sent in the origin; the SDK's own fork gives new
    uuids to all, but not in what a compaction says of the messages that it kept, and those get lost.
    """
    session_id = str(uuid.uuid4())
    if not plan.shared:
        return session_id
    transcript = OpenDraft(workspace, task, draft.name).transcript
    try:
        entries = transcript.read().entries
    except FileNotFoundError:
        entries = []
    last_entry = cut(entries, {turn.uuid for turn in plan.later})
    if last_entry is None and not _in_conversation(plan.shared):
        return session_id
    if last_entry is None:
        raise SessionMissing(task.address(draft.name), transcript.path)
    copy_session(workspace, task, draft, session_id, last_entry, f"{task.title} ({name})")
    return session_id


def copy_session(
    workspace: Workspace, task: Task, draft: Draft, session_id: str, last_entry: str, title: str = ""
) -> None:
    """Copy a draft's session up to an entry, with the subagents that it tells of. Blocking.

    :param title: of the copy; empty: the task's.
    """
    key: SessionKey = {"project_key": task.project_key, "session_id": draft.session_id}
    workspace.store.copy_now(key, session_id, last_entry, title or task.title)
    subpaths = workspace.store.subkeys(key)
    if subpaths:
        _copy_subagents(workspace, key, session_id, subpaths)


def _copy_subagents(workspace: Workspace, key: SessionKey, session_id: str, subpaths: list[str]) -> None:
    """Copy the transcripts of those subagents that the fork's own, or theirs, tells of."""
    store = workspace.store
    fork_key: SessionKey = {"project_key": key["project_key"], "session_id": session_id}
    told = store.path(fork_key).read_bytes()
    waiting = dict.fromkeys(subpaths)
    while found := [path for path in waiting if _agent_id(path).encode() in told]:
        for subpath in found:
            del waiting[subpath]
            origin: SessionKey = {**key, "subpath": subpath}
            target: SessionKey = {**fork_key, "subpath": subpath}
            entries = reading.read(store.path(origin)).entries
            store.append_now(target, cast("list[SessionStoreEntry]", entries))
            told += store.path(target).read_bytes()


def _agent_id(subpath: str) -> str:
    return subpath.rpartition("/")[2].removeprefix("agent-")


def _record_turns(workspace: Workspace, task: Task, name: str, plan: _Plan, session_id: str) -> None:
    if not plan.shared:
        return
    known = plan.known is not None and not plan.known.forgotten
    of_fork = {"session_id": session_id, "inherited": True, "revision": int(known)}
    inherited = [turn.model_copy(update=of_fork) for turn in plan.shared]
    workspace.tasks.record(task, name, inherited)


def _copy_texts(workspace: Workspace, task: Task, origin: str, name: str, plan: _Plan) -> None:
    """The first revision is what the model knows; what differs from it is told with the next prompt."""
    text = workspace.text(task, name)
    if plan.known is not None:
        text.write(plan.known.text, author="fork", turn=plan.last, source=plan.known.source)
    for one in plan.cut_off:
        source = _source(task, origin, one.number)
        text.keep_cut_off(one.text, one.turn, breaks=one.breaks, call=one.call, source=source)
    start = plan.text
    if start is None or (plan.known is not None and start.text == plan.known.text):
        return
    if start.source is None:
        text.write(start.text, author="writer", turn=plan.last + 1)
    else:
        text.write(start.text, author="fork", turn=plan.last, source=start.source)


def _free_name(workspace: Workspace, task: Task, wanted: str | None) -> str:
    """A name that no draft has, nor a file of the writer's own in the drafts' folder."""
    name = free_draft_name(task, wanted)
    while _is_foreign(workspace.text(task, name)):
        if wanted is not None:
            raise AlreadyExists("file", str(workspace.text(task, name).path))
        task = task.with_draft(Draft(name=name, session_id=name))  # so that it is passed over
        name = free_draft_name(task, None)
    return name


def _is_foreign(text: DraftText) -> bool:
    return text.path.exists() and not text.revisions()


def clear_leftovers(workspace: Workspace, task: Task, name: str) -> None:
    """Put away what a fork of this name left that crashed before it was recorded."""
    places = workspace.places
    leftovers = {"turns": places.turns(task.id, name), "revisions": places.revisions(task.id, name)}
    for kind, leftover in leftovers.items():
        if leftover.exists():
            durable.move(leftover, places.trash(kind, f"{task.id}-{name}", ".jsonl"))
    workspace.text(task, name).put_away()
