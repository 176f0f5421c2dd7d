"""What a scorecard is made of: figures, each measured by a function and held to a target."""

from __future__ import annotations

import random
import sys
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
    """None: not measured, or not all of it, and ``got`` says why. That never counts as one that holds."""
    disk: str = ""
    """The file system that was measured; empty: that of the run's folder."""


@dataclass(frozen=True)
class Figure:
    name: str
    target: str
    """In words; what a quick run is held to is the same, scaled."""
    measure: Callable[[Run], Outcome]


def file_system(folder: Path) -> str:
    """Of which kind the disk of a folder is, as Linux calls it; elsewhere what the system is."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return sys.platform
    place = folder.resolve()
    kinds = {}
    for line in mounts.read_text(errors="surrogateescape").splitlines():
        _, where, kind, *_ = line.split(" ")
        kinds[Path(where.encode().decode("unicode_escape"))] = kind  # the last one lies over the others
    return next((kinds[folder] for folder in [place, *place.parents] if folder in kinds), "unknown")
