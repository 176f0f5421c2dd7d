"""What a prompt may spend on memory files: which are in it whole, and which are read on demand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from smartwriter.memory.files import ORDERS, MemoryFile, filename
from smartwriter.memory.front_matter import Include
from smartwriter.text.token_count import tokens

_SETTING = "memory_tokens in .smartwriter/config.toml"


def arranged(files: list[MemoryFile], budget: int) -> tuple[list[MemoryFile], list[MemoryFile], list[str]]:
    """Those in every prompt, those on demand, and what there is to say about both."""
    wishes = {file.name: _wish(file) for file in files}
    always = {name for name, wish in wishes.items() if wish == "always"}
    used = used_tokens(
        [file for file in files if file.name in always],
        [file for file in files if wishes[file.name] == "on-demand"],
    )
    moved: list[MemoryFile] = []
    for file in files:
        if wishes[file.name] is None:
            fits = used + file.tokens <= budget
            if fits:
                always.add(file.name)
            else:
                moved.append(file)
            used += file.tokens if fits else tokens(file.listing)
    inside = [replace(file, include="always") for file in files if file.name in always]
    outside = [replace(file, include="on-demand") for file in files if file.name not in always]
    problems = [
        _too_long(file) for file in files if file.front.max_words and file.words > file.front.max_words
    ]
    if moved:
        problems.append(_moved(moved, budget))
    if used > budget:
        problems.append(_over(inside, used, budget))
    return inside, outside, problems


def _wish(file: MemoryFile) -> Include | None:
    """Where a file says that it belongs; None for wherever it fits."""
    if file.front.include is None and filename(file.path).casefold() in ORDERS:
        return "always"
    return file.front.include


def used_tokens(always: Iterable[MemoryFile], on_demand: Iterable[MemoryFile]) -> int:
    return sum(file.tokens for file in always) + sum(tokens(file.listing) for file in on_demand)


def _too_long(file: MemoryFile) -> str:
    return (
        f"{file.name} has {file.words:,} words, more than its max_words of {file.front.max_words:,}; "
        "it is used whole."
    )


def _moved(files: list[MemoryFile], budget: int) -> str:
    shown = ", ".join(f"{file.name} (about {file.tokens:,} tokens)" for file in files[:3])
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    one = len(files) == 1
    return (
        f"{shown}{more} {'does' if one else 'do'} not fit the memory budget of {budget:,} tokens and "
        f"{'is' if one else 'are'} read on demand only; shorten the files, or raise {_SETTING}."
    )


def _over(always: list[MemoryFile], used: int, budget: int) -> str:
    largest = max(always, key=lambda file: file.tokens, default=None)
    which = f" the largest, {largest.name} ({largest.tokens:,})," if largest else " the files"
    return (
        f"The memory has about {used:,} tokens, more than its budget of {budget:,}: shorten{which} "
        f"give files include: on-demand, or raise {_SETTING}."
    )
