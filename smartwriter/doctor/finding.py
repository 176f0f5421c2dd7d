"""What a doctor tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be."""

    kind: str
    """For programs: ``damage``, ``session``, ``turns``, ``revisions``, ``reader``, …"""
    path: Path
    what: str
    meaning: str
    remedy: str = ""
    """What a repair would do; empty where there is nothing that it could or should do."""
    repair: Callable[[], object] | None = None
