"""Reading what a transcript says: the conversation in it, and where its turns end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smartwriter import journal
from smartwriter.damage import Entry

_CHAINED = frozenset({"user", "assistant", "attachment", "system", "progress"})


@dataclass(frozen=True)
class Message:
    """One thing that was said."""

    role: str
    """``user`` or ``assistant``."""
    uuid: str
    text: str
    tools: tuple[str, ...]
    """Names of the tools that it used."""


@dataclass(frozen=True)
class Transcript:
    """A session's file. Calls block."""

    path: Path

    def has_entries(self) -> bool:
        try:
            return next(journal.stream(self.path), None) is not None
        except FileNotFoundError:
            return False

    def has(self, uuid: str) -> bool:
        """Whether there is an entry of this uuid."""
        try:
            return any(entry.get("uuid") == uuid for _, entry in journal.stream(self.path))
        except FileNotFoundError:
            return False

    def read(self) -> journal.Contents:
        """:raises FileNotFoundError:"""
        return journal.read(self.path)


def messages(entries: Iterable[Entry]) -> list[Message]:
    """The conversation, as a writer would read it: no tool results, no service entries."""
    found: list[Message] = []
    seen = set[str]()  # a file from elsewhere may have the same entry twice
    for entry in entries:
        if entry.get("type") not in ("user", "assistant") or _is_service(entry):
            continue
        if isinstance(uuid := entry.get("uuid"), str):
            if uuid in seen:
                continue
            seen.add(uuid)
        text, tools = _content(entry.get("message"))
        if text.strip() or tools:
            found.append(Message(str(entry["type"]), str(entry.get("uuid", "")), text, tools))
    return found


def cut(entries: Sequence[Entry], later_prompts: Collection[str]) -> str | None:
    """The uuid of the last entry before the first of some prompts: where a turn's fork is cut.

    Cutting anywhere earlier, at a tool call say, makes the CLI invent a result for it.
    """
    last = None
    for entry in entries:
        uuid = entry.get("uuid")
        if uuid in later_prompts:
            break
        if isinstance(uuid, str) and entry.get("type") in _CHAINED and not entry.get("isSidechain"):
            last = uuid
    return last


def forked_uuids(entries: Iterable[Entry]) -> dict[str, str]:
    """The new uuid of each entry that a fork took over, by its uuid in the origin."""
    found = {}
    for entry in entries:
        match entry:
            case {"uuid": str(uuid), "forkedFrom": {"messageUuid": str(origin)}}:
                found[origin] = uuid
    return found


def _is_service(entry: Entry) -> bool:
    return any(entry.get(mark) for mark in ("isMeta", "isSidechain", "isCompactSummary"))


def _content(message: Any) -> tuple[str, tuple[str, ...]]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content, ()
    texts, tools = [], []
    for block in content if isinstance(content, list) else []:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "tool_use", "name": str(name)}:
                tools.append(name)
    return "\n\n".join(texts), tuple(tools)
