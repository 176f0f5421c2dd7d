"""The real CLI against the stand-in model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, InMemorySessionStore, ResultMessage
from claude_agent_sdk.types import SessionKey, SessionListSubkeysKey, SessionStoreEntry

from bench.material import PROJECT, key, stored
from bench.ratio import Clock, Got, Row, Target, Timed, interleaved, shown
from smartwriter.agent.offline.environment import offline_env
from smartwriter.agent.offline.script import Reply, Request, Text
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.files.durable import write_document
from smartwriter.sessions.store import FileSessionStore

_MB = 1 << 20
_ANSWER = "The heron waits where the water slows. " * 50


def _script(_: Request) -> Reply:
    return [Text(_ANSWER)]


@asynccontextmanager
async def _options(folder: Path) -> AsyncIterator[dict[str, Any]]:
    """For a client that talks to the stand-in and writes into the folder only."""
    work = folder / "work"
    work.mkdir()
    with OfflineModel(_script) as model:
        yield {
            "env": offline_env(model.url, folder / "cli-home"),
            "cwd": work,
            "tools": [],
            "setting_sources": [],
            "system_prompt": "You are a writer.",
            "include_partial_messages": True,
            "session_store_flush": "eager",
            "max_buffer_size": 64 << 20,
        }


async def _turn(options: ClaudeAgentOptions, *, with_exit: bool) -> float:
    """Connect, prompt, whole answer; and the disconnect, if wanted."""
    client = ClaudeSDKClient(options)
    try:
        with Clock() as clock:
            await client.connect()
            await client.query("Write about herons.")
            last = [message async for message in client.receive_response()][-1]
            if with_exit:
                await client.disconnect()
    finally:
        await client.disconnect()
    assert isinstance(last, ResultMessage) and last.result == _ANSWER, last
    return clock.seconds


async def _whole_turn(folder: Path) -> Got:
    store = FileSessionStore(folder / "ours").bind(PROJECT)
    async with _options(folder) as options:

        def turn(store: Any) -> Timed:
            async def run() -> float:
                return await _turn(ClaudeAgentOptions(**options, session_store=store), with_exit=True)

            return run

        works = turn(store), turn(None), turn(InMemorySessionStore())
        for work in works:
            await work()
        ours, none, memory = await interleaved(*works, runs=19)
    return Got(
        ours / none,
        {
            "ours": shown(ours.middle),
            "none": shown(none.middle),
            "InMemorySessionStore": f"{shown(memory.middle)} ({(memory / none).middle:.2f}×)",
        },
    )


async def _resume(folder: Path) -> Got:
    files, session_id, _ = stored(folder / "ours", 13 * _MB)
    memory = _InOneProject()
    entries = await files.load(key(session_id))
    assert entries
    await memory.append(key(session_id), entries)
    del entries
    async with _options(folder) as options:

        def resume(store: Any) -> Timed:
            async def run() -> float:
                return await _turn(
                    ClaudeAgentOptions(**options, session_store=store, resume=session_id), with_exit=False
                )

            return run

        ours, theirs = await interleaved(resume(files.bind(PROJECT)), resume(memory), runs=15)
    return Got(ours / theirs, {"ours": shown(ours.middle), "memory": shown(theirs.middle)})


class _InOneProject(InMemorySessionStore):
    """Bound to one project, as ours is."""

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        await super().append(_bound(key), entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await super().load(_bound(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await super().list_subkeys({"project_key": PROJECT, "session_id": key["session_id"]})


def _bound(key: SessionKey) -> SessionKey:
    bound = key.copy()
    bound["project_key"] = PROJECT
    return bound


async def _fork(folder: Path, size: int) -> Got:
    files, session_id, written = stored(folder, size)

    async def run() -> Clock:
        with Clock() as clock:
            files.copy_now(key(session_id), str(uuid4()), written.last_uuid, "Fork")
        return clock

    await run()
    data = files.path(key(session_id)).read_bytes()

    async def copy() -> Clock:
        """The bytes alone, synced: what no fork can be faster than."""
        with Clock() as clock:
            write_document(folder / "copy", data)
        return clock

    took, alone = await interleaved(run, copy)
    return Got(
        took, {"entries": f"{written.entries:,}", "its bytes alone, written and synced": shown(alone.middle)}
    )


ROWS = [
    Row("a whole turn of the real CLI, with the store vs with none", Target(1.03), _whole_turn),
    Row("resume of 13 MB, vs from InMemorySessionStore", Target(1.05), _resume),
    Row("fork of 13 MB", Target(0.5, " s"), partial(_fork, size=13 * _MB)),
    Row("fork of 64 MB", Target(0.15, " s"), partial(_fork, size=64 * _MB)),
]
