"""Reading a journal: all of it, or entry by entry from either end, whatever has happened to it.

Nothing is changed, and damage is reported, never raised. A line that is just being written is no
damage: what ends without its LF is looked at again when nobody is in the middle of one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import portalocker
from pydantic_core import from_json

import smartwriter.system.bounds as bounds
import smartwriter.system.roots as roots
from smartwriter.storage.encoding import decode
from smartwriter.storage.salvage import Damage, Entry, salvage

BLOCK_BYTES = 1 << 20
_BLOCK_FROM_END = 1 << 18
_SETTLE_S = 1.0  # that a reader waits for a line that is being written
_BOM = b"\xef\xbb\xbf"

File = tuple[int, int]
"""Device and inode: a path may come to name another file."""


@dataclass(frozen=True)
class Contents:
    """All that a journal held when it was read."""

    entries: list[Entry]
    damage: list[Damage]
    size: int
    """Bytes read: where a later reading may go on."""


def read(path: Path) -> Contents:
    """Read a whole journal. Damage is reported, never raised.

    :raises FileNotFoundError: when there is no such journal; other ``OSError`` as they come.
    :raises FolderGone: when there is no journal because the folder that held it is gone.
    """
    try:
        data = bounds.read_record(path)
        if data and not data.endswith(b"\n"):
            data = _read_settled(path)
    except FileNotFoundError:
        roots.check(path)
        raise
    return parse(data)


def parse(data: bytes, start: int = 0, before: Entry | None = None) -> Contents:
    """What lines of a journal hold.

    :param start: their offset in it; the size and the places of damage count from its own start.
    :param before: the last entry before them.
    """
    lines = data.split(b"\n")
    entries: list[Entry] = []
    damage: list[Damage] = []
    offset = start
    with collector_paused():
        for number, line in enumerate(lines):
            try:
                entry = from_json(line)
            except ValueError:
                entry = None
            if type(entry) is dict:
                entries.append(entry)
            else:
                next_line = lines[number + 1] if number + 1 < len(lines) else b""
                found, bad = read_line(offset, line, entries[-1] if entries else before, next_line)
                entries += found
                damage += bad
            offset += len(line) + 1
    return Contents(entries, damage, start + len(data))


def _read_settled(path: Path) -> bytes:
    """The bytes of a journal when nobody is in the middle of a line.

    A write is not one step to who reads: it may be seen up to the end of a page.
    """
    with open(bounds.open_record(path), "rb", buffering=0) as file, _settled(file):
        return file.read()


@contextlib.contextmanager
def _settled(file: BinaryIO) -> Iterator[None]:
    """Keep writers out of an open file; or else wait for the one in it to end its line, or for too long."""
    fd = file.fileno()
    deadline = time.monotonic() + _SETTLE_S
    locked = False
    while file_of(fd) not in writing.files:
        with contextlib.suppress(portalocker.LockException):
            portalocker.lock(fd, portalocker.LockFlags.SHARED | portalocker.LockFlags.NON_BLOCKING)
            locked = True
            break
        size = os.fstat(fd).st_size
        if (size and os.pread(fd, 1, size - 1) == b"\n") or time.monotonic() > deadline:
            break
        time.sleep(0.001)
    try:
        yield
    finally:
        if locked:
            portalocker.unlock(fd)


class _Writing(threading.local):
    """The files whose lock this thread holds."""

    def __init__(self) -> None:
        self.files = set[File]()


writing = _Writing()


def stream(
    source: Path | BinaryIO, start: int = 0, on_damage: Callable[[Damage], None] | None = None
) -> Iterator[tuple[int, Entry]]:
    """Read a journal entry by entry, in the memory of one line.

    Yields each entry with the offset just after its line.

    :param source: an open file stays open.
    :param start: offset of the start of a line.
    """
    before: Entry | None = None
    for (offset, line), next_line in _with_next(stream_lines(source, start)):
        entries, damage = read_line(offset, line, before, next_line)
        for entry in entries:
            yield offset + len(line) + 1, entry
            before = entry
        if on_damage:
            for stretch in damage:
                on_damage(stretch)


def stream_lines(source: Path | BinaryIO, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """The lines of a file from an offset on, each with its own offset and without its LF."""
    with _opened(source) as file:
        file.seek(start)
        offset, pieces = start, list[bytes]()
        while block := file.read(BLOCK_BYTES) or _rest_of_line(source, file, pieces):
            *whole, rest = block.split(b"\n")
            for line in whole:
                if pieces:
                    line = b"".join([*pieces, line])
                    pieces.clear()
                yield offset, line
                offset += len(line) + 1
            if rest:
                pieces.append(rest)
        if pieces:
            yield offset, b"".join(pieces)


def _rest_of_line(source: Path | BinaryIO, file: BinaryIO, pieces: list[bytes]) -> bytes:
    """What was still to come of the last line, as :func:`_read_settled`; of a file that is ours to hold."""
    if not pieces or not isinstance(source, Path):
        return b""
    with _settled(file):
        return file.read()


def _opened(source: Path | BinaryIO) -> contextlib.AbstractContextManager[BinaryIO]:
    if isinstance(source, Path):
        try:
            return open(bounds.open_record(source), "rb", buffering=0)
        except FileNotFoundError:
            roots.check(source)
            raise
    return contextlib.nullcontext(source)


def _with_next(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[tuple[int, bytes], bytes]]:
    current = next(lines, None)
    while current is not None:
        following = next(lines, None)
        yield current, following[1] if following else b""
        current = following


def read_line(
    offset: int, line: bytes, before: Entry | None = None, next_line: bytes = b""
) -> tuple[list[Entry], list[Damage]]:
    """What one line holds, and what of it is damage. :param offset: where in its file it starts."""
    if offset == 0 and line.startswith(_BOM):
        offset, line = len(_BOM), line[len(_BOM) :]
    if not line or line == b"\r":
        return [], []
    if (entry := decode(line)) is not None:
        return [entry], []
    entries, damage = salvage(line, before, decode(next_line))
    return entries, [Damage(offset + stretch.offset, stretch.length) for stretch in damage]


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
                entries = parse(_read_between(fd, 0, size)).entries
                yield from reversed(entries[: len(entries) - given])
                return
    finally:
        os.close(fd)


def _lines_from_end(fd: int, size: int) -> Iterator[bytes]:
    """The lines up to an offset, the last one first, without their LFs."""
    end, pieces = size, list[bytes]()  # of the line whose start was not found yet, the last piece first
    while end:
        start = max(0, end - _BLOCK_FROM_END)
        first, *whole = _read_between(fd, start, end).split(b"\n")
        end = start
        for line in reversed(whole):
            yield b"".join([line, *reversed(pieces)])
            pieces.clear()
        pieces.append(first)
    yield b"".join(reversed(pieces))


def _read_between(fd: int, start: int, end: int) -> bytes:
    data = b""
    while len(data) < end - start:
        more = os.pread(fd, end - start - len(data), start + len(data))
        if not more:  # rolled back meanwhile
            break
        data += more
    return data


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Parse megabytes without the cyclic collector, which makes big loads superlinear."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def blocks_of_lines(fd: int, start: int) -> Iterator[tuple[bytes, int]]:
    """Blocks that end with a line, and the offset after each; the last may end without LF."""
    rest = b""
    offset = start
    while block := os.pread(fd, max(BLOCK_BYTES, len(rest)), offset + len(rest)):
        rest += block
        cut = rest.rfind(b"\n") + 1
        if cut:
            offset += cut
            yield rest[:cut], offset
            rest = rest[cut:]
    if rest:
        yield rest, offset  # looked at again next time, when it may have grown


def file_of(fd: int) -> File:
    """Which file a descriptor is of."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
