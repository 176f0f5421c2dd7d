"""What a scorecard is made of: figures, each measured by a function and held to a target."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """How much to measure, and where."""

    quick: bool
    """About a twentieth of everything."""
    seed: int
    folder: Path
    """Empty, for this figure alone; removed afterwards."""

    def scaled(self, full: int) -> int:
        return max(1, full // 20) if self.quick else full

    def random(self) -> random.Random:
        return random.Random(self.seed)


@dataclass(frozen=True)
class Outcome:
    got: str
    """Counts of what was done and of what went wrong, in words."""
    ok: bool | None
    """None: skipped, and ``got`` says why."""


@dataclass(frozen=True)
class Figure:
    name: str
    target: str
    """In words; what a quick run is held to is the same, scaled."""
    measure: Callable[[Run], Outcome]
