"""A line that is proposed for a collection's memory: where it comes from, and what became of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from smartwriter.storage.records import Moment, Value, now
from smartwriter.text.sections import one_line

DEFAULT_FILE = "memory.md"

_ID_CHARACTERS = "bcdfghjkmnpqrstvwxz23456789"  # no vowels, so no words; nothing that looks like another


def _one_line(text: str) -> str:
    return " ".join(one_line(text).split())


OneLine = Annotated[str, AfterValidator(_one_line)]
"""It is put into a file of the writer's as a line; and it may come from a file of somebody else's."""


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
    text: OneLine
    """As it was proposed: one line of Markdown, without a bullet."""
    file: str = DEFAULT_FILE
    task: str
    """Empty for a line that the writer wrote themself; such a one is recorded only to be forgotten."""
    draft: str
    turn: int
    at: Moment = Field(default_factory=now)
    state: ProposalState = ProposalState.pending
    replaces: str = ""
    """The whole line of its file that it is to take the place of; empty: it is added at the end."""
    accepted_text: OneLine = ""
    """What the writer made of it."""
    removed: str = ""
    """The whole line that was forgotten."""
    number: int = 0
    """Of that line among all lines, and ``line`` in its file, both from 1."""
    line: int = 0
    copies: int = 0
    """How many equal lines stay in the file."""

    def in_state(self, state: ProposalState, **changes: Any) -> Proposal:
        return self.model_copy(update={"state": state, **changes})


def new_id(known: Iterable[Proposal]) -> str:
    """An id that none of these has."""
    taken = {one.id for one in known}
    while True:
        # A letter first: nobody takes it for the number of a line.
        id = secrets.choice(_ID_CHARACTERS[:-8]) + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(3))
        if id not in taken:
            return id


@dataclass(frozen=True)
class Forgotten:
    text: str
    """The whole line."""
    file: str
    proposal: Proposal | None
    """That it had come from."""

    @classmethod
    def of(cls, proposal: Proposal) -> Forgotten:
        """Of one that was removed."""
        return cls(proposal.removed, proposal.file, proposal if proposal.task else None)


@dataclass(frozen=True)
class Conflict:
    """Pending proposals that may contradict each other."""

    proposals: tuple[Proposal, ...]
    why: str
