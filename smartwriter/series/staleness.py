"""Which drafts and articles were last written under an older memory than their collection has now."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from smartwriter.errors import Invalid
from smartwriter.memory.collection import Collection, lies_in
from smartwriter.memory.index import BEGIN, END, FILE, without
from smartwriter.memory.snapshot import Memory
from smartwriter.open_draft import OpenDraft
from smartwriter.series.changes import memory_changes
from smartwriter.series.reliance import Relied, relied
from smartwriter.tasks.values import ANSWERED, Draft, Task
from smartwriter.text.sameness import normal
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
    uses: tuple[Relied, ...] = ()
    """What in its text relies on something that changed."""

    @property
    def is_article(self) -> bool:
        finished = self.task.finished
        return finished is not None and finished.closed and finished.draft == self.draft.name


def stale(workspace: Workspace, collection: Collection) -> list[Stale]:
    """The drafts of a collection's tasks that are behind its memory, in their order. Blocking.

    Those in collections within it, too: they have its memory, beside what is nearer to them.
    """
    memories: dict[str, Memory] = {}
    found = []
    for task in workspace.tasks.all():
        own = normal(task.collection)
        if not lies_in(own, collection.name):
            continue
        if own not in memories:
            memories[own] = workspace.task_series(task).memory()
        now = memories[own]
        for name in task.live_drafts:
            if (behind := _behind(OpenDraft(workspace, task, name), now)) is not None:
                found.append(behind)
    return found


def _behind(draft: OpenDraft, memory: Memory) -> Stale | None:
    answered = [turn for turn in draft.turns() if turn.state in ANSWERED]
    if not answered:
        return None
    had = answered[-1].memory
    now = memory.hashes
    now = {**now, **{name: other.sha256 for name, other in draft.draft.memory.items() if name in now}}
    changed = tuple(name for name in now if name in had and had[name] != now[name])
    added = tuple(name for name in now if name not in had)
    removed = tuple(name for name in had if name not in now)
    if FILE in (*changed, *added) and _differs_by_own_entry(
        draft.workspace, draft.task, had.get(FILE, ""), memory
    ):
        changed = tuple(name for name in changed if name != FILE)
        added = tuple(name for name in added if name != FILE)
    if not (changed or added or removed):
        return None
    turn, uses = answered[-1].number, _uses(draft, had, memory)
    return Stale(draft.task, draft.draft, turn, changed, added, removed, uses)


def _uses(draft: OpenDraft, had: Mapping[str, str], memory: Memory) -> tuple[Relied, ...]:
    article = draft.task.finished.article if draft.task.finished else ""
    try:
        text = draft.text.read()
    except Invalid:  # a file that cannot be read is said elsewhere
        return ()
    return tuple(relied(text, memory_changes(draft.workspace.versions, had, memory, article)))


def _differs_by_own_entry(workspace: Workspace, task: Task, had: str, memory: Memory) -> bool:
    """Whether all that came into the index since is what it says of this task's own article."""
    if task.finished is None or (file := memory.find(FILE)) is None:
        return False
    with contextlib.suppress(Invalid):  # the version of that time is damaged
        before = workspace.versions.text(had) if had else ""
        if before is not None:
            article = task.finished.article
            return _statements(before, article) == _statements(file.data.decode("utf-8-sig"), article)
    return False


def _statements(text: str, article: str) -> list[str]:
    """What an index says but of one article; its title and marks say nothing."""
    lines = (line.strip() for line in without(text.removeprefix("\ufeff"), article).splitlines())
    return [line for line in lines if line not in ("", "# Index", BEGIN, END)]
