"""Standard output and error that may go away: a pipe whose reader left, a terminal that was closed.

Nobody who only reads may end a turn (``write … | head -1``). So nothing above here ever hears that
it writes for nobody: the words are dropped, the command does what it was called for, and its exit
code is that of any program in front of ``head``. Commands for which reading is all there is ask
:func:`is_read`, and end.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import signal
import sys
from typing import Any

_GONE = (errno.EPIPE, errno.EIO)  # a pipe without a reader; a terminal that was hung up


class _Outlet(io.RawIOBase):
    """A file descriptor that takes everything, also when nobody is at its other end any more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.error: int | None = None
        """Why nobody reads what is written here."""
        self.in_turns = False
        """Whether turns run, which no trouble of the output may touch, such as a full disk behind it."""

    def write(self, data: Any, /) -> int | None:
        if self.error is None:
            try:
                return os.write(self._fd, data)
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno not in _GONE and not self.in_turns:
                    raise
                self._leave(error)
        return memoryview(data).nbytes

    def _leave(self, error: OSError) -> None:
        self.error = error.errno
        # Programs that are started from here on must not meet it either.
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), self._fd)
        if self._fd == 1 and error.errno == errno.EPIPE and self.in_turns:
            print("Nobody reads any more; what was begun is done to its end.", file=sys.stderr)
        elif self._fd == 1 and error.errno not in _GONE:
            print(f"What is printed is lost ({error.strerror}); the turn goes on.", file=sys.stderr)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)


_outlets: dict[int, _Outlet] = {}
_kept: list[io.TextIOWrapper] = []  # one that nobody holds closes what it writes to


def open_outlets() -> None:
    """Replace this process's own streams; any other (a test's, say) stays as it is."""
    if os.name != "posix":
        return
    for fd, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.buffer.fileno() == fd:
            _outlets[fd] = _Outlet(fd)
            replaced = io.TextIOWrapper(
                io.BufferedWriter(_outlets[fd]),
                stream.encoding,
                stream.errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, replaced)
            _kept.append(replaced)


def never_touch_turns() -> None:
    """Turns are about to begin: whatever happens to the outputs, they go on, and it is said once."""
    for outlet in _outlets.values():
        outlet.in_turns = True


def exit_code() -> int:
    """That of a command which went well, by what became of its output."""
    with contextlib.suppress(BrokenPipeError, ValueError):
        sys.stdout.flush()
    error = _outlets[1].error if 1 in _outlets else None
    return 0 if error is None or error in _GONE else 1


def is_read() -> bool:
    """Whether somebody may still read standard output, as far as one can know without writing."""
    if (outlet := _outlets.get(1)) is None:
        return True
    if outlet.error is None:
        poll = select.poll()
        poll.register(1, 0)  # errors are told in any case
        ended = select.POLLERR | select.POLLHUP | select.POLLNVAL
        if any(event & ended for _, event in poll.poll(0)):
            outlet.error = errno.EPIPE
    return outlet.error is None


def end_as_unread() -> None:
    """End as a program does that writes for nobody, if this one did. The last thing to be called."""
    if 1 in _outlets and _outlets[1].error == errno.EPIPE:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
