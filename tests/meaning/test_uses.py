"""Which drafts are told of a changed line: pairs written by hand, and the rule's answer to each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from smartwriter.series.changes import MemoryChange
from smartwriter.series.reliance import relied

FILES = sorted((Path(__file__).parent / "reliance_cases").glob("*.yaml"))


def cases() -> list[dict[str, Any]]:
    return [case for path in FILES for case in yaml.safe_load(path.read_text(encoding="utf-8"))]


def is_told(case: dict[str, Any]) -> bool:
    new = (case["new"],) if case["new"] else ()
    return bool(relied(case["text"], [MemoryChange("memory.md", (case["old"],), new)]))


def test_drafts_that_use_what_changed_are_told_and_others_are_not() -> None:
    """Amounts, names, times, numbers and spellings in English and Chinese: of 100 drafts that use what a line
    said before, at least 95 are told, and of 100 that are told, at least 95 use it."""
    all_cases = cases()
    told = [case for case in all_cases if is_told(case)]
    right = [case for case in told if case["told"]]
    recall = len(right) / sum(case["told"] for case in all_cases)
    precision = len(right) / len(told)
    print(f"{len(all_cases)} pairs: recall {recall:.3f}, precision {precision:.3f}")
    wrong = [case for case in all_cases if (case in told) != case["told"]]
    assert min(recall, precision) >= 0.95, wrong


def test_what_is_told_names_the_value_and_the_sentence() -> None:
    """Old and new, the draft's sentence and its paragraph; each sentence of a line is a claim of its own."""
    line = "£9 a month for one till. It was £7 until 1 September 2026."
    change = MemoryChange("memory.md", (line,), (line.replace("£9", "£11"),))
    text = "# Prices\n\nIt costs nine pounds. Nobody minded.\n\nIt was £7 once.\n"
    (one,) = relied(text, [change])
    assert (one.old, one.new) == ("£9 a month for one till.", "£11 a month for one till.")
    assert (one.used, one.value, one.paragraph) == ("nine pounds", "£11", 2)
    assert str(one) == (
        "memory.md said: £9 a month for one till. Now it says: £11 a month for one till. "
        "This draft says (paragraph 2): It costs nine pounds."
    )


@pytest.mark.parametrize(
    "text", ["", "\n", "£", "九", "half past", "quarter to", "a hundred and", "百分之", "9:"]
)
def test_a_half_of_a_quantity_is_none(text: str) -> None:
    """What only begins like an amount, a time or a number breaks nothing, on either side of a change."""
    change = MemoryChange("memory.md", (f"It costs {text}",), ("It costs £9.",))
    relied(f"It costs {text}", [change])
    relied("It costs £9.", [MemoryChange("memory.md", change.added, change.removed)])


@pytest.mark.slow
def test_a_memory_of_another_size_is_compared_in_time() -> None:
    """Texts in the place of lines, and hundreds of lines that all changed, hold up no turn."""
    many = tuple(
        f"Shop {number} has {number} tills and opens at {number % 12} o'clock." for number in range(600)
    )
    other = tuple(line.replace("tills", "drawers") for line in many)
    change = MemoryChange("memory.md", (*many, "The old memory. " * 500), (*other, "The new memory. " * 700))
    started = time.process_time()
    relied("The shops open early. Some have many tills.\n\n" * 300, [change])
    assert time.process_time() - started < 20  # it was minutes; a slow machine takes a few seconds


@pytest.mark.parametrize(
    "number",
    [
        "9" * 5000,
        "half past " + "9" * 5000,
        "9" * 5000 + " 月 3 日",
        "one " + "hundred " * 3000,
        "一" * 6000,
        "一" + "亿" * 1000,
    ],
    ids=["digits", "time", "date", "English", "Chinese digits", "Chinese scales"],
)
def test_a_number_of_any_length_is_read(number: str) -> None:
    """A number that is longer than any that means something breaks nothing, however it is written."""
    change = MemoryChange("memory.md", (f"It costs {number}.",), ("It costs £9.",))
    assert relied(f"Bruno waits. It costs {number}.", [change])
