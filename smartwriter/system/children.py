"""What a child of ``fork()`` may do with the locks that its parent holds: nothing.

``multiprocessing`` forks by default on Linux. The child has copies of all descriptors, and a lock on a file
belongs to the copies too: it would outlive the parent's closing of its own. So a lock is released before its
descriptor is closed, and the child closes its copies without releasing anything. A thread's lock that some
other thread held at that moment would never be released in the child: it gets new ones.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Protocol

import portalocker


class HasLocks(Protocol):
    def renew_locks(self) -> None:
        """Have new thread locks, in a child that has no other threads."""


class HeldFile:
    """The descriptor of a file that this process, and none of its children, has locked."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd
        _held.add(self)

    @property
    def fd(self) -> int:
        """The system refuses what a child tries with it."""
        return -1 if self._fd is None else self._fd

    def release(self) -> None:
        if self._fd is not None:
            with contextlib.suppress(OSError, portalocker.LockException):
                portalocker.unlock(self._fd)
            self._close()

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def leave_to_parent(self) -> None:
        with contextlib.suppress(OSError):
            self._close()


def renew_in_children(owner: HasLocks) -> None:
    _owners.add(owner)


_held: weakref.WeakSet[HeldFile] = weakref.WeakSet()
_owners: weakref.WeakSet[HasLocks] = weakref.WeakSet()


def _in_child() -> None:
    for held in list(_held):
        held.leave_to_parent()
    for owner in list(_owners):
        owner.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
