"""A text with paragraphs of another one laid into it: each in its place, all between them as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from smartwriter.errors import Invalid, ParagraphNotFound
from smartwriter.text.passages import line_end_of, with_line_ends
from smartwriter.text.words import paragraphs, spans
from smartwriter.trials.placing import behind, counterparts, with_notes
from smartwriter.trials.version import Version


@dataclass
class _Laid:
    """A paragraph of the new text, and what stands between it and the next one."""

    paragraph: str
    after: str


@dataclass
class _Places:
    """Where each new paragraph goes, by the number of ours."""

    replaced: dict[int, list[str]] = field(default_factory=dict)
    put: dict[int, list[str]] = field(default_factory=dict)
    """By the number of our paragraph that they go behind; 0 for the beginning."""
    said: list[str] = field(default_factory=list)


def laid_into(
    here: Version, origin: Version, numbers: Sequence[int], after: int | None
) -> tuple[str, tuple[str, ...]]:
    """A text with paragraphs of another one, and a sentence for each of where it went.

    :param after: the paragraph behind which all go; None: where each belongs.
    :raises ParagraphNotFound, Invalid:
    """
    theirs, ours = paragraphs(origin.text), paragraphs(here.text)
    if not numbers:
        raise Invalid("Name the paragraphs to pick.")
    for number in numbers:
        if not 1 <= number <= len(theirs):
            raise ParagraphNotFound(str(origin), number, len(theirs))
    if after is not None and not 0 <= after <= len(ours):
        raise ParagraphNotFound(str(here), after, len(ours))
    line_end = line_end_of(here.text)
    versions = counterparts(ours, theirs) if after is None else [()] * len(theirs)
    wanted = {index: theirs[index] for index in _with_parts(versions, [number - 1 for number in numbers])}
    notes = with_notes(ours, theirs, wanted)
    with_ends = {index: with_line_ends(text, line_end) for index, text in notes.paragraphs.items()}
    found = _placed(ours, with_ends, versions, after)
    if notes.added:
        found.put.setdefault(len(ours), []).extend(with_line_ends(note, line_end) for note in notes.added)
    return _laid_out(here.text, found, line_end), (*found.said, *notes.said)


def _placed(
    ours: Sequence[str], new: dict[int, str], versions: Sequence[tuple[int, ...]], after: int | None
) -> _Places:
    """:param new: by the number in their text. :param versions: which of ours each of theirs stands for."""
    found = _Places()
    for index, paragraph in new.items():
        places = versions[index]
        if len(places) == 1 and ours[places[0]] == paragraph:
            found.said.append(f"Paragraph {index + 1} is there already, as paragraph {places[0] + 1}.")
        elif places:
            found.said.append(f"Paragraph {index + 1} took the place of {_named(places)}.")
            found.replaced.setdefault(places[0], []).append(paragraph)
            found.replaced |= {place: [] for place in places[1:]}
        else:
            place = behind(versions, index) if after is None else after
            found.said.append(f"Paragraph {index + 1} went in {_in_words(place)}.")
            found.put.setdefault(len(ours) if place < 0 else place, []).append(paragraph)
    return found


def _with_parts(versions: Sequence[tuple[int, ...]], picked: Sequence[int]) -> list[int]:
    """Where a part of what was split is picked, all of its parts: they take the place of one."""
    places = {place for index in picked for place in versions[index]}
    parts = {
        index
        for index, held in enumerate(versions)
        if places.intersection(held) and any(held == versions[one] and abs(one - index) < 2 for one in picked)
    }
    return sorted({*picked, *parts})


def _named(places: Sequence[int]) -> str:
    named = [str(place + 1) for place in places]
    return f"paragraph {named[0]}" if len(named) == 1 else f"paragraphs {named[0]} to {named[-1]}"


def _in_words(behind: int) -> str:
    return {-1: "at the end", 0: "at the beginning"}.get(behind, f"behind paragraph {behind}")


def _laid_out(text: str, places: _Places, line_end: str) -> str:
    """A text with paragraphs replaced and put in; all that stands between its own ones stays."""
    if not (places.replaced or places.put):
        return text
    where = spans(text)
    head = text[: where[0][0]] if where else text
    if not where and head and not head.endswith(("\n", "\r")):
        head += line_end
    laid = [_Laid(new, line_end * 2) for new in places.put.get(0, [])]
    if laid and not where:
        laid[-1].after = line_end
    ends = [*(start for start, _ in where), len(text)][1:]
    for index, ((start, end), next_start) in enumerate(zip(where, ends, strict=True)):
        for paragraph in places.replaced.get(index, [text[start:end]]):
            laid.append(_Laid(paragraph, line_end * 2))
        if laid:
            laid[-1].after = text[end:next_start]
        for new in places.put.get(index + 1, []):
            laid.append(_Laid(new, laid[-1].after))
            laid[-2].after = line_end * 2
    _part(laid, line_end)
    return head + "".join(one.paragraph + one.after for one in laid)


def _part(laid: Sequence[_Laid], line_end: str) -> None:
    """A heading may stand right above its text, but what took its place may not."""
    for this, following in pairwise(laid):
        apart = [this.paragraph, following.paragraph]
        if paragraphs(this.paragraph + this.after + following.paragraph) != apart:
            this.after += line_end
