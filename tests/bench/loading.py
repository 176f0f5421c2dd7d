from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread

from bench import alone
from bench.material import key, stored, write
from bench.peers import PlainStore, bare_parse
from bench.ratio import FASTER, Clock, Got, Row, Target, Timed, interleaved, shown

_MB = 1 << 20


def _loads(load: Callable[[], Awaitable[Any]]) -> Timed:
    async def run() -> Clock:
        with Clock() as clock:
            entries = await load()
        assert entries
        return clock

    return run


async def _against_plain(folder: Path) -> Got:
    store, session_id, _ = stored(folder / "ours", 64 * _MB)
    plain = PlainStore(folder / "plain")
    write(plain.path(key(session_id)), session_id, 64 * _MB)
    ours, theirs = await interleaved(
        _loads(lambda: store.load(key(session_id))), _loads(lambda: plain.load(key(session_id)))
    )
    return Got(theirs / ours, {"ours": shown(ours.middle), "plain": shown(theirs.middle)})


async def _against_parse(folder: Path) -> Got:
    store, session_id, _ = stored(folder, 64 * _MB)
    path = store.path(key(session_id))
    ours, bare = await interleaved(
        _loads(lambda: store.load(key(session_id))),
        _loads(lambda: anyio.to_thread.run_sync(bare_parse, path)),
        runs=15,
    )
    return Got(ours / bare, {"ours": shown(ours.middle), "bare parse": shown(bare.middle)})


async def _tenfold(folder: Path) -> Got:
    big, big_id, _ = stored(folder / "big", 64 * _MB)
    small, small_id, _ = stored(folder / "small", 64 * _MB // 10)
    long, short = await interleaved(
        _loads(lambda: big.load(key(big_id))), _loads(lambda: small.load(key(small_id)))
    )
    return Got(long / short, {"64 MB": shown(long.middle), "6.4 MB": shown(short.middle)})


async def _streamed(folder: Path) -> Got:
    _, session_id, written = stored(folder, 250 * _MB)

    async def run() -> float:
        figures = await alone.run("stream", str(folder), json.dumps(key(session_id)))
        assert figures["entries"] == written.entries
        return figures["bytes"] / 1e6

    (took,) = await interleaved(run, runs=5)
    return Got(took, {"entries": f"{written.entries:,}"})


ROWS = [
    Row("load of 64 MB, vs the plain store", Target(2, FASTER, at_least=True), _against_plain),
    Row("load of 64 MB, vs the bare parse", Target(1.15), _against_parse),
    Row("load of ten times the entries, 64 vs 6.4 MB", Target(11), _tenfold),
    Row("memory of streaming 250 MB, above idle", Target(50, " MB"), _streamed),
]
