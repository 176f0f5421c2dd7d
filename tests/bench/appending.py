from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench import alone
from bench.material import key, session, small_batches, stored
from bench.peers import InlinePlainStore, PlainStore, sqlite_append
from bench.ratio import FASTER, Clock, Got, Row, Samples, Target, Timed, interleaved, shown
from smartwriter.sessions.store import FileSessionStore

_APPENDS = 100  # a run
_FAIR_RUNS = 15


def _appends(append: Callable[[list[Any]], Awaitable[None]], session_id: str) -> Timed:
    """Appends of three entries, each time three new ones."""
    batches = small_batches(session_id)

    async def run() -> Clock:
        ready = [next(batches) for _ in range(_APPENDS)]
        with Clock() as clock:
            for batch in ready:
                await append(batch)
        return clock

    return run


def _each(samples: Samples) -> str:
    return shown(samples.middle / _APPENDS)


def _to(store: Any, session_id: str) -> Timed:
    return _appends(lambda batch: store.append(key(session_id), batch), session_id)


async def _against_plain(folder: Path) -> Got:
    stores = FileSessionStore(folder / "ours"), PlainStore(folder / "a"), InlinePlainStore(folder / "b")
    ours, plain, inline = await interleaved(*(_to(store, session()) for store in stores), runs=_FAIR_RUNS)
    return Got(
        ours / plain,
        {
            "ours": _each(ours),
            "plain": _each(plain),
            "plain, blocking the loop": f"{_each(inline)} ({(ours / inline).middle:.2f}×)",
        },
    )


async def _against_sqlite(folder: Path) -> Got:
    session_id = session()
    ours, unsynced, sqlite = await interleaved(
        _to(FileSessionStore(folder / "ours"), session_id),
        _to(FileSessionStore(folder / "unsynced", durability="os"), session_id),
        _appends(sqlite_append(folder / "sessions.db", session_id), session_id),
        runs=_FAIR_RUNS,
    )
    return Got(
        sqlite / ours,
        {
            "ours": _each(ours),
            "SQLiteSession": _each(sqlite),
            'ours, durability="os"': f"{_each(unsynced)} ({(sqlite / unsynced).middle:.2f}× faster)",
        },
    )


async def _at_size(folder: Path) -> Got:
    big, small = (_to(*stored(folder / name, size)[:2]) for name, size in (("big", 10**9), ("small", 10**6)))
    await big()
    await small()
    at_big, at_small = await interleaved(big, small, runs=_FAIR_RUNS)
    return Got(at_big / at_small, {"1 GB": _each(at_big), "1 MB": _each(at_small)})


async def _first(folder: Path) -> Got:
    _, session_id, _ = stored(folder, 64 << 20)
    again = small_batches(session_id)
    cpu: list[float] = []

    async def run() -> float:
        figures = await alone.run("append_first", str(folder), json.dumps([key(session_id), next(again)]))
        cpu.append(1e3 * figures["cpu_s"])
        return 1e3 * figures["seconds"]

    (took,) = await interleaved(run, runs=7)
    return Got(Samples(took.values, cpu))


ROWS = [
    Row("synced append of 3 entries, vs the plain store", Target(1.3), _against_plain),
    Row("synced append of 3 entries, vs SQLiteSession", Target(2, FASTER, at_least=True), _against_sqlite),
    Row("append at 1 GB of transcript, vs at 1 MB", Target(1.1), _at_size),
    Row("first append of a new process to 64 MB", Target(150, " ms"), _first),
]
