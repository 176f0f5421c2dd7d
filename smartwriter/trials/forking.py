"""Forks: a new draft that shares a draft's past up to a turn and goes its own way from there."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from anyio.to_thread import run_sync

import smartwriter.files.durable as durable
from smartwriter.errors import AlreadyExists, SessionMissing
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.copying import copy_session
from smartwriter.sessions.transcript import cut
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.manager import free_draft_name
from smartwriter.tasks.values import Draft, Origin, WhatIf
from smartwriter.trials.sharing import Shared, in_conversation, shared

_WAIT_S = 20.0  # for another fork of the same task


async def fork(
    origin: OpenDraft,
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
    await run_sync(_planned, origin, at, revision, name)  # what is refused leaves no lock file
    workspace = origin.workspace
    lease = workspace.fork_lease(origin.task)
    await run_sync(lease.acquire, _WAIT_S)
    try:
        origin = await run_sync(origin.now)
        new = await run_sync(_free_name, origin, name)
        await run_sync(clear_leftovers, new)
        plan = await run_sync(_planned, origin, at, revision, name)
        session_id = await run_sync(_fork_session, origin, plan, new.name)
        await run_sync(_record_turns, new, plan, session_id)
        await run_sync(_copy_texts, origin, new, plan)
        start = Origin(draft=origin.name, turn=plan.last, revision=revision)
        what_if = {**origin.draft.memory, **(memory or {})}
        return await run_sync(workspace.tasks.add_draft, new.task.id, new.name, session_id, start, what_if)
    finally:
        lease.release()


async def rewind(origin: OpenDraft, to: int, name: str | None = None) -> Draft:
    """Go back to a turn: a fork there becomes the task's current draft, and the old line stays.

    :param to: the last turn to keep, 0 for none. :raises: as :func:`fork`.
    """
    rewound = await fork(origin, at=to, name=name)
    await run_sync(origin.workspace.tasks.adopt, origin.task.id, rewound.name)
    return rewound


def _planned(origin: OpenDraft, at: int | None, revision: int | None, name: str | None) -> Shared:
    """Everything that can be refused is, before anything is written."""
    free_draft_name(origin.task, name)
    origin.workspace.check_folder(origin.task)
    return shared(origin, at, revision)


# The copies -----------------------------------------------------------------------------------


def _fork_session(origin: OpenDraft, plan: Shared, name: str) -> str:
    """A session of the same bytes up to the end of the last shared turn.

    So the model is sent, entry for entry, what it is sent in the origin; the SDK's own fork gives new
    uuids to all, but not in what a compaction says of the messages that it kept, and those get lost.
    """
    session_id = str(uuid.uuid4())
    if not plan.turns:
        return session_id
    transcript = origin.transcript
    entries = transcript.read().entries
    last_entry = cut(entries, {turn.uuid for turn in plan.later})
    if last_entry is None and not in_conversation(plan.turns):
        return session_id
    if last_entry is None:
        raise SessionMissing(origin.address, transcript.path)
    title = f"{origin.task.title} ({name})"
    copy_session(origin.workspace.store, origin.session, session_id, last_entry, title)
    return session_id


def _record_turns(new: OpenDraft, plan: Shared, session_id: str) -> None:
    if not plan.turns:
        return
    known = plan.known is not None and not plan.known.forgotten
    of_fork = {"session_id": session_id, "inherited": True, "revision": int(known)}
    inherited = [turn.model_copy(update=of_fork) for turn in plan.turns]
    new.workspace.tasks.record(new.task, new.name, inherited)


def _copy_texts(origin: OpenDraft, new: OpenDraft, plan: Shared) -> None:
    """The first revision is what the model knows; what differs from it is told with the next prompt."""
    text = new.text
    if plan.known is not None:
        text.write(plan.known.text, author="fork", turn=plan.last, source=plan.known.source)
    for one in plan.cut_off:
        source = origin.source(one.number)
        text.keep_cut_off(one.text, one.turn, breaks=one.breaks, call=one.call, source=source)
    start = plan.text
    if start is None or (plan.known is not None and start.text == plan.known.text):
        return
    if start.source is None:
        text.write(start.text, author="writer", turn=plan.last + 1)
    else:
        text.write(start.text, author="fork", turn=plan.last, source=start.source)


def _free_name(origin: OpenDraft, wanted: str | None) -> OpenDraft:
    """The new draft, under a name that no draft has, nor a file of the writer's own in the drafts' folder."""
    task = origin.task
    new = origin.sibling(free_draft_name(task, wanted))
    while _is_foreign(new.text):
        if wanted is not None:
            raise AlreadyExists("file", str(new.text.path))
        task = task.with_draft(Draft(name=new.name, session_id=new.name))  # so that it is passed over
        new = origin.sibling(free_draft_name(task, None))
    return new


def _is_foreign(text: DraftText) -> bool:
    return text.path.exists() and not text.revisions()


def clear_leftovers(new: OpenDraft) -> None:
    """Put away what a fork of this name left that crashed before it was recorded."""
    places, id, name = new.workspace.places, new.task.id, new.name
    leftovers = {"turns": places.turns(id, name), "revisions": places.revisions(id, name)}
    for kind, leftover in leftovers.items():
        if leftover.exists():
            durable.move(leftover, places.trash(kind, f"{id}-{name}", ".jsonl"))
    new.text.put_away()
