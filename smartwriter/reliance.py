"""Which texts rely on a line of a collection's memory, and what they are told when it changes.

A text relies on a line when it uses a term that the line defines, or makes a claim that it states.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from smartwriter.conflicts import defined
from smartwriter.errors import Invalid
from smartwriter.memory import Memory, normal
from smartwriter.memory_versions import MemoryVersions
from smartwriter.proposals import Proposals, ProposalState
from smartwriter.tasks import Draft, Task
from smartwriter.workspace import Workspace

_MOST_CHANGES = 12
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_CLAIMS = re.compile(r"^claims:\s*")
_SHORTEST_CLAIM = 6  # characters; of what is shorter, nearly every text has some


@dataclass(frozen=True)
class MemoryChange:
    """Lines of one memory file that are gone or new."""

    file: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


def memory_changes(versions: MemoryVersions, before: Mapping[str, str], memory: Memory) -> list[MemoryChange]:
    """What changed, line by line, since a turn that had these files. Blocking."""
    found = []
    for file in (*memory.files, *memory.on_demand):
        sha256 = before.get(file.name)
        if sha256 is None or sha256 == file.sha256:
            continue
        old, new = _lines(versions.text(sha256) or ""), _lines(file.data.decode("utf-8-sig"))
        removed = tuple(line for line in old if line not in new)
        added = tuple(line for line in new if line not in old)
        found.append(MemoryChange(file.name, removed, added))
    return found


def relied_on(text: str, line: str) -> str:
    """What of a memory line a text uses: a term that it defines, a claim that it states, or nothing."""
    said = _folded(text)
    for term in sorted(defined(line), key=len, reverse=True):
        if re.search(_whole(term), said):
            return term
    for claim in re.split(r"[;；]", _CLAIMS.sub("", line)):
        wanted = _folded(claim).strip(" .。!！?？")
        if len(wanted) >= _SHORTEST_CLAIM and wanted in said:
            return claim.strip()
    return ""


def reliance(
    workspace: Workspace, task: Task, draft: Draft, before: Mapping[str, str], memory: Memory
) -> list[str]:
    """What the model is told: the changes that its own text relies on, and those that came from this task
    and that other open tasks rely on. Blocking.

    :param before: the sha256 of each memory file that its last turn had.
    """
    changes = memory_changes(MemoryVersions(workspace.hidden), before, memory)
    own = workspace.text(task, draft.name).read()
    lines = list(_told(workspace, task, own, changes))
    if not lines:
        return []
    more = [f"… and {len(lines) - _MOST_CHANGES} more."] if len(lines) > _MOST_CHANGES else []
    said = "\n".join([*lines[:_MOST_CHANGES], *more])
    return [f"[The memory of the series has changed since your last turn, in what texts rely on:\n\n{said}]"]


def _told(workspace: Workspace, task: Task, own: str, changes: list[MemoryChange]) -> Iterator[str]:
    origins = _origins(workspace, task)
    for change in changes:
        others = _other_texts(workspace, task)
        for line in (*change.removed, *change.added):
            mine = origins.get(_folded(line)) == task.id
            users = [title for title, text in others.items() if mine and relied_on(text, line)]
            if used := relied_on(own, line):
                by = f" (this draft uses {used!r})"
            elif users:
                by = f" (from this task; {', '.join(map(repr, users))} relies on it, too)"
            else:
                continue
            what = "no longer says" if line in change.removed else "now says"
            yield f"{change.file} {what}: {line}{by}"


def _origins(workspace: Workspace, task: Task) -> dict[str, str]:
    """From which task each line came that was ever accepted."""
    proposals = Proposals(workspace.hidden, workspace.task_collection(task)).all()
    return {
        _folded(proposal.accepted_text): proposal.task
        for proposal in proposals
        if proposal.state in (ProposalState.accepted, ProposalState.forgotten) and proposal.task
    }


def _other_texts(workspace: Workspace, task: Task) -> dict[str, str]:
    """The texts of the collection's other open tasks, by their titles."""
    texts = {}
    for other in workspace.tasks.all():
        finished = other.finished
        closed = finished is not None and finished.closed
        if other.id != task.id and not closed and normal(other.collection) == normal(task.collection):
            with contextlib.suppress(Invalid):  # a file that cannot be read is that task's affair
                texts[other.title] = workspace.text(other, other.current).read()
    return texts


def _lines(text: str) -> list[str]:
    lines = (_BULLET.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", "<!--", "---"))]


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _whole(term: str) -> str:
    """A pattern for a term that is no part of a longer word; scripts without spaces have no such."""
    left = r"(?<![^\W_])" if term[0].isascii() else ""
    right = r"(?![^\W_])" if term[-1].isascii() else ""
    return f"{left}{re.escape(term)}{right}"
