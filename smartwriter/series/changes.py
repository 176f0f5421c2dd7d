"""What changed in a collection's memory since a turn, line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from smartwriter.errors import Invalid
from smartwriter.memory.front_matter import split
from smartwriter.memory.index import FILE, without
from smartwriter.memory.snapshot import Memory
from smartwriter.memory.versions import MemoryVersions

_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_NO_STATEMENT = re.compile(r"(?:date|file|links):")


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
