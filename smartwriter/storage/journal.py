"""Journals, in which SmartWriter keeps nearly everything.

A **journal** is an append-only file of JSON objects, one a line, UTF-8, LF::

    {"type":"user","uuid":"5f0c…","message":{"role":"user","content":"写第一段"}}⏎
    {"type":"assistant","uuid":"91ab…",…}⏎

Text stays readable; only lone surrogates, U+0085, U+2028 and U+2029 are written as escapes
(so that no reader splits a line there), and infinity as ``1e999``.

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
import gc
import json
import os
import random
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import portalocker
from pydantic_core import PydanticSerializationError, from_json, to_json

import smartwriter.files.durable as durable
import smartwriter.system.bounds as bounds
import smartwriter.system.children as forks
import smartwriter.system.roots as roots
from smartwriter.errors import JournalBusy, JournalError
from smartwriter.storage.salvage import Damage, Entry, salvage

Durability = Literal["sync", "os"]
"""``"sync"``: an append returns once the disk has it; a power cut loses nothing acknowledged.
``"os"``: once the operating system has it; a killed process loses nothing, a power cut may lose
the last seconds."""

LOCK_TIMEOUT_S = 18.0  # three tries of the SDK, with its pauses, stay under its 60 s for one
_SETTLE_S = 1.0  # that a reader waits for a line that is being written
_BLOCK_BYTES = 1 << 20
_SYNCED_LEVELS = 3  # of folders above a journal: another process may just have made them
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Contents:
    """All that a journal held when it was read."""

    entries: list[Entry]
    damage: list[Damage]
    size: int
    """Bytes read: where a later reading may go on."""


_File = tuple[int, int]  # device, inode: a path may come to name another file


# --- one line -------------------------------------------------------------------------------


def encode(entry: Mapping[str, Any]) -> bytes:
    """The line of one entry, LF included.

    :raises ValueError: when the entry could not be read back: nested too deep, a circular
        reference, a number of thousands of digits.
    :raises TypeError: when it holds a value that JSON has no form for.
    """
    try:
        line = to_json(entry)
        _check_form(entry)
    except PydanticSerializationError:  # a lone surrogate, or nested beyond 255
        line = _encode_with_stdlib(entry)
    if b"\xe2\x80" in line or b"\xc2\x85" in line:
        line = _escape_line_separators(line)
    if b"Infinity" in line:
        line = _OUTSIDE_STRINGS.sub(lambda m: b"1e999" if m[0] == b"Infinity" else m[0], line)
    if len(line) > 2 * _LONG_DIGITS and _has_long_number(line) and decode(line) is None:
        raise ValueError("An entry holds a number that is too long to be stored.")
    return line + b"\n"


def _check_form(entry: object) -> None:
    """:raises TypeError: for what would come back as something else, though it can be written."""
    found = [entry]
    while found:
        value = found.pop()
        kind = type(value)
        if kind is str or kind is int or kind is bool or kind is float or value is None:
            continue
        if isinstance(value, Mapping):
            for name in value:
                if not isinstance(name, str):
                    raise TypeError(f"An entry has the key {name!r}, and JSON has only strings for keys.")
            found += value.values()
        elif isinstance(value, list | tuple):
            found += value
        elif not isinstance(value, str | int | float):
            raise TypeError(f"An entry holds a {kind.__name__}, for which JSON has no form.")


_LONG_DIGITS = 2150  # half of what Python reads: a longer number has a multiple in its first half
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % _LONG_DIGITS)


def _has_long_number(line: bytes) -> bool:
    return any(_LONG_NUMBER.match(line, at) for at in range(0, len(line), _LONG_DIGITS))


_OUTSIDE_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"|Infinity')
_SURROGATE = re.compile("[\ud800-\udfff]")


def _encode_with_stdlib(entry: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError("An entry is nested too deep to be stored.") from None
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text).encode()


def _escape_line_separators(line: bytes) -> bytes:
    # Safe on bytes: UTF-8 synchronises itself, and inside JSON these occur only in strings.
    return (
        line.replace(b"\xc2\x85", b"\\u0085")
        .replace(b"\xe2\x80\xa8", b"\\u2028")
        .replace(b"\xe2\x80\xa9", b"\\u2029")
    )


def decode(line: bytes) -> Entry | None:
    """The entry on an undamaged line, or None. Never raises."""
    try:
        value = from_json(line)
    except ValueError:  # damage, or what the fast parser refuses: surrogates, depth over 200
        try:
            value = json.loads(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return None
    return value if type(value) is dict else None


# --- reading --------------------------------------------------------------------------------


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
    lines = data.split(b"\n")
    entries: list[Entry] = []
    damage: list[Damage] = []
    offset = 0
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
                found, bad = _read_line(offset, line, entries[-1] if entries else None, next_line)
                entries += found
                damage += bad
            offset += len(line) + 1
    return Contents(entries, damage, len(data))


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
    while _file_of(fd) not in _writing.files:
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
        self.files = set[_File]()


_writing = _Writing()


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
        entries, damage = _read_line(offset, line, before, next_line)
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
        while block := file.read(_BLOCK_BYTES) or _rest_of_line(source, file, pieces):
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


def _read_line(
    offset: int, line: bytes, before: Entry | None = None, next_line: bytes = b""
) -> tuple[list[Entry], list[Damage]]:
    if offset == 0 and line.startswith(_BOM):
        offset, line = len(_BOM), line[len(_BOM) :]
    if not line or line == b"\r":
        return [], []
    if (entry := decode(line)) is not None:
        return [entry], []
    entries, damage = salvage(line, before, decode(next_line))
    return entries, [Damage(offset + stretch.offset, stretch.length) for stretch in damage]


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


# --- writing --------------------------------------------------------------------------------


@dataclass
class _Seen:
    """The uuids of a journal up to ``size``, so that an append need not read the file again.

    Hashes only, of everything that looks like a uuid field: a hit is verified in the file.
    """

    file: _File = (0, 0)
    size: int = 0  # start of the first line not yet looked at
    hashes: set[int] = field(default_factory=set)


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
        lock_timeout_s: float = LOCK_TIMEOUT_S,
    ) -> None:
        """
        :param unique: drop entries whose ``uuid`` the file already has; those without are kept.
        """
        self.path = path
        self._sync = durability == "sync"
        self._unique = unique
        self._lock_timeout_s = lock_timeout_s
        self.renew_locks()
        forks.renew_in_children(self)
        self._seen = _Seen()
        self._folder_synced: _File | None = None  # the file whose name is known to be durable
        self._undone: tuple[_File, int, int] | None = None  # the length to go back to, and from

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Add entries at the end, all or none, in order.

        :raises JournalBusy: another writer held the lock for too long.
        :raises JournalError: the disk refused; the file has its old bytes.
        :raises ValueError, TypeError: an entry has no JSON form; nothing was touched.
        """
        batch = [_Line(entry) for entry in entries]
        if batch:
            with self.locked() as transaction:
                transaction.write(batch)

    def read(self) -> Contents:
        """See :func:`read`."""
        return read(self.path)

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
            transaction = Transaction(self, held, created)
            _writing.files.add(transaction.file)
            try:
                yield transaction
            finally:
                _writing.files.discard(transaction.file)
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


