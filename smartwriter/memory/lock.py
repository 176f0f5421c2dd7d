"""Who changes a collection's memory files: one process at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from smartwriter.memory.collection import plain_key
from smartwriter.storage.journal import Journal, Transaction
from smartwriter.storage.places import Places


def journal_of(hidden: Path, name: str) -> Journal:
    """Of what is proposed for the collection of a name."""
    return Journal(Places(hidden).proposals(plain_key(name)))


@contextlib.contextmanager
def memory_lock(hidden: Path, name: str) -> Iterator[Transaction]:
    """While this is held, no other process changes the memory files of a collection.

    It is the lock of the journal in which what is about to happen to them is recorded.

    :param name: empty for the one in the workspace itself.
    """
    kept = journal_of(hidden, name)
    with kept.locked() as transaction:
        try:
            yield transaction
        finally:
            if transaction.size == 0:  # it was made to be locked only; who waits for it makes a new one
                kept.path.unlink(missing_ok=True)
