"""What is measured in a process of its own: ``python -m bench.alone NAME ARGUMENT...`` prints JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from bench.ratio import Clock
from smartwriter.sessions.store import FileSessionStore

Figures = dict[str, float]


async def run(name: str, *arguments: str) -> Figures:
    """Run a measurement of this module in a new process."""
    command = [sys.executable, "-m", "bench.alone", name, *arguments]
    done = await anyio.run_process(command, stderr=None)
    figures: Figures = json.loads(done.stdout)
    return figures


async def append_first(root: str, key_and_batch: str) -> Figures:
    key, batch = json.loads(key_and_batch)
    store = FileSessionStore(root)
    with Clock() as clock:
        await store.append(key, batch)
    return {"seconds": clock.seconds, "cpu_s": clock.cpu_s}


async def stream(root: str, key: str) -> Figures:
    store, count = FileSessionStore(root), 0
    idle = _peak_bytes()
    async for _ in store.entries(json.loads(key)):
        count += 1
    return {"bytes": _peak_bytes() - idle, "entries": count}


def _peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise OSError("no VmHWM in /proc/self/status")


_MEASUREMENTS: dict[str, Callable[..., Awaitable[Figures]]] = {"append_first": append_first, "stream": stream}


if __name__ == "__main__":
    figures = anyio.run(_MEASUREMENTS[sys.argv[1]], *sys.argv[2:])
    print(json.dumps(figures))
