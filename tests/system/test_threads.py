"""Blocking work whose caller is cancelled natively."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from claude_agent_sdk.types import SessionKey, SessionStoreEntry

from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage import journal
from smartwriter.system.threads import to_the_end

KEY: SessionKey = {"project_key": "p", "session_id": "5f0c0000-0000-4000-8000-000000000000"}
ENTRIES = cast("list[SessionStoreEntry]", [{"type": "user", "uuid": "u"}])


async def _timed_out(work: Any) -> None:
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(work, 0.05)


async def _cancelled(work: Any) -> None:
    task = asyncio.ensure_future(work)
    for _ in range(3):  # who is impatient
        await asyncio.sleep(0.05)
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("cancel", [_timed_out, _cancelled])
def test_an_append_that_was_cancelled_natively_never_lands_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancel: Callable[[Any], Any]
) -> None:
    """``asyncio.wait_for`` and ``task.cancel`` of an append that waits for its lock: once they have
    returned, nothing is under way any more."""
    store = FileSessionStore(tmp_path)
    path = store.path(KEY)
    journal.Journal(path).append([{"type": "x"}])
    held, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with journal.Journal(path).locked():
            held.set()
            ended.wait(0.5)

    def append_now(*arguments: Any) -> None:
        try:
            FileSessionStore.append_now(store, *arguments)
        finally:
            ended.set()

    monkeypatch.setattr(store, "append_now", append_now)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()

    async def go() -> bool:
        await cancel(store.append(KEY, ENTRIES))
        return ended.is_set()

    assert asyncio.run(go())
    holder.join()


def test_what_has_not_begun_when_it_is_given_up_never_begins() -> None:
    """Cancelled while it waits for a free thread, the work is not done, and nobody waits for it."""
    done: list[int] = []

    async def go() -> None:
        limiter = anyio.to_thread.current_default_thread_limiter()
        limiter.total_tokens = 1
        gate = threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(to_the_end, gate.wait)
            await anyio.sleep(0.01)
            await _timed_out(to_the_end(done.append, 1))
            gate.set()

    asyncio.run(go())
    assert done == []
