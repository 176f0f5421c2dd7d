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
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import smartwriter.files.change as document
import smartwriter.meaning.conflicts as conflicts
from smartwriter.errors import Invalid
from smartwriter.meaning.nearness import nearest
from smartwriter.memory.collection import Collection, plain_key
from smartwriter.memory.files import MAX_FILE_BYTES
from smartwriter.memory.lines import (
    BULLET,
    MemoryLine,
    checked,
    is_heading,
    means,
    memory_file,
    memory_lines,
    only_line,
    says,
    with_accepted,
    without_line,
)
from smartwriter.memory.lock import journal_of, memory_lock
from smartwriter.memory.proposal import (
    DEFAULT_FILE,
    UNDER_WAY,
    Conflict,
    Forgotten,
    Proposal,
    ProposalState,
    new_id,
)
from smartwriter.storage.interface import Overtaken, Storage, Transaction
from smartwriter.storage.reading import Contents
from smartwriter.storage.records import from_line, to_line
from smartwriter.storage.salvage import Damage, Entry
from smartwriter.text.lines import item
from smartwriter.text.sameness import normal, same_words

MAX_PENDING = 200
"""Of a collection: more than these nobody reads."""


class Proposals:
    """The proposals for one collection. All calls block; any number of processes may use it at once."""

    def __init__(self, storage: Storage, collection: Collection) -> None:
        self._storage = storage
        self._collection = collection
        self._journal = journal_of(storage, collection.name)

    # Reading ---------------------------------------------------------------------------------

    def all(self) -> list[Proposal]:
        """Every proposal as it stands now, oldest first."""
        found: dict[str, Proposal] = {}
        for line in self._journal.read().entries:
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
            line for line in self.lines() if line.text != proposal.replaces and not is_heading(line.text)
        ]
        return [lines[at] for at in nearest(proposal.text, [item(line.text) for line in lines])]

    def lines(self) -> list[MemoryLine]:
        """The lines of the collection's own memory files, each with the proposal that it came from."""
        return memory_lines(self._collection, self.all())

    def damage(self) -> list[Damage]:
        """The stretches of the journal that could not be read."""
        return self._journal.read().damage

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
        line = checked(text)
        with self.locked() as transaction:
            old = only_line(self.lines(), replaces) if replaces.strip() else None
            path = memory_file(self._collection, old.file if old else file)
            known = self.all()
            if same := self._same(known, line, normal(path.name)):
                return same
            if sum(one.state is ProposalState.pending for one in known) >= MAX_PENDING:
                raise Invalid(f"{MAX_PENDING} proposals wait for the author already; nothing was proposed.")
            proposal = Proposal(
                id=new_id(known),
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
        with self.locked() as transaction:
            self._complete(transaction)
            proposal = self._find(id, ProposalState.accepted)
            if proposal.state is ProposalState.accepted:
                return proposal
            line = proposal.text if text is None else checked(text)
            memory_file(self._collection, proposal.file)  # where it cannot be used, nothing is recorded
            proposal = proposal.in_state(ProposalState.accepting, accepted_text=line)
            transaction.append([to_line(proposal)])
            return self._add(transaction, proposal)

    def reject(self, id: str) -> Proposal:
        """Put a proposal away. :raises Invalid: for one that was accepted or is not there."""
        with self.locked() as transaction:
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
        with self.locked() as transaction:
            for completed in self._complete(transaction):
                if completed.state is ProposalState.forgotten and means(
                    line, completed.number, completed.removed
                ):
                    return Forgotten.of(completed)
            found = self._line(line)
            if isinstance(found, Proposal):
                return Forgotten.of(found)
            proposal = found.proposal or Proposal(
                id=new_id(self.all()), text=found.text, file=found.file, task="", draft="", turn=0
            )
            equal = [one for one in self.lines() if (one.file, one.text) == (found.file, found.text)]
            proposal = proposal.in_state(
                ProposalState.forgetting,
                removed=found.text,
                number=found.number,
                line=found.line,
                copies=len(equal) - 1,
            )
            transaction.append([to_line(proposal)])
            return Forgotten.of(self._remove(transaction, proposal))

    def complete(self) -> list[Proposal]:
        """Finish what a crash left undone; returns what was."""
        if all(one.state not in UNDER_WAY for one in self.all()):
            return []
        with self.locked() as transaction:
            return self._complete(transaction)

    def take_over(self, earlier: str) -> None:
        """Have what was proposed for the collection under an earlier name.

        That journal goes to the trash; a second call does nothing.
        """
        while True:
            old = journal_of(self._storage, earlier).read()
            if old.size == 0:
                return
            with contextlib.suppress(Overtaken):  # something was proposed there in the meantime
                self._journal.update(partial(_missing, old.entries))
                self._storage.put_away("proposals", plain_key(earlier), at=old.size)
                return

    def locked(self) -> AbstractContextManager[Transaction]:
        """As :func:`memory_lock`."""
        return memory_lock(self._storage, self._collection.name)

    # Under the lock --------------------------------------------------------------------------

    def _complete(self, transaction: Transaction) -> list[Proposal]:
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

    def _add(self, transaction: Transaction, proposal: Proposal) -> Proposal:
        """:raises Invalid: when its file does not take it; it waits again."""
        line = BULLET + proposal.accepted_text
        try:
            path = memory_file(self._collection, proposal.file)
            document.change(path, lambda data: with_accepted(data, line, proposal), MAX_FILE_BYTES)
        except Invalid:
            _recorded(transaction, proposal, ProposalState.pending, accepted_text="")
            raise
        return _recorded(transaction, proposal, ProposalState.accepted)

    def _remove(self, transaction: Transaction, proposal: Proposal) -> Proposal:
        path = memory_file(self._collection, proposal.file)
        document.change(path, lambda data: without_line(data, proposal), MAX_FILE_BYTES)
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
        standing = {same_words(line) for line in says(self._collection, file)} - {""}
        said = same_words(line)
        for one in known:
            proposed, stands = same_words(one.text), same_words(one.accepted_text)
            waits = one.state in (ProposalState.pending, ProposalState.accepting)
            still = one.state is ProposalState.accepted and one.file == file and stands in standing
            if (waits and said == proposed) or (still and said in (stands, proposed)):
                return one
        if any(one.state is ProposalState.rejected and said == same_words(one.text) for one in known):
            raise Invalid("The author has rejected that line before; nothing was proposed.")
        if said in standing:
            raise Invalid(f"{file} says so already; nothing was proposed.")
        return None

    def _line(self, line: int | str) -> MemoryLine | Proposal:
        """The line that is meant, or the record of its having been forgotten."""
        found = [one for one in self.lines() if means(line, one.number, one.text)]
        if len(found) > 1:
            numbers = ", ".join(str(one.number) for one in found)
            raise Invalid(f"That line stands there {len(found)} times; name it by its number: {numbers}.")
        if found:
            return found[0]
        gone = [one for one in self.all() if one.state is ProposalState.forgotten]
        gone = [one for one in gone if means(line, one.number, one.removed)]
        if gone and isinstance(line, str):
            return gone[-1]
        raise Invalid(
            f"The memory of {self._collection.name} has no such line; "
            f"see them with: smartwriter memory lines {self._collection.name}"
        )


# Lines of the journal ---------------------------------------------------------------------------


def _missing(lines: list[Entry], contents: Contents) -> list[Entry]:
    """Those of proposals that a journal does not know."""
    known = {line.get("id") for line in contents.entries}
    return [line for line in lines if line.get("id") not in known]


def _recorded(transaction: Transaction, proposal: Proposal, state: ProposalState, **changes: Any) -> Proposal:
    proposal = proposal.in_state(state, **changes)
    transaction.append([to_line(proposal)])
    return proposal
