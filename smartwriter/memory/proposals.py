"""What models propose for a collection's memory, and what the writer made of it.

::

    .smartwriter/proposals/<collection>.jsonl   one line per change of a proposal, last one wins

    {"type":"proposal","timestamp":"2026-…","id":"k7mq","text":"…","task":"b3xn","turn":4,"state":"pending",…}

A proposal is only a line in this journal until the writer accepts it. What is about to happen to a
memory file is recorded before it happens, so that a crash in between is made up for by whoever
comes next; the same step again does nothing.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import Field

import smartwriter.files.change as document
import smartwriter.meaning.conflicts as conflicts
import smartwriter.storage.journal as journal
from smartwriter.errors import Invalid
from smartwriter.meaning.nearness import nearest
from smartwriter.memory.collection import MAX_FILE_BYTES, Collection, normal
from smartwriter.memory.front_matter import split
from smartwriter.storage.records import Value, from_line, now, to_line
from smartwriter.storage.salvage import Damage
from smartwriter.tasks.values import Turn
from smartwriter.text.lines import item
from smartwriter.text.passages import line_end_of

MAX_CHARACTERS = 500
MAX_PENDING = 200
"""Of a collection: more than these nobody reads."""
DEFAULT_FILE = "memory.md"

_ID_CHARACTERS = "bcdfghjkmnpqrstvwxz23456789"  # no vowels, so no words; nothing that looks like another
_BULLET = "- "
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_HEADING = re.compile(r"\s{0,3}#{1,6}(\s|$)|\s*<!--")


class ProposalState(str, Enum):
    pending = "pending"
    accepting = "accepting"
    """The writer accepted it; it may not be in its file yet."""
    accepted = "accepted"
    rejected = "rejected"
    forgetting = "forgetting"
    """The writer had it removed; it may still be in its file."""
    forgotten = "forgotten"


UNDER_WAY = (ProposalState.accepting, ProposalState.forgetting)
"""The states that only a crash leaves."""


class Proposal(Value):
    """A line for a memory file, and where it comes from."""

    id: str
    text: str
    """As it was proposed: one line of Markdown, without a bullet."""
    file: str = DEFAULT_FILE
    task: str
    """Empty for a line that the writer wrote themself; such a one is recorded only to be forgotten."""
    draft: str
    turn: int
    at: datetime = Field(default_factory=now)
    state: ProposalState = ProposalState.pending
    replaces: str = ""
    """The whole line of its file that it is to take the place of; empty: it is added at the end."""
    accepted_text: str = ""
    """What the writer made of it."""
    removed: str = ""
    """The whole line that was forgotten."""
    number: int = 0
    """Of that line among all lines, and ``line`` in its file, both from 1."""
    line: int = 0
    copies: int = 0
    """How many equal lines stay in the file."""


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


@dataclass(frozen=True)
class Forgotten:
    text: str
    """The whole line."""
    file: str
    proposal: Proposal | None
    """That it had come from."""


@dataclass(frozen=True)
class Conflict:
    """Pending proposals that may contradict each other."""

    proposals: tuple[Proposal, ...]
    why: str


class Proposals:
    """The proposals for one collection. All calls block; any number of processes may use it at once."""

    def __init__(self, hidden: Path, collection: Collection) -> None:
        """:param hidden: the workspace's ``.smartwriter``."""
        self._collection = collection
        self._journal = journal.Journal(hidden / "proposals" / f"{collection.project_key}.jsonl")

    # Reading ---------------------------------------------------------------------------------

    def all(self) -> list[Proposal]:
        """Every proposal as it stands now, oldest first."""
        found: dict[str, Proposal] = {}
        for line in self._read().entries:
            if proposal := from_line(Proposal, line):
                found[proposal.id] = proposal
        return list(found.values())

    def pending(self) -> list[Proposal]:
        """Those that wait for the writer, oldest first."""
        return [one for one in self.all() if one.state is ProposalState.pending]

    def conflicts(self) -> list[Conflict]:
        """Pending proposals that are to be looked at together; each in one group at most."""
        pending = self.pending()
        found = conflicts.groups([one.text for one in pending])
        return [Conflict(tuple(pending[n] for n in group.members), group.why) for group in found]

    def against(self, proposal: Proposal) -> list[MemoryLine]:
        """The lines of the memory that a proposal may contradict, by the same rule."""
        return [line for line in self.lines() if conflicts.reason(proposal.text, item(line.text))]

    def near(self, proposal: Proposal) -> list[MemoryLine]:
        """The lines of the memory that are nearest to a proposal, nearest first, but for what it replaces."""
        lines = [
            line for line in self.lines() if line.text != proposal.replaces and not _is_heading(line.text)
        ]
        return [lines[at] for at in nearest(proposal.text, [item(line.text) for line in lines])]

    def lines(self) -> list[MemoryLine]:
        """The lines of the collection's own memory files, without blank ones and front matter."""
        accepted = {
            (one.file, _BULLET + one.accepted_text): one
            for one in self.all()
            if one.state is ProposalState.accepted
        }
        memory = self._collection.memory()
        own = normal(self._collection.name)
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

    def damage(self) -> list[Damage]:
        """The stretches of the journal that could not be read."""
        return self._read().damage

    # Writing ---------------------------------------------------------------------------------

    def propose(
        self,
        text: str,
        *,
        task: str,
        draft: str,
        turn: int,
        file: str = DEFAULT_FILE,
        replaces: str = "",
    ) -> Proposal:
        """Queue a line for the writer. Nothing else is written.

        A line that already waits, or stands in its file, is not queued again: then that proposal is returned.

        :param replaces: the line that it is to take the place of, with or without its bullet.
        :raises Invalid: for a line that is empty or too long, one that the writer has rejected, a file
            that is none of the collection's own memory files, too many that wait, or a line to replace
            that does not stand there exactly once.
        """
        line = _checked(text)
        with self._locked() as transaction:
            old = self._replaced(replaces) if replaces.strip() else None
            path = self._file(old.file if old else file)
            known = self.all()
            if same := self._same(known, line, normal(path.name)):
                return same
            if sum(one.state is ProposalState.pending for one in known) >= MAX_PENDING:
                raise Invalid(f"{MAX_PENDING} proposals wait for the author already; nothing was proposed.")
            proposal = Proposal(
                id=_new_id(known),
                text=line,
                file=normal(path.name),
                task=task,
                draft=draft,
                turn=turn,
                replaces=old.text if old else "",
            )
            transaction.append([to_line(proposal)])
        return proposal

    def accept(self, id: str, text: str | None = None) -> Proposal:
        """Put a proposal at the end of its file, as one line of its own, or in the place of what it replaces.

        One that was accepted before is returned as it is.

        :param text: what the writer made of it; None: as it was proposed.
        :raises Invalid: for one that was rejected or is not there; a text or file that cannot be used.
        """
        with self._locked() as transaction:
            self._complete(transaction)
            proposal = self._find(id, ProposalState.accepted)
            if proposal.state is ProposalState.accepted:
                return proposal
            line = proposal.text if text is None else _checked(text)
            self._file(proposal.file)  # where it cannot be used, nothing is recorded
            proposal = _in_state(proposal, ProposalState.accepting, accepted_text=line)
            transaction.append([to_line(proposal)])
            return self._add(transaction, proposal)

    def reject(self, id: str) -> Proposal:
        """Put a proposal away. :raises Invalid: for one that was accepted or is not there."""
        with self._locked() as transaction:
            self._complete(transaction)
            proposal = self._find(id, ProposalState.rejected)
            if proposal.state is ProposalState.rejected:
                return proposal
            return _recorded(transaction, proposal, ProposalState.rejected)

    def forget(self, line: int | str) -> Forgotten:
        """Remove one line from its memory file.

        :param line: its number as in :meth:`lines`, or its text with or without the bullet. What a
            crash left of the same call is completed, and no other line is touched.
        :raises Invalid: when there is no such line, or a text stands there more than once.
        """
        with self._locked() as transaction:
            for completed in self._complete(transaction):
                if completed.state is ProposalState.forgotten and _means(line, completed):
                    return _forgotten(completed)
            found = self._line(line)
            if isinstance(found, Proposal):
                return _forgotten(found)
            proposal = found.proposal or Proposal(
                id=_new_id(self.all()), text=found.text, file=found.file, task="", draft="", turn=0
            )
            equal = [one for one in self.lines() if (one.file, one.text) == (found.file, found.text)]
            proposal = _in_state(
                proposal,
                ProposalState.forgetting,
                removed=found.text,
                number=found.number,
                line=found.line,
                copies=len(equal) - 1,
            )
            transaction.append([to_line(proposal)])
            return _forgotten(self._remove(transaction, proposal))

    def complete(self) -> list[Proposal]:
        """Finish what a crash left undone; returns what was."""
        if all(one.state not in UNDER_WAY for one in self.all()):
            return []
        with self._locked() as transaction:
            return self._complete(transaction)

    def take_over(self, earlier: Proposals, trash: Path) -> None:
        """Have what was proposed for a collection that has this one's name now.

        Its journal goes to the trash; a second call does nothing.
        """
        with self._locked() as transaction, earlier._locked() as before:
            if before.size == 0:
                return
            known = {one.id for one in self.all()}
            transaction.append([line for line in earlier._read().entries if line.get("id") not in known])
            journal.move(earlier._journal.path, trash)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """While this is held, no other process changes the memory files of the collection."""
        with self._locked():
            yield

    # Under the lock --------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self) -> Iterator[journal.Transaction]:
        with self._journal.locked() as transaction:
            try:
                yield transaction
            finally:
                if transaction.size == 0:  # it was made to be locked only; who waits for it makes a new one
                    self._journal.path.unlink(missing_ok=True)

    def _complete(self, transaction: journal.Transaction) -> list[Proposal]:
        completed = []
        for one in self.all():
            if one.state is ProposalState.accepting:
                with contextlib.suppress(Invalid):  # its file has gone meanwhile: the writer decides anew
                    completed.append(self._add(transaction, one))
            if one.state is ProposalState.forgetting:
                try:
                    completed.append(self._remove(transaction, one))
                except Invalid:  # and the line with it
                    completed.append(_recorded(transaction, one, ProposalState.forgotten))
        return completed

    def _add(self, transaction: journal.Transaction, proposal: Proposal) -> Proposal:
        """:raises Invalid: when its file does not take it; it waits again."""
        line = _BULLET + proposal.accepted_text
        try:
            path = self._file(proposal.file)
            document.change(path, lambda data: _accepted(data, line, proposal), MAX_FILE_BYTES)
        except Invalid:
            _recorded(transaction, proposal, ProposalState.pending, accepted_text="")
            raise
        return _recorded(transaction, proposal, ProposalState.accepted)

    def _remove(self, transaction: journal.Transaction, proposal: Proposal) -> Proposal:
        path = self._file(proposal.file)
        document.change(path, lambda data: _without_line(data, proposal), MAX_FILE_BYTES)
        return _recorded(transaction, proposal, ProposalState.forgotten)

    # Finding ---------------------------------------------------------------------------------

    def _find(self, id: str, done: ProposalState) -> Proposal:
        """The proposal, pending or in the state that it is to get. :raises Invalid:"""
        for one in self.all():
            if one.id == id.strip().lower() and one.task:
                if one.state not in (ProposalState.pending, done):
                    raise Invalid(f"Proposal {one.id} was {one.state.value} already.")
                return one
        raise Invalid(
            f"There is no proposal {id!r} for {self._collection.name}; "
            f"see them with: smartwriter memory review {self._collection.name}"
        )

    def _same(self, known: list[Proposal], line: str, file: str) -> Proposal | None:
        """What already says the same. :raises Invalid: when the file does, by the writer's own hand."""
        standing = self._standing(file)
        for one in known:
            waits = one.state in (ProposalState.pending, ProposalState.accepting) and _key(one.text)
            stands = one.state is ProposalState.accepted and one.file == file and _key(one.accepted_text)
            proposed = one.state is ProposalState.accepted and one.file == file and _key(one.text)
            still = stands in standing if stands else False
            if waits == _key(line) or (still and _key(line) in (stands, proposed)):
                return one
        if any(one.state is ProposalState.rejected and _key(one.text) == _key(line) for one in known):
            raise Invalid("The author has rejected that line before; nothing was proposed.")
        if _key(line) in standing:
            raise Invalid(f"{file} says so already; nothing was proposed.")
        return None

    def _standing(self, file: str) -> set[str]:
        """The lines of a file, to be compared with proposals."""
        data = document.read(self._file(file), MAX_FILE_BYTES)
        return {_key(line.removeprefix(_BULLET)) for line in document.decoded(data, file).splitlines()}

    def _line(self, line: int | str) -> MemoryLine | Proposal:
        """The line that is meant, or the record of its having been forgotten."""
        found = [one for one in self.lines() if _means(line, one)]
        if len(found) > 1:
            numbers = ", ".join(str(one.number) for one in found)
            raise Invalid(f"That line stands there {len(found)} times; name it by its number: {numbers}.")
        if found:
            return found[0]
        gone = [one for one in self.all() if one.state is ProposalState.forgotten and _means(line, one)]
        if gone and isinstance(line, str):
            return gone[-1]
        raise Invalid(
            f"The memory of {self._collection.name} has no such line; "
            f"see them with: smartwriter memory lines {self._collection.name}"
        )

    def _replaced(self, line: str) -> MemoryLine:
        """The one line that a proposal is to replace. :raises Invalid:"""
        found = [one for one in self.lines() if item(one.text) == item(line) and not _is_heading(one.text)]
        if len(found) != 1:
            times = f"stands there {len(found)} times" if found else "does not stand in the memory"
            raise Invalid(f"The line to replace {times}: {_checked(line)} Nothing was proposed.")
        return found[0]

    def _file(self, name: str) -> Path:
        """A memory file of the collection's own folder. :raises Invalid:"""
        wanted = normal(name).strip().casefold().removesuffix(".md") + ".md"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for path in sorted(self._collection.path.iterdir()):
                if normal(path.name).casefold() == wanted and path.name[0] != "." and path.is_file():
                    text = document.decoded(document.read(path, MAX_FILE_BYTES), path.name)
                    try:
                        split(text.removeprefix("\ufeff"))
                    except Invalid as error:
                        raise Invalid(f"{path.name} {error}.") from None
                    return path
        raise Invalid(f"{self._collection.name} has no memory file {name!r} of its own.")

    def _read(self) -> journal.Contents:
        try:
            return self._journal.read()
        except FileNotFoundError:
            return journal.Contents([], [], 0)


