"""What happens while drafts are written, as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from smartwriter.storage.records import Value
from smartwriter.tasks.values import Turn, Usage


class _OfDraft(Value):
    task: str
    """The task's id."""
    draft: str
    position: int = 0
    """Grows with every event of a draft, over restarts too; 0 for one that is not kept on disk."""


class Queued(_OfDraft):
    """A prompt waits for a free place, or for the draft's earlier prompts."""

    kind: Literal["queued"] = "queued"
    prompt: str


class Withdrawn(_OfDraft):
    """A waiting prompt was taken back."""

    kind: Literal["withdrawn"] = "withdrawn"
    prompt: str
    kept: bool = False
    """It still waits on disk, for whoever writes the draft next."""


class TurnStarted(_OfDraft):
    kind: Literal["turn_started"] = "turn_started"
    turn: int
    prompt: str


class TextDelta(_OfDraft):
    """A piece of the answer, as it is typed."""

    kind: Literal["text_delta"] = "text_delta"
    turn: int
    text: str


class TextDropped(_OfDraft):
    """The API was asked anew: the last characters of the text do not count."""

    kind: Literal["text_dropped"] = "text_dropped"
    turn: int
    characters: int


class ThinkingDelta(_OfDraft):
    kind: Literal["thinking"] = "thinking"
    turn: int
    text: str


class CallBegun(_OfDraft):
    """The model begins to write into the draft: the input of one of the draft's tools arrives."""

    kind: Literal["call_begun"] = "call_begun"
    turn: int
    call: str
    tool: str


class ArticleDelta(_OfDraft):
    """A piece of the article, as it is typed into a call."""

    kind: Literal["article_delta"] = "article_delta"
    turn: int
    call: str
    field: str
    """Of the tool's input: ``text``; of an edit ``old_text``, the passage, and ``new_text``, what replaces
    it; or where a text is to go."""
    edit: int = 0
    """Which of a call's edits, from 0."""
    text: str
    """Empty where a field begins."""


class CallDropped(_OfDraft):
    """The API was asked anew: what was typed into the call does not count, if the new answer comes."""

    kind: Literal["call_dropped"] = "call_dropped"
    turn: int
    call: str


class ToolUsed(_OfDraft):
    """A call has arrived, or what there is of it."""

    kind: Literal["tool_used"] = "tool_used"
    turn: int
    name: str
    call: str = ""
    whole: bool = True
    """False: the answer was at its greatest length in the middle of the call."""


class ToolAnswered(_OfDraft):
    kind: Literal["tool_answered"] = "tool_answered"
    turn: int
    text: str
    failed: bool
    call: str = ""


class DraftRevised(_OfDraft):
    kind: Literal["draft_revised"] = "draft_revised"
    turn: int
    revision: int
    characters: int


class Clashed(_OfDraft):
    """The writer changed the text while the model was rewriting it: theirs stands."""

    kind: Literal["clashed"] = "clashed"
    turn: int
    revision: int
    """The writer's."""
    aside: int
    """The model's, kept beside it."""


class CutOffKept(_OfDraft):
    """What had been typed of a call that did not come to its end is a version beside the text."""

    kind: Literal["cut_off_kept"] = "cut_off_kept"
    turn: int
    revision: int
    characters: int


class MemoryProposed(_OfDraft):
    """The model proposes a line for the collection's memory; nothing is in it before the writer says so."""

    kind: Literal["memory_proposed"] = "memory_proposed"
    turn: int
    proposal: str
    """Its id, for ``smartwriter memory review``."""
    text: str
    file: str


class Compacted(_OfDraft):
    """The conversation was compacted: from here on the model is sent a summary of it."""

    kind: Literal["compacted"] = "compacted"
    turn: int
    by_itself: bool
    """It had become too long; False: it was asked for."""
    before: int | None
    """How many tokens the model was sent until then; None: not known."""
    after: int | None
    """How many are left of it."""


class UsageCounted(_OfDraft):
    kind: Literal["usage"] = "usage"
    turn: int
    usage: Usage


class Retrying(_OfDraft):
    """The API did not answer; it is asked again after a wait."""

    kind: Literal["retrying"] = "retrying"
    turn: int
    attempt: int
    of: int
    wait_s: float
    why: str


class RateLimited(_OfDraft):
    kind: Literal["rate_limited"] = "rate_limited"
    turn: int
    until: datetime | None


class NotSaved(_OfDraft):
    """Part of the transcript could not be stored where it belongs."""

    kind: Literal["not_saved"] = "not_saved"
    turn: int
    detail: str


class Awaited(_OfDraft):
    """Before the turn can start, the CLI of a program that died is to end, which still writes the draft."""

    kind: Literal["awaited"] = "awaited"
    detail: str


class TurnRecovered(_OfDraft):
    """What became of a turn whose process died."""

    kind: Literal["turn_recovered"] = "turn_recovered"
    detail: str
    turn: Turn


class Saved(_OfDraft):
    """What was ``NotSaved`` is where it belongs by now, all of it."""

    kind: Literal["saved"] = "saved"
    turn: int


class NotKept(_OfDraft):
    """No disk takes what was written in a turn: here it is, to be shown in full. It is nowhere else."""

    kind: Literal["not_kept"] = "not_kept"
    turn: int
    text: str


class Stopped(_OfDraft):
    """The turn was stopped on request; what had been written stays."""

    kind: Literal["stopped"] = "stopped"
    turn: Turn


class Finished(_OfDraft):
    kind: Literal["finished"] = "finished"
    turn: Turn


class Failed(_OfDraft):
    """A turn, or the attempt to start one, ended without its answer."""

    kind: Literal["failed"] = "failed"
    detail: str
    turn: Turn | None = None
    """None: it could not even start, and nothing was recorded."""


class Reload(_OfDraft):
    """What came before this position is not kept any more: read the draft anew."""

    kind: Literal["reload"] = "reload"


Event = (
    Queued
    | Withdrawn
    | TurnStarted
    | TextDelta
    | TextDropped
    | ThinkingDelta
    | CallBegun
    | ArticleDelta
    | CallDropped
    | ToolUsed
    | ToolAnswered
    | DraftRevised
    | Clashed
    | CutOffKept
    | MemoryProposed
    | Compacted
    | UsageCounted
    | Retrying
    | RateLimited
    | NotSaved
    | Awaited
    | TurnRecovered
    | Saved
    | NotKept
    | Stopped
    | Finished
    | Failed
    | Reload
)
Ending = Finished | Stopped | Failed
"""Each prompt ends in one of these, or in a ``Withdrawn``."""

_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def parse(line: str | bytes) -> Event:
    """An event from its JSON. :raises pydantic.ValidationError:"""
    return _EVENT.validate_json(line)


def from_dict(fields: Mapping[str, Any]) -> Event:
    """An event from its fields. :raises pydantic.ValidationError:"""
    return _EVENT.validate_python(fields)
