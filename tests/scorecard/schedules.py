"""Schedules: the file store next to the SDK's in-memory store, step by step; and its contracts.

A schedule is a random sequence of appends, retries of earlier batches, appends that fail in the
middle of the write, and deletes, over two projects, sessions and subpaths. Two stores on one
folder take turns, and one project is reached through a bound view, under a key that it must
ignore. After every step all that can be asked of the stores is asked and compared: each key's
entries, the ids listed, the subkeys, the data of the summaries. What the in-memory store lacks is
only that it takes a uuid twice, so a batch is cleared of what it holds already before it gets it.

The contracts are the SDK's own suite, on asyncio and trio, for the store and for a bound view.
"""

from __future__ import annotations

import inspect
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

sys.path.append(str(Path(__file__).parent.parent / "support"))

import anyio
from claude_agent_sdk import InMemorySessionStore
from claude_agent_sdk.testing import run_session_store_conformance
from claude_agent_sdk.testing import session_store_conformance as suite
from claude_agent_sdk.types import SessionKey, SessionListSubkeysKey, SessionStoreEntry
from disks import in_place_of_os
from figure import Figure, Outcome, Run

import smartwriter.storage.reading as reading
from smartwriter.errors import JournalError
from smartwriter.sessions.store import BoundSessionStore, FileSessionStore
from smartwriter.storage.salvage import Entry

SCHEDULES = 10_000
_STEPS = 8
_PROCESSES = 2
_TIMEOUT_S = 900

_PROJECTS = ("plain", "渡口/bound")  # the second one through a view
_SESSIONS = ("s1", "11111111-2222-4333-8444-555555555555")
_SUBPATHS = (None, "subagents/agent-1", "subagents/workflows/r/agent-2")


def _key(project: str, session: str, subpath: str | None) -> SessionKey:
    return cast(
        SessionKey,
        {"project_key": project, "session_id": session, **({"subpath": subpath} if subpath else {})},
    )


_KEYS = [
    _key(_PROJECTS[0], _SESSIONS[0], None),
    _key(_PROJECTS[0], _SESSIONS[0], _SUBPATHS[1]),
    _key(_PROJECTS[0], _SESSIONS[1], None),
    _key(_PROJECTS[1], _SESSIONS[0], None),
    _key(_PROJECTS[1], _SESSIONS[0], _SUBPATHS[2]),
]


class Mismatch(Exception):
    """The stores do not agree."""


