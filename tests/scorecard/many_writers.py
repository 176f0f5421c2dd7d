"""Many processes that append to one session at the same time.

Each has a thousand entries of its own to store, in batches of a few, of up to 70 KB each. The
session must then hold each entry exactly once, each writer's in its order. Now and then the disk
fails a sync, so that a writer has to take its batch back while the others wait. The second figure
kills writers at random moments and starts each again with the batch that it had not acknowledged;
what they left of torn lines must hurt nobody else's.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import select
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import oracle
from disk_faults import Faults
from disks import in_place_of_os
from figure import Figure, Outcome, Run, file_system
from writers import Child, Entry, Report, in_memory, kill_all, start, text, uuid

from smartwriter.errors import JournalError
from smartwriter.storage import journal

_WRITERS = 32
_ENTRIES = 1_000
_LONGEST = 48_000  # characters: about 70 KB
_KILLS = 400
_FAILING_SYNCS = 0.02
_LIMIT_S = 600.0  # then those that are left are killed and the figure falls short


@dataclass(frozen=True)
class _Plan:
    path: Path
    entries: int
    seed: int

    def batches(self, writer: int) -> Iterator[list[Entry]]:
        """All that a writer has to store, the same in each of its lives."""
        random = Random(f"{self.seed}-{writer}")
        number = 0
        while number < self.entries:
            count = min(random.randint(1, 6), self.entries - number)
            yield [_entry(random, writer, number + offset) for offset in range(count)]
            number += count


def _entry(random: Random, writer: int, number: int) -> Entry:
    # Most are short, as in a real session; the mean is about 8 KB.
    length = min(int(random.expovariate(1 / random.choice([200, 2_000, 15_000]))), _LONGEST)
    said = text(random, length)
    return {
        "type": "user",
        "writer": writer,
        "number": number,
        "check": _check(said),
        "message": {"role": "user", "content": said},
        "uuid": uuid(random),
        "timestamp": "2026-01-01T00:00:00.000Z",
    }


def _check(said: str) -> str:
    return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()


# --- writing ----------------------------------------------------------------------------------


def _write(plan: _Plan, number: int, skip: int, report: Report) -> None:
    """One life of a writer.

    :param skip: batches that were acknowledged in earlier lives.
    """
    random = Random()  # any: which appends fail is not part of the plan
    transcript = journal.Journal(plan.path, unique=True)
    for batch in islice(plan.batches(number), skip, None):
        failing = "fdatasync" if random.random() < _FAILING_SYNCS else ""
        with contextlib.suppress(JournalError), in_place_of_os(Faults(failing, errno.EIO)):
            transcript.append(batch)
            report(b".")
            continue
        transcript.append(batch)  # as the SDK would, it tries again
        report(b"!")


class _Crew:
    """The writers at work."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._children: dict[int, Child] = {}
        self._acknowledged = Counter[int]()
        """Batches of each writer, in all its lives."""
        self.kills = 0
        self.repeated = 0
        """Appends that failed at first."""

    def run(self, random: Random, kill_share: float) -> None:
        """Until all is written.

        :param kill_share: kills per acknowledged batch, so that they are spread over all the
            work on any machine.
        """
        deadline = time.monotonic() + _LIMIT_S
        try:
            for number in range(_WRITERS):
                self._start(number)
            due = 0.0
            while self._children:
                due += kill_share * self._hear(deadline - time.monotonic())
                while due >= 1 and self._children:
                    due -= 1
                    time.sleep(random.uniform(0, 0.005))
                    self._kill(random.choice(list(self._children)))
        finally:
            kill_all(self._children.values())

    def _start(self, number: int) -> None:
        work = partial(_write, self._plan, number, self._acknowledged[number])
        self._children[number] = start(work)

    def _hear(self, timeout_s: float) -> int:
        """How many batches were acknowledged, by those that had any; waits for one."""
        pipes = {child.pipe: number for number, child in self._children.items()}
        ready, _, _ = select.select(list(pipes), [], [], max(0.0, timeout_s))
        if not ready:
            raise RuntimeError(f"{len(pipes)} writers not done after {_LIMIT_S:.0f} s")
        news = 0
        for pipe in ready:
            reported = os.read(pipe, 1 << 16)
            self._count(pipes[pipe], reported)
            news += len(reported)
            if not reported:
                self._children.pop(pipes[pipe]).wait()
        return news

    def _kill(self, number: int) -> None:
        self._count(number, self._children.pop(number).kill())
        self.kills += 1
        self._start(number)

    def _count(self, number: int, reported: bytes) -> None:
        self._acknowledged[number] += len(reported)
        self.repeated += reported.count(b"!")


# --- the verdict ------------------------------------------------------------------------------


def _measure(run: Run, *, kills: int) -> Outcome:
    with in_memory(run.folder, 1 << 30) as folder:
        plan = _Plan(folder / "sessions" / "session.jsonl", run.scaled(_ENTRIES), run.seed)
        batches = sum(1 for _ in plan.batches(0)) * _WRITERS
        crew = _Crew(plan)
        crew.run(run.random(), run.scaled(kills) / batches if kills else 0)
        wrong, torn = _verdict(plan)
        size, disk = plan.path.stat().st_size, file_system(folder)
    failed = f"{crew.repeated} failed syncs"
    killed = f", {crew.kills} killed, {torn} torn lines" if kills else ""
    found = ", ".join(f"{count} {what}" for what, count in wrong.items()) or "exact count and order"
    return Outcome(
        f"{_WRITERS} × {plan.entries:,} entries, {size / 1e6:,.0f} MB, {failed}{killed}: {found}",
        not wrong and crew.kills >= run.scaled(kills) // 2 * bool(kills) and (kills > 0 or not torn),
        disk,
    )


def _verdict(plan: _Plan) -> tuple[Counter[str], int]:
    """What is wrong with the entries, and how many lines hold none."""
    wrong = Counter[str]()
    torn = 0
    expected = Counter[int]()  # the number of the next entry of each writer
    for line, entry in oracle.stream(plan.path):
        if entry is None:
            torn += 1
            wrong["glued to a torn line"] += line.count(b'{"type":"user","writer":') > 1
            continue
        writer, number = entry["writer"], entry["number"]
        if entry["check"] != _check(entry["message"]["content"]):
            wrong["changed"] += 1
        if number < expected[writer]:
            wrong["doubled or reordered"] += 1
        wrong["lost"] += max(0, number - expected[writer])
        expected[writer] = max(expected[writer], number + 1)
    wrong["lost"] += sum(plan.entries - expected[writer] for writer in range(_WRITERS))
    return +wrong, torn


FIGURES = [
    Figure(
        f"{_WRITERS} processes that append {_ENTRIES:,} entries each to one session",
        "entries up to 70 KB; exact count, each writer's order kept",
        partial(_measure, kills=0),
    ),
    Figure(
        f"{_WRITERS} processes and one session, with writers killed at random and started again",
        "exact count, each writer's order kept",
        partial(_measure, kills=_KILLS),
    ),
]