class _Line:
    """An entry, serialised before any file is touched."""

    __slots__ = ("data", "uuid")

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.data = encode(entry)
        uuid = entry.get("uuid")
        self.uuid = encode_string(uuid) if isinstance(uuid, str) and uuid else None


def encode_string(text: str) -> bytes:
    """A string as it stands between its quotes in a journal."""
    return text.encode() if _PLAIN.fullmatch(text) else encode({"": text})[5:-3]


_PLAIN = re.compile(r"[\w-]+", re.ASCII)  # as every uuid is


class Transaction:
    """A journal whose lock is held. Made by :meth:`Journal.locked`."""

    def __init__(self, journal: Journal, held: forks.HeldFile, created: bool) -> None:
        self._journal = journal
        self._held = held
        self._created = created
        self._caught_up = False
        self.file = _file_of(held.fd)
        self.size = os.fstat(held.fd).st_size
        """Length of the journal in bytes."""

    @property
    def _fd(self) -> int:
        return self._held.fd

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """As :meth:`Journal.append`."""
        self.write([_Line(entry) for entry in entries])

    def write(self, batch: list[_Line]) -> None:
        """As :meth:`append`, for lines that were made already."""
        journal = self._journal
        payload = b""
        try:
            self._finish_rollback()
            new = self._without_known(batch) if journal._unique else batch
            tail = self._open_tail()
            payload = tail + b"".join(line.data for line in new)
            if new:
                self._write(payload)
            elif journal._sync:
                # All known already, perhaps from a process that died before its sync.
                durable.sync_data(self._fd)
            if journal._sync and journal._folder_synced != self.file:
                for folder in list(journal.path.parents)[:_SYNCED_LEVELS]:
                    durable.sync_folder(folder)
                journal._folder_synced = self.file
        except OSError as error:
            self._roll_back()
            raise durable.refused(journal.path, error, len(payload)) from error
        except BaseException:
            self._roll_back()
            raise
        if new:
            self.size += len(payload)
            self._remember(new)

    def _write(self, payload: bytes) -> None:
        if os.write(self._fd, payload) != len(payload):
            raise OSError(errno.ENOSPC, "the disk took only part of it")
        if self._journal._sync:
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
            if self._created and self.size == 0:
                self._journal.path.unlink(missing_ok=True)
        except OSError:
            with contextlib.suppress(OSError):
                self._journal._undone = self.file, self.size, os.fstat(self._fd).st_size

    def _finish_rollback(self) -> None:
        """Undo what a failed rollback left, unless somebody has written behind it since."""
        undone, self._journal._undone = self._journal._undone, None
        if undone is None or undone[0] != self.file:
            return
        _, to, size = undone
        if size == self.size > to:
            self.size = to
            os.ftruncate(self._fd, to)

    # De-duplication ---------------------------------------------------------------------

    def _without_known(self, batch: list[_Line]) -> list[_Line]:
        if all(line.uuid is None for line in batch):
            return batch
        seen = self._catch_up()
        self._caught_up = True
        suspects = {line.uuid for line in batch if line.uuid and hash(line.uuid) in seen.hashes}
        known = self._verified(suspects) if suspects else set[bytes]()
        new = []
        for line in batch:
            if line.uuid is not None:
                if line.uuid in known:
                    continue
                known.add(line.uuid)
            new.append(line)
        return new

    def _catch_up(self) -> _Seen:
        """Look at what other writers added since."""
        seen = self._journal._seen
        if seen.file != self.file or seen.size > self.size:
            seen = self._journal._seen = _Seen(self.file)
        if seen.size < self.size:
            for data, end in _blocks_of_lines(self._fd, seen.size):
                seen.hashes.update(map(hash, _UUID_FIELD.findall(data)))
                seen.size = end
        return seen

    def _verified(self, suspects: set[bytes]) -> set[bytes]:
        """Those that really are the uuid of an entry, not of something nested in one."""
        known = set[bytes]()
        for _, line in stream_lines(self._journal.path):
            if suspects.isdisjoint(_UUID_FIELD.findall(line)):
                continue
            for entry in _read_line(0, line)[0]:
                if isinstance(uuid := entry.get("uuid"), str):
                    known.add(encode_string(uuid))
        return known & suspects

    def _remember(self, new: list[_Line]) -> None:
        if self._caught_up:
            seen = self._journal._seen
            seen.hashes.update(hash(line.uuid) for line in new if line.uuid)
            seen.size = self.size


# The value is only looked at: torn within it, the next quote may open the key of another uuid.
_UUID_FIELD = re.compile(rb'"uuid"\s*:\s*"(?=([^"\\\n]*(?:\\.[^"\\\n]*)*)")')


def _blocks_of_lines(fd: int, start: int) -> Iterator[tuple[bytes, int]]:
    """Blocks that end with a line, and the offset after each; the last may end without LF."""
    rest = b""
    offset = start
    while block := os.pread(fd, max(_BLOCK_BYTES, len(rest)), offset + len(rest)):
        rest += block
        cut = rest.rfind(b"\n") + 1
        if cut:
            offset += cut
            yield rest[:cut], offset
            rest = rest[cut:]
    if rest:
        yield rest, offset  # looked at again next time, when it may have grown


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


def _file_of(fd: int) -> _File:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


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
        kept = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}")
        os.link(path, kept)
        durable.write_document(path, b"".join(map(encode, change(read(path).entries))))
    return kept
