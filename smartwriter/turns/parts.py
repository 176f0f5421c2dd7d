"""A part of a turn, as it waits for its place to be writable.

On a disk, in a journal of its own: what it is on the first line, then what is to be written::

    {"type":"spooled","kind":"transcript","task":"k7mq","draft":"main","key":{"project_key":…},"at":{…}}
    {"type":"assistant","uuid":"91ab…",…}

``turns`` are lines of the draft's turns; a ``session`` is its new id; a ``text`` is what the model wrote
with its tools, as a whole or in passages, or what had arrived of it when it was cut off; a ``proposal`` is
a line that it proposed for the memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from pydantic import ValidationError

from smartwriter.errors import Invalid, RevisionNotFound, TaskNotFound, TextConflict
from smartwriter.files.names import is_plain_name
from smartwriter.storage.records import from_line
from smartwriter.storage.salvage import Entry
from smartwriter.tasks.revisions import current_number, text_of
from smartwriter.tasks.values import CutOff, Task, Turn
from smartwriter.text.passages import Edit

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry

    from smartwriter.memory.series import Series
    from smartwriter.sessions.store import FileSessionStore
    from smartwriter.tasks.draft_text import DraftText
    from smartwriter.tasks.manager import TaskManager

Kind = Literal["transcript", "turns", "session", "text", "proposal"]
_KINDS = ("transcript", "turns", "session", "text", "proposal")


@dataclass(frozen=True)
class Part:
    kind: Kind
    task: str
    """Empty in parts of earlier versions."""
    draft: str
    entries: Sequence[Mapping[str, Any]]
    key: Mapping[str, Any] = field(default_factory=dict)
    """Of a transcript."""
    at: Mapping[str, Any] = field(default_factory=dict)
    """Of a text: ``turn`` and ``base``, as tools have them; ``follows``: another one waits before it. Of a
    proposal: ``turn``."""

    def lines(self) -> list[Mapping[str, Any]]:
        head = {"type": "spooled", "kind": self.kind, "task": self.task, "draft": self.draft}
        return [{**head, "key": dict(self.key), "at": dict(self.at)}, *self.entries]

    def words(self) -> Iterator[str]:
        """All that a person would miss."""
        for entry in self.entries:
            if self.kind == "transcript":
                yield from _said(entry.get("message"))
            elif self.kind == "text":
                yield from _strings(entry)
            elif self.kind == "proposal":
                yield str(entry.get("line"))


def part_of(lines: Sequence[Entry]) -> Part | None:
    """The part that a journal's lines hold; None when they are no part, or not a whole one."""
    match lines:
        case [{"type": "spooled", "key": dict(key)} as head, *entries]:
            kind, at = head.get("kind", "transcript"), head.get("at")
            task, draft = head.get("task", ""), head.get("draft", "")
            at = at if isinstance(at, dict) else {}
            named = isinstance(task, str) and isinstance(draft, str)
            if kind in _KINDS and named and _is_placeable(kind, key, at, entries):
                return Part(kind, task, draft, entries, key, at)
    return None


def _is_placeable(
    kind: Kind, key: Mapping[str, Any], at: Mapping[str, Any], entries: Sequence[Entry]
) -> bool:
    """Whether all that is needed to write a part where it belongs is what it should be: a file told it."""
    if kind == "transcript":
        return _is_key(key)
    if kind == "session":
        ids = [entry.get("session_id") for entry in entries]
        return all(isinstance(id, str) and is_plain_name(id) for id in ids)
    numbers = (at.get("turn"), at.get("base"))
    if not all(number is None or isinstance(number, int) for number in numbers):
        return False
    if kind == "proposal":
        return all(isinstance(entry.get("line"), str) for entry in entries)
    return all(_are_edits(entry.get("edits", [])) for entry in entries)


def _are_edits(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in given)


def _is_key(key: Mapping[str, Any]) -> bool:
    names = ("project_key", "session_id", *key)
    return all(isinstance(key.get(name), str) for name in names)


class Places(Protocol):
    """Where the parts of turns belong: a workspace."""

    @property
    def store(self) -> FileSessionStore: ...
    @property
    def tasks(self) -> TaskManager: ...
    def text(self, task: Task, draft: str) -> DraftText: ...
    def task_series(self, task: Task) -> Series: ...


