"""What the model is told, beside the prompt, of what happened to the draft since its last turn."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from smartwriter.tasks.revisions import current_number, text_of
from smartwriter.tasks.values import Breaks, Revision
from smartwriter.text.differences.comparison import Comparison, compare
from smartwriter.text.differences.pieces import Piece, hunks_of, looks_the_same
from smartwriter.text.words import tokens

_MOST_CHARACTERS = 4000
_FEW_PLACES = 3  # the same change in as many places is told once
_CONTEXT = 8  # tokens on both sides of a change
_MOST_OF_ARTICLE = 24_000  # characters of an article that was cut off, to be sent again
_END_OF_ARTICLE = 1200  # of a longer one
LOST_PROMPT = "[The connection broke before you got this prompt of the author:]"
FORGOTTEN = (
    "[The conversation was compacted: you have not the draft's text any more. Read it before you replace it.]"
)
_AGAIN = (
    "The conversation was compacted in the middle of this turn, which goes on. This is the author's prompt, "
    "with what you were told before it:"
)
_SPACING = "Nothing but blank lines, line ends or the like."
_RESTORED = "[The draft's file was gone; it was restored with the text of its last revision.]"


def lost_prompt(prompt: str) -> str:
    return f"{LOST_PROMPT}\n\n{prompt}"


_HEADS: dict[Breaks, str] = {
    "at the end": (
        "You were cut off while you wrote into the draft. What had arrived is version {0}, beside the draft, "
        "which stays as it was until you go on. To go on from it, to the character, call append_draft with "
        "version {0}."
    ),
    "within": (
        "You were cut off while you wrote into the draft. What had arrived of your change breaks off within "
        "the text. Version {0}, beside the draft, is what the draft would have become by it; the draft stays "
        "as it was. To go on, make the whole change again."
    ),
    "nowhere": (
        "What you wrote into the draft had arrived as a whole, but it was not done. Version {0}, beside the "
        "draft, is what the draft would have become; the draft stays as it was. To make it the draft, call "
        "append_draft with version {0} and an empty text."
    ),
}


def half_answer(heard: str) -> str:
    return f"[Your last answer was cut off. This much of it had arrived:\n\n{heard}]"


def half_article(version: Revision, before: str) -> str:
    """What the model had typed into the draft when it was cut off, word for word if it is not too much.

    :param before: the text that it would have changed.
    """
    number, text = version.number, version.text
    head = f"[{_HEADS[version.breaks].format(number)}"
    if version.breaks == "within":
        diff, whole = difference(before, text)
        if whole:
            return f"{head} This much of your change had arrived:\n\n{diff}]"
    if len(text) <= _MOST_OF_ARTICLE:
        return f"{head} This is version {number}:\n\n{text}]"
    end = text[-_END_OF_ARTICLE:]
    return (
        f"{head} It has {len(text):,} characters: read it with read_draft, version {number}, before you go "
        f"on. It ends so:\n\n…{end}]"
    )


def forgotten(revisions: Sequence[Revision], last_told: int, *, restored: bool) -> list[str]:
    """Where a summary of the conversation is all that the model has any more: that the text changed.

    :param last_told: the last turn that it was told in what had changed.
    """
    told = [_RESTORED] if restored else []
    # A fork's first revision is what its origin's model had been told.
    told_of = (one for one in revisions if one.turn <= last_told or (one.author, one.number) == ("fork", 1))
    known = max((revision.number for revision in told_of), default=0)
    if any(revision.number > known and not revision.aside for revision in revisions):
        told.append(f"[{_causes(revisions, known)}]")
    return told


def again(prompt: str) -> str:
    """What the model is to be told when the conversation was compacted in the middle of a turn.

    :param prompt: as it was sent.
    """
    return f"[{_AGAIN}]\n\n{prompt}"


def changes(revisions: Sequence[Revision], known: int, *, restored: bool) -> tuple[list[str], int]:
    """What changed in a text since the revision that the model knows, exactly if it is not too much.

    :returns: the notes, and the revision that the model knows once it has got them.
    """
    told = [_RESTORED] if restored else []
    before, after = (
        text_of(revision for revision in revisions if revision.number <= known),
        text_of(revisions),
    )
    if before == after:
        return told, current_number(revisions)
    cause, (diff, whole) = _causes(revisions, known), difference(before, after)
    if whole:
        return [*told, f"[{cause} What changed:\n\n{diff}]"], current_number(revisions)
    return [*told, f"[{cause} What changed, in part; read it before you change it:\n\n{diff}]"], known


def difference(before: str, after: str) -> tuple[str, bool]:
    """What changed, as far as it is not too much, and whether that is all of it.

    Line ends are left out: the model's passages fit whichever the draft has.
    """
    before, after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
    found = notes(before, after, _MOST_CHARACTERS)
    return found or _SPACING, found == notes(before, after, sys.maxsize)


def _causes(revisions: Sequence[Revision], known: int) -> str:
    causes = dict.fromkeys(
        _cause(revision) for revision in revisions if revision.number > known and not revision.aside
    )
    return "The author " + ", then ".join(causes) + "." if causes else "The draft was changed."


def _cause(revision: Revision) -> str:
    source = revision.source
    if revision.author == "fork":
        return f"started this trial draft from the text of {source}" if source else "started this trial draft"
    if source is None:
        return "edited the draft by hand" if revision.author == "writer" else "let you change the draft"
    if source.turn is not None:
        return f"made your answer of turn {source.turn} the draft's text"
    if revision.paragraphs:
        numbers = ", ".join(map(str, revision.paragraphs))
        return f"took over paragraph {numbers} of {source} into the draft"
    return f"put the text of {source} in the draft's place"


# The changes themselves --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Note:
    where: str
    text: str


def notes(before: str, after: str, limit: int = 4000) -> str:
    """What changed, for a language model: a line for each place, with the words around it.

    Removed words stand as ``[-…-]``, added ones as ``{+…+}``, each verbatim. A place that does not
    fit is left out whole, and the last line says which. Empty when no paragraph differs.

    :param limit: characters; only that last line alone may be longer.
    """
    comparison = compare(before, after)
    places = list(_places(comparison))
    lines = [place.text for place in places]
    if len("\n".join(lines)) <= limit:
        return "\n".join(lines)
    kept: list[int] = []
    for number, line in enumerate(lines):
        if len(line) + 1 <= limit - sum(len(lines[n]) + 1 for n in kept):
            kept.append(number)
    while True:
        missing = [place.where for n, place in enumerate(places) if n not in kept]
        text = "\n".join([*(lines[n] for n in kept), _missing(missing)])
        if len(text) <= limit or not kept:
            return text
        kept.pop()


def _missing(places: list[str]) -> str:
    named = list(dict.fromkeys(places))
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    changes = "1 more change does" if len(places) == 1 else f"{len(places)} more changes do"
    return f"({changes} not fit in here: {', '.join(named[:5])}{more}.)"


def _places(comparison: Comparison) -> Iterator[_Note]:
    if comparison.front:
        yield from _hunks("front matter", comparison.front)
    common = _common(comparison)
    for (removed, added), found in common.items():
        places = list(dict.fromkeys(found))
        said = f"{len(found)} places (paragraphs {', '.join(map(str, places))})"
        one_hunk = (Piece("removed", removed), Piece("added", added))
        yield _Note(f"paragraph {places[0]}", f"In {said}: {''.join(map(_marked, one_hunk))}")
    for block in comparison.blocks:
        where = f"paragraph {block.after}"
        if block.kind == "removed":
            where = f"old paragraph {block.before}"
            yield _Note(where, f"{where.capitalize()} was removed: {_marked(block.pieces[0])}")
        elif block.kind == "added":
            yield _Note(where, f"{where.capitalize()} is new: {_marked(block.pieces[0])}")
        elif block.kind == "moved":
            yield _Note(
                where,
                f"{where.capitalize()} was moved here; it was paragraph {block.before}: "
                f"{_shortened(tokens(block.after_text), 0, 2 * _CONTEXT)}",
            )
        elif block.after_last:
            where = f"old paragraph {block.before}"
            yield _Note(
                where,
                f"{where.capitalize()} was split into paragraphs {block.after} to {block.after_last}.",
            )
        elif block.before_last:
            yield _Note(
                where,
                f"{where.capitalize()} was merged from old paragraphs {block.before} to {block.before_last}.",
            )
        if block.kind in ("changed", "moved", "split", "merged"):
            yield from _hunks(where, _without(common, block.pieces))


def _common(comparison: Comparison) -> dict[tuple[str, str], list[int]]:
    """Words that became other words in several places, with the paragraph of each."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for block in comparison.blocks:
        if block.after and len(block.pieces) > 1:
            for removed, added in hunks_of(block.pieces):
                if removed.strip() and added.strip():
                    found[removed, added].append(block.after)
    return {hunk: where for hunk, where in found.items() if len(where) >= _FEW_PLACES}


