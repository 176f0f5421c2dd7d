"""CLI processes in a session of their own, out of reach of what a terminal does to its processes.

Ctrl-C on a terminal goes to every process of its foreground group, a hangup too: the CLI would die
of it in the middle of a turn that is just being stopped in order. The SDK has no option for that; it
starts its processes by ``anyio.open_process``, looked up when it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import anyio

_own_session = ContextVar("own_session", default=False)


@contextmanager
def own_session() -> Iterator[None]:
    """What this task starts meanwhile leads a session of its own.

    Nothing else changes for it: it has the same parent, which still reaps it, and ends when its
    standard input does.
    """
    _install()
    token = _own_session.set(True)
    try:
        yield
    finally:
        _own_session.reset(token)


@functools.cache
def _install() -> None:
    plain = anyio.open_process

    @functools.wraps(plain)
    async def open_process(*arguments: Any, **options: Any) -> Any:
        if _own_session.get():
            options["start_new_session"] = True
        return await plain(*arguments, **options)

    setattr(anyio, "open_process", open_process)  # noqa: B010 - to mypy no module's function is a variable