@dataclass
class Schedule:
    """One schedule, as far as it has come."""

    root: Path
    rng: random.Random
    done: list[str] = field(default_factory=list)
    sent: list[tuple[SessionKey, list[Entry]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.oracle = InMemorySessionStore()
        self.stores = [FileSessionStore(self.root, durability="os") for _ in range(2)]

    async def run(self) -> list[str]:
        """The kinds of its steps. :raises Mismatch:"""
        for _ in range(_STEPS):
            step = self.rng.choices(
                [self._append, self._retry, self._fail, self._delete], weights=[5, 2, 2, 1]
            )[0]
            await step()
            await self._compare()
        return self.done

    async def _append(self) -> None:
        key, batch = self.rng.choice(_KEYS), self._batch()
        self.sent.append((key, batch))
        await self._take("append", key, batch)

    async def _retry(self) -> None:
        if not self.sent:
            return await self._append()
        key, batch = self.rng.choice(self.sent)
        if self.rng.random() < 0.5:  # as a retry of two batches that the SDK had put together
            batch = [*batch, *self._batch()]
        await self._take("retry", key, batch)

    async def _take(self, kind: str, key: SessionKey, batch: list[Entry]) -> None:
        self.done.append(kind)
        await self._view(key["project_key"]).append(self._handed(key), _stored(batch))
        held = {entry.get("uuid") for entry in await self.oracle.load(key) or []}
        new = []
        for entry in batch:
            if not (uuid := entry.get("uuid")) or uuid not in held:
                held.add(uuid)
                new.append(entry)
        if new:
            await self.oracle.append(key, _stored(new))

    async def _fail(self) -> None:
        """The error must come out, and nothing of the batch may stay."""
        self.done.append("failure")
        key = self.rng.choice(_KEYS)
        batch = [*self._batch(), {"type": "user"}]  # without uuid: there always is something to write
        with _failing_write(self.rng.random()) as failed:
            try:
                await self._view(key["project_key"]).append(self._handed(key), _stored(batch))
            except JournalError:
                self.sent.append((key, batch))
            else:
                raise Mismatch("an append that could not write returned")
        if not failed:
            raise Mismatch("no write was made to fail")

    async def _delete(self) -> None:
        self.done.append("delete")
        key = self.rng.choice(_KEYS)
        await self._view(key["project_key"]).delete(self._handed(key))
        await self.oracle.delete(key)

    def _batch(self) -> list[Entry]:
        return [_entry(self.rng) for _ in range(self.rng.randrange(1, 5))]

    # What is asked ---------------------------------------------------------------------------

    async def _compare(self) -> None:
        for key in _KEYS:
            view = self._view(key["project_key"])
            self._equal("load", await view.load(self._handed(key)), await self.oracle.load(key))
        for project in _PROJECTS:
            view = self._view(project)
            key = self._handed(_key(project, _SESSIONS[0], None))
            listed = {item["session_id"] for item in await view.list_sessions(key["project_key"])}
            expected = {item["session_id"] for item in await self.oracle.list_sessions(project)}
            self._equal("list_sessions", listed, expected)
            self._equal(
                "list_session_summaries",
                {item["session_id"]: item["data"] for item in await view.list_session_summaries(project)},
                {
                    item["session_id"]: item["data"]
                    for item in await self.oracle.list_session_summaries(project)
                },
            )
            for session in _SESSIONS:
                asked: SessionListSubkeysKey = {"project_key": project, "session_id": session}
                self._equal(
                    "list_subkeys",
                    sorted(await view.list_subkeys(asked)),
                    sorted(await self.oracle.list_subkeys(asked)),
                )
        damaged = [path for path in self.root.rglob("*.jsonl") if reading.read(path).damage]
        self._equal("damage", damaged, [])

    def _equal(self, what: str, got: Any, expected: Any) -> None:
        if got != expected:
            raise Mismatch(f"{what} after {self.done}: {got!r:.300}, not {expected!r:.300}")

    def _view(self, project: str) -> FileSessionStore | BoundSessionStore:
        store = self.rng.choice(self.stores)
        return store.bind(project) if project == _PROJECTS[1] else store

    def _handed(self, key: SessionKey) -> SessionKey:
        """The key as a client has it: a bound view is handed a wrong project."""
        return key if key["project_key"] == _PROJECTS[0] else {**key, "project_key": _PROJECTS[0]}


def _stored(entries: list[Entry]) -> list[SessionStoreEntry]:
    return cast("list[SessionStoreEntry]", [dict(entry) for entry in entries])


def _entry(rng: random.Random) -> Entry:
    """An entry of a kind that the summaries look at, with a uuid more often than not."""
    text = rng.choice([*_TEXTS, "x" * rng.randrange(9000)])
    entry: Entry = rng.choice(
        [
            {"type": "user", "message": {"role": "user", "content": text}},
            {"type": "user", "message": {"content": [{"type": "text", "text": text}]}, "isMeta": True},
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {"uuid": "u1"}}]}},
            {"type": "custom-title", "customTitle": text},
            {"type": "tag", "tag": text},
            {"type": "summary", "summary": text, "leafUuid": "u2"},
            {"type": "last-prompt", "lastPrompt": text},
        ]
    )
    entry = dict(entry)
    if rng.random() < 0.7:
        entry["uuid"] = f"u{rng.randrange(30)}" if rng.random() < 0.3 else f"{rng.getrandbits(64):x}"
    if rng.random() < 0.5:
        entry |= {"timestamp": "2026-01-01T00:00:00Z", "cwd": "/w/书", "gitBranch": rng.choice(["a", "b"])}
    if rng.random() < 0.1:
        entry["isSidechain"] = True
    return entry


_TEXTS = ["写第一段", "line\u2028line", "half \ud83d", "\0", "/clear", ""]


