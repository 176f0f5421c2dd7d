"""One process at a time writes a draft.

``locks/<task>/<draft>.lock`` is locked while a draft's client is live, by a lock that dies with
its process. What stands in the file only names the holder to others: a file left behind, or one
that a sync tool brought, blocks nobody.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import portalocker

import smartwriter.bounds as bounds
import smartwriter.journal as journal
from smartwriter.errors import DraftBusy
from smartwriter.forks import HeldFile
from smartwriter.tasks import now

_GIVES_WAY_S = 15.0  # for an idle CLI process to end in order


class Lease:
    """The right to write one draft. Calls block, but never for long."""

    def __init__(self, path: Path, address: str, is_idle: Callable[[], bool] = lambda: False) -> None:
        """:param is_idle: whether its holder only keeps it for a next turn."""
        self._path = path
        self._address = address
        self._is_idle = is_idle
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
        wanted = wanted_path(self._path)
        while True:
            try:
                self.acquire()
                break
            except DraftBusy:
                if not self._is_idle() or time.monotonic() > deadline:
                    wanted.unlink(missing_ok=True)
                    raise
                wanted.touch()
        wanted.unlink(missing_ok=True)

    def check(self) -> None:
        """:raises DraftBusy: somebody else writes; without taking it."""
        for wait_s in (0.05, 0.0):  # it may only be looked at
            if not self.is_held() or self._is_idle():
                return
            time.sleep(wait_s)
        raise DraftBusy(self._address, self.holder())

    def _try_acquire(self) -> None:
        bounds.check_record(self._path)
        journal.make_folder(self._path.parent)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.LockException:
            holder = _holder(os.pread(fd, 1000, 0))
            os.close(fd)
            raise DraftBusy(self._address, holder) from None
        me = {"pid": os.getpid(), "host": socket.gethostname(), "since": now().isoformat()}
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same, without a name
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(me).encode(), 0)
        self._held = HeldFile(fd)

    def release(self) -> None:
        if self._held is not None:
            with contextlib.suppress(OSError):  # the disk may be gone; or it is the parent's
                os.ftruncate(self._held.fd, 0)  # who leaves in order leaves no name
            self._held.release()
            self._held = None

    def holder(self) -> str:
        """Who holds it, in words."""
        try:
            return _holder(self._path.read_bytes()[:1000])
        except OSError:
            return "another process"

    def is_held(self) -> bool:
        """Whether anybody holds it now, perhaps this process."""
        try:
            with open(self._path, "rb") as file:
                return not _is_free(file.fileno())
        except FileNotFoundError:
            return False

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
    with open(path, "rb") as file:
        data = file.read(1000)
        return _holder(data) if data and _is_free(file.fileno()) else None


def _is_free(fd: int) -> bool:
    try:
        portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.LockException:
        return False
    portalocker.unlock(fd)
    return True


def _holder(data: bytes) -> str:
    found = journal.decode(data) or {}
    try:
        return f"process {found['pid']} on {found['host']} since {found['since'][:16].replace('T', ' ')}"
    except (KeyError, TypeError):
        return "another process"
