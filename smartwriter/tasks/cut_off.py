"""Turns that were cut off, and the versions of a text that are left of them."""

from __future__ import annotations

from collections.abc import Iterable

from smartwriter.tasks.values import ANSWERED, Revision, Turn, TurnState


def version_of(turn: Turn, revisions: Iterable[Revision]) -> Revision | None:
    """The last version that was cut off in a turn."""
    own = [one for one in revisions if one.cut_off and one.turn == turn.number]
    return own[-1] if own else None


def kept_as(address: str, *, whole: bool) -> str:
    """What is said under what was being written into a draft: that it breaks off, if so, and where it is.

    :param address: of its version.
    """
    return f"({'whole, but never put into the draft' if whole else 'cut off here'}; kept as {address})"


def to_be_told(turn: Turn, revisions: Iterable[Revision]) -> list[Revision]:
    """The versions that were cut off in a turn, but for those of which a later one has all, and more."""
    own = [one for one in revisions if one.cut_off and one.turn == turn.number]
    return [one for at, one in enumerate(own) if not any(_has_all(later, one) for later in own[at + 1 :])]


def _has_all(later: Revision, one: Revision) -> bool:
    return bool(one.call and later.call == one.call) or later.text.startswith(one.text)


def is_whole(turn: Turn) -> bool:
    """Whether a turn has its answer, or may yet come to it."""
    return turn.state in ANSWERED or turn.state is TurnState.running
