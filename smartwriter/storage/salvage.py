"""What can be saved from a damaged line of a journal.

Found are whole entries that were glued together, or to the torn head of another, or stand behind
garbage::

    {"type":"user","uuid":"a","mess{"type":"user","uuid":"b","message":{…}}⏎
    └────── damage: 30 bytes ─────┘└────────────── saved: entry b ─────────┘

A nested object is never taken for an entry. Where the text before a candidate is broken JSON, it
is enough that the candidate carries what only entries carry and that a line end or another entry
follows. Where that text could still go on, so that the candidate may be a value inside it
(``{"message":{…}``), it must also be linked to the entries around it by uuid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Entry = dict[str, Any]


class Damage(NamedTuple):
    """A stretch of a journal that holds no whole entry."""

    offset: int
    """First byte, from the start of the file."""
    length: int
    """In bytes, without the LF that ends the line."""


def salvage(
    line: bytes, before: Entry | None = None, after: Entry | None = None
) -> tuple[list[Entry], list[Damage]]:
    """The whole top-level entries on a damaged line, and the stretches between them.

    Offsets count from the start of the line. Never raises.

    :param before: the last entry before the line, if any.
    :param after: the entry on the next line, if it is a whole one.
    """
    # surrogateescape keeps every byte, so that positions can be counted back.
    text = line.decode("utf-8", "surrogateescape")
    end = len(text.rstrip("\0 \t\r"))
    entries: list[Entry] = []
    damage: list[Damage] = []
    position = gap = offset = 0
    certain = True  # that what starts here is nested in nothing
    while position < end:
        found = _entry_at(text, position, end, first=position == gap, certain=certain)
        if isinstance(found, _Next):
            linked = _linked_entry(text, position, found[0], entries[-1] if entries else before, after)
            if linked is None:
                position, certain = found
                continue
            found = linked
        entry, start, stop = found
        if start > gap:
            damage.append(Damage(offset, _bytes(text[gap:start])))
        entries.append(entry)
        offset += _bytes(text[gap:stop])
        position, certain = stop, True
        gap = stop
    if text[gap:].strip(" \t\r"):
        damage.append(Damage(offset, _bytes(text[gap:])))
    return entries, damage


_Found = tuple[Entry, int, int]  # the entry, where it starts, where it stops


class _Next(NamedTuple):
    """Where to look next; the end of the line where the rest of it is torn."""

    position: int
    certain: bool
    """The parser expected no object here."""


def _entry_at(text: str, position: int, end: int, *, first: bool, certain: bool) -> _Found | _Next:
    """The entry that starts here; else where to look next."""
    try:
        value, stop = _decode_at(text, position)
    except json.JSONDecodeError as e:
        # An unterminated string is no error: the line just ends inside it.
        error = end if e.msg.startswith("Unterminated") else min(position + e.pos, end)
    except (ValueError, RecursionError):
        return _Next(end, True)
    else:
        behind = text[max(0, position - 2) : position].rstrip()
        free = certain or not behind.endswith((":", ",", "["))
        if free and stop <= end and _stands_alone(text, value, position, stop, end, first=first):
            return value, position, stop
        error = max(stop, position + 1)
    return _next_brace(text, position, error, end)


_DECODER = json.JSONDecoder()
_WINDOW = 4096
_LONGEST_TOKEN = 16  # that an error can be about: an escape, a literal


def _decode_at(text: str, position: int) -> tuple[Any, int]:
    """The JSON value that starts here, and where it stops.

    Windows that grow, because each error costs the parser a look at all text before it: on a
    long line of rubbish, hours. :raises JSONDecodeError: with a ``pos`` that counts from here.
    """
    size = _WINDOW
    while True:
        window = text[position : position + size]
        whole = position + size >= len(text)
        try:
            value, stop = _DECODER.raw_decode(window)
        except json.JSONDecodeError as e:
            if whole or (e.pos < size - _LONGEST_TOKEN and not e.msg.startswith("Unterminated")):
                raise
        else:
            if whole or stop < size:
                return value, position + stop
        size *= 8


def _stands_alone(text: str, value: Any, start: int, stop: int, end: int, *, first: bool) -> bool:
    if type(value) is not dict or _INVALID_UTF8.search(text, start, stop):
        return False
    if stop == end or text[stop] == "{":
        return first or _is_marked(value)
    # At the start of a line it is nested in nothing, unless what follows shows that this start is
    # not the line's own: then it goes on as JSON does, or the object has nothing of an entry.
    return first and _is_marked(value) and text[stop] not in ',:"]}'


_INVALID_UTF8 = re.compile("[\udc80-\udcff]")


def _is_marked(value: Entry) -> bool:
    return isinstance(value.get("type"), str) and not value.keys().isdisjoint(_MARKS)


_MARKS = frozenset({"uuid", "sessionId", "timestamp", "leafUuid"})


def _next_brace(text: str, position: int, error: int, end: int) -> _Next:
    # The parser notices a glued entry right after its first quote, so its brace is just before
    # the error; or after it, when the torn head ended in half an escape or half a literal. In the
    # place of a value, behind the error, it may be nested in what was not parsed.
    if error >= end:
        return _Next(end, True)
    before = text.rfind("{", max(position + 1, error - 2), error + 1)
    if before >= 0:
        return _Next(before, True)
    after = text.find("{", max(error, position + 1), end)
    return _Next(end if after < 0 else after, False)


def _linked_entry(
    text: str, head: int, stop: int, before: Entry | None, after: Entry | None
) -> _Found | None:
    """An entry known by its links: the object at ``head``, which looks as if it were nested.

    Or, where that one is torn, one in the place of a value of it. It ends at ``stop``, where the
    next entry or the end is.
    """
    if found := _linked_at(text, head, before, after):
        return found
    starts = list(_objects_with_uuid(text, head + 1, stop))
    if not starts:
        return None
    own = _own_uuid(text, head, stop)
    follower = _object_at(text, stop) or after
    parents = _names(own, before and before.get("uuid"))
    uuids = _names(own, follower and follower.get("parentUuid"))
    for start in starts:
        value = _object_at(text, start, stop)
        if (
            value is not None
            and _stands_alone(text, value, start, stop, stop, first=False)
            and (value.get("parentUuid") in parents or value.get("uuid") in uuids)
        ):
            return value, start, stop
    return None


def _linked_at(text: str, start: int, before: Entry | None, after: Entry | None) -> _Found | None:
    try:
        value, stop = _decode_at(text, start)
    except (ValueError, RecursionError):
        return None
    if type(value) is not dict or not _is_marked(value) or _INVALID_UTF8.search(text, start, stop):
        return None
    parents = _names(before and before.get("uuid"))
    uuids = _names(after and after.get("parentUuid"))
    linked = value.get("parentUuid") in parents or value.get("uuid") in uuids
    return (value, start, stop) if linked else None


def _names(*values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _object_at(text: str, start: int, stop: int | None = None) -> Entry | None:
    try:
        value, end = _decode_at(text, start)
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict and stop in (None, end) else None


def _own_uuid(text: str, start: int, end: int) -> str | None:
    """The uuid of the torn object that starts here, not that of something nested in it."""
    depth = 0
    for token in _TOKEN.finditer(text, start, end):
        if token[1] is not None and depth == 1:
            return token[1]
        depth += (token[0] in "{[") - (token[0] in "]}")
    return None


_UUID = re.compile(r'"uuid"\s*:\s*"([^"\\]*)"')
_TOKEN = re.compile(rf'{_UUID.pattern}|"(?:[^"\\]|\\.)*"|[{{}}\[\]]')
_MOST_BRACES = 16  # tried before each uuid: keys that hold objects rarely come before it


def _objects_with_uuid(text: str, start: int, end: int) -> Iterator[int]:
    for match in _UUID.finditer(text, start, end):
        brace = match.start()
        for _ in range(_MOST_BRACES):
            brace = text.rfind("{", start, brace)
            if brace < 0:
                break
            yield brace
        start = match.end()


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
