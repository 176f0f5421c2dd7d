"""The lines of a memory that a proposal touches are among the few that are shown beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from smartwriter.meaning.nearness import MOST, nearest

FILES = sorted((Path(__file__).parent / "near_cases").glob("*.yaml"))


def missed(group: dict[str, Any]) -> list[str]:
    memory = group["memory"]
    return [
        case["says"]
        for case in group["proposals"]
        if case["touches"] - 1 not in nearest(case["says"], memory)
    ]


def test_what_a_proposal_touches_is_among_the_three_that_are_shown() -> None:
    """Of proposals in English and Chinese, nine of ten have the line they touch beside them."""
    groups = [group for path in FILES for group in yaml.safe_load(path.read_text(encoding="utf-8"))]
    count = sum(len(group["proposals"]) for group in groups)
    not_shown = [says for group in groups for says in missed(group)]
    print(f"{count} proposals: {count - len(not_shown)} with the line that they touch among {MOST}")
    assert len(not_shown) <= 0.1 * count, not_shown


def test_lines_that_share_nothing_are_not_near() -> None:
    """Only what has something in common is shown, the rarest first, and never more than a few."""
    memory = ["Anselm rows.", "The ferry is red.", "The ferry is slow.", "The ferry is old.", "Iris waits."]
    assert nearest("Bruno barks.", memory) == []
    assert nearest("The old ferry sank.", memory)[0] == 3
    assert len(nearest("The ferry sank.", memory)) == MOST
    assert nearest("", memory) == nearest("Anselm.", []) == []
