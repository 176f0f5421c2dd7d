"""What keeps a workspace's records, whatever it is made of: for now files (``smartwriter.storage.files``).

Everything has a name, a tuple such as ``("turns", "k7mq", "main")``, and no path. What was never written
is empty, not missing. A place in a journal is an offset in bytes: it stays what it is, since old bytes
never change. Who appends what depends on what stands there says up to where it has seen (``at``), and is
told when somebody was faster: nothing need be locked for that.

All calls block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol

from smartwriter.storage.reading import Contents
from smartwriter.storage.salvage import Entry

Durability = Literal["sync", "os"]
"""``"sync"``: an append returns once the disk has it; a power cut loses nothing acknowledged.
``"os"``: once the operating system has it; a killed process loses nothing, a power cut may lose
the last seconds."""


class Overtaken(Exception):
    """Somebody has appended since the place that an append named. Nothing was stored."""


class Listed(NamedTuple):
    """A journal, as it is listed."""

    name: tuple[str, ...]
    size: int
    """In bytes."""
    changed_ms: int
    """Unix epoch milliseconds."""


class Transaction(Protocol):
    """A journal that nobody else writes to."""

    size: int
    """In bytes."""

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """As :meth:`Journal.append`."""


class Journal(Protocol):
    """Entries, in the order in which they were appended."""

    @property
    def where(self) -> str:
        """For messages only."""

    def exists(self) -> bool:
        """Whether it was ever written: what was may hold nothing any more."""

    def read(self) -> Contents:
        """All of it; nothing where it was never written."""

    def stream(self) -> Iterator[Entry]:
        """Its entries one after the other, in the memory of a few."""

    def opened(self) -> AbstractContextManager[BinaryIO]:
        """Its bytes, lines of JSON, for who looks at some places in it."""

    def newest_first(self) -> Iterator[Entry]:
        """Its entries from the end, read only as far as they are asked for."""

    def after(self, place: int) -> tuple[list[Entry], int]:
        """The entries behind a place, and the place behind them. 0: the beginning."""

    def append(self, entries: Iterable[Mapping[str, Any]], *, at: int | None = None) -> int:
        """Add entries at the end, all or none, in order; returns the place behind them.

        :param at: the size that its author has seen. :raises Overtaken: it has another by now.
        :raises JournalBusy: another writer held it for too long.
        :raises JournalError: they could not be stored; it is as it was.
        :raises ValueError, TypeError: an entry has no JSON form; nothing was touched.
        """

    def update(self, change: Callable[[Contents], Iterable[Mapping[str, Any]]]) -> None:
        """Append what is made of what stands there.

        :param change: may be called again, when somebody was faster: it does nothing but tell the lines.
        """

    def begin(self, lines: bytes) -> None:
        """Begin anew with these: for what is new, or of which nothing is needed any more.

        Who reads it meanwhile finds all of the one or of the other.
        """

    def locked(self) -> AbstractContextManager[Transaction]:
        """While something beside it is done that nobody may do at the same time."""


class Lease(Protocol):
    """The right to write something, of one process at a time; it ends with its holder."""

    def acquire(self, wait_s: float = 0.1) -> None:
        """:raises DraftBusy:"""

    def borrow(self) -> None:
        """Acquire it; a holder that is idle is asked for it, and gives it up. :raises DraftBusy:"""

    def check(self) -> None:
        """:raises DraftBusy: somebody else has it; without taking it."""

    def release(self) -> None: ...

    def holder(self) -> str:
        """In words."""

    def is_held(self) -> bool: ...

    def is_wanted(self) -> bool:
        """Whether somebody asks an idle holder for it."""

    def __enter__(self) -> Lease: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Storage(Protocol):
    """One workspace's records."""

    def check(self) -> None:
        """:raises FolderGone: it is not there any more, or another one in its place."""

    def journal(
        self, *name: str, durability: Durability = "sync", unique: bool = False, kept: bool = False
    ) -> Journal:
        """:param unique: an entry whose ``uuid`` is there already is not stored again.

        :param kept: what was read of it stays in memory: the next reading costs what was added.
        """

    def names(self, *under: str, deep: bool = False) -> Iterator[Listed]:
        """The journals directly under a name, or all under it, in no order."""

    def groups(self, *under: str) -> Iterator[str]:
        """What may come next in the names of journals that are deeper under a name, in no order."""

    def put_away(self, *name: str, at: int | None = None, deep: bool = False) -> bool:
        """Move a journal to the trash. False: there is none.

        :param at: the size that was seen of it. :raises Overtaken: it has another by now.
        :param deep: those under its name, too.
        """

    def discard(self, *name: str, at: int) -> None:
        """Remove a journal of which nothing is needed any more, when it still has the size that was seen.

        :raises Overtaken: it has another by now.
        """

    def lease(
        self,
        *name: str,
        address: str,
        is_idle: Callable[[], bool] = lambda: False,
        gives_way: bool = False,
    ) -> Lease:
        """:param address: what it is called in messages.

        :param is_idle: whether its holder only keeps it for a next turn.
        :param gives_way: who acquires it here heeds those that ask for it, and lets it go when idle.
        """

    def keep(self, data: bytes) -> str:
        """Keep bytes for good; returns their sha256."""

    def kept(self, sha256: str) -> bytes | None:
        """None where they were never kept. :raises Invalid: they were changed since."""

    def where_kept(self, sha256: str) -> str:
        """For messages only."""

    def ask(self, *name: str) -> None:
        """Leave a request for whoever does something now."""

    def asked(self, *name: str) -> bool:
        """Whether there is one."""

    def heed(self, *name: str) -> bool:
        """Take a request, for who does what is asked. False: there is none, or another took it."""
