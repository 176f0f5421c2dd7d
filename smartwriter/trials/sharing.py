"""What a fork shares with its origin: turns, what the model knows of the text, and the text to start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smartwriter.errors import SessionMissing, TurnNotFound
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.transcript import compacted_since
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.revisions import check_text, current_number, known_after, shared_turn, text_of
from smartwriter.tasks.values import ANSWERED, DIED, Revision, Source, Turn, TurnState


@dataclass(frozen=True)
class SharedText:
    """A version of a text, and where it comes from; no source: the writer has just edited it."""

    text: str
    source: Source | None
    forgotten: bool = False
    """The model knew it, but has only a summary of that any more."""


@dataclass(frozen=True)
class Shared:
    turns: list[Turn]
    later: list[Turn]
    known: SharedText | None
    """What the model knew at the end of the last shared turn; None: no text yet."""
    text: SharedText | None
    cut_off: list[Revision]
    """What the model was writing into the draft when shared turns were cut off."""

    @property
    def last(self) -> int:
        """The last turn that is shared; 0 for none."""
        return self.turns[-1].number if self.turns else 0


def shared(origin: OpenDraft, at: int | None, revision: int | None) -> Shared:
    """What a fork shares. :raises TurnNotFound, RevisionNotFound, SessionMissing, Invalid:"""
    text, turns = origin.text, origin.turns_now()
    if revision is not None and at is None:
        at = _turn_of(text, revision, turns)
    taken, later = _split(origin.address, turns, at)
    transcript = origin.transcript
    if in_conversation(taken) and not transcript.has_entries():
        raise SessionMissing(origin.address, transcript.path)
    numbers = {turn.number for turn in taken}
    if revision is None:
        start = _text_after(origin, taken, latest=not later)
    else:
        start = SharedText(text.revision(revision).text, origin.source(revision))
    return Shared(
        turns=taken,
        later=later,
        known=_known_text(origin, taken, later),
        text=start,
        cut_off=[one for one in text.revisions() if one.cut_off and one.turn in numbers],
    )


def in_conversation(turns: Sequence[Turn]) -> bool:
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


def _owner(draft: OpenDraft, turn: int) -> OpenDraft:
    """The draft in which a turn was taken: a fork has no texts of the turns that it shares."""
    while (origin := draft.draft.origin) is not None and turn < origin.turn:
        draft = draft.sibling(origin.draft)
    return draft


# What the model knows -------------------------------------------------------------------------


def _known_text(origin: OpenDraft, taken: list[Turn], later: list[Turn]) -> SharedText | None:
    reached = list(_reached(origin, taken))
    for number, turn in enumerate(reached):
        if number == 0 and _was_forgotten(origin, turn, taken, later):
            continue
        if known := _known_at(origin, turn):
            return known if number == 0 else _forgotten(origin, reached)
    return None


def _was_forgotten(origin: OpenDraft, last: Turn, taken: list[Turn], later: list[Turn]) -> bool:
    """Whether there was a compaction since the beginning of the last turn, of which nobody lived to tell."""
    if not any(turn.state in DIED for turn in taken if turn.number >= last.number):
        return False
    return compacted_since([*origin.transcript.entries()], last.uuid, {turn.uuid for turn in later})


def _forgotten(origin: OpenDraft, reached: list[Turn]) -> SharedText | None:
    """The text as the last turn left it that was no command: what changed since is told."""
    last = next((turn.number for turn in reached if not is_command(turn.prompt)), 0)
    owner = _owner(origin, last)
    revisions = [one for one in owner.text.revisions() if one.turn <= last]
    number = current_number(revisions)
    return SharedText(text_of(revisions), owner.source(number), forgotten=True) if number else None


def _known_at(origin: OpenDraft, last: Turn) -> SharedText | None:
    owner = _owner(origin, last.number)
    revisions = owner.text.revisions()
    if owner.name != origin.name:
        (last,) = [turn for turn in owner.turns() if turn.number == last.number]
    known = known_after(last, revisions)
    if last.revision is None:  # recorded by a version that did not say
        known = current_number(revision for revision in revisions if revision.turn <= last.number)
    if not known:
        return None
    text = text_of(revision for revision in revisions if revision.number <= known)
    return SharedText(text, owner.source(known))


def _reached(origin: OpenDraft, taken: list[Turn]) -> Iterator[Turn]:
    """The turns whose prompts, with all that was told in them, reached the model; the last one first."""
    transcript = origin.transcript
    return (turn for turn in reversed(taken) if transcript.has_told(turn))


def _text_after(origin: OpenDraft, taken: list[Turn], *, latest: bool) -> SharedText | None:
    """The text as the last shared turn left it; at the end of the draft, with what came after."""
    number = taken[-1].number if taken else 0
    owner = origin if latest else _owner(origin, number)
    text = owner.text
    revisions = [revision for revision in text.revisions() if latest or revision.turn <= number]
    recorded = text_of(revisions)
    if latest and (now := text.read()) != recorded:
        check_text(now, f" ({text.path})")
        return SharedText(now, None)
    number = current_number(revisions)
    return SharedText(recorded, owner.source(number)) if number else None
