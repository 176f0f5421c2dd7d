"""The part of a collection's ``index.md`` that writes itself: one entry for each finished article.

::

    <!-- smartwriter:index:begin -->
    ## The title
    - date: 2026-03-14
    - file: articles/The title.md
    - gist: One sentence.
    - claims: First claim.; Second claim.
    - terms: term one; term two
    - links: Another title; Third title
    <!-- smartwriter:index:end -->

Empty lines are left out, and Chinese values are joined by ``；``. Whatever else the writer puts there,
around the marks or within an entry, stays byte for byte. Pure functions, without I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from smartwriter.errors import Invalid
from smartwriter.text.lines import inline
from smartwriter.text.sameness import folded

FILE = "index.md"
BEGIN = "<!-- smartwriter:index:begin -->"
END = "<!-- smartwriter:index:end -->"

# Also one that was damaged; but not one that the writer quotes as `code`.
_MARK = re.compile(r"(?<!`)<!-*\s*smartwriter:\s*index\b", re.IGNORECASE)
_HEADING = re.compile(r"##[ \t]+(?P<title>.*?)[ \t]*#*[ \t]*$")
_FIELD = re.compile(r"[-*+][ \t]+(?P<key>[a-z]+)[ \t]*[:：][ \t]*(?P<value>.*?)[ \t]*$", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*[;；]\s*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_KEYS = ("date", "file", "gist", "claims", "terms", "links")


@dataclass(frozen=True)
class IndexEntry:
    """What the index says about one article."""

    title: str
    date: str = ""
    """As ``2026-03-14``."""
    file: str = ""
    """The article's, as seen from the index: ``articles/The title.md``."""
    gist: str = ""
    claims: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Titles of other articles."""


def entries(text: str) -> list[IndexEntry]:
    """The entries of an index, in its order; none where it has no marks.

    :raises Invalid: for marks that are damaged, as :func:`with_entry`.
    """
    lines = _LINE.findall(text)
    if (marks := _marks(lines)) is None:
        return []
    return [_entry(lines[start:end]) for start, end in _spans(lines, *marks)]


def render(entry: IndexEntry) -> str:
    """An entry as it stands in an index, each line with its LF."""
    fields = "".join(f"{line}\n" for line in _fields(entry).values() if line)
    return f"## {inline(entry.title)}\n{fields}"


def with_entry(text: str, entry: IndexEntry) -> str:
    """An index in which an article has this entry; no byte but those of the entry's own lines changes.

    An entry of the same file, or one of the same title that names no other file, is brought up to date
    and keeps its place and heading. A new one comes last. Where there are no marks, they are added at
    the end.

    :raises Invalid: for marks that are damaged, doubled or crossed, with what to repair.
    """
    lines = _LINE.findall(text)
    end_of_line = "\r\n" if text.count("\r\n") == text.count("\n") > 0 else "\n"
    new = [line.replace("\n", end_of_line) for line in _LINE.findall(render(entry))]
    marks = _marks(lines)
    if marks is None:
        closed = "" if not text or text.endswith("\n") else end_of_line
        apart = end_of_line if text.strip() and not text.endswith(end_of_line * 2) else ""
        return "".join([text, closed, apart, BEGIN, end_of_line, *new, END, end_of_line])
    begin, end = marks
    found = _find(lines, _spans(lines, begin, end), entry)
    if found:
        lines[slice(*found)] = _updated(lines[slice(*found)], entry, end_of_line)
        return "".join(lines)
    before = lines[end - 1].strip() if end - 1 > begin else ""
    return "".join([*lines[:end], *([end_of_line] if before else []), *new, *lines[end:]])


def without(text: str, file: str) -> str:
    """An index without the entry of one article. One with damaged marks stays whole."""
    lines = _LINE.findall(text)
    try:
        marks = _marks(lines)
    except Invalid:
        return text
    for start, end in _spans(lines, *marks) if marks else ():
        if file and folded(_entry(lines[start:end]).file) == folded(file):
            return "".join([*lines[:start], *lines[end:]])
    return text


def find(known: Iterable[IndexEntry], file: str, title: str) -> IndexEntry | None:
    """The entry of an article: that of its file, else the one of its title that names no other file."""
    known = list(known)
    by_file = [one for one in known if file and folded(one.file) == folded(file)]
    by_title = [
        one for one in known if folded(one.title) == folded(inline(title)) and not (one.file and file)
    ]
    return next(iter(by_file or by_title), None)


# The marks --------------------------------------------------------------------------------------


def _marks(lines: list[str]) -> tuple[int, int] | None:
    """Which lines are the marks; None for neither. :raises Invalid:"""
    found = [(number, line.strip().removeprefix("\ufeff")) for number, line in enumerate(lines)]
    found = [(number, line) for number, line in found if _MARK.search(line)]
    if not found:
        return None
    for number, line in found:
        if line not in (BEGIN, END):
            raise Invalid(f"Line {number + 1} of index.md is a damaged mark; make it {BEGIN} or {END}.")
    begins = [number for number, line in found if line == BEGIN]
    ends = [number for number, line in found if line == END]
    for mark, at in ((BEGIN, begins), (END, ends)):
        if len(at) > 1:
            numbers = ", ".join(str(number + 1) for number in at)
            raise Invalid(
                f"index.md has the mark {mark} {len(at)} times (lines {numbers}); leave one of them."
            )
        if not at:
            where = "above the first entry" if mark == BEGIN else "below the last entry"
            raise Invalid(f"index.md has lost its mark {mark}; put it back, {where}.")
    if ends[0] < begins[0]:
        raise Invalid(f"In index.md, {END} (line {ends[0] + 1}) stands above {BEGIN}; put it below.")
    return begins[0], ends[0]


# Entries between them ---------------------------------------------------------------------------


def _spans(lines: list[str], begin: int, end: int) -> list[tuple[int, int]]:
    """The first line of each entry, and the one after its last."""
    starts = [number for number in range(begin + 1, end) if _HEADING.match(lines[number].rstrip("\r\n"))]
    return list(zip(starts, [*starts, end][1:], strict=True))


def _entry(lines: list[str]) -> IndexEntry:
    heading = _HEADING.match(lines[0].rstrip("\r\n"))
    values: dict[str, str] = {}
    for line in lines[1:]:
        if field := _FIELD.match(line.rstrip("\r\n")):
            values.setdefault(field["key"].lower(), field["value"])
    return IndexEntry(
        title=heading["title"] if heading else "",
        date=values.get("date", ""),
        file=values.get("file", ""),
        gist=values.get("gist", ""),
        claims=_split(values.get("claims", "")),
        terms=_split(values.get("terms", "")),
        links=_split(values.get("links", "")),
    )


def _find(lines: list[str], spans: list[tuple[int, int]], entry: IndexEntry) -> tuple[int, int] | None:
    known = [_entry(lines[start:end]) for start, end in spans]
    found = find(known, entry.file, entry.title)
    return next((span for span, one in zip(spans, known, strict=True) if one is found), None)


def _updated(lines: list[str], entry: IndexEntry, end_of_line: str) -> list[str]:
    """The lines of an entry, with those that are ours as the new one has them."""
    lines = list(lines)
    last = 0  # the line behind which the next of ours goes, where it is new
    for key, new in _fields(entry).items():
        at = next((n for n, line in enumerate(lines) if n and _key(line) == key), None)
        if at is None and new:
            last += 1
            lines.insert(last, new + end_of_line)
        elif at is not None and new:
            lines[at] = new + lines[at][len(lines[at].rstrip("\r\n")) :]
            last = at
        elif at is not None:
            del lines[at]
            last -= at <= last
    return lines


def _key(line: str) -> str:
    field = _FIELD.match(line.rstrip("\r\n"))
    return field["key"].lower() if field else ""


def _fields(entry: IndexEntry) -> Mapping[str, str]:
    """The line of each field, in order; empty where there is nothing to say."""
    values = {key: getattr(entry, key) for key in _KEYS}
    lines = {
        key: _joined(value) if isinstance(value, tuple) else inline(value) for key, value in values.items()
    }
    return {key: f"- {key}: {value}" if value else "" for key, value in lines.items()}


def _joined(values: tuple[str, ...]) -> str:
    # A value must not hold what stands between values.
    plain = [inline(value).replace("；", "，").replace(";", ",") for value in values]
    plain = [value for value in plain if value]
    return ("；" if _CJK.search("".join(plain)) else "; ").join(plain)


def _split(value: str) -> tuple[str, ...]:
    return tuple(part for part in _BETWEEN.split(value.strip()) if part)
