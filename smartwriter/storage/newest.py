"""A journal from its end: who needs only the newest reads nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import smartwriter.system.bounds as bounds
import smartwriter.system.roots as roots
from smartwriter.storage.encoding import decode
from smartwriter.storage.reading import parse, read
from smartwriter.storage.salvage import Entry

_BLOCK_BYTES = 1 << 18


def newest_first(path: Path) -> Iterator[Entry]:
    """The entries of a journal, the newest first, read only as far as they are asked for.

    Where a line is damaged, all is read: what can be saved of it depends on those before and after it.

    :raises FileNotFoundError: when there is no such journal; other ``OSError`` as they come.
    :raises FolderGone: when there is none because the folder that held it is gone.
    """
    try:
        fd = bounds.open_record(path)
    except FileNotFoundError:
        roots.check(path)
        raise
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":  # torn, or just being written
            yield from reversed(read(path).entries)
            return
        given = 0
        for line in _lines_from_end(fd, size):
            if (entry := decode(line)) is not None:
                yield entry
                given += 1
            elif line not in (b"", b"\r"):
                entries = parse(_read(fd, 0, size)).entries
                yield from reversed(entries[: len(entries) - given])
                return
    finally:
        os.close(fd)


def _lines_from_end(fd: int, size: int) -> Iterator[bytes]:
    """The lines up to an offset, the last one first, without their LFs."""
    end, pieces = size, list[bytes]()  # of the line whose start was not found yet, the last piece first
    while end:
        start = max(0, end - _BLOCK_BYTES)
        first, *whole = _read(fd, start, end).split(b"\n")
        end = start
        for line in reversed(whole):
            yield b"".join([line, *reversed(pieces)])
            pieces.clear()
        pieces.append(first)
    yield b"".join(reversed(pieces))


def _read(fd: int, start: int, end: int) -> bytes:
    data = b""
    while len(data) < end - start:
        more = os.pread(fd, end - start - len(data), start + len(data))
        if not more:  # rolled back meanwhile
            break
        data += more
    return data
