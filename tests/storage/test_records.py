"""Values as lines: what a line may say of when something was."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

import pytest

from smartwriter.memory.versions import MemoryVersion
from smartwriter.storage.records import from_line, now


@pytest.mark.parametrize(
    "when",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00+05:30",
        -62135596800,
        253402300799,
    ],
)
def test_any_moment_can_be_shown(when: Any) -> None:
    """Whatever moment a line tells, it can be compared with any other, and shown in every zone."""
    line = {"type": "memory", "timestamp": when, "collection": "c", "files": {}}
    version = from_line(MemoryVersion, line)
    assert version is not None and version.timestamp != now()
    sorted([version.timestamp, now()])
    for hours in (-14, 0, 14):
        assert version.timestamp.astimezone(timezone(timedelta(hours=hours))).strftime("%Y-%m-%d")
