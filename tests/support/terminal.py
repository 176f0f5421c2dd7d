"""A terminal as a writer has it: commands in its foreground, keys, and the window's close button."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence

_TIMEOUT_S = 40.0
# What leads a session gets the first terminal that it opens as its own.
_LEAD = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"


class Terminal:
    def __init__(self, fd: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._fd = fd
        self.screen = ""
        """All that was printed."""

    def wait_for(self, text: str) -> None:
        """Until the screen has shown it."""
        deadline = time.monotonic() + _TIMEOUT_S
        while text not in self.screen:
            assert time.monotonic() < deadline and self._read(0.2), f"no {text!r} in {self.screen!r}"

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def close(self) -> int:
        """Close the window: the kernel hangs up. Returns how the command ended."""
        os.close(self._fd)
        self._fd = -1
        return self.process.wait(_TIMEOUT_S)

    def end(self) -> int:
        """How the command ended, once it has."""
        deadline = time.monotonic() + _TIMEOUT_S
        while self._read(0.2):
            assert time.monotonic() < deadline, self.screen
        return self.process.wait(_TIMEOUT_S)

    def _read(self, wait_s: float) -> bool:
        """False at the end."""
        if not select.select([self._fd], [], [], wait_s)[0]:
            return True
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # EIO: the last process has closed it
            return False
        self.screen += data.decode(errors="replace")
        return bool(data)

    def echoes(self) -> bool:
        """Whether what is typed is shown."""
        modes: int = termios.tcgetattr(self._fd)[3]
        return bool(modes & termios.ECHO)

    def leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


@contextlib.contextmanager
def terminal(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Terminal]:
    """A command in the foreground of a terminal of its own."""
    outer, inner = pty.openpty()

    process = subprocess.Popen(
        [sys.executable, "-c", _LEAD, *command],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=dict(environment) | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
        start_new_session=True,
    )
    os.close(inner)
    window = Terminal(outer, process)
    try:
        yield window
    finally:
        window.leave()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