@contextmanager
def _failing_write(part: float) -> Iterator[list[int]]:
    """Let the disk take a part of the next write, and fail. Yields the lengths it took."""
    taken: list[int] = []

    class FailingOs:
        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def write(self, fd: int, data: bytes) -> int:
            taken.append(os.write(fd, data[: int(len(data) * part)]))
            raise OSError(5, "injected")

    with in_place_of_os(FailingOs()):
        yield taken


# --- measuring ------------------------------------------------------------------------------


def measure_share(seed: int, count: int) -> tuple[Counter[str], str]:
    """Run schedules: the steps and mismatches in them, and the first of these in words."""
    memory = Path("/dev/shm")
    return anyio.run(_run_share, seed, count, memory if memory.is_dir() else None)


async def _run_share(seed: int, count: int, memory: Path | None) -> tuple[Counter[str], str]:
    counts: Counter[str] = Counter()
    first = ""
    for number in range(count):
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            schedule = Schedule(Path(folder), random.Random(f"{seed} {number}"))
            try:
                counts.update(await schedule.run())
                counts["equal"] += 1
            except Exception as error:
                counts["unequal"] += 1
                first = first or f"schedule {seed} {number}: {type(error).__name__}: {error}"
    return counts, first


def _measure_schedules(run: Run) -> Outcome:
    share = run.scaled(SCHEDULES) // _PROCESSES
    counts: Counter[str] = Counter()
    examples = []
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(measure_share, run.seed + number, share) for number in range(_PROCESSES)]
        for job in jobs:
            more, example = job.result(_TIMEOUT_S)
            counts += more
            examples += [example] if example else []
    equal = counts.pop("equal", 0)
    unequal = counts.pop("unequal", 0)
    steps = ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))
    got = f"{equal:,} equal after every step, {unequal} not ({steps})"
    return Outcome("\n                ".join([got, *examples]), equal == share * _PROCESSES and not unequal)


def _measure_contracts(run: Run) -> Outcome:
    contracts = len(re.findall(r"^ *# \d+\. ", inspect.getsource(suite), re.MULTILINE))
    results = []
    for backend in ("asyncio", "trio"):
        for bound in (False, True):
            made, error = _run_contracts(run.folder / f"{backend}-{bound}", backend, bound)
            passed = made - 1 - bool(error)  # one store is only for probing, one met its failure
            name = f"{'bound view' if bound else 'store'} on {backend}"
            results.append((passed, f"{passed}/{contracts} {name}{error}"))
    ok = contracts > 0 and all(passed == contracts for passed, _ in results)
    return Outcome(", ".join(text for _, text in results), ok)


def _run_contracts(folder: Path, backend: str, bound: bool) -> tuple[int, str]:
    """How many stores the suite made, one for each contract it came to; and what it said."""
    made = 0

    def make() -> Any:
        nonlocal made
        made += 1
        store = FileSessionStore(folder / str(made), durability="os")
        return _BoundToEachProject(store) if bound else store

    try:
        anyio.run(run_session_store_conformance, make, backend=backend)
    except Exception as error:
        return made, f" ({type(error).__name__}: {error})"
    return made, ""


class _BoundToEachProject:
    """What the suite needs to test views: one for each project it names, the key given changed."""

    def __init__(self, store: FileSessionStore) -> None:
        self._store = store

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        await self._store.bind(key["project_key"]).append({**key, "project_key": "?"}, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await self._store.bind(key["project_key"]).load({**key, "project_key": "?"})

    async def list_sessions(self, project_key: str) -> Any:
        return await self._store.bind(project_key).list_sessions("?")

    async def list_session_summaries(self, project_key: str) -> Any:
        return await self._store.bind(project_key).list_session_summaries("?")

    async def delete(self, key: SessionKey) -> None:
        await self._store.bind(key["project_key"]).delete({**key, "project_key": "?"})

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await self._store.bind(key["project_key"]).list_subkeys({**key, "project_key": "?"})


FIGURES = [
    Figure(
        "random schedules against the SDK's in-memory store plus de-dup",
        "10,000 equal in entries, listings, subkeys and summaries after every step",
        _measure_schedules,
    ),
    Figure(
        "the SDK's contracts for session stores",
        "all of them, on asyncio and trio, by the store and by a bound view",
        _measure_contracts,
    ),
]
