"""What is being written in a workspace, by whatever process; and how it is stopped. All calls block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from smartwriter.events import Failed
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.cut_off import kept_as, version_of
from smartwriter.tasks.values import Task, TurnState, why_closed
from smartwriter.turns.live import LiveJournal
from smartwriter.workspace import Workspace
from smartwriter.writing.orphans import end_orphans


@dataclass(frozen=True)
class Status:
    """Of a draft."""

    task: Task
    draft: str
    state: str
    """Who writes it, or how its last turn was cut off, in words; empty where neither is so."""
    waiting: int
    """How many prompts wait."""


def statuses(workspace: Workspace) -> list[Status]:
    """Of all drafts of which there is something to say."""
    found = [
        Status(
            task,
            name,
            _state(draft := OpenDraft(workspace, task, name)),
            len(draft.outbox().waiting()),
        )
        for task in workspace.tasks.all()
        for name in task.live_drafts
    ]
    return [one for one in found if one.state or one.waiting]


def stop(draft: OpenDraft) -> Literal["asked", "ended", "idle"]:
    """Stop the turn of a draft.

    ``asked``: the process that writes it does so; ``ended``: that was dead, and its CLI, which still went
    on, has been ended; ``idle``: nobody writes it.
    """
    if draft.lease().is_held():
        draft.ask_to_stop()
        return "asked"
    return "ended" if end_orphans(draft) else "idle"


def died(draft: OpenDraft, number: int) -> Failed | None:
    """How a turn ended whose process did not live to say it; None while it may."""
    for turn in draft.turns_now():
        if turn.number == number and turn.state is TurnState.interrupted:
            kept = version_of(turn, draft.text.revisions())
            detail = "(cut off here)"
            if kept is not None:
                detail = kept_as(f"{draft.address}:{kept.number}", whole=kept.is_whole)
            return Failed(task=draft.task.id, draft=draft.name, detail=detail, turn=turn)
    return None


def _state(draft: OpenDraft) -> str:
    lease = draft.lease()
    if lease.is_held():
        ended = LiveJournal.has_ended(draft.live_path)
        return f"{'idle' if ended else 'writing'}, in {lease.holder()}"
    turns = draft.turns_now()
    if turns and turns[-1].detail:
        return f"turn {turns[-1].number} {turns[-1].state.value}: {turns[-1].detail}"
    if not turns or turns[-1].state is not TurnState.interrupted:
        return ""
    kept = version_of(turns[-1], draft.text.revisions())
    where = f", its article is kept as {draft.address}:{kept.number}" if kept is not None else ""
    then = why_closed(draft.task, draft.name) or "just write on"
    return f"turn {turns[-1].number} was cut off{where}; {then}"