@dataclass(frozen=True)
class Holders:
    """Who had a line of the memory."""

    drafts: tuple[str, ...]
    """Addresses of the drafts that were told it in a turn."""
    unknown: tuple[str, ...]
    """Of those where it cannot be said: a version that they had was not kept, or is damaged."""


def holders(line: str, turns: Mapping[str, Iterable[Turn]], version: Callable[[str], str | None]) -> Holders:
    """Which drafts had a line in the memory of one of their turns.

    :param line: the whole line.
    :param turns: of each draft, by its address.
    :param version: the text that a sha256 names; None where it was not kept, ``Invalid`` where it is
        damaged.
    """
    has: dict[str, bool | None] = {}

    def looked_up(sha256: str) -> bool | None:
        if sha256 not in has:
            try:
                text = version(sha256)
            except Invalid:
                text = None
            has[sha256] = None if text is None else _has(text, line)
        return has[sha256]

    drafts, unknown = [], []
    for address, taken in turns.items():
        told = [looked_up(sha256) for turn in taken for sha256 in turn.memory.values()]
        if True in told:
            drafts.append(address)
        elif None in told:
            unknown.append(address)
    return Holders(tuple(drafts), tuple(unknown))


# Lines of a file --------------------------------------------------------------------------------


def _has(text: str, line: str) -> bool:
    return any(_bare(one) == line.rstrip() for one in text.split("\n"))


