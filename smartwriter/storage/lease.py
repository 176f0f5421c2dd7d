"""One process at a time writes a draft.

``turns/<task>/<draft>.lease`` is locked while a draft's client is live, by a lock that dies with
its process. It lies beside the draft's turns, which nobody clears away: whoever deletes a locked file
lets a second writer in. What stands in the file only names the holder to others: a file left behind, or
one that a sync tool brought, blocks nobody.

Earlier versions locked a file in ``locks/``, where now only what is asked of a holder is put: one of theirs
that still runs is heeded.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import portalocker

import smartwriter.files.durable as durable
import smartwriter.storage.encoding as encoding
import smartwriter.storage.journal as journal
import smartwriter.system.bounds as bounds
from smartwriter.errors import DraftBusy, Invalid
from smartwriter.storage.records import now
from smartwriter.system.children import HeldFile

_GIVES_WAY_S = 15.0  # for an idle CLI process to end in order


class Lease:
    """The right to write one draft. Calls block, but never for long."""

    def __init__(
        self,
        path: Path,
        address: str,
        is_idle: Callable[[], bool] = lambda: False,
        earlier: Path | None = None,
        *,
        gives_way: bool = False,
    ) -> None:
        """
        :param is_idle: whether its holder only keeps it for a next turn.
        :param earlier: what an earlier version locks.
        :param gives_way: who acquires it here heeds those that ask for it, and lets it go when idle.
        """
        self._path = path
        self._address = address
        self._is_idle = is_idle
        self._earlier = earlier
        self._gives_way = gives_way
        self._held: HeldFile | None = None

    def acquire(self, wait_s: float = 0.1) -> None:
        """:raises DraftBusy: somebody else has it, perhaps this process.

        :param wait_s: by default long enough for one who only looks whether it is held.
        """
        deadline = time.monotonic() + wait_s
        while True:
            try:
                return self._try_acquire()
            except DraftBusy:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.02)

    def borrow(self) -> None:
        """Acquire it; a holder that is idle, be it this process, is asked for it and gives it up.

        :raises DraftBusy: somebody really writes.
        """
        deadline = time.monotonic() + _GIVES_WAY_S
        wanted = wanted_path(self._earlier or self._path)
        while True:
            try:
                self.acquire()
                break
            except DraftBusy:
                if not self._may_be_given_up() or time.monotonic() > deadline:
                    wanted.unlink(missing_ok=True)
                    raise
                bounds.check_record(wanted)
                durable.make_folder(wanted.parent)
                wanted.touch()
        wanted.unlink(missing_ok=True)

    def check(self) -> None:
        """:raises DraftBusy: somebody else writes; without taking it."""
        for wait_s in (0.05, 0.0):  # it may only be looked at
            if not self.is_held() or self._may_be_given_up():
                return
            time.sleep(wait_s)
        raise DraftBusy(self._address, self.holder())

    def _try_acquire(self) -> None:
        held = self._lock()
        if self._earlier is not None and (holder := _held_by(self._earlier)):
            held.release()
            raise DraftBusy(self._address, holder)
        me: dict[str, object] = {"pid": os.getpid(), "host": socket.gethostname(), "since": now().isoformat()}
        if self._gives_way:
            me["gives_way"] = True
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same, without a name
            os.ftruncate(held.fd, 0)
            os.pwrite(held.fd, json.dumps(me).encode(), 0)
        self._held = held

    def _lock(self) -> HeldFile:
        durable.make_folder(self._path.parent)
        while True:
            fd = _open(self._path, os.O_RDWR | os.O_CREAT)
            try:
                portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
            except portalocker.LockException:
                holder = _holder(os.pread(fd, 1000, 0))
                os.close(fd)
                raise DraftBusy(self._address, holder) from None
            held = HeldFile(fd)
            if journal.is_at(fd, self._path):
                return held
            held.release()  # it was replaced meanwhile: the next one would lock another file

    def release(self) -> None:
        if self._held is not None:
            with contextlib.suppress(OSError):  # the disk may be gone; or it is the parent's
                os.ftruncate(self._held.fd, 0)  # who leaves in order leaves no name
            self._held.release()
            self._held = None

    def holder(self) -> str:
        """Who holds it, in words."""
        return next(self._holders(), "another process")

    def is_held(self) -> bool:
        """Whether anybody holds it now, perhaps this process."""
        return next(self._holders(), None) is not None

    def is_wanted(self) -> bool:
        """Whether somebody asks an idle holder for it."""
        return wanted_path(self._earlier or self._path).exists()

    def _may_be_given_up(self) -> bool:
        """Whether its holder is idle and heeds who asks for it: one that does not is not waited for."""
        try:
            fd = _open(self._path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError, Invalid):
            return self._is_idle()  # it was never held, or by an earlier version, which heeds
        try:
            found = encoding.decode(os.pread(fd, 1000, 0)) or {}
        finally:
            os.close(fd)
        return (bool(found.get("gives_way")) or not found) and self._is_idle()

    def _holders(self) -> Iterator[str]:
        for path in (self._path, self._earlier):
            if path is not None and (holder := _held_by(path)):
                yield holder

    def __enter__(self) -> Lease:
        self.borrow()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def wanted_path(lease: Path) -> Path:
    """The file that asks an idle holder to give a lease up."""
    return lease.with_suffix(".wanted")


def left_by(path: Path) -> str | None:
    """Who died holding the lease in a file; None when nobody did, or somebody holds it."""
    fd = _open(path, os.O_RDONLY)
    try:
        data = os.pread(fd, 1000, 0)
        return _holder(data) if data and _is_free(fd) else None
    finally:
        os.close(fd)


def _held_by(path: Path) -> str | None:
    """Who has a file locked; None when nobody does: nobody takes what is no file of the workspace's own."""
    try:
        fd = _open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError, Invalid):
        return None
    try:
        return None if _is_free(fd) else _holder(os.pread(fd, 1000, 0))
    finally:
        os.close(fd)


def _open(path: Path, flags: int) -> int:
    """:raises LeadsOutside: :raises Invalid: for what is no file of the workspace's own."""
    bounds.check_record(path)
    return bounds.open_regular(path, flags)


def _is_free(fd: int) -> bool:
    try:
        portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.LockException:
        return False
    portalocker.unlock(fd)
    return True


def _holder(data: bytes) -> str:
    match encoding.decode(data):
        case {"pid": int(pid), "host": str(host), "since": str(since)}:
            return f"process {pid} on {host} since {since[:16].replace('T', ' ')}"
    return "another process"
