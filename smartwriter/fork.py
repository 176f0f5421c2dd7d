"""Forks: a new draft that shares a draft's past up to a turn and goes its own way from there."""

from __future__ import annotations

import uuid

from anyio.to_thread import run_sync

import smartwriter.journal as journal
from smartwriter.agent.claude import fork_transcript
from smartwriter.errors import SessionMissing, TurnNotFound
from smartwriter.lease import Lease
from smartwriter.task_manager import free_draft_name
from smartwriter.tasks import Draft, Origin, Task, Turn, TurnState
from smartwriter.transcript import cut, forked_uuids
from smartwriter.workspace import Workspace

_WAIT_S = 20.0  # for another fork of the same task


async def fork(
    workspace: Workspace, task: Task, draft: Draft, *, at: int | None = None, name: str | None = None
) -> Draft:
    """Start a trial draft. The origin is only read; it may be running.

    The new draft is recorded in the task last: before that, nothing refers to what a crash left.

    :param at: the last turn to share, 0 for none; None: the last one that is finished.
    :raises TurnNotFound, SessionMissing, AlreadyExists, Invalid:
    """
    await run_sync(_check, workspace, task, draft, at, name)  # what is refused leaves no lock file
    lease = Lease(workspace.hidden / "locks" / task.id / "fork", f"A fork of {task.id}")
    await run_sync(lease.acquire, _WAIT_S)
    try:
        task = await run_sync(workspace.tasks.find, task.id)
        name = free_draft_name(task, name)
        await run_sync(_clear_leftovers, workspace, task, name)
        turns = await run_sync(workspace.tasks.turns, task, draft.name)
        shared, later = _split(task.address(draft.name), turns, at)
        session_id = await _fork_session(workspace, task, draft, name, shared, later)
        number = shared[-1].number if shared else 0
        await run_sync(_copy_text, workspace, task, draft, name, number, not later)
        origin = Origin(draft=draft.name, turn=number)
        return await run_sync(workspace.tasks.add_draft, task.id, name, session_id, origin)
    finally:
        lease.release()


def _check(workspace: Workspace, task: Task, draft: Draft, at: int | None, name: str | None) -> None:
    free_draft_name(task, name)
    turns = workspace.tasks.turns(task, draft.name)
    shared, _ = _split(task.address(draft.name), turns, at)
    transcript = workspace.transcript(task, draft)
    if shared and not transcript.has_entries():
        raise SessionMissing(task.address(draft.name), transcript.path)


def _split(address: str, turns: list[Turn], at: int | None) -> tuple[list[Turn], list[Turn]]:
    ended = [turn for turn in turns if turn.state is not TurnState.running]
    if at is None:
        at = max((turn.number for turn in turns if turn.state is TurnState.finished), default=0)
    if at != 0 and at not in {turn.number for turn in ended}:
        raise TurnNotFound(address, at, sum(turn.state is TurnState.finished for turn in turns))
    return [turn for turn in turns if turn.number <= at], [turn for turn in turns if turn.number > at]


async def _fork_session(
    workspace: Workspace, task: Task, draft: Draft, name: str, shared: list[Turn], later: list[Turn]
) -> str:
    if not shared:
        return str(uuid.uuid4())
    transcript = workspace.transcript(task, draft)
    try:
        entries = (await run_sync(transcript.read)).entries
    except FileNotFoundError:
        entries = []
    last_entry = cut(entries, {turn.uuid for turn in later})
    if last_entry is None:
        raise SessionMissing(task.address(draft.name), transcript.path)
    store = workspace.store.bind(task.project_key)
    session_id = await fork_transcript(store, draft.session_id, last_entry)
    forked = workspace.transcript(task, draft.model_copy(update={"session_id": session_id}))
    uuids = forked_uuids((await run_sync(forked.read)).entries)
    inherited = [
        turn.model_copy(
            update={
                "uuid": uuids.get(turn.uuid, turn.uuid),
                "session_id": session_id,
                "inherited": True,
            }
        )
        for turn in shared
    ]
    await run_sync(workspace.tasks.record, task, name, inherited)
    return session_id


def _copy_text(workspace: Workspace, task: Task, draft: Draft, name: str, turn: int, latest: bool) -> None:
    origin = workspace.text(task, draft.name)
    text = origin.read() if latest else origin.at_turn(turn)
    if text:
        workspace.text(task, name).write(text, author="fork", turn=turn)


def _clear_leftovers(workspace: Workspace, task: Task, name: str) -> None:
    """Put away what a fork of this name left that crashed before it was recorded."""
    for kind in ("turns", "revisions"):
        leftover = workspace.hidden / kind / task.id / f"{name}.jsonl"
        if leftover.exists():
            journal.move(leftover, workspace.hidden / "trash" / kind / task.id / f"{uuid.uuid4()}.jsonl")
    workspace.text(task, name).put_away()