def place(places: Places, part: Part) -> None:
    """Write a part where it belongs. Once more does no harm.

    :raises OSError: it cannot be written, still. :raises TaskNotFound: it belongs nowhere here.
    """
    if part.kind == "transcript":
        entries = cast("list[SessionStoreEntry]", list(part.entries))
        places.store.append_now(cast("SessionKey", dict(part.key)), entries)
        return
    task = task_of(places, part)
    if part.kind == "turns":
        lines = [{"type": "turn", **entry} for entry in part.entries]
        turns = [turn for line in lines if (turn := from_line(Turn, line)) is not None]
        places.tasks.record(task, part.draft, turns)
    elif part.kind == "session":
        for entry in part.entries:
            _go_on_under(places, task, part.draft, str(entry.get("session_id")))
    elif part.kind == "proposal":
        for entry in part.entries:
            _propose(places, task, part, entry)
    else:
        for entry in part.entries:
            _write_text(places.text(task, part.draft), part.at, entry)


def task_of(places: Places, part: Part) -> Task:
    """:raises TaskNotFound: also where the task has no such draft."""
    task = places.tasks.find(part.task)
    if task.id != part.task or part.draft not in task.drafts:
        raise TaskNotFound(part.task)
    return task


def knows(places: Places, part: Part) -> bool:
    """Whether a part belongs anywhere in a workspace."""
    try:
        task_of(places, part)
    except TaskNotFound:
        return False
    return True


def _go_on_under(places: Places, task: Task, draft: str, session_id: str) -> None:
    def changed(task: Task) -> Task:
        now = task.drafts[draft]
        if now.session_id == session_id:
            return task
        earlier = (*now.earlier_sessions, now.session_id)
        return task.with_draft(now.model_copy(update={"session_id": session_id, "earlier_sessions": earlier}))

    places.tasks.update(task.id, changed)


def _propose(places: Places, task: Task, part: Part, entry: Mapping[str, Any]) -> None:
    turn, replaces = int(part.at.get("turn") or 0), str(entry.get("replaces") or "")
    # What the writer has decided meanwhile stays so; the line is in the transcript all the same.
    with contextlib.suppress(Invalid):
        places.task_series(task).proposals.propose(
            str(entry.get("line")), task=task.id, draft=part.draft, turn=turn, replaces=replaces
        )


def _write_text(text: DraftText, at: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    turn, base = at.get("turn") or 0, at.get("base")
    if "cut_off" in entry:
        one = _cut_off(entry["cut_off"])
        text.keep_cut_off(one.text, turn, breaks=one.breaks, call=one.call)
        return
    revisions = text.revisions()
    if any(old.turn == turn and old.text == entry.get("text") for old in revisions):
        return  # it is there already
    last = revisions[-1] if revisions else None
    if at.get("follows") and last and not last.aside and (last.author, last.turn) == ("model", turn):
        base = last.number  # nobody has changed what the one before it left
    # A clash leaves it beside the writer's; passages that are not there, in the transcript alone.
    with contextlib.suppress(TextConflict, Invalid, RevisionNotFound):
        if "edits" in entry:
            edits = [Edit(str(old), str(new)) for old, new in entry["edits"]]
            text.edit(edits, turn=turn, base=base or current_number(revisions))
        elif "append" in entry:
            _append(text, turn, base, entry, text_of(revisions))
        else:
            text.write(str(entry.get("text", "")), author="model", turn=turn, base=base)


def _cut_off(given: Any) -> CutOff:
    """Of an earlier version, or of a later one, there may be the text alone."""
    with contextlib.suppress(ValidationError):
        return CutOff.model_validate(given)
    return CutOff(text=str(given["text"] if isinstance(given, Mapping) and "text" in given else given))


def _append(text: DraftText, turn: int, base: int | None, entry: Mapping[str, Any], before: str) -> None:
    more, version = str(entry["append"]), entry.get("version")
    if before.rstrip().endswith(more.strip()):
        return  # it is there already
    if isinstance(version, int):
        whole = text.revision(version).text + more
        text.write(whole, author="model", turn=turn, base=base)
    else:
        text.append(more, str(entry.get("after") or ""), turn=turn)


def _said(message: Any) -> Iterator[str]:
    match message:
        case {"content": str(text)}:
            yield text
        case {"content": list(blocks)}:
            for block in blocks:
                match block:
                    case {"type": "text", "text": str(text)}:
                        yield text
                    case {"type": "tool_use", "input": dict(given)}:
                        yield from _strings(given)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
