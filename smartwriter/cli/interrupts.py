"""How the engine in the foreground is stopped: ctrl-C, SIGTERM, a terminal that is closed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import anyio
from anyio.abc import TaskGroup

from smartwriter.cli.terminal import secho

_TWICE_S = 0.5  # `timeout`, shells and wrappers hand on one signal twice; a person takes longer


class Stopped(SystemExit):
    """The command was stopped by a signal: no error, but the shell's exit code for it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(128 + signal_number)


class Interrupts:
    """What signals ask for. The first stops, in order; ctrl-C or SIGTERM once more kills."""

    def __init__(self) -> None:
        self.heard: signal.Signals | None = None
        """The first."""
        self._stop: Callable[[signal.Signals], Coroutine[Any, Any, None]] | None = None

    def stop_by(self, stop: Callable[[signal.Signals], Coroutine[Any, Any, None]]) -> None:
        """From here on there is something to stop, unless that was asked for already."""
        self._stop = stop

    async def listen(self, group: TaskGroup, started: anyio.Event) -> None:
        last_s = 0.0
        with anyio.open_signal_receiver(*_heeded()) as signals:
            started.set()
            async for number in signals:
                now_s = anyio.current_time()
                if self.heard is None:
                    self.heard, last_s = number, now_s
                    _say_stopping(number)
                    if self._stop is not None:
                        group.start_soon(self._stop, number)  # it may take a while, and be cut short
                elif number != _HANGUP and now_s - last_s > _TWICE_S:
                    kill_at_once(number)


@contextlib.asynccontextmanager
async def interrupts() -> AsyncIterator[Interrupts]:
    """Heed signals from here to the end."""
    found, started = Interrupts(), anyio.Event()
    failed: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(found.listen, group, started)
        await started.wait()
        try:
            yield found
        except Exception as error:  # comes out as it is, not in a group of the task group's
            failed = error
        finally:
            group.cancel_scope.cancel()
    if failed is not None:
        raise failed


_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)


def _heeded() -> list[signal.Signals]:
    """Those that ask to stop, but for what the caller has switched off (``nohup``, ``&`` in a script)."""
    asking = [signal.SIGINT, signal.SIGTERM, *([_HANGUP] if _HANGUP else [])]
    return [number for number in asking if signal.getsignal(number) is not signal.SIG_IGN]


@contextlib.contextmanager
def signals_raised() -> Iterator[None]:
    """Let a signal that asks to stop end what is not asynchronous as ctrl-C does, so that it clears up."""

    def stop(number: int, _: object) -> None:
        for one in handlers:
            signal.signal(one, signal.SIG_IGN)  # clearing up is not cut short
        raise Stopped(number)

    handlers = {number: signal.getsignal(number) for number in _heeded() if number != signal.SIGINT}
    for number in handlers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


async def first_signal() -> signal.Signals:
    """Wait for the first signal that asks to stop."""
    with anyio.open_signal_receiver(*_heeded()) as signals:
        return await anext(aiter(signals))


def _say_stopping(number: signal.Signals) -> None:
    if number != _HANGUP:
        secho("\nStopping; once more to kill.", err=True, fg="yellow")


@contextlib.contextmanager
def keys_unseen() -> Iterator[None]:
    """Echo no keys meanwhile: at the end of a live display's last row they break it, ctrl-C as ^C, too."""
    if os.name != "posix" or not _set_echo(False):
        yield
        return
    try:
        yield
    finally:
        _set_echo(True)


def _set_echo(on: bool) -> bool:
    """Whether it was done: where there is a terminal, and this process is in its foreground."""
    import termios

    try:
        fd = sys.stdin.fileno()
        if os.tcgetpgrp(fd) != os.getpgrp():  # to the others this would be a signal to halt
            return False
        modes = termios.tcgetattr(fd)
        if bool(modes[3] & termios.ECHO) is on:
            return False
        modes[3] ^= termios.ECHO
        termios.tcsetattr(fd, termios.TCSANOW, modes)
    except (OSError, ValueError, AttributeError, termios.error):
        return False
    return True


def kill_at_once(number: int) -> None:
    """End now, and the CLI processes with it."""
    kill_tree(os.getpid(), itself=False)
    if os.name == "posix":
        _set_echo(True)
    if sys.stdout.isatty():  # a live display hides it
        os.write(1, b"\x1b[?25h\n")
    os._exit(128 + number)


def kill_tree(pid: int, *, itself: bool = True) -> None:
    """SIGKILL for a process and all that it started, in whatever session."""
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in [*([process] if itself else []), *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                one.kill()
