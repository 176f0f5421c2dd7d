"""What happened to a task's drafts, in order: turns, revisions, and the forks where they start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.revisions import shared_turn
from smartwriter.tasks.values import Draft, Revision, Task, Turn
from smartwriter.text.differences.comparison import word_changes
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Change:
    """A revision, and the words that it gained and lost."""

    revision: Revision
    gained: int
    lost: int


@dataclass(frozen=True)
class Branch:
    """A draft's own part of the history: for a fork, what came after it started."""

    draft: Draft
    items: tuple[Turn | Change | Branch, ...]


def timeline(workspace: Workspace, task: Task, name: str | None = None) -> list[Branch]:
    """The history of a task's drafts, or of one of them and its forks. Blocking."""
    drafts = [OpenDraft(workspace, task, name) for name in task.drafts]
    histories = {draft.name: (draft.turns_now(), draft.text.revisions()) for draft in drafts}
    roots = [name] if name else [draft.name for draft in task.drafts.values() if draft.origin is None]

    def branch(draft: Draft) -> Branch:
        turns, revisions = histories[draft.name]
        forks = [fork for fork in task.drafts.values() if fork.origin and fork.origin.draft == draft.name]
        return Branch(draft, tuple(_ordered(draft, turns, revisions, forks, branch)))

    return [branch(task.drafts[root]) for root in roots]


def _ordered(
    draft: Draft,
    turns: Sequence[Turn],
    revisions: Sequence[Revision],
    forks: Sequence[Draft],
    branch: Callable[[Draft], Branch],
) -> list[Turn | Change | Branch]:
    items: list[Turn | Change | Branch] = []
    waiting = [turn for turn in turns if not turn.inherited]
    for change in _changes(revisions):  # by number: a clock may go back
        while waiting and waiting[0].number <= shared_turn(change.revision):
            items.append(waiting.pop(0))
        items.append(change)
    items += waiting
    for fork in reversed(forks):  # each right behind what it shares; the oldest of one place first
        items.insert(_place(fork, items, draft), branch(fork))
    return items


def _changes(revisions: Sequence[Revision]) -> list[Change]:
    changes, text = [], ""
    for revision in revisions:
        if revision.gained is not None and revision.lost is not None:
            changes.append(Change(revision, revision.gained, revision.lost))
        else:
            changes.append(Change(revision, *word_changes(text, revision.text)))
        text = text if revision.aside else revision.text
    return changes


def _place(fork: Draft, items: Sequence[Turn | Change | Branch], draft: Draft) -> int:
    """Behind the last item that the fork shares."""
    assert fork.origin is not None
    place = 0
    for number, item in enumerate(items, 1):
        if isinstance(item, Turn):
            shared = item.number <= fork.origin.turn
        elif isinstance(item, Change):
            by_turn = item.revision.turn <= fork.origin.turn
            shared = by_turn or item.revision.number <= (fork.origin.revision or 0)
        else:
            continue
        if shared:
            place = number
    return place
