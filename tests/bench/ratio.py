"""Paired measuring: two ways of doing the same, interleaved, so that what else the machine does hits both."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

RUNS = 9
FASTER = "× faster"


class Clock:
    """``with Clock() as clock: …``, then ``clock.seconds``; ``clock.cpu_s`` is this process's share."""

    seconds = cpu_s = 0.0

    def __enter__(self) -> Clock:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        now = time.perf_counter(), time.process_time()
        self.seconds, self.cpu_s = (after - before for after, before in zip(now, self._start, strict=True))


Timed = Callable[[], Awaitable[Clock | float]]
"""Does the work once and returns what it took, or another amount; may prepare before."""


@dataclass(frozen=True)
class Samples:
    """What was measured, in the order of the runs."""

    values: list[float]
    cpu: list[float] = field(default_factory=list)
    """The same in time of the processor, where it was measured: what a busy machine changes less."""

    @property
    def middle(self) -> float:
        return median(self.values)

    def __truediv__(self, other: Samples) -> Samples:
        """Run by run."""
        return Samples(_ratios(self.values, other.values), _ratios(self.cpu, other.cpu))


def _ratios(mine: list[float], theirs: list[float]) -> list[float]:
    return [one / other for one, other in zip(mine, theirs, strict=True)]


@dataclass(frozen=True)
class Target:
    limit: float
    unit: str = "×"
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}{self.unit}"


@dataclass(frozen=True)
class Got:
    """A row's figure, in the unit of its target."""

    figure: Samples
    absolute: dict[str, str] = field(default_factory=dict)
    """For orientation: what else was measured on the way, in words."""


@dataclass(frozen=True)
class Row:
    name: str
    target: Target
    measure: Callable[[Path], Awaitable[Got]]
    """Takes an empty folder of its own, which is removed afterwards."""


async def interleaved(*works: Timed, runs: int = RUNS) -> list[Samples]:
    """Each work once, then each again: A B A B…"""
    samples = [Samples([]) for _ in works]
    for _ in range(runs):
        for work, taken in zip(works, samples, strict=True):
            gc.collect()
            took = await work()
            if isinstance(took, Clock):
                taken.cpu.append(took.cpu_s)
                took = took.seconds
            taken.values.append(took)
    return samples


def shown(seconds: float) -> str:
    """A duration, readable."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
