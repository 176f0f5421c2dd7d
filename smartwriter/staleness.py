"""Which drafts and articles were last written under an older memory than their collection has now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smartwriter.memory import Collection, normal
from smartwriter.tasks import Draft, Task, TurnState
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Stale:
    """A draft, and what has changed since its last answer."""

    task: Task
    draft: Draft
    turn: int
    """The last one that was answered."""
    changed: tuple[str, ...]
    """Memory files that are another version now."""
    added: tuple[str, ...]
    removed: tuple[str, ...]


def stale(workspace: Workspace, collection: Collection) -> list[Stale]:
    """The drafts of a collection's tasks that are behind its memory, in their order. Blocking."""
    now = collection.memory(workspace.config().memory_tokens).hashes
    found = []
    for task in workspace.tasks.all():
        if normal(task.collection) != normal(collection.name):
            continue
        for name in task.live_drafts:
            if (behind := _behind(workspace, task, task.drafts[name], now)) is not None:
                found.append(behind)
    return found


def _behind(workspace: Workspace, task: Task, draft: Draft, now: Mapping[str, str]) -> Stale | None:
    turns = workspace.tasks.turns(task, draft.name)
    answered = [turn for turn in turns if turn.state in (TurnState.finished, TurnState.recovered)]
    if not answered:
        return None
    had = answered[-1].memory
    now = {**now, **{name: other.sha256 for name, other in draft.memory.items() if name in now}}
    changed = tuple(name for name in now if name in had and had[name] != now[name])
    added = tuple(name for name in now if name not in had)
    removed = tuple(name for name in had if name not in now)
    if not (changed or added or removed):
        return None
    return Stale(task, draft, answered[-1].number, changed, added, removed)
