"""What stands on the disk, by the plainest means: a journal cut at LF and each line parsed strictly.

Beside the product and without a word of it, so that no salvage of its reader makes up for what its writer
does wrong: an entry that is glued to a torn line counts as lost here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
_HIDDEN = ".smartwriter"


@dataclass(frozen=True)
class Found:
    """What a journal holds."""

    entries: list[Entry]
    torn: list[bytes]
    """The lines that are none, in order."""


def read(path: Path, *, nuls: bool = False) -> Found:
    """A whole journal; a missing one holds nothing. See :func:`entry` for ``nuls``."""
    found = Found([], [])
    for line, one in stream(path, nuls=nuls) if path.exists() else ():
        if one is None:
            found.torn.append(line)
        else:
            found.entries.append(one)
    return found


def stream(path: Path, *, nuls: bool = False) -> Iterator[tuple[bytes, Entry | None]]:
    """Each line with its entry, or None; in the memory of one line."""
    with path.open("rb") as file:
        for line in file:  # a file of bytes is cut at LF alone
            line = line.removesuffix(b"\n")
            if line:
                yield line, entry(line, nuls=nuls)


def entry(line: bytes, *, nuls: bool = False) -> Entry | None:
    """The object that a line is, as a whole; None for anything else.

    :param nuls: NULs around it are the pages that a power cut took, and no part of it.
    """
    try:
        value = json.loads(
            (line.strip(b"\0") if nuls else line).decode("utf-8"),
            object_pairs_hook=_without_doubles,
            parse_constant=_refused,
        )
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _without_doubles(pairs: list[tuple[str, Any]]) -> Entry:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands there twice")
    return value


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def begins_one_of(torn: bytes, entries: Iterable[Entry]) -> bool:
    """Whether a torn line is what a write of one of these had come to."""
    plain = (json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() for one in entries)
    return any(line.startswith(torn) for line in plain)


def latest(entries: Iterable[Entry], kind: str, key: str) -> list[Entry]:
    """The last line of each, in the order of their first ones."""
    found: dict[Any, Entry] = {}
    for one in entries:
        if one.get("type") == kind:
            found[one[key]] = one
    return list(found.values())


@dataclass(frozen=True)
class Disk:
    """A workspace, as it lies there."""

    root: Path
    nuls: bool = False

    @property
    def hidden(self) -> Path:
        return self.root / _HIDDEN

    def journal(self, *parts: str) -> list[Entry]:
        """The entries of one in ``.smartwriter``."""
        return read(self.hidden.joinpath(*parts), nuls=self.nuls).entries

    def tasks(self) -> list[Entry]:
        return latest(self.journal("tasks.jsonl"), "task", "id")

    def turns(self, task: Entry, draft: str) -> list[Entry]:
        return latest(self.journal("turns", task["id"], f"{draft}.jsonl"), "turn", "uuid")

    def revisions(self, task: Entry, draft: str) -> list[Entry]:
        lines = self.journal("revisions", task["id"], f"{draft}.jsonl")
        return [line for line in lines if line["type"] == "revision"]

    def session(self, task: Entry, draft: str) -> list[Entry]:
        name = f"{task['drafts'][draft]['session_id']}.jsonl"
        return self.journal("sessions", task["project_key"], name)

    def place(self, task: Entry, draft: str) -> Path:
        """Where a draft's text is."""
        return self.root.joinpath("collections", task["collection"], "drafts", task["folder"], f"{draft}.md")

    def text(self, task: Entry, draft: str) -> str:
        """What a draft's file says; or what waits beside it, recorded but not yet in its place."""
        place = self.place(task, draft)
        own = [str(line["text"]) for line in self.revisions(task, draft) if not line.get("aside")]
        in_file, waits = _text(place), _text(place.with_name(f".{draft}.md.next"))
        if own and waits == own[-1] and in_file in (None, "".join(own[-2:-1])):
            return own[-1]
        return own[-1] if own and in_file is None else in_file or ""


def _text(path: Path) -> str | None:
    return path.read_bytes().decode("utf-8", "surrogatepass") if path.exists() else None
