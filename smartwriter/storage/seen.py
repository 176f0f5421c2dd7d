"""Which entries a journal has already, so that none is stored twice.

Told by their ``uuid``. Entries come again when whoever sent them did not hear that they were
stored, or from several processes at once.
"""

from __future__ import annotations

import re
from pathlib import Path

from smartwriter.storage.encoding import Line, encode_string
from smartwriter.storage.reading import File, blocks_of_lines, read_line, stream_lines


class Seen:
    """The uuids of a journal, so that an append need not read the file again.

    Hashes only, of everything that looks like a uuid field: a hit is verified in the file.
    All is asked while the journal's lock is held.
    """

    def __init__(self) -> None:
        self._file: File = (0, 0)
        self._hashes = set[int]()
        self._next_line = 0  # start of the first one not yet looked at
        self._size = 0  # of the file, when it was last looked at

    def new_in(self, batch: list[Line], path: Path, file: File, fd: int, size: int) -> list[Line]:
        """Those lines that are not in the file, each once; lines without a uuid are all new."""
        if all(line.uuid is None for line in batch):
            return batch
        self._catch_up(file, fd, size)
        suspects = {line.uuid for line in batch if line.uuid and hash(line.uuid) in self._hashes}
        known = _verified(path, suspects) if suspects else set[bytes]()
        new = []
        for line in batch:
            if line.uuid is not None:
                if line.uuid in known:
                    continue
                known.add(line.uuid)
            new.append(line)
        return new

    def appended(self, lines: list[Line], file: File, before: int, after: int) -> None:
        """Lines have been stored. :param before: the size of the file until then."""
        if (self._file, self._size) == (file, before):
            self._hashes.update(hash(line.uuid) for line in lines if line.uuid)
            self._next_line = self._size = after

    def _catch_up(self, file: File, fd: int, size: int) -> None:
        """Look at what other writers added since."""
        if self._file != file or self._next_line > size:
            self._file, self._next_line = file, 0
            self._hashes = set()
        if self._next_line < size:
            for data, end in blocks_of_lines(fd, self._next_line):
                self._hashes.update(map(hash, _UUID_FIELD.findall(data)))
                self._next_line = end
        self._size = size


def _verified(path: Path, suspects: set[bytes]) -> set[bytes]:
    """Those that really are the uuid of an entry, not of something nested in one."""
    known = set[bytes]()
    for _, line in stream_lines(path):
        if suspects.isdisjoint(_UUID_FIELD.findall(line)):
            continue
        for entry in read_line(0, line)[0]:
            if isinstance(uuid := entry.get("uuid"), str):
                known.add(encode_string(uuid))
    return known & suspects


# The value is only looked at: torn within it, the next quote may open the key of another uuid.
_UUID_FIELD = re.compile(rb'"uuid"\s*:\s*"(?=([^"\\\n]*(?:\\.[^"\\\n]*)*)")')
