"""How a number and a long text stand in a sentence."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 word``, ``1,200 words``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def acting(number: int, noun: str, verb: str) -> str:
    """A number of those that do something: ``1 prompt waits``, ``2 prompts wait``."""
    return f"{counted(number, noun)} {verb}{'s' if number == 1 else ''}"


def shortened(text: str, most: int) -> str:
    """A text on one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