def _bare(line: str) -> str:
    return line.removeprefix("\ufeff").rstrip()


def _with_line(data: bytes, line: str, name: str) -> bytes:
    """With a line at the end, unless it stands there already. No other byte changes."""
    text = document.decoded(data, name)
    if _has(text, line):
        return data
    end = line_end_of(text)
    between = "" if not text or text.endswith("\n") else end
    return data + f"{between}{line}{end}".encode()


def _accepted(data: bytes, line: str, proposal: Proposal) -> bytes:
    """With the proposal's line, in the place of what it replaces. :raises Invalid: when that is gone."""
    if not proposal.replaces or _has(document.decoded(data, proposal.file), line):
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
    text = f"{bullet[0] if bullet else ''}{line.removeprefix(_BULLET)}"
    lines[equal[0]] = mark + text + old[len(old.rstrip("\r\n")) :]
    return "".join(lines).encode()


def _lines(data: bytes, name: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", document.decoded(data, name))


def _is_heading(line: str) -> bool:
    return _HEADING.match(line) is not None


def _without_line(data: bytes, proposal: Proposal) -> bytes:
    """Without the line to be forgotten, unless it is gone already. No other byte changes."""
    lines = _lines(data, proposal.file)
    equal = [at for at, line in enumerate(lines) if _bare(line) == proposal.removed.rstrip()]
    if len(equal) <= proposal.copies:
        return data
    del lines[min(equal, key=lambda at: abs(at + 1 - proposal.line))]
    return "".join(lines).encode()


def _checked(text: str) -> str:
    """A text as one harmless line. :raises Invalid:"""
    line = item(text)
    if not line:
        raise Invalid("A proposal needs a text; nothing was proposed.")
    if len(line) > MAX_CHARACTERS:
        raise Invalid(
            f"A line of the memory has at most {MAX_CHARACTERS} characters; this one has {len(line)}."
        )
    return line


def _key(text: str) -> str:
    """The same for lines that say the same."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _means(line: int | str, one: MemoryLine | Proposal) -> bool:
    text = one.removed if isinstance(one, Proposal) else one.text
    if isinstance(line, int):
        return line == one.number
    return line.strip() in (text.strip(), text.strip().removeprefix(_BULLET))


def _forgotten(proposal: Proposal) -> Forgotten:
    return Forgotten(proposal.removed, proposal.file, proposal if proposal.task else None)


# Lines of the journal ---------------------------------------------------------------------------


def _in_state(proposal: Proposal, state: ProposalState, **changes: Any) -> Proposal:
    return proposal.model_copy(update={"state": state, **changes})


def _recorded(
    transaction: journal.Transaction, proposal: Proposal, state: ProposalState, **changes: Any
) -> Proposal:
    proposal = _in_state(proposal, state, **changes)
    transaction.append([to_line(proposal)])
    return proposal


def _new_id(known: Iterable[Proposal]) -> str:
    taken = {one.id for one in known}
    while True:
        # A letter first: nobody takes it for the number of a line.
        id = secrets.choice(_ID_CHARACTERS[:-8]) + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(3))
        if id not in taken:
            return id
