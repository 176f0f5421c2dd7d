"""Who changes a collection's memory files: one process at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager

from smartwriter.memory.collection import plain_key
from smartwriter.storage.interface import Journal, Storage, Transaction


def journal_of(storage: Storage, name: str) -> Journal:
    """Of what is proposed for the collection of a name."""
    return storage.journal("proposals", plain_key(name))


def memory_lock(storage: Storage, name: str) -> AbstractContextManager[Transaction]:
    """While this is held, no other process changes the memory files of a collection.

    It is the lock of the journal in which what is about to happen to them is recorded.

    :param name: empty for the one in the workspace itself.
    """
    return journal_of(storage, name).locked()
