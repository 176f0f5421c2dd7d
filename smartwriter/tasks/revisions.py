"""Revisions: the versions of a draft's text, and what they tell of it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Sequence

from smartwriter.errors import Invalid
from smartwriter.storage.records import to_line
from smartwriter.storage.salvage import Entry
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.values import ANSWERED, DIED, Author, Revision, Source, Turn
from smartwriter.text.passages import Edit, edited

MAX_TEXT_BYTES = 1 << 20


def text_of(revisions: Iterable[Revision]) -> str:
    """What a draft's text is after these revisions."""
    text = ""
    for revision in revisions:
        text = text if revision.aside else revision.text
    return text


def current_number(revisions: Iterable[Revision]) -> int:
    """Of the revision that has the draft's text; 0 before the first."""
    return max((revision.number for revision in revisions if not revision.aside), default=0)


def known_after(turn: Turn, revisions: Iterable[Revision]) -> int:
    """The last revision that the model knew of when a turn had ended; 0 for none.

    It knows those that it wrote itself, also where the turn's process died before it said so; but not
    one that it wrote over a hand edit that nobody lived to tell it of. A summary of the conversation has
    no text.
    """
    if is_command(turn.prompt) and turn.state in ANSWERED:
        return 0
    if turn.revision is not None and turn.state not in DIED:
        return turn.revision
    known, before = turn.revision or 0, 0
    for revision in revisions:
        if revision.aside:
            continue
        own = revision.turn == turn.number and revision.author == "model" and revision.source is None
        if own and (before <= known or turn.revision is None):
            known = max(known, revision.number)
        before = revision.number
    return known


def shared_turn(revision: Revision) -> int:
    """The last turn before whose end, or by whose end, a revision was written."""
    of_model = revision.author == "model" and (revision.source is None or revision.cut_off)
    in_the_turn = revision.author == "fork" or of_model
    return revision.turn if in_the_turn else revision.turn - 1


def edited_base(revisions: list[Revision], edits: Sequence[Edit], base: int | None) -> str | None:
    """What the edits make of an earlier revision, if they fit there."""
    if base is None or base == current_number(revisions):
        return None
    with contextlib.suppress(Invalid):
        return edited(text_of(revision for revision in revisions if revision.number <= base), edits)
    return None


def next_revision(
    revisions: Sequence[Revision],
    text: str,
    author: Author,
    turn: int,
    source: Source | None = None,
    paragraphs: Sequence[int] = (),
) -> Revision:
    from smartwriter.text.differences.comparison import (
        word_changes,  # only writing needs it, and it takes long to load
    )

    gained, lost = word_changes(text_of(revisions), text)
    return Revision(
        number=revisions[-1].number + 1 if revisions else 1,
        author=author,
        turn=turn,
        sha256=sha256_of(text),
        text=text,
        gained=gained,
        lost=lost,
        source=source,
        paragraphs=tuple(paragraphs),
    )


def line_of(revision: Revision) -> Entry:
    return {**to_line(revision, brief=True), "at": revision.at.isoformat()}


def check_text(text: str, where: str = "") -> None:
    """:raises Invalid: for what cannot be kept."""
    if "\0" in text:
        raise Invalid(f"The text holds a NUL character, which a Markdown file cannot{where}.")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise Invalid(f"The text is longer than 1 MB{where}.")


def sha256_of(text: str) -> str:
    """As revisions record it."""
    return sha256_of_bytes(text.encode("utf-8", "surrogatepass"))


def sha256_of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
