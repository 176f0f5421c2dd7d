"""Blocking work in a thread, of which nothing is left running when its caller goes on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import anyio
from anyio.to_thread import run_sync

T = TypeVar("T")
_POLL_S = 0.002


async def to_the_end(function: Callable[..., T], *args: Any) -> T:
    """Call a function in a thread; who is cancelled meanwhile goes on when it has ended.

    So a write never lands late, or not at all: when this returns or raises, it has been done or never
    will be. anyio promises it for its own cancellation alone; ``asyncio.wait_for`` and ``task.cancel``
    reach through its shield.
    """
    call = _Call(function, args)
    try:
        return await run_sync(call.run)
    except anyio.get_cancelled_exc_class():
        while not call.is_over():
            # Cancelled once more, it still waits; the first one is what its caller hears of.
            with contextlib.suppress(anyio.get_cancelled_exc_class()), anyio.CancelScope(shield=True):
                await anyio.sleep(_POLL_S)
        raise


class _Call(Generic[T]):
    """A call that has not begun when it is given up never does."""

    def __init__(self, function: Callable[..., T], args: tuple[Any, ...]) -> None:
        self._function, self._args = function, args
        self._lock = threading.Lock()
        self._begun = False
        self._over = False

    def run(self) -> T:
        with self._lock:
            if self._over:
                raise RuntimeError("given up before it began")  # nobody hears it
            self._begun = True
        try:
            return self._function(*self._args)
        finally:
            self._over = True

    def is_over(self) -> bool:
        with self._lock:
            self._over = self._over or not self._begun
            return self._over
