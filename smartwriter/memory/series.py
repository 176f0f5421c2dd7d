"""What is kept of a collection beside its folder, together with it: the series that its tasks belong to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import smartwriter.files.change as document
import smartwriter.memory.index as index
from smartwriter.files.utf8 import decoded
from smartwriter.memory.collection import Collection
from smartwriter.memory.files import MAX_FILE_BYTES
from smartwriter.memory.index import FILE, IndexEntry
from smartwriter.memory.proposals import Proposals
from smartwriter.memory.snapshot import Memory
from smartwriter.memory.versions import MemoryVersion, MemoryVersions
from smartwriter.tasks.values import UNFILED
from smartwriter.text.sameness import normal

_NEW_INDEX = "# Index\n"
# In a collection within another, it must not stand in for the outer one's.
_NEW_INNER_INDEX = f"---\nextends: true\n---\n{_NEW_INDEX}"


@dataclass(frozen=True)
class Series:
    """A collection's memory and index, and what is recorded of them. Calls block."""

    collection: Collection
    proposals: Proposals
    versions: MemoryVersions
    """Of all collections."""
    budget_tokens: Callable[[], int]
    """What a prompt may spend on memory. :raises Invalid: when config.toml is wrong."""

    def memory(self) -> Memory:
        """As it is now, within the budget."""
        return self.collection.memory(self.budget_tokens())

    def log(self) -> list[MemoryVersion]:
        """What turns have had of the memory, oldest first, and what it is now, if that is another."""
        memory = self.memory()
        if self.versions.log(self.collection.name):
            self.versions.keep(memory)
        return self.versions.log(self.collection.name)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """While this is held, no other process changes the memory files or the index."""
        with self.proposals.locked():
            yield

    @property
    def has_index(self) -> bool:
        """Whether its articles are entered into an index: tasks without a collection are no series."""
        return normal(self.collection.name) != UNFILED or (self.collection.path / FILE).exists()

    def index(self) -> list[IndexEntry]:
        """What the index says of its articles. :raises Invalid: for damaged marks."""
        data = document.read(self.collection.path / FILE, MAX_FILE_BYTES)
        return index.entries(decoded(data, FILE))

    def enter(self, entry: IndexEntry) -> None:
        """Put an article into the index, or bring its entry up to date. :raises Invalid: as :meth:`index`."""

        def entered(data: bytes) -> bytes:
            return index.with_entry(decoded(data, FILE), entry).encode()

        new = _NEW_INNER_INDEX if "/" in self.collection.name else _NEW_INDEX
        document.change(self.collection.path / FILE, entered, MAX_FILE_BYTES, missing=new.encode())
