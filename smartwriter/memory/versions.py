"""Every version of a memory file that a turn ever had, and which of them went together.

::

    .smartwriter/memory/<sha256>.md            one version of a file, byte for byte
    .smartwriter/memory/<collection>.jsonl     a line whenever a collection's memory changed

    {"type":"memory","timestamp":"2026-…","collection":"山城慢信","files":{"profile.md":"5f0c…"}}

The versions are written before the line that names them: a crash leaves at most a version that no
line names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from smartwriter.errors import Invalid
from smartwriter.memory.collection import plain_key
from smartwriter.memory.files import MemoryFile
from smartwriter.memory.snapshot import Memory
from smartwriter.storage.interface import Journal, Storage
from smartwriter.storage.reading import Contents
from smartwriter.storage.records import Moment, Value, from_line, now, to_line
from smartwriter.storage.salvage import Entry
from smartwriter.text.sameness import normal


class MemoryVersion(Value):
    """Of which files a collection's memory was made, from a moment on."""

    KIND: ClassVar[str] = "memory"

    timestamp: Moment = Field(default_factory=now)
    collection: str
    files: Mapping[str, str]
    """The sha256 of each, by name."""


class MemoryVersions:
    """What sessions of a workspace were told. All calls block."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def keep(self, memory: Memory) -> None:
        """Keep what is new in a memory. Nothing is written when nothing is.

        :raises JournalError, OSError: the disk refused.
        """
        files = memory.hashes
        for file in (*memory.files, *memory.on_demand):
            self.keep_file(file)
        version = MemoryVersion(collection=normal(memory.collection), files=files)

        def line(contents: Contents) -> list[Entry]:
            known = _versions(contents, memory.collection)
            last = known[-1].files if known else {}
            return [] if last == files else [to_line(version)]

        self._journal(memory.collection).update(line)

    def keep_file(self, file: MemoryFile) -> None:
        """Keep one version of a file. :raises OSError: the disk refused."""
        self._storage.keep(file.data)

    def text(self, sha256: str) -> str | None:
        """The whole text of a file in one version, front matter included; None if it was not kept.

        :raises Invalid: when the version was changed since.
        """
        data = self._storage.kept(sha256)
        return None if data is None else data.decode("utf-8", "surrogatepass")

    def needed(self, sha256: str, name: str) -> str:
        """As :meth:`text`, for a file that a draft cannot be written without. :raises Invalid:"""
        text = self.text(sha256)
        if text is None:
            where = self._storage.where_kept(sha256)
            raise Invalid(f"The other version of {name} is missing; put {where} back to go on.")
        return text

    def log(self, collection: str) -> list[MemoryVersion]:
        """How the memory of a collection changed, oldest first."""
        return _versions(self._journal(collection).read(), collection)

    def carry_over(self, old: str, new: str) -> None:
        """Let a collection that was renamed keep its log. The old one stays; a second call does nothing."""
        earlier = [version.model_copy(update={"collection": normal(new)}) for version in self.log(old)]
        if not earlier:
            return

        def missing(contents: Contents) -> list[Entry]:
            known = _versions(contents, new)  # of a time when it had that name before
            return [to_line(version) for version in earlier if version not in known]

        self._journal(new).update(missing)

    def _journal(self, collection: str) -> Journal:
        return self._storage.journal("memory", plain_key(collection))


def _versions(contents: Contents, collection: str) -> list[MemoryVersion]:
    """Those of one collection, oldest first."""
    found = [version for line in contents.entries if (version := from_line(MemoryVersion, line))]
    return [version for version in found if normal(version.collection) == normal(collection)]
