"""The memory files of one folder, and what is none although it should be."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from smartwriter.errors import Invalid
from smartwriter.files.utf8 import decoded
from smartwriter.files.whole import SETTLED_S, read_whole
from smartwriter.memory.front_matter import MAX_TITLE, FrontMatter, Include, split
from smartwriter.text.sameness import normal
from smartwriter.text.sections import entry, one_line
from smartwriter.text.token_count import tokens

SHARED_FILE = "CLAUDE.md"
"""The one memory file that may stand in the workspace itself."""

MAX_FILE_BYTES = 1 << 20
MAX_FILES = 200
"""Of one folder: every one of them is read before every turn."""

ORDERS = {"profile.md": 10.0, "memory.md": 20.0, "index.md": 30.0}
_OTHER_ORDER = 100.0


@dataclass(frozen=True)
class MemoryFile:
    name: str
    """The file's; with the collection before it, where two files would have the same."""
    data: bytes = field(repr=False)
    """The whole file."""
    text: str = field(repr=False)
    """What stands below its front matter."""
    front: FrontMatter
    origin: str
    """The collection that it came from; empty for the workspace."""
    path: Path
    include: Include = "always"
    """Where it went: ``always`` or ``on-demand``."""

    @cached_property
    def sha256(self) -> str:
        """Of the file's bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def title(self) -> str:
        """As its front matter says, else its first heading, else its name."""
        return one_line(self.front.title or _heading(self.text)) or self.path.stem

    @property
    def description(self) -> str:
        return one_line(self.front.description)

    @property
    def order(self) -> float:
        """Among the files of its folder; lower comes first."""
        given = self.front.order
        return ORDERS.get(filename(self.path).casefold(), _OTHER_ORDER) if given is None else given

    @cached_property
    def tokens(self) -> int:
        """Of its text, by :func:`smartwriter.text.token_count.tokens`."""
        return tokens(self.text.strip())

    @cached_property
    def words(self) -> int:
        """Of its text; a Chinese character is a word."""
        from smartwriter.text.words import count  # its patterns take a moment to compile

        return count(self.text).words

    @property
    def listing(self) -> str:
        """Its line in the prompt, when it is read on demand."""
        return entry(name=self.name, title=self.title, description=self.description)


@dataclass(frozen=True)
class LeftOut:
    """A memory file that sessions do not get."""

    name: str
    origin: str
    path: Path
    why: str
    """Follows the name: "is not UTF-8 text (byte 0)"."""


def left_out(file: MemoryFile, why: str) -> LeftOut:
    return LeftOut(filename(file.path), file.origin, file.path, why)


def read_folder(origin: str, folder: Path, within: Path) -> tuple[list[MemoryFile], list[LeftOut]]:
    """Its memory files in order, and what is none although it should be."""
    files: list[MemoryFile] = []
    bad: list[LeftOut] = []
    try:
        paths = _paths(folder, shared=not origin)
    except OSError as error:
        return [], [LeftOut("", origin, folder, f"could not be read: {error.strerror}")]
    seen = set[str]()
    for number, path in enumerate(paths):
        name = filename(path)
        try:
            if number >= MAX_FILES:
                raise Invalid(f"comes after {MAX_FILES} other memory files")
            if one_line(name) != name.strip():
                raise Invalid("has a name with characters that cannot be shown")
            if name in seen:
                raise Invalid("is there twice, in two Unicode forms of its name")
            seen.add(name)
            files.append(_read_file(origin, path, within))
        except Invalid as error:
            bad.append(LeftOut(one_line(name), origin, path, str(error)))
        except OSError as error:
            bad.append(LeftOut(name, origin, path, f"could not be read: {error.strerror}"))
    return sorted(files, key=lambda file: (file.order, filename(file.path))), bad


def _paths(folder: Path, *, shared: bool) -> list[Path]:
    if not folder.is_dir():
        return []
    if shared:
        return [folder / SHARED_FILE] if os.path.lexists(folder / SHARED_FILE) else []
    if 0 <= time.time() - folder.stat().st_mtime < SETTLED_S:
        time.sleep(SETTLED_S)  # an editor may have moved a file away, and be about to put it back
    names = [path.name for path in folder.iterdir() if path.suffix == ".md" and path.name[0] != "."]
    names.sort(key=lambda name: (ORDERS.get(normal(name).casefold(), _OTHER_ORDER), normal(name), name))
    return [path for name in names if not (path := folder / name).is_dir()]


def _read_file(origin: str, path: Path, within: Path) -> MemoryFile:
    """:raises Invalid: with what is wrong with it, to follow its name. :raises OSError:"""
    data = read_whole(path, within, MAX_FILE_BYTES)
    front, body = split_text(decoded(data, "", "", encoding="utf-8-sig"))
    if not body.strip():
        raise Invalid("is empty")
    return MemoryFile(filename(path), data, body, front, origin, path)


def split_text(text: str) -> tuple[FrontMatter, str]:
    if "\0" in text:
        raise Invalid("holds a NUL character")
    return split(text)


def filename(path: Path) -> str:
    return normal(path.name)


def _heading(text: str) -> str:
    for line in text[:4096].splitlines():
        if line.startswith("#") and line.lstrip("#")[:1] in (" ", "\t"):
            return line.strip("# \t")[:MAX_TITLE]
    return ""
