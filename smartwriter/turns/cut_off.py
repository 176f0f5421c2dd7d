"""Turns that were cut off, as every command sees them: from the moment that their process died.

Nothing is settled here: the next turn does that, or whoever takes in what the CLI still wrote. But what had
been typed into the draft is a version of it at once, so that it can be shown, taken and told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from smartwriter.errors import JournalError
from smartwriter.tasks.values import ANSWERED, Revision, Task, Turn, TurnState
from smartwriter.turns.live import LiveJournal
from smartwriter.workspace import Workspace


def turns_now(workspace: Workspace, task: Task, draft: str) -> list[Turn]:
    """A draft's turns, oldest first; one whose process is dead is cut off, with what was heard. Blocking."""
    turns = workspace.tasks.turns(task, draft)
    if not _runs(turns) or workspace.lease(task, draft).is_held():
        return turns
    # In this order: the one that ran when we first looked may have come to its end in between.
    turns = workspace.tasks.turns(task, draft)
    return [_cut_off(workspace, task, draft, turn) if _runs([turn]) else turn for turn in turns]


def version_of(turn: Turn, revisions: Iterable[Revision]) -> Revision | None:
    """The last version that was cut off in a turn."""
    own = [one for one in revisions if one.cut_off and one.turn == turn.number]
    return own[-1] if own else None


def to_be_told(turn: Turn, revisions: Iterable[Revision]) -> list[Revision]:
    """The versions that were cut off in a turn, but for those of which a later one has all, and more."""
    own = [one for one in revisions if one.cut_off and one.turn == turn.number]
    return [one for at, one in enumerate(own) if not any(_has_all(later, one) for later in own[at + 1 :])]


def _has_all(later: Revision, one: Revision) -> bool:
    return bool(one.call and later.call == one.call) or later.text.startswith(one.text)


def is_whole(turn: Turn) -> bool:
    """Whether a turn has its answer, or may yet come to it."""
    return turn.state in ANSWERED or turn.state is TurnState.running


def _runs(turns: Sequence[Turn]) -> bool:
    return bool(turns) and turns[-1].state is TurnState.running


def _cut_off(workspace: Workspace, task: Task, draft: str, turn: Turn) -> Turn:
    live = LiveJournal(workspace.live_path(task, draft))
    with contextlib.suppress(JournalError, OSError):  # the disk may take nothing now: it stays in the journal
        live.calls(turn.number).keep(workspace.text(task, draft))
    end = {"state": TurnState.interrupted, "partial": live.partial_text(turn.number)}
    return turn.model_copy(update=end)
