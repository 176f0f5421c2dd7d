"""Changing passages of a text exactly, and saying why one could not be changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smartwriter.errors import Invalid

_MOST_COMPARED = 2000  # characters of a passage that is looked for
_LEAST_ALIKE = 50.0  # percent, to be worth showing
_MOST_HEADINGS = 40  # to be named


@dataclass(frozen=True)
class Edit:
    """A passage as it stands, and what it becomes."""

    old: str
    new: str


def edited(text: str, edits: Sequence[Edit], known: Sequence[str] = ()) -> str:
    """A text after all edits, each of them on what the one before made.

    :param known: the texts in which the passages were chosen, the one that is known best first; none:
        the text itself. A passage is the one that stood there, carried through what was changed since.
    :raises Invalid: unless each passage stands there exactly once at its time, and nobody has touched
        it since; nothing is changed.
    """
    if not edits:
        raise Invalid("There is nothing to replace: edits is empty.")
    known = [] if set(known) == {text} else list(dict.fromkeys(known))
    line_end = line_end_of(text)
    for number, edit in enumerate(edits, 1):
        which = f" of edit {number}" if len(edits) > 1 else ""
        old, new = (with_line_ends(passage, line_end) for passage in (edit.old, edit.new))
        at, texts = _found(text, old, known, which)
        text, known = text[:at] + new + text[at + len(old) :], [one.replace(old, new) for one in texts]
    return text


def _found(text: str, old: str, known: Sequence[str], which: str) -> tuple[int, Sequence[str]]:
    """Where the passage that was meant stands in a text, and the texts that are still known."""
    if not known:
        if (count := _count(text, old)) != 1:
            raise Invalid(_why_not(text, old, count, which))
        return text.index(old), ()
    from smartwriter.text.differences.carrying import place_of  # most edits never need what it takes to load

    counts = [_count(earlier, old) for earlier in known]
    if 1 not in counts:
        if not max(counts) and _count(text, old):
            raise Invalid(
                f"The passage{which} stands only in what the author wrote since you last read the draft. "
                "Nothing was changed; read it first."
            )
        raise Invalid(_why_not(text, old, max(counts), which))
    places = {
        place_of(old, earlier, text) for earlier, count in zip(known, counts, strict=True) if count == 1
    }
    at = places.pop()
    if at is None or places:
        raise Invalid(
            f"The author has changed the passage{which}, or what stands right beside it, since you last read "
            "it. Nothing was changed."
        )
    return at, [earlier for earlier, count in zip(known, counts, strict=True) if count == 1]


def _count(text: str, passage: str) -> int:
    """How often it stands there, overlapping ones too."""
    return len(re.findall(f"(?={re.escape(passage)})", text)) if passage else 0


def appended(text: str, addition: str, heading: str = "") -> str:
    """A text with more behind it, as paragraphs of their own.

    :param heading: of the section at whose end it goes, with or without its marks; empty: at the end of all.
    :raises Invalid: unless there is exactly one such heading.
    """
    line_end = line_end_of(text)
    addition = with_line_ends(addition.strip("\r\n"), line_end) + line_end
    end = _section_end(text, heading) if heading.strip(" #\t\r\n") else len(text)
    after = text[end:].lstrip("\r\n")
    return before_more(text[:end]) + addition + (line_end + after if after else "")


def before_more(text: str) -> str:
    """A text with the blank line behind which another paragraph can begin."""
    said = text.rstrip("\r\n")
    return said + line_end_of(text) * 2 if said else text


def _section_end(text: str, heading: str) -> int:
    wanted = heading.strip().strip("#").strip()
    headings = list(_headings(text))
    found = [number for number, (_, _, title) in enumerate(headings) if title == wanted]
    if len(found) != 1:
        has = "; ".join(title for _, _, title in headings[:_MOST_HEADINGS]) or "none"
        raise Invalid(
            f"The heading {wanted!r} stands {len(found)} times in the draft; it must stand there exactly "
            f"once. Nothing was changed. The headings are: {has}."
        )
    _, level, _ = headings[found[0]]
    later = (start for start, other, _ in headings[found[0] + 1 :] if other <= level)
    return next(later, len(text))


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each heading starts, its level and its words; those within fences are none."""
    fence = ""
    for line in _LINE.finditer(text):
        mark = _FENCE.match(line[0])
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := _HEADING.match(line[0])):
            yield line.start(), len(heading[1]), (heading[2] or "").strip()


_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t\r]*$")


def in_the_manner_of(before: str, after: str) -> str:
    """A new text with what belongs to the writer in the one before: front matter and line ends."""
    from smartwriter.text.words import front_matter  # most commands never need what it takes to load

    after = with_line_ends(after, line_end_of(before))
    own = before[: front_matter(before)]
    return after if not own or front_matter(after) else own + after


def line_end_of(text: str) -> str:
    """``\\r\\n`` where all lines end so, else ``\\n``."""
    ends = text.count("\r\n")
    return "\r\n" if ends and ends == text.count("\n") else "\n"


def nearest(text: str, passage: str) -> str | None:
    """What is most like a passage in a text; None when nothing is much like it."""
    from rapidfuzz import fuzz

    from smartwriter.text.words import paragraphs

    wanted = passage[:_MOST_COMPARED]
    found: tuple[float, str] = (_LEAST_ALIKE, "")
    for paragraph in paragraphs(text):
        found = max(found, (fuzz.partial_ratio(wanted, paragraph, score_cutoff=found[0]), paragraph))
    _, paragraph = found
    if not paragraph:
        return None
    if len(paragraph) <= 2 * len(wanted):
        return paragraph
    place = fuzz.partial_ratio_alignment(wanted, paragraph)
    return paragraph[place.dest_start : place.dest_end] if place else paragraph


def with_line_ends(text: str, line_end: str) -> str:
    return re.sub("\r?\n", line_end, text) if line_end == "\r\n" else text


def _why_not(text: str, old: str, count: int, which: str) -> str:
    if not old:
        return f"The passage to replace{which} is empty; nothing was changed."
    said = (
        f"The passage{which} stands {count} times in the draft; it must stand there exactly once. "
        "Nothing was changed."
    )
    if count:
        return said + " Take more of the text around it."
    alike = nearest(text, old)
    return said + (f" The nearest to it there is:\n\n{alike}" if alike else "")
