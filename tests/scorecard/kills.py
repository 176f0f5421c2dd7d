"""``kill -9`` of a process that appends, at a random moment, thousands of times.

Each cycle forks a writer that goes on with a session where the killed one before it left off: it
may first repeat batches that were acknowledged long ago, then the one that was under way, then it
appends new ones until it dies. A batch counts as acknowledged when the writer's report of it is
in the pipe, which it writes once ``append`` has returned. After each kill the session must hold
all acknowledged batches in order, then the first few entries of the one under way and nothing
else; and its old bytes must still be the start of its new ones. Read by plain means (``oracle``), each
line must be one entry, or the torn beginning of one.

A kill tears a line only where it lands inside a ``write`` of megabytes, which the kernel breaks
off between two pages. So some sessions get batches of that size, and their writers give way to who
watches the file grow, however busy the machine is; half of them are killed as soon as it does.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random

import oracle
from figure import Figure, Outcome, Run, file_system
from writers import Entry, Report, entries, fault, in_memory, in_parallel, start

from smartwriter.storage import journal

_CYCLES = 20_000
_WORKERS = 2
_GROWTH_S = 10.0  # then killed all the same
_GIVES_WAY = 10  # how nice a writer is to its watcher


@dataclass(frozen=True)
class _Size:
    """How big the batches of a session are, and so when to kill its writers."""

    entries: tuple[int, int]
    characters: tuple[int, int]
    latest_kill_s: float
    """After the fork, or after the file began to grow."""
    wait_for_growth: bool
    """Let the kill land in a write or soon after it, else anywhere."""
    repeated: int
    """Batches that a writer may begin with although they were acknowledged."""
    cycles: int
    """That one session lives for."""


_SMALL = _Size((1, 5), (20, 1_200), 0.004, wait_for_growth=False, repeated=3, cycles=20)
_BIG = _Size((1, 4), (500_000, 1_500_000), 0.002, wait_for_growth=True, repeated=0, cycles=3)
_BIG_SESSIONS = 0.17  # of all; of the cycles these are 1 in 34


@dataclass
class _Session:
    """A session, and every batch that was ever to be stored in it."""

    path: Path
    size: _Size
    seed: str
    batches: list[list[Entry]] = field(default_factory=list)
    acknowledged: int = 0
    data: bytes = b""
    """Of its file, after the last kill."""
    torn: int = 0
    """Lines in it."""

    def batch(self, number: int) -> list[Entry]:
        # The writer and its watcher each make their own: the same, as only the number decides.
        while len(self.batches) <= number:
            random = Random(f"{self.seed}-{len(self.batches)}")
            parent = self.batches[-1][-1]["uuid"] if self.batches else None
            count = random.randint(*self.size.entries)
            lengths = [random.randint(*self.size.characters) for _ in range(count)]
            self.batches.append(entries(random, lengths, parent))
        return self.batches[number]


def _measure(run: Run) -> Outcome:
    cycles = run.scaled(_CYCLES)
    share = -(-cycles // _WORKERS)
    with in_memory(run.folder) as folder:
        disk = file_system(folder)
        jobs = [
            partial(_cycles, folder / str(number), Random(f"{run.seed}-{number}"), share)
            for number in range(_WORKERS)
        ]
        totals = sum(in_parallel(jobs), Counter[str]())
    kills, torn, acknowledged = (totals.pop(name, 0) for name in ("kills", "torn", "acknowledged"))
    wrong = ", ".join(f"{count} {what}" for what, count in totals.items())
    held = not wrong and kills >= cycles
    reached = torn >= kills / 100  # where a slow machine hardly gets to write, too little was tried
    return Outcome(
        f"{kills:,} kills, {acknowledged:,} entries acknowledged, "
        f"{wrong or '0 lost, invented or reordered'}; {torn:,} tore a line ({torn / kills:.1%})"
        + ("" if reached else ", too few to show it"),
        None if held and not reached else held,
        disk,
    )


def _cycles(folder: Path, random: Random, count: int) -> Counter[str]:
    """What became of so many kills, one after the other."""
    totals = Counter[str]()
    while totals["kills"] < count:
        size = _BIG if random.random() < _BIG_SESSIONS else _SMALL
        session = _Session(folder / "sessions" / "kills.jsonl", size, str(random.random()))
        for _ in range(min(size.cycles, count - totals["kills"])):
            totals.update(_cycle(session, random))
        totals["acknowledged"] += sum(map(len, session.batches[: session.acknowledged]))
        shutil.rmtree(folder, ignore_errors=True)  # not there if no writer came to its first append
    return totals


def _cycle(session: _Session, random: Random) -> list[str]:
    """One kill: what there is to count of it."""
    repeated = random.choice([0, 0, min(session.acknowledged, session.size.repeated)])
    again = sorted(random.sample(range(session.acknowledged), repeated))
    session.batch(session.acknowledged)  # the writer's first new one is ready when it starts
    writer = start(partial(_append_until_killed, session, again))
    if session.size.wait_for_growth:
        _wait_for_growth(session)
    if not session.size.wait_for_growth or random.random() < 0.5:
        time.sleep(random.uniform(0, session.size.latest_kill_s))
    session.acknowledged += len(writer.kill())
    return ["kills", *_verdict(session)]


def _wait_for_growth(session: _Session) -> None:
    deadline = time.monotonic() + _GROWTH_S
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            if session.path.stat().st_size > len(session.data) + 1:  # more than the LF that a torn line gets
                return
        time.sleep(0.0001)


def _append_until_killed(session: _Session, again: list[int], report: Report) -> None:
    if session.size.wait_for_growth:
        os.nice(_GIVES_WAY)
    # What FileSessionStore.append runs, without the event loop that would take most of the time.
    transcript = journal.Journal(session.path, unique=True)
    for number in again:
        transcript.append(session.batch(number))
    for number in itertools.count(session.acknowledged):
        transcript.append(session.batch(number))
        report(b".")


def _verdict(session: _Session) -> list[str]:
    under_way = session.batch(session.acknowledged)
    acknowledged = list(chain.from_iterable(session.batches[: session.acknowledged]))
    data = session.path.read_bytes() if session.path.exists() else b""
    found = oracle.read(session.path)
    verdict = [wrong] if (wrong := fault(found.entries, acknowledged, under_way)) else []
    new = found.torn[session.torn :]
    if len(new) > 1 or not all(oracle.begins_one_of(line, under_way) for line in new):
        verdict.append("glued to a torn line")
    if not data.startswith(session.data):
        verdict.append("with old bytes changed")
    session.data, session.torn = data, len(found.torn)
    return [*verdict, "torn"] if data and not data.endswith(b"\n") else verdict


FIGURES = [
    Figure(
        "kill -9 of an appending process at random moments",
        f"{_CYCLES:,} kills; 0 acknowledged entries lost, invented or reordered; "
        "at least 1 % of the kills tore a line",
        _measure,
    )
]
