"""Paired measuring: two ways of doing the same, interleaved, so that what else the machine does hits both."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

Timed = Callable[[], Awaitable[float]]
"""Does the work once and returns the seconds it took, or another amount; may prepare before."""

RUNS = 9
FASTER = "× faster"


@dataclass(frozen=True)
class Samples:
    """What was measured, in the order of the runs."""

    values: list[float]

    @property
    def middle(self) -> float:
        return median(self.values)

    def __truediv__(self, other: Samples) -> Samples:
        """Run by run."""
        return Samples([mine / theirs for mine, theirs in zip(self.values, other.values, strict=True)])


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
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for work, values in zip(works, taken, strict=True):
            gc.collect()
            values.append(await work())
    return [Samples(values) for values in taken]


class Clock:
    """``with Clock() as clock: …``, then ``clock.seconds``."""

    seconds = 0.0

    def __enter__(self) -> Clock:
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start


def shown(seconds: float) -> str:
    """A duration, readable."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
