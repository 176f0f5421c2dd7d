"""Who had a line of a collection's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from smartwriter.errors import Invalid
from smartwriter.memory.collection import Collection, lies_in
from smartwriter.memory.lines import has_line
from smartwriter.tasks.values import Turn
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Holders:
    """Who had a line of the memory."""

    drafts: tuple[str, ...]
    """Addresses of the drafts that were told it in a turn."""
    unknown: tuple[str, ...]
    """Of those where it cannot be said: a version that they had was not kept, or is damaged."""


def holders_of(workspace: Workspace, collection: Collection, line: str) -> Holders:
    """Of the drafts of a collection's tasks, and of those in collections in it. Blocking."""
    turns = {
        task.address(draft): workspace.tasks.turns(task, draft)
        for task in workspace.tasks.all()
        if lies_in(task.collection, collection.name)
        for draft in task.drafts
    }
    return holders(line, turns, workspace.versions.text)


def holders(line: str, turns: Mapping[str, Iterable[Turn]], version: Callable[[str], str | None]) -> Holders:
    """Which drafts had a line in the memory of one of their turns.

    :param line: the whole line.
    :param turns: of each draft, by its address.
    :param version: the text that a sha256 names; None where it was not kept, ``Invalid`` where it is
        damaged.
    """
    has: dict[str, bool | None] = {}

    def looked_up(sha256: str) -> bool | None:
        if sha256 not in has:
            try:
                text = version(sha256)
            except Invalid:
                text = None
            has[sha256] = None if text is None else has_line(text, line)
        return has[sha256]

    drafts, unknown = [], []
    for address, taken in turns.items():
        told = [looked_up(sha256) for turn in taken for sha256 in turn.memory.values()]
        if True in told:
            drafts.append(address)
        elif None in told:
            unknown.append(address)
    return Holders(tuple(drafts), tuple(unknown))
