"""Collections: a folder whose memory files go into every session of its tasks.

::

    CLAUDE.md                                   a memory file of all collections
    collections/<collection>/
      profile.md  memory.md  index.md  *.md     memory files, in this order
      drafts/<task>/<draft>.md                  texts being written
      articles/<task>.md                        finished articles
      <book>/<part>/…                           collections in it: they get its memory, too

A collection in another one is named by its path, ``series/book/part``. Its sessions get the memory
of every folder on that path, outermost first. A file replaces one of the same name further out,
unless its front matter says ``extends: true``; then both are there. A file that cannot be used is
named and passed over, as if it were not there.

``profile``, ``memory`` and ``index`` are always in the prompt, and so is every other file while the
budget lasts; beyond it, files are listed there with title and description, and read on demand. What
a file says in its front matter comes first; see :mod:`smartwriter.memory.front_matter`. Within a folder,
files are sorted by their ``order`` (10, 20 and 30 for the three, 100 for others), then by name.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import smartwriter.system.bounds as bounds
from smartwriter.files.durable import move, write_document
from smartwriter.memory.budget import arranged
from smartwriter.memory.files import LeftOut, MemoryFile, filename, left_out, read_folder
from smartwriter.memory.snapshot import Memory
from smartwriter.system.bounds import is_workspace
from smartwriter.text.sameness import normal
from smartwriter.text.token_count import BUDGET_TOKENS

NO_COLLECTIONS = frozenset({"drafts", "articles"})
"""Folders in a collection that hold its texts."""

_PROFILE = "# Profile\n\nWho reads this, in which voice, in which form.\n"
_MEMORY = "# Memory\n\nWhat every article of the series must know: facts, claims, terms.\n"
_INDEX = """\
# Index

What has been written: title, date, gist.

<!-- smartwriter:index:begin -->
<!-- smartwriter:index:end -->
"""
_EXTENDS = "---\nextends: true\n---\n"
_NEW_FILES = {"profile.md": _PROFILE, "memory.md": _MEMORY, "index.md": _INDEX}
# In a collection within another, templates must not stand in for what the outer one says.
_NEW_INNER_FILES = {"memory.md": _EXTENDS + _MEMORY, "index.md": _EXTENDS + _INDEX}


@dataclass(frozen=True)
class Collection:
    name: str
    """``series/book/part`` for a collection in another one."""
    path: Path

    def memory(self, budget_tokens: int | None = None) -> Memory:
        """Read the memory files. What cannot be used is reported, never raised. Blocking.

        :param budget_tokens: what the prompt may spend on them; None for the usual.
        """
        budget = BUDGET_TOKENS if budget_tokens is None else budget_tokens
        found: list[MemoryFile] = []
        bad: list[LeftOut] = []
        folders, within = self._folders()
        for origin, folder in folders:
            files, unfit = read_folder(origin, folder, within)
            found += files
            bad += unfit
        kept, replaced = _without_replaced(found)
        own = normal(self.name)
        used = _named([file for file in kept if file.front.include != "never"], own)
        never = [left_out(file, "says include: never") for file in kept if file.front.include == "never"]
        files, on_demand, problems = arranged(used, budget)
        return Memory(
            files=tuple(files),
            problems=(*_said(bad, used, own), *problems),
            on_demand=tuple(on_demand),
            left_out=(*bad, *never, *replaced),
            collection=own,
            budget_tokens=budget,
        )

    def _folders(self) -> tuple[list[tuple[str, Path]], Path]:
        """Whose memory it has, outermost first, each by its collection; and what all must lie in."""
        parts = normal(self.name).split("/")
        depth = len(parts)
        if depth > 1 and [normal(part) for part in self.path.parts[-depth:]] != parts:
            depth, parts = 1, [normal(self.name)]  # not where it belongs: it stands alone
        outer = [self.path, *self.path.parents][:depth][::-1]
        folders = [("/".join(parts[: level + 1]), folder) for level, folder in enumerate(outer)]
        root = outer[0].parent
        if root.name == "collections" and is_workspace(root.parent):
            return [("", root.parent), *folders], root.parent
        return folders, root

    def create(self) -> None:
        """Make its folder with the first files; one that is there gets those that it lacks.

        A new one comes all at once: what cannot be made whole is not there. :raises OSError:
        """
        bounds.checked(self.path)
        new = not self.path.exists()
        folder = self.path.with_name(f".{self.path.name}.new") if new else self.path
        try:
            for name, text in (_NEW_INNER_FILES if "/" in self.name else _NEW_FILES).items():
                if not (folder / name).exists():
                    write_document(folder / name, text)
            if new:
                move(folder, self.path)
        except OSError:
            if new:
                shutil.rmtree(folder, ignore_errors=True)
            raise

    @property
    def project_key(self) -> str:
        """Under which sessions of new tasks are stored: plain ASCII, whatever the name."""
        return plain_key(self.name)


def lies_in(name: str, outer: str) -> bool:
    """Whether a collection is another one, or one in it, by their names."""
    return f"{normal(name)}/".startswith(f"{normal(outer)}/")


def plain_key(name: str) -> str:
    """A collection's name as plain ASCII, and unlike that of any other."""
    if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        return name
    return "c-" + hashlib.sha256(normal(name).encode("utf-8", "replace")).hexdigest()[:10]


# Putting folders together -----------------------------------------------------------------------


def _without_replaced(found: list[MemoryFile]) -> tuple[list[MemoryFile], list[LeftOut]]:
    """Those that no file further in replaces. Both in the order given, outermost folder first."""
    kept: list[MemoryFile] = []
    replaced: list[LeftOut] = []
    by: dict[str, MemoryFile] = {}
    for file in reversed(found):
        if replacer := by.get(filename(file.path)):
            replaced.append(left_out(file, f"is replaced by that of {replacer.origin}"))
            continue
        kept.append(file)
        if not file.front.extends:
            by[filename(file.path)] = file
    return kept[::-1], replaced[::-1]


def _named(files: list[MemoryFile], own: str) -> list[MemoryFile]:
    """Each with a name that no other has; files of the collection's own folder keep theirs."""
    names = [filename(file.path) for file in files]
    return [
        replace(file, name=f"{file.origin}/{name}") if file.origin != own and names.count(name) > 1 else file
        for file, name in zip(files, names, strict=True)
    ]


def _said(bad: list[LeftOut], used: list[MemoryFile], own: str) -> Iterator[str]:
    """A sentence for each file that could not be used."""
    for file in bad:
        if not file.name:
            yield f"The folder {file.origin or 'of the workspace'} {file.why}."
            continue
        name = file.name if file.origin == own else f"{file.origin or 'the workspace'}/{file.name}"
        what, colon, detail = file.why.partition(": ")
        sentence = f"{name} {what}" if what == "is empty" else f"{name} {what} and was left out"
        outer = [other.origin for other in used if filename(other.path) == file.name]
        outer = [origin for origin in outer if _is_outer(origin, file.origin)]
        there = f"; that of {outer[-1] or 'the workspace'} is used" if outer else ""
        yield f"{sentence}{colon}{detail}{there}."


def _is_outer(origin: str, inner: str) -> bool:
    return origin != inner and (not origin or lies_in(inner, origin))
