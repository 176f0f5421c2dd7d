"""The lines of a collection's own memory files, and how one is added, replaced or removed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import smartwriter.files.change as document
from smartwriter.errors import Invalid
from smartwriter.files.utf8 import decoded
from smartwriter.memory.collection import Collection
from smartwriter.memory.files import MAX_FILE_BYTES
from smartwriter.memory.front_matter import split
from smartwriter.memory.proposal import Proposal, ProposalState
from smartwriter.text.lines import item
from smartwriter.text.passages import line_end_of
from smartwriter.text.sameness import folded, normal

MAX_CHARACTERS = 500
BULLET = "- "

_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_HEADING = re.compile(r"\s{0,3}#{1,6}(\s|$)|\s*<!--")


@dataclass(frozen=True)
class MemoryLine:
    """One line of a memory file."""

    number: int
    """From 1, among all lines of the collection's own files."""
    file: str
    line: int
    """In its file, from 1."""
    text: str
    proposal: Proposal | None
    """That it came from."""


def memory_lines(collection: Collection, proposals: Iterable[Proposal] = ()) -> list[MemoryLine]:
    """The lines of a collection's own memory files, without blank ones and front matter.

    :param proposals: of which those that were accepted are known again in their lines.
    """
    accepted = {
        (one.file, BULLET + one.accepted_text): one
        for one in proposals
        if one.state is ProposalState.accepted
    }
    memory = collection.memory()
    own = normal(collection.name)
    found: list[MemoryLine] = []
    for file in (*memory.files, *memory.on_demand):
        if file.origin != own:
            continue
        text = file.data.decode("utf-8-sig")
        first = text[: len(text) - len(file.text)].count("\n")
        name = normal(file.path.name)
        for at, line in enumerate(text.split("\n")):
            line = line.rstrip("\r")
            if at >= first and line.strip():
                found.append(MemoryLine(len(found) + 1, name, at + 1, line, accepted.get((name, line))))
    return found


def memory_file(collection: Collection, name: str) -> Path:
    """The file of a collection's own folder that a name, with or without ``.md``, means. :raises Invalid:"""
    wanted = folded(name).removesuffix(".md") + ".md"
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(collection.path.iterdir()):
            if folded(path.name) == wanted and path.name[0] != "." and path.is_file():
                text = decoded(document.read(path, MAX_FILE_BYTES), path.name)
                try:
                    split(text.removeprefix("\ufeff"))
                except Invalid as error:
                    raise Invalid(f"{path.name} {error}.") from None
                return path
    raise Invalid(f"{collection.name} has no memory file {name!r} of its own.")


def says(collection: Collection, file: str) -> list[str]:
    """What each line of a file says, without its bullet. :raises Invalid:"""
    data = document.read(memory_file(collection, file), MAX_FILE_BYTES)
    return [line.removeprefix(BULLET) for line in decoded(data, file).splitlines()]


def only_line(lines: Iterable[MemoryLine], wanted: str) -> MemoryLine:
    """The one line that a proposal is to replace. :raises Invalid:"""
    found = [one for one in lines if item(one.text) == item(wanted) and not is_heading(one.text)]
    if len(found) != 1:
        times = f"stands there {len(found)} times" if found else "does not stand in the memory"
        raise Invalid(f"The line to replace {times}: {checked(wanted)} Nothing was proposed.")
    return found[0]


def means(line: int | str, number: int, text: str) -> bool:
    """Whether this is the line that the writer names by its number, or by its text with or without bullet."""
    if isinstance(line, int):
        return line == number
    return line.strip() in (text.strip(), text.strip().removeprefix(BULLET))


def is_heading(line: str) -> bool:
    return _HEADING.match(line) is not None


def checked(text: str) -> str:
    """A text as one harmless line. :raises Invalid:"""
    line = item(text)
    if not line:
        raise Invalid("A proposal needs a text; nothing was proposed.")
    if len(line) > MAX_CHARACTERS:
        raise Invalid(
            f"A line of the memory has at most {MAX_CHARACTERS} characters; this one has {len(line)}."
        )
    return line


# Changing a file; no byte but those of the line changes -------------------------------------------


def has_line(text: str, line: str) -> bool:
    """Whether a whole line stands in the text of a file."""
    return any(_bare(one) == line.rstrip() for one in text.split("\n"))


def _bare(line: str) -> str:
    return line.removeprefix("\ufeff").rstrip()


def _with_line(data: bytes, line: str, name: str) -> bytes:
    """With a line at the end, unless it stands there already. No other byte changes."""
    text = decoded(data, name)
    if has_line(text, line):
        return data
    end = line_end_of(text)
    between = "" if not text or text.endswith("\n") else end
    return data + f"{between}{line}{end}".encode()


def with_accepted(data: bytes, line: str, proposal: Proposal) -> bytes:
    """With the proposal's line, in the place of what it replaces. :raises Invalid: when that is gone."""
    if not proposal.replaces or has_line(decoded(data, proposal.file), line):
        return _with_line(data, line, proposal.file)
    lines = _lines(data, proposal.file)
    equal = [at for at, one in enumerate(lines) if _bare(one) == proposal.replaces.rstrip()]
    if len(equal) != 1:
        raise Invalid(
            f"{proposal.file} does not say any more what {proposal.id} replaces: {proposal.replaces}"
        )
    old = lines[equal[0]]
    mark = "\ufeff" if old.startswith("\ufeff") else ""
    bullet = _ITEM.match(_bare(old))
    text = f"{bullet[0] if bullet else ''}{line.removeprefix(BULLET)}"
    lines[equal[0]] = mark + text + old[len(old.rstrip("\r\n")) :]
    return "".join(lines).encode()


def _lines(data: bytes, name: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", decoded(data, name))


def without_line(data: bytes, proposal: Proposal) -> bytes:
    """Without the line to be forgotten, unless it is gone already. No other byte changes."""
    lines = _lines(data, proposal.file)
    equal = [at for at, line in enumerate(lines) if _bare(line) == proposal.removed.rstrip()]
    if len(equal) <= proposal.copies:
        return data
    del lines[min(equal, key=lambda at: abs(at + 1 - proposal.line))]
    return "".join(lines).encode()
