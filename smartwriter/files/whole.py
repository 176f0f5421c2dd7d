"""Reading a file of the writer's while an editor may be saving it: one whole version, or none."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from smartwriter.errors import Invalid

SETTLED_S = 0.05
"""A file that is older than this is taken for saved."""
EMPTIED_S = 1.0
"""An empty one, only when it is older than this: so long a program that saves it may be held up."""
GIVE_UP_S = 2.0
_PAUSE_S = 0.01

_Stamp = tuple[int, int, int, int, int]


def read_whole(path: Path, within: Path, max_bytes: int) -> bytes:
    """The bytes of a regular file, as they were at one moment. Blocking, at most about two seconds.

    An editor that replaces the file is waited for. One that empties it first and then writes can
    only be noticed by the file's age: it is read again until it has been left alone for
    :data:`SETTLED_S`, an empty one for :data:`EMPTIED_S`. A save that pauses for longer is seen as
    what it has written by then.

    :param within: the folder that links must not lead out of, nor into a hidden folder of.
    :raises Invalid: for a file that is not for reading, with a message that follows its name.
    :raises OSError: when the system refuses.
    """
    patience = _Patience()
    while True:
        try:
            stamp, data = _read_once(path, within, max_bytes)
        except FileNotFoundError:
            # Some editors move the old file away before they write the new one.
            if path.is_symlink() or patience.waited_s() > 2 * SETTLED_S:
                raise
            stamp, data = None, b""
        if stamp is not None and patience.is_left_alone(stamp, is_empty=not data):
            return data
        if patience.waited_s() > GIVE_UP_S:
            raise Invalid("is being saved over and over")
        time.sleep(_PAUSE_S)


def once_saved(path: Path, look: Callable[[], str | None], known: str) -> str | None:
    """What a look at a file finds; where that is not what is known, once an editor that saves it is done.

    Most empty it first and then write: what is there in between is no edit of the writer's, and a text
    put in its place would be the end of theirs. A file that never rests is taken as it is. Blocking, at
    most about two seconds.

    :param look: None where there is no file. What it raises at last, this does.
    """
    patience = _Patience()
    while True:
        text = None
        with contextlib.suppress(Invalid):  # perhaps only half of a character is there yet
            if (text := look()) is None or text == known:
                return text
        try:
            stamp = _stamp(path.stat())
        except FileNotFoundError:
            return look()
        if patience.is_left_alone(stamp, is_empty=text == "") or patience.waited_s() > GIVE_UP_S:
            return look()
        time.sleep(_PAUSE_S)


class _Patience:
    """With an editor that may be saving a file."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._seen: _Stamp | None = None
        self._seen_at = 0.0

    def waited_s(self) -> float:
        return time.monotonic() - self._since

    def is_left_alone(self, stamp: _Stamp, *, is_empty: bool) -> bool:
        """Whether a file has been as it is now for long enough to be taken for saved."""
        settled_s = EMPTIED_S if is_empty else SETTLED_S
        if time.time() - stamp[3] / 1e9 >= settled_s:
            return True
        now = time.monotonic()
        if stamp != self._seen:
            self._seen, self._seen_at = stamp, now
        return now - self._seen_at >= settled_s  # its clock is ahead of ours


def _read_once(path: Path, within: Path, max_bytes: int) -> tuple[_Stamp | None, bytes]:
    """What is in the file, with its stamp; without one when it changed meanwhile."""
    real = _real(path, within)
    _check(os.lstat(real), max_bytes)  # before it is opened: to open a device may do something
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    fd = os.open(real, flags)
    try:
        before = os.fstat(fd)
        _check(before, max_bytes)  # it may have been swapped since
        data = _read_up_to(fd, max_bytes + 1)
        after = os.fstat(fd)
    finally:
        os.close(fd)
    if len(data) > max_bytes:
        raise _too_large(len(data), max_bytes)
    same = _stamp(before) == _stamp(after) and len(data) == after.st_size
    same = same and _real(path, within) == real and os.path.samestat(os.lstat(real), after)
    return (_stamp(after) if same else None), data


def _real(path: Path, within: Path) -> Path:
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(within))
    if not real.is_relative_to(root):
        raise Invalid("links out of the workspace")
    if any(part.startswith(".") for part in real.relative_to(root).parts):
        raise Invalid("links into a hidden folder")
    return real


def _check(status: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Invalid("is not a regular file")
    if status.st_size > max_bytes:
        raise _too_large(status.st_size, max_bytes)


def _too_large(size: int, max_bytes: int) -> Invalid:
    return Invalid(f"is too large ({size / 1e6:.1f} MB; at most {max_bytes / 1e6:.0f} MB)")


def _read_up_to(fd: int, max_bytes: int) -> bytes:
    blocks = bytearray()
    while len(blocks) < max_bytes and (block := os.read(fd, max_bytes - len(blocks))):
        blocks += block
    return bytes(blocks)


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
