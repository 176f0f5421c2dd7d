"""Journals, in which SmartWriter keeps nearly everything.

A **journal** is an append-only file of JSON objects, one a line, UTF-8, LF::

    {"type":"user","uuid":"5f0c…","message":{"role":"user","content":"写第一段"}}⏎
    {"type":"assistant","uuid":"91ab…",…}⏎

What a crash may lose: an append that has not returned. What it never loses: one that has.
An append holds an exclusive lock on the file itself, closes off a tail that somebody left
without its LF, writes once and syncs; on any error the file gets its old length back.
Old bytes are therefore always a prefix of the new ones, and a reader may meet damage only as
a line that is not JSON. It returns everything else and says where the damage is. A line that
is just being written is no damage: what ends without its LF is looked at again under the lock.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import portalocker

import smartwriter.files.durable as durable
import smartwriter.storage.reading as reading
import smartwriter.system.bounds as bounds
import smartwriter.system.children as forks
import smartwriter.system.roots as roots
from smartwriter.errors import JournalBusy, JournalError
from smartwriter.storage.encoding import Line, encode
from smartwriter.storage.growing import Growing
from smartwriter.storage.interface import Durability, Overtaken
from smartwriter.storage.places import stamp
from smartwriter.storage.reading import Contents, File, file_of, writing
from smartwriter.storage.salvage import Entry
from smartwriter.storage.seen import Seen

LOCK_TIMEOUT_S = 18.0  # three tries of the SDK, with its pauses, stay under its 60 s for one
_SYNCED_LEVELS = 3  # of folders above a journal: another process may just have made them

_NOTHING = Contents([], [], 0)


class Journal:
    """One journal, for reading and appending.

    Any number of objects, threads and processes may append to the same file. All calls block.
    """

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "sync",
        unique: bool = False,
        kept: bool = False,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
    ) -> None:
        """
        :param unique: drop entries whose ``uuid`` the file already has; those without are kept.
        :param kept: what was read stays in memory: the next reading costs what was added.
        """
        self.path = path
        self._growing = Growing(path) if kept else None
        self._sync = durability == "sync"
        self._lock_timeout_s = lock_timeout_s
        self.renew_locks()
        forks.renew_in_children(self)
        self._known = _Known(Seen() if unique else None)

    @property
    def where(self) -> str:
        """For messages."""
        return str(self.path)

    def append(self, entries: Iterable[Mapping[str, Any]], *, at: int | None = None) -> int:
        """Add entries at the end, all or none, in order; returns the size of the journal.

        :param at: the size that their author has seen. :raises Overtaken: it has another by now.
        :raises JournalBusy: another writer held the lock for too long.
        :raises JournalError: the disk refused; the file has its old bytes.
        :raises ValueError, TypeError: an entry has no JSON form; nothing was touched.
        """
        batch = [Line(entry) for entry in entries]
        if not batch and at is None:
            return self.path.stat().st_size if self.path.exists() else 0
        with self.locked() as transaction:
            if at is not None and transaction.size != at:
                raise Overtaken
            transaction.write(batch)
            return transaction.size

    def update(self, change: Callable[[Contents], Iterable[Mapping[str, Any]]]) -> None:
        """Append what is made of what stands there. :param change: may be called again."""
        while True:
            contents = self.read()
            entries = list(change(contents))
            if not entries:
                return
            with contextlib.suppress(Overtaken):
                self.append(entries, at=contents.size)
                return

    def exists(self) -> bool:
        """Whether there is such a file."""
        return self.path.exists()

    def stream(self) -> Iterator[Entry]:
        """See :func:`smartwriter.storage.reading.stream`; nothing where it was never written."""
        with contextlib.suppress(FileNotFoundError):
            for _, entry in reading.stream(self.path):
                yield entry

    def opened(self) -> contextlib.AbstractContextManager[BinaryIO]:
        """The file, for reading; an empty one where it was never written."""
        try:
            return open(bounds.open_record(self.path), "rb", buffering=0)
        except FileNotFoundError:
            roots.check(self.path)
            return io.BytesIO()

    def begin(self, lines: bytes) -> None:
        """Put a file of these lines in its place, synced."""
        durable.write_document(self.path, lines)

    def read(self) -> Contents:
        """See :func:`smartwriter.storage.reading.read`; nothing where it was never written."""
        try:
            return self._growing.read() if self._growing is not None else reading.read(self.path)
        except FileNotFoundError:
            return _NOTHING

    def newest_first(self) -> Iterator[Entry]:
        """See :func:`smartwriter.storage.reading.newest_first`; nothing where it was never written."""
        with contextlib.suppress(FileNotFoundError):
            yield from reading.newest_first(self.path)

    def after(self, place: int) -> tuple[list[Entry], int]:
        """The entries behind a place, and the place behind them."""
        found = list[tuple[int, Entry]]()
        with contextlib.suppress(FileNotFoundError):
            found += reading.stream(self.path, place)
        return [entry for _, entry in found], found[-1][0] if found else place

    @contextlib.contextmanager
    def locked(self) -> Iterator[Transaction]:
        """Hold the journal's lock, to read and append as one step.

        The file is created if it is missing, and removed again if nothing is appended to it.
        :raises JournalError: as :meth:`append`.
        """
        deadline = time.monotonic() + self._lock_timeout_s
        thread_lock = self._thread_lock
        if not thread_lock.acquire(timeout=self._lock_timeout_s):
            raise JournalBusy(self.path, self._lock_timeout_s)
        try:
            fd, created = self._open_locked(deadline)
            held = forks.HeldFile(fd)
            transaction = Transaction(self.path, held, self._known, created=created, sync=self._sync)
            writing.files.add(transaction.file)
            try:
                yield transaction
            finally:
                writing.files.discard(transaction.file)
                if created and transaction.size == 0 and held.fd == fd and is_at(fd, self.path):
                    with contextlib.suppress(OSError):  # nothing came of it: who waits for it makes a new one
                        self.path.unlink()
                held.release()
        finally:
            thread_lock.release()

    def renew_locks(self) -> None:
        self._thread_lock = threading.Lock()

    def _open_locked(self, deadline: float) -> tuple[int, bool]:
        while True:
            try:
                fd, created = _open(self.path, sync=self._sync)
            except JournalError:
                raise
            except OSError as error:
                raise durable.refused(self.path, error) from error
            try:
                self._wait_for_lock(fd, deadline)
                # It may have been moved to the trash while we waited.
                if is_at(fd, self.path):
                    return fd, created
            except BaseException as error:
                os.close(fd)
                if isinstance(error, OSError) and not isinstance(error, JournalError):
                    raise JournalError(self.path, error) from error
                raise
            os.close(fd)

    def _wait_for_lock(self, fd: int, deadline: float) -> None:
        pause_s = 0.0005
        while True:
            try:
                portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
                return
            except portalocker.LockException:
                # Polled, not awaited: a blocked lock could be granted after the caller gave up,
                # and the write would land late.
                if time.monotonic() > deadline:
                    raise JournalBusy(self.path, self._lock_timeout_s) from None
            time.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(pause_s * 1.5, 0.02)


@dataclass
class _Known:
    """What a journal knows of its file, from one transaction to the next."""

    seen: Seen | None
    """None: an entry may be stored twice."""
    folder_synced: File | None = None
    """The file whose name is known to be durable."""
    undone: tuple[File, int, int] | None = None
    """The length to go back to, and from."""


class Transaction:
    """A journal whose lock is held. Made by :meth:`Journal.locked`."""

    def __init__(self, path: Path, held: forks.HeldFile, known: _Known, *, created: bool, sync: bool) -> None:
        self._path = path
        self._held = held
        self._known = known
        self.created = created
        """Whether there was no such journal."""
        self._sync = sync
        self.file = file_of(held.fd)
        self.size = os.fstat(held.fd).st_size
        """Length of the journal in bytes."""

    @property
    def _fd(self) -> int:
        return self._held.fd

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """As :meth:`Journal.append`."""
        self.write([Line(entry) for entry in entries])

    def write(self, batch: list[Line]) -> None:
        """As :meth:`append`, for lines that were made already."""
        payload = b""
        try:
            self._finish_rollback()
            new = self._new_in(batch)
            tail = self._open_tail()
            payload = tail + b"".join(line.data for line in new)
            if new:
                self._write(payload)
            elif self._sync:
                # All known already, perhaps from a process that died before its sync.
                durable.sync_data(self._fd)
            if self._sync and self._known.folder_synced != self.file:
                for folder in list(self._path.parents)[:_SYNCED_LEVELS]:
                    durable.sync_folder(folder)
                self._known.folder_synced = self.file
        except OSError as error:
            self._roll_back()
            raise durable.refused(self._path, error, len(payload)) from error
        except BaseException:
            self._roll_back()
            raise
        if new:
            before = self.size
            self.size += len(payload)
            if self._known.seen is not None:
                self._known.seen.appended(new, self.file, before, self.size)

    def _new_in(self, batch: list[Line]) -> list[Line]:
        if self._known.seen is None:
            return batch
        return self._known.seen.new_in(batch, self._path, self.file, self._fd, self.size)

    def _write(self, payload: bytes) -> None:
        if os.write(self._fd, payload) != len(payload):
            raise OSError(errno.ENOSPC, "the disk took only part of it")
        if self._sync:
            durable.sync_data(self._fd)

    def _open_tail(self) -> bytes:
        """The LF that the last line lacks, if it does: nothing is ever glued to a torn line."""
        if self.size == 0 or os.pread(self._fd, 1, self.size - 1) == b"\n":
            return b""
        return b"\n"

    def _roll_back(self) -> None:
        # Never sync again after a failed sync: the kernel has dropped the pages it could not
        # write and would report success. Cutting them off makes the next try write them anew.
        try:
            os.ftruncate(self._fd, self.size)
            if self.created and self.size == 0:
                self._path.unlink(missing_ok=True)
        except OSError:
            with contextlib.suppress(OSError):
                self._known.undone = self.file, self.size, os.fstat(self._fd).st_size

    def _finish_rollback(self) -> None:
        """Undo what a failed rollback left, unless somebody has written behind it since."""
        undone, self._known.undone = self._known.undone, None
        if undone is None or undone[0] != self.file:
            return
        _, to, size = undone
        if size == self.size > to:
            self.size = to
            os.ftruncate(self._fd, to)


def _open(path: Path, *, sync: bool) -> tuple[int, bool]:
    flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    roots.check(path)
    bounds.check_record(path)
    for _ in range(100):  # bounded: another process may keep deleting what we create
        try:
            return bounds.opened_regular(
                path, os.open(path, flags)
            ), False  # both ways: no pipe is waited for
        except FileNotFoundError:
            durable.make_folder(path.parent, sync=sync, private=True)
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), True
    raise OSError(errno.EAGAIN, "it keeps being created and deleted", str(path))


def is_at(fd: int, path: Path) -> bool:
    """Whether an open file is the one that has this name now."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def rewrite(path: Path, change: Callable[[list[Entry]], list[Entry]]) -> Path:
    """Replace a journal by what becomes of its whole entries; returns where the old file was kept.

    The only thing that ever changes old bytes, and only on a person's command.
    """
    with Journal(path).locked():
        kept = path.with_name(f"{path.name}.damaged-{stamp()}")
        os.link(path, kept)
        durable.write_document(path, b"".join(map(encode, change(reading.read(path).entries))))
    return kept
