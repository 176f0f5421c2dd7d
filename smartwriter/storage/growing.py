"""A journal that is read again and again: each time, only what was added."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

import smartwriter.system.bounds as bounds
from smartwriter.storage.reading import Contents, File, file_of, parse, read

_CHECKED_BYTES = 64


class _Known(NamedTuple):
    file: File
    end: bytes
    """The last bytes that were read: they tell a journal that grew from another one."""
    contents: Contents


class Growing:
    """What a journal holds, kept in memory.

    Its old bytes never change but by repair, which makes a new file; so what was read stays true as long as
    it is the same file and still has the same bytes there. One that is damaged is read anew each time.

    Calls block; any number of threads may make them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: _Known | None = None
        self._lock = threading.Lock()

    def read(self) -> Contents:
        """As :func:`~smartwriter.storage.reading.read`; the same object as before where nothing was added.

        Nobody may change what it holds.
        """
        known = self._known
        try:
            fd = bounds.open_record(self._path)
        except FileNotFoundError:
            self._known = None
            return read(self._path)  # which knows how to refuse
        try:
            contents = self._grown(fd, known) if known else None
            if contents is None:
                contents = read(self._path)
            self._keep(fd, contents)
        finally:
            os.close(fd)
        return contents

    def _grown(self, fd: int, known: _Known) -> Contents | None:
        """None: it has to be read anew."""
        old, size = known.contents, os.fstat(fd).st_size
        if old.damage or file_of(fd) != known.file or size < old.size or _end_at(fd, old.size) != known.end:
            return None
        if size == old.size:
            return old
        data = os.pread(fd, size - old.size, old.size)
        if len(data) != size - old.size or not data.endswith(b"\n"):  # torn, or just being written
            return None
        more = parse(data, old.size, old.entries[-1] if old.entries else None)
        return Contents(old.entries + more.entries, more.damage, size)

    def _keep(self, fd: int, contents: Contents) -> None:
        end = _end_at(fd, contents.size)
        whole = end.endswith(b"\n") and os.fstat(fd).st_size >= contents.size
        with self._lock:
            self._known = _Known(file_of(fd), end, contents) if whole else None


def _end_at(fd: int, size: int) -> bytes:
    start = max(0, size - _CHECKED_BYTES)
    return os.pread(fd, size - start, start)