def _without(common: Mapping[tuple[str, str], object], pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces in which changes that were told already are no changes."""
    left: list[Piece] = []
    for same, stretch in groupby(pieces, key=lambda piece: piece.kind == "same"):
        held = list(stretch)
        hunk = next(hunks_of(held), ("", ""))
        if same or hunk in common:
            text = "".join(piece.text for piece in held) if same else hunk[1]
            if left and left[-1].kind == "same":
                text = left.pop().text + text
            left.append(Piece("same", text))
        else:
            left += held
    return left


def _hunks(where: str, pieces: Sequence[Piece]) -> Iterator[_Note]:
    """One note for the changes that stand close together."""
    if all(piece.kind == "same" for piece in pieces):
        return
    said = f"{where.capitalize()}: "
    line = ""
    for number, piece in enumerate(pieces):
        if piece.kind != "same":
            line += _marked(piece)
            if piece.kind == "added" and number and looks_the_same(pieces[number - 1].text, piece.text):
                line += " (which looks the same: its letters are composed of other characters)"
            continue
        found = tokens(piece.text)
        first, last = number == 0, number == len(pieces) - 1
        if not first and not last and len(found) <= 2 * _CONTEXT:
            line += piece.text
            continue
        if not first:
            yield _Note(where, said + line + _shortened(found, 0, _CONTEXT))
        line = "" if last else _shortened(found, max(0, len(found) - _CONTEXT), len(found))
    if line:
        yield _Note(where, said + line)


def _shortened(found: list[str], start: int, end: int) -> str:
    return ("…" if start else "") + "".join(found[start:end]) + ("…" if end < len(found) else "")


def _marked(piece: Piece) -> str:
    return {"same": "{}", "added": "{{+{}+}}", "removed": "[-{}-]"}[piece.kind].format(piece.text)
