"""Who wrote each paragraph of a text, in which turn, and what was remembered when it was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Revision
from smartwriter.trials.provenance import Mark, Provenance, provenance
from smartwriter.trials.version import Version
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Blamed:
    """One paragraph."""

    made: Provenance
    memory: dict[str, str]
    """What the turn had that last changed it: files and their sha256; nothing for the writer's own."""
    memory_version: int | None
    """The number that ``memory log`` gives to them; of the last such one."""


def blame(version: Version) -> list[Blamed]:
    """Each paragraph of a text, in order. Blocking. :raises Invalid: when there is none."""
    of = version.needed().of
    histories = _Histories(of.workspace)
    found = provenance(histories.revisions, of.task.id, of.name, version.number)
    return [Blamed(one, *histories.memory(one.changed)) for one in found]


class _Histories:
    """Revisions, and the memory of turns, by task and draft."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._tasks = {task.id: task for task in workspace.tasks.all()}
        self._memories = dict[tuple[str, str, int], tuple[dict[str, str], int | None]]()

    def revisions(self, task: str, draft: str) -> Sequence[Revision]:
        known = self._tasks.get(task)
        return OpenDraft(self._workspace, known, draft).text.revisions() if known else []

    def memory(self, mark: Mark) -> tuple[dict[str, str], int | None]:
        """What a mark's turn had, and which version that is."""
        if mark.task not in self._tasks or mark.author != "model":
            return {}, None
        key = (mark.task, mark.draft, mark.turn)
        if key not in self._memories:
            files = self._files(mark)
            self._memories[key] = files, self._version(mark.task, files) if files else None
        return self._memories[key]

    def _files(self, mark: Mark) -> dict[str, str]:
        turns = OpenDraft(self._workspace, self._tasks[mark.task], mark.draft).turns()
        return next((dict(turn.memory) for turn in turns if turn.number == mark.turn), {})

    def _version(self, task: str, files: dict[str, str]) -> int | None:
        log = self._workspace.versions.log(self._tasks[task].collection)
        return max((n for n, version in enumerate(log, 1) if dict(version.files) == files), default=None)
