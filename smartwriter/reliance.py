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
from smartwriter.front_matter import split
from smartwriter.index import FILE, without
from smartwriter.memory import Memory, normal
from smartwriter.memory_versions import MemoryVersions
from smartwriter.proposals import Proposals, ProposalState
from smartwriter.tasks import Draft, Task
from smartwriter.workspace import Workspace

_MOST_CHANGES = 12
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_FIELD = re.compile(r"(gist|claims|terms):\s*")
"""Of an entry in an index: what it says of an article."""
_NO_STATEMENT = re.compile(r"(?:date|file|links):")
_SHORTEST_CLAIM = 6  # characters; of what is shorter, nearly every text has some


@dataclass(frozen=True)
class MemoryChange:
    """Lines of one memory file that are gone or new."""

    file: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


def memory_changes(
    versions: MemoryVersions, before: Mapping[str, str], memory: Memory, article: str = ""
) -> list[MemoryChange]:
    """What changed, line by line, since a turn that had these files. Blocking.

    A line that only moved, into another file too, did not change. Where it is not known what a file
    said, nothing is said of it.

    :param article: the file of one whose entry in the index is left out: it was made of the text itself.
    """
    now = {file.name: file for file in (*memory.files, *memory.on_demand)}
    old = {name: _kept_lines(versions, name, sha256, article) for name, sha256 in before.items()}
    new = {name: _lines(name, file.text, article) for name, file in now.items()}
    stood = {line for lines in old.values() for line in lines or ()}
    stand = {line for lines in new.values() for line in lines}
    found = []
    for name in dict.fromkeys([*now, *before]):
        was, is_ = old.get(name, []), new.get(name, [])
        if was is None or (name in now and before.get(name) == now[name].sha256):
            continue
        removed = tuple(line for line in was if line not in stand)
        added = tuple(line for line in is_ if line not in stood)
        found.append(MemoryChange(name, removed, added))
    return found


def relied_on(text: str, line: str) -> str:
    """What of a memory line a text uses: a term that it defines, a claim that it states, or nothing."""
    said = _folded(text)
    field = _FIELD.match(line)
    claims = [claim.strip() for claim in re.split(r"[;；]", line[field.end() :] if field else line)]
    terms = {term for one in (claims if field else [line]) for term in defined(one)}
    if field and field[1] == "gist":  # tells of an article, and defines nothing
        terms = set()
    if field and field[1] == "terms":
        terms, claims = {_folded(claim) for claim in claims} - {""}, []
    for term in sorted(terms, key=len, reverse=True):
        if re.search(_whole(term), said):
            return term
    for claim in claims:
        wanted = _folded(claim).strip(" .。!！?？")
        if len(wanted) >= _SHORTEST_CLAIM and wanted in said:
            return claim
    return ""


def reliance(
    workspace: Workspace, task: Task, draft: Draft, before: Mapping[str, str], memory: Memory
) -> list[str]:
    """What the model is told: the changes that its own text relies on, and those that came from this task
    and that other open tasks rely on. Blocking.

    :param before: the sha256 of each memory file that its last turn had.
    """
    article = task.finished.article if task.finished else ""
    changes = memory_changes(MemoryVersions(workspace.hidden), before, memory, article)
    own = workspace.text(task, draft.name).read()
    lines = list(_told(workspace, task, own, changes))
    if not lines:
        return []
    more = [f"… and {len(lines) - _MOST_CHANGES} more."] if len(lines) > _MOST_CHANGES else []
    said = "\n".join([*lines[:_MOST_CHANGES], *more])
    return [f"[The memory of the series has changed since your last turn, in what texts rely on:\n\n{said}]"]


def _told(workspace: Workspace, task: Task, own: str, changes: list[MemoryChange]) -> Iterator[str]:
    origins, others = _origins(workspace, task), dict[str, str]()
    for change in changes:
        for line in (*change.removed, *change.added):
            mine = origins.get(_folded(line)) == task.id
            if mine and not others:
                others = _other_texts(workspace, task)
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


def _kept_lines(versions: MemoryVersions, name: str, sha256: str, article: str) -> list[str] | None:
    """Those of an earlier version; None where it was not kept, or is damaged."""
    try:
        text = versions.text(sha256)
        return None if text is None else _lines(name, split(text.removeprefix("\ufeff"))[1], article)
    except Invalid:  # what it said is only for a note: no turn fails for it
        return None


def _lines(name: str, text: str, article: str) -> list[str]:
    """What a memory file says, without its front matter, headings and marks."""
    own = without(text, article) if name == FILE else text
    lines = (_BULLET.sub("", line).strip() for line in own.splitlines())
    lines = (line for line in lines if line and not line.startswith(("#", "<!--", "---")))
    of_index = name.rpartition("/")[2].casefold() == FILE
    return [line for line in lines if not (of_index and _NO_STATEMENT.match(line))]


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _whole(term: str) -> str:
    """A pattern for a term that is no part of a longer word; scripts without spaces have no such."""
    left = r"(?<![^\W_])" if term[0].isascii() else ""
    right = r"(?![^\W_])" if term[-1].isascii() else ""
    return f"{left}{re.escape(term)}{right}"
