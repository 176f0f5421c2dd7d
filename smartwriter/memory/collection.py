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
import os
import re
import shutil
import time
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import smartwriter.system.bounds as bounds
from smartwriter.errors import Invalid
from smartwriter.files.durable import move, write_document
from smartwriter.files.whole import SETTLED_S, read_whole
from smartwriter.memory.front_matter import MAX_TITLE, FrontMatter, Include, split
from smartwriter.text.sections import entry, one_line, section
from smartwriter.text.token_count import BUDGET_TOKENS, tokens

SHARED_FILE = "CLAUDE.md"
"""The one memory file that may stand in the workspace itself."""
NO_COLLECTIONS = frozenset({"drafts", "articles"})
"""Folders in a collection that hold its texts."""

MAX_FILE_BYTES = 1 << 20
MAX_FILES = 200
"""Of one folder: every one of them is read before every turn."""

_ORDERS = {"profile.md": 10.0, "memory.md": 20.0, "index.md": 30.0}
_OTHER_ORDER = 100.0
_ON_DEMAND = "Further notes of the author, to be read with the tool read_memory when they bear on the work:"
_SETTING = "memory_tokens in .smartwriter/config.toml"

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
        return _ORDERS.get(_filename(self.path).casefold(), _OTHER_ORDER) if given is None else given

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
    """Follows the name: "is not UTF-8 text"."""


@dataclass(frozen=True)
class Memory:
    """A collection's memory as it was at one moment."""

    files: tuple[MemoryFile, ...]
    """Those that are in every prompt, in their order there."""
    problems: tuple[str, ...] = ()
    """One sentence for each thing that the writer should know of."""
    on_demand: tuple[MemoryFile, ...] = ()
    """Those that a prompt only lists."""
    left_out: tuple[LeftOut, ...] = ()
    collection: str = ""
    budget_tokens: int = BUDGET_TOKENS

    def render(self) -> str:
        """As it stands in the system prompt; the same bytes while no file changes."""
        parts = [
            section(file.text, name=file.name, from_="" if file.origin == self.collection else file.origin)
            for file in self.files
        ]
        if self.on_demand:
            parts += [_ON_DEMAND, "\n".join(file.listing for file in self.on_demand)]
        return "\n\n".join(parts)

    @property
    def hashes(self) -> dict[str, str]:
        """The sha256 of each file that sessions have or may read, by name."""
        return {file.name: file.sha256 for file in self._all}

    @property
    def used_tokens(self) -> int:
        """Of the budget: the texts that are in every prompt, and the lines of the other files."""
        return _used(self.files, self.on_demand)

    def find(self, name_or_title: str) -> MemoryFile | None:
        """The file that a name, with or without ``.md``, or else a title means, in any case."""
        wanted = normal(name_or_title).strip().casefold()
        for known in (
            lambda file: file.name,
            lambda file: file.name.removesuffix(".md"),
            lambda file: file.title,
            lambda file: f"{file.origin}/{_filename(file.path)}",
        ):
            for file in (*self.on_demand, *self.files):
                if normal(known(file)).casefold() == wanted:
                    return file
        return None

    def replaced(self, name: str, text: str) -> Memory:
        """The same memory, in which one file holds another text. Nothing is written.

        :param text: of the whole file, front matter included. It stays where the file was, in the
            prompt or on demand, whatever it says about that.
        :raises Invalid: when there is no such file, or the text has broken front matter.
        """
        if not any(file.name == normal(name) for file in self._all):
            raise Invalid(f"There is no memory file {name!r}; there are: {', '.join(self.hashes) or 'none'}.")
        try:
            front, body = _split(text.removeprefix("\ufeff"))
        except Invalid as error:
            raise Invalid(f"The text for {name} {error}.") from None
        data = text.encode("utf-8", "surrogatepass")

        def changed(files: Iterable[MemoryFile]) -> tuple[MemoryFile, ...]:
            return tuple(
                replace(file, data=data, text=body, front=front) if file.name == normal(name) else file
                for file in files
            )

        return replace(self, files=changed(self.files), on_demand=changed(self.on_demand))

    @property
    def _all(self) -> tuple[MemoryFile, ...]:
        return (*self.files, *self.on_demand)


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
            files, unfit = _read_folder(origin, folder, within)
            found += files
            bad += unfit
        kept, replaced = _without_replaced(found)
        own = normal(self.name)
        used = _named([file for file in kept if file.front.include != "never"], own)
        never = [_left_out(file, "says include: never") for file in kept if file.front.include == "never"]
        files, on_demand, problems = _arranged(used, budget)
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
        if root.name == "collections" and (root.parent / ".smartwriter").is_dir():
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


def normal(name: str) -> str:
    """Names are the same when they look the same: file systems differ in how they store them."""
    return unicodedata.normalize("NFC", name)


def plain_key(name: str) -> str:
    """A collection's name as plain ASCII, and unlike that of any other."""
    if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        return name
    return "c-" + hashlib.sha256(normal(name).encode("utf-8", "replace")).hexdigest()[:10]


# Reading one folder ---------------------------------------------------------------------------


def _read_folder(origin: str, folder: Path, within: Path) -> tuple[list[MemoryFile], list[LeftOut]]:
    """Its memory files in order, and what is none although it should be."""
    files: list[MemoryFile] = []
    bad: list[LeftOut] = []
    try:
        paths = _paths(folder, shared=not origin)
    except OSError as error:
        return [], [LeftOut("", origin, folder, f"could not be read: {error.strerror}")]
    seen = set[str]()
    for number, path in enumerate(paths):
        name = _filename(path)
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
    return sorted(files, key=lambda file: (file.order, _filename(file.path))), bad


