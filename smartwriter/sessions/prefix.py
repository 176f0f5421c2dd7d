"""The first part of a transcript, as the bytes that a fork begins with."""

from __future__ import annotations

from typing import Any

import smartwriter.storage.encoding as encoding
from smartwriter.storage.interface import Journal
from smartwriter.storage.salvage import Entry


def prefix(journal: Journal, last_entry: str) -> tuple[bytes, list[Any]]:
    """A transcript's bytes up to and including an entry, whole lines alone; and what its results were
    replaced by. :raises KeyError: there is no such entry."""
    with journal.opened() as file:
        data = file.read()
    end = _end_of_entry(data, last_entry)
    if end is None or not _looks_whole(data, end):
        return _saved_up_to(journal, last_entry)
    replacements: list[Any] = []
    at = -1
    while (at := data.find(b'"content-replacement"', at + 1, end)) >= 0:
        replacements += _replacements(
            encoding.decode(data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at)])
        )
    return data[:end], replacements


def _end_of_entry(data: bytes, uuid: str) -> int | None:
    """The offset after the first line that is an entry of this uuid; None where that takes a closer look."""
    mark, at = b'"%s"' % encoding.encode_string(uuid), -1
    for _ in range(_MOST_MENTIONS):
        if (at := data.find(mark, at + 1)) < 0 or (end := data.find(b"\n", at)) < 0:
            return None
        entry = encoding.decode(data[data.rfind(b"\n", 0, at) + 1 : end])
        if entry and entry.get("uuid") == uuid:
            return end + 1
        at = end  # others, that name it, may come before
    return None


_MOST_MENTIONS = 64


def _looks_whole(data: bytes, end: int) -> bool:
    """Whether each line up to an offset begins and ends as an object does, and none has zeros in it.

    To parse them all would take most of the time of a fork. What is damaged otherwise is copied as it is:
    who reads the copy finds in it what is found here.
    """
    if data.find(b"\0", 0, end) >= 0:
        return False
    at = 0
    while at < end:
        line_end = data.index(b"\n", at)
        if data[at] != _OPEN or data[line_end - 1] != _CLOSE:
            return False
        at = line_end + 1
    return True


_OPEN, _CLOSE = b"{}"


def _replacements(entry: Entry | None) -> list[Any]:
    match entry:
        case {"type": "content-replacement", "replacements": list(replacements)}:
            return replacements
    return []


def _saved_up_to(journal: Journal, last_entry: str) -> tuple[bytes, list[Any]]:
    """As :func:`prefix`, of a transcript that may be damaged."""
    kept: list[Entry] = []
    replacements: list[Any] = []
    for entry in journal.stream():
        kept.append(entry)
        replacements += _replacements(entry)
        if entry.get("uuid") == last_entry:
            return b"".join(map(encoding.encode, kept)), replacements
    raise KeyError(last_entry)
