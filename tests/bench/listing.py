from __future__ import annotations

import os
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import anyio.to_thread
from claude_agent_sdk import list_sessions, list_sessions_from_store, project_key_for_directory
from pydantic_core import to_json

from bench.material import conversation, session
from bench.ratio import FASTER, Clock, Got, Row, Target, interleaved, shown
from smartwriter.sessions.store import FileSessionStore

_ENTRIES = 3  # a session


class _Sessions:
    """The same transcripts in the store's folder and, by way of a link, in the SDK's."""

    def __init__(self, folder: Path, count: int) -> None:
        self.root = folder / "ours"
        self.work = folder / "work"
        self.work.mkdir()
        self.key = project_key_for_directory(self.work)
        transcripts = self.root / "sessions" / self.key
        transcripts.mkdir(parents=True)
        entries = islice(conversation("SESSION-ID", words=(3, 8)), _ENTRIES)
        content = b"".join(to_json(entry) + b"\n" for entry in entries)
        for session_id in (session() for _ in range(count)):
            with open(transcripts / f"{session_id}.jsonl", "wb", buffering=0) as file:
                file.write(content.replace(b"SESSION-ID", session_id.encode()))
        self.bytes = sum(item.stat().st_size for item in os.scandir(transcripts))
        projects = folder / "config" / "projects"
        projects.mkdir(parents=True)
        (projects / self.key).symlink_to(transcripts)
        os.environ["CLAUDE_CONFIG_DIR"] = str(folder / "config")

    async def ours(self) -> Clock:
        """A new store each time: nothing in memory."""
        return await self._two_calls(FileSessionStore(self.root))

    async def _two_calls(self, store: FileSessionStore) -> Clock:
        with Clock() as clock:
            self.listed = await store.list_sessions(self.key)
            self.summaries = await store.list_session_summaries(self.key)
        return clock

    async def times(self) -> Clock:
        """Of a new store, as :meth:`ours`."""
        with Clock() as clock:
            self.listed = await FileSessionStore(self.root).list_sessions(self.key)
        return clock

    async def scan(self) -> Clock:
        """The least that tells how long each file is."""
        with Clock() as clock:
            self.sizes = [item.stat().st_size for item in os.scandir(self.root / "sessions" / self.key)]
        return clock

    async def through_sdk(self) -> Clock:
        with Clock() as clock:
            found = await list_sessions_from_store(FileSessionStore(self.root), str(self.work))
        self.found = found
        return clock

    async def sdk(self) -> Clock:
        with Clock() as clock:
            self.sdk_found = await anyio.to_thread.run_sync(
                lambda: list_sessions(str(self.work), include_worktrees=False)
            )
        return clock


async def _two_calls(folder: Path) -> Got:
    sessions = _Sessions(folder, 10_000)
    await sessions.ours()
    ours, sdk = await interleaved(sessions.ours, sessions.sdk, runs=7)
    assert len(sessions.listed) == len(sessions.summaries) == len(sessions.sdk_found) == 10_000
    return Got(sdk / ours, {"ours": shown(ours.middle), "SDK": shown(sdk.middle)})


async def _beside_a_scan(folder: Path) -> Got:
    sessions = _Sessions(folder, 10_000)
    await sessions.ours()
    ours, scan = await interleaved(sessions.times, sessions.scan, runs=7)
    assert len(sessions.listed) == len(sessions.sizes) == 10_000
    return Got(ours / scan, {"ours": shown(ours.middle), "scan": shown(scan.middle)})


async def _through_sdk(folder: Path) -> Got:
    sessions = _Sessions(folder, 10_000)
    await sessions.ours()
    ours, sdk = await interleaved(sessions.through_sdk, sessions.sdk, runs=7)
    assert _said(sessions.found) == _said(sessions.sdk_found)
    return Got(sdk / ours, {"ours": shown(ours.middle), "SDK": shown(sdk.middle)})


def _said(found: list[Any]) -> dict[str, tuple[Any, ...]]:
    """Without the time, which the SDK's own listing rounds the other way."""
    return {info.session_id: (info.summary, info.first_prompt, info.cwd) for info in found}


async def _hundred_thousand(folder: Path) -> Got:
    sessions = _Sessions(folder, 100_000)
    first = await sessions.ours()
    (took,) = await interleaved(sessions.ours, runs=5)
    assert len(sessions.summaries) == 100_000
    return Got(took, {"without a cache": shown(first.seconds)})


async def _cache_deleted(folder: Path) -> Got:
    sessions = _Sessions(folder, 10_000)
    await sessions.ours()
    before = sorted(sessions.summaries, key=str)

    async def run() -> float:
        shutil.rmtree(sessions.root / "cache")
        start = _bytes_read()
        await sessions.ours()
        assert sorted(sessions.summaries, key=str) == before
        return (_bytes_read() - start) / sessions.bytes

    (passes,) = await interleaved(run, runs=5)
    return Got(passes, {"transcripts": f"{sessions.bytes / 1e6:.1f} MB"})


def _bytes_read() -> int:
    """By this process, the page cache included."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    raise OSError("no rchar in /proc/self/io")


ROWS = [
    Row(
        "listing 10,000 sessions, own two calls, vs the SDK on its own disk layout",
        Target(25, FASTER, at_least=True),
        _two_calls,
    ),
    Row(
        "the same, through list_sessions_from_store",
        Target(10, FASTER, at_least=True),
        _through_sdk,
    ),
    Row("listing 10,000 sessions vs one pass of scandir and stat", Target(2), _beside_a_scan),
    Row("listing 100,000 sessions, own two calls", Target(1, " s"), _hundred_thousand),
    Row("listing without its cache: passes over the bytes", Target(1.1, " passes"), _cache_deleted),
]