def _paths(folder: Path, *, shared: bool) -> list[Path]:
    if not folder.is_dir():
        return []
    if shared:
        return [folder / SHARED_FILE] if os.path.lexists(folder / SHARED_FILE) else []
    if 0 <= time.time() - folder.stat().st_mtime < SETTLED_S:
        time.sleep(SETTLED_S)  # an editor may have moved a file away, and be about to put it back
    names = [path.name for path in folder.iterdir() if path.suffix == ".md" and path.name[0] != "."]
    names.sort(key=lambda name: (_ORDERS.get(normal(name).casefold(), _OTHER_ORDER), normal(name), name))
    return [path for name in names if not (path := folder / name).is_dir()]


def _read_file(origin: str, path: Path, within: Path) -> MemoryFile:
    """:raises Invalid: with what is wrong with it, to follow its name. :raises OSError:"""
    data = read_whole(path, within, MAX_FILE_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid("is not UTF-8 text") from None
    front, body = _split(text)
    if not body.strip():
        raise Invalid("is empty")
    return MemoryFile(_filename(path), data, body, front, origin, path)


def _split(text: str) -> tuple[FrontMatter, str]:
    if "\0" in text:
        raise Invalid("holds a NUL character")
    return split(text)


def _filename(path: Path) -> str:
    return normal(path.name)


def _heading(text: str) -> str:
    for line in text[:4096].splitlines():
        if line.startswith("#") and line.lstrip("#")[:1] in (" ", "\t"):
            return line.strip("# \t")[:MAX_TITLE]
    return ""


# Putting folders together -----------------------------------------------------------------------


def _without_replaced(found: list[MemoryFile]) -> tuple[list[MemoryFile], list[LeftOut]]:
    """Those that no file further in replaces. Both in the order given, outermost folder first."""
    kept: list[MemoryFile] = []
    replaced: list[LeftOut] = []
    by: dict[str, MemoryFile] = {}
    for file in reversed(found):
        if replacer := by.get(_filename(file.path)):
            replaced.append(_left_out(file, f"is replaced by that of {replacer.origin}"))
            continue
        kept.append(file)
        if not file.front.extends:
            by[_filename(file.path)] = file
    return kept[::-1], replaced[::-1]


def _left_out(file: MemoryFile, why: str) -> LeftOut:
    return LeftOut(_filename(file.path), file.origin, file.path, why)


def _named(files: list[MemoryFile], own: str) -> list[MemoryFile]:
    """Each with a name that no other has; files of the collection's own folder keep theirs."""
    names = [_filename(file.path) for file in files]
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
        outer = [other.origin for other in used if _filename(other.path) == file.name]
        outer = [origin for origin in outer if _is_outer(origin, file.origin)]
        there = f"; that of {outer[-1] or 'the workspace'} is used" if outer else ""
        yield f"{sentence}{colon}{detail}{there}."


def _is_outer(origin: str, inner: str) -> bool:
    return origin != inner and (not origin or inner.startswith(f"{origin}/"))


# The budget -------------------------------------------------------------------------------------


def _arranged(files: list[MemoryFile], budget: int) -> tuple[list[MemoryFile], list[MemoryFile], list[str]]:
    """Those in every prompt, those on demand, and what there is to say about both."""
    wishes = {file.name: _wish(file) for file in files}
    always = {name for name, wish in wishes.items() if wish == "always"}
    used = _used(
        [file for file in files if file.name in always],
        [file for file in files if wishes[file.name] == "on-demand"],
    )
    moved: list[MemoryFile] = []
    for file in files:
        if wishes[file.name] is None:
            fits = used + file.tokens <= budget
            if fits:
                always.add(file.name)
            else:
                moved.append(file)
            used += file.tokens if fits else tokens(file.listing)
    inside = [replace(file, include="always") for file in files if file.name in always]
    outside = [replace(file, include="on-demand") for file in files if file.name not in always]
    problems = [
        _too_long(file) for file in files if file.front.max_words and file.words > file.front.max_words
    ]
    if moved:
        problems.append(_moved(moved, budget))
    if used > budget:
        problems.append(_over(inside, used, budget))
    return inside, outside, problems


def _wish(file: MemoryFile) -> Include | None:
    """Where a file says that it belongs; None for wherever it fits."""
    if file.front.include is None and _filename(file.path).casefold() in _ORDERS:
        return "always"
    return file.front.include


def _used(always: Iterable[MemoryFile], on_demand: Iterable[MemoryFile]) -> int:
    return sum(file.tokens for file in always) + sum(tokens(file.listing) for file in on_demand)


def _too_long(file: MemoryFile) -> str:
    return (
        f"{file.name} has {file.words:,} words, more than its max_words of {file.front.max_words:,}; "
        "it is used whole."
    )


def _moved(files: list[MemoryFile], budget: int) -> str:
    shown = ", ".join(f"{file.name} (about {file.tokens:,} tokens)" for file in files[:3])
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    one = len(files) == 1
    return (
        f"{shown}{more} {'does' if one else 'do'} not fit the memory budget of {budget:,} tokens and "
        f"{'is' if one else 'are'} read on demand only; shorten the files, or raise {_SETTING}."
    )


def _over(always: list[MemoryFile], used: int, budget: int) -> str:
    largest = max(always, key=lambda file: file.tokens, default=None)
    which = f" the largest, {largest.name} ({largest.tokens:,})," if largest else " the files"
    return (
        f"The memory has about {used:,} tokens, more than its budget of {budget:,}: shorten{which} "
        f"give files include: on-demand, or raise {_SETTING}."
    )
