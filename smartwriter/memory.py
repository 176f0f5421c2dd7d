"""Collections: a folder whose memory files go into every session of its tasks.

::

    collections/<collection>/
      profile.md  memory.md  index.md  *.md     memory files, in this order
      drafts/<task>/<draft>.md                  texts being written
      articles/<task>.md                        finished articles
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from smartwriter.journal import make_folder, write_document

FIRST_FILES = ("profile.md", "memory.md", "index.md")

_NEW_FILES = {
    "profile.md": "# Profile\n\nWho reads this, in which voice, in which form.\n",
    "memory.md": "# Memory\n\nWhat every article of the series must know: facts, claims, terms.\n",
    "index.md": "# Index\n\nWhat has been written: title, date, gist.\n",
}


@dataclass(frozen=True)
class MemoryFile:
    name: str
    text: str
    sha256: str
    """Of the file's bytes."""


@dataclass(frozen=True)
class Memory:
    """A collection's memory as it was at one moment."""

    files: tuple[MemoryFile, ...]
    problems: tuple[str, ...]
    """One sentence for each file that was left out."""

    def render(self) -> str:
        """As it stands in the system prompt; the same bytes while no file changes."""
        return "\n\n".join(f"## {file.name}\n\n{file.text.strip()}" for file in self.files)

    @property
    def hashes(self) -> dict[str, str]:
        return {file.name: file.sha256 for file in self.files}


@dataclass(frozen=True)
class Collection:
    name: str
    path: Path

    def memory(self) -> Memory:
        """Read the memory files. What cannot be used is reported, never raised."""
        files: list[MemoryFile] = []
        problems: list[str] = []
        for path in self._paths():
            try:
                data = path.read_bytes()
                text = data.decode("utf-8-sig")
            except UnicodeDecodeError:
                problems.append(f"{path.name} is not UTF-8 text and was left out.")
                continue
            except OSError as error:
                problems.append(f"{path.name} could not be read and was left out: {error.strerror}.")
                continue
            if "\0" in text:
                problems.append(f"{path.name} holds a NUL character and was left out.")
                continue
            if not text.strip():
                problems.append(f"{path.name} is empty.")
                continue
            files.append(MemoryFile(path.name, text, hashlib.sha256(data).hexdigest()))
        return Memory(tuple(files), tuple(problems))

    def _paths(self) -> list[Path]:
        if not self.path.is_dir():
            return []
        found = [path for path in self.path.glob("*.md") if not path.is_dir() and path.name[0] != "."]
        rank = {name: number for number, name in enumerate(FIRST_FILES)}
        return sorted(found, key=lambda path: (rank.get(path.name, len(rank)), path.name))

    def create(self) -> None:
        make_folder(self.path)
        for name, text in _NEW_FILES.items():
            if not (self.path / name).exists():
                write_document(self.path / name, text)

    @property
    def project_key(self) -> str:
        """Under which sessions of new tasks are stored: plain ASCII, whatever the name."""
        if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", self.name):
            return self.name
        return "c-" + hashlib.sha256(normal(self.name).encode("utf-8", "replace")).hexdigest()[:10]


def normal(name: str) -> str:
    """Names are the same when they look the same: file systems differ in how they store them."""
    return unicodedata.normalize("NFC", name)
