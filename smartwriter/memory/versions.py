"""Every version of a memory file that a turn ever had, and which of them went together.

::

    .smartwriter/memory/<sha256>.md            one version of a file, byte for byte
    .smartwriter/memory/<collection>.jsonl     a line whenever a collection's memory changed

    {"type":"memory","timestamp":"2026-…","collection":"山城慢信","files":{"profile.md":"5f0c…"}}

The versions are written before the line that names them: a crash leaves at most a version that no
line names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from pydantic import Field

import smartwriter.system.bounds as bounds
from smartwriter.errors import Invalid
from smartwriter.files.durable import write_document
from smartwriter.memory.collection import plain_key
from smartwriter.memory.files import MemoryFile
from smartwriter.memory.snapshot import Memory
from smartwriter.storage.journal import Journal
from smartwriter.storage.places import Places
from smartwriter.storage.records import Value, from_line, now, to_line
from smartwriter.text.sameness import normal


class MemoryVersion(Value):
    """Of which files a collection's memory was made, from a moment on."""

    KIND: ClassVar[str] = "memory"

    timestamp: datetime = Field(default_factory=now)
    collection: str
    files: Mapping[str, str]
    """The sha256 of each, by name."""


class MemoryVersions:
    """What sessions of a workspace were told. All calls block."""

    def __init__(self, hidden: Path) -> None:
        """:param hidden: the workspace's ``.smartwriter``."""
        self._places = Places(hidden)
        self.folder = self._places.memory

    def keep(self, memory: Memory) -> None:
        """Keep what is new in a memory. Nothing is written when nothing is.

        :raises JournalError, OSError: the disk refused.
        """
        files = memory.hashes
        for file in (*memory.files, *memory.on_demand):
            self.keep_file(file)
        if self._last(memory.collection) == files:
            return
        version = MemoryVersion(collection=normal(memory.collection), files=files)
        with self._journal(memory.collection).locked() as transaction:
            if self._last(memory.collection) != files:  # another process may have been faster
                transaction.append([to_line(version)])

    def keep_file(self, file: MemoryFile) -> None:
        """Keep one version of a file. :raises OSError: the disk refused."""
        path = self._path(file.sha256)
        # A version that is there but of another length was damaged: it is put right.
        if not path.exists() or path.stat().st_size != len(file.data):
            write_document(path, file.data)

    def text(self, sha256: str) -> str | None:
        """The whole text of a file in one version, front matter included; None if it was not kept.

        :raises Invalid: when the version was changed since.
        """
        if not re.fullmatch("[0-9a-f]{64}", sha256):
            return None
        path = self._path(sha256)
        try:
            data = bounds.read_record(path)
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise Invalid(f"{path} is damaged: it no longer holds the version that it is named for.")
        return data.decode("utf-8", "surrogatepass")

    def needed(self, sha256: str, name: str) -> str:
        """As :meth:`text`, for a file that a draft cannot be written without. :raises Invalid:"""
        text = self.text(sha256)
        if text is None:
            raise Invalid(f"The other version of {name} is missing; put {self._path(sha256)} back to go on.")
        return text

    def log(self, collection: str) -> list[MemoryVersion]:
        """How the memory of a collection changed, oldest first."""
        try:
            lines = self._journal(collection).read().entries
        except FileNotFoundError:
            return []
        found = [version for line in lines if (version := from_line(MemoryVersion, line))]
        return [version for version in found if normal(version.collection) == normal(collection)]

    def carry_over(self, old: str, new: str) -> None:
        """Let a collection that was renamed keep its log. The old one stays; a second call does nothing."""
        earlier = [version.model_copy(update={"collection": normal(new)}) for version in self.log(old)]
        if not earlier:
            return
        with self._journal(new).locked() as transaction:
            known = self.log(new)  # of a time when it had that name before
            missing = [version for version in earlier if version not in known]
            transaction.append([to_line(version) for version in missing])

    def _last(self, collection: str) -> Mapping[str, str]:
        versions = self.log(collection)
        return versions[-1].files if versions else {}

    def _path(self, sha256: str) -> Path:
        return self._places.memory_version(sha256)

    def _journal(self, collection: str) -> Journal:
        return Journal(self._places.memory_log(plain_key(collection)))
