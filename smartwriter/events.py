"""What happens while drafts are written, as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import Field, TypeAdapter

from smartwriter.storage.records import Moment, Value
from smartwriter.tasks.values import Turn, TurnState, Usage


class OfDraft(Value):
    task: str = ""
    """The task's id. Where a thing happens that does not know its draft, who hears of it says which it is."""
    draft: str = ""
    position: int = 0
    """Grows with every event of a draft, over restarts too; 0 for one that is not kept on disk."""


class OfTurn(OfDraft):
    turn: int = 0
    """Its number."""


class Queued(OfDraft):
    """A prompt waits for a free place, or for the draft's earlier prompts."""

    kind: Literal["queued"] = "queued"
    prompt: str


class Withdrawn(OfDraft):
    """A waiting prompt was taken back."""

    kind: Literal["withdrawn"] = "withdrawn"
    prompt: str
    kept: bool = False
    """It still waits on disk, for whoever writes the draft next."""


class TurnStarted(OfTurn):
    kind: Literal["turn_started"] = "turn_started"
    prompt: str


class TextDelta(OfTurn):
    """A piece of the answer, as it is typed."""

    kind: Literal["text_delta"] = "text_delta"
    text: str


class TextDropped(OfTurn):
    """The API was asked anew: the last characters of the text do not count."""

    kind: Literal["text_dropped"] = "text_dropped"
    characters: int


class ThinkingDelta(OfTurn):
    kind: Literal["thinking"] = "thinking"
    text: str


class CallBegun(OfTurn):
    """The model begins to write into the draft: the input of one of the draft's tools arrives."""

    kind: Literal["call_begun"] = "call_begun"
    call: str
    tool: str


class ArticleDelta(OfTurn):
    """A piece of the article, as it is typed into a call."""

    kind: Literal["article_delta"] = "article_delta"
    call: str
    field: str
    """Of the tool's input: ``text``; of an edit ``old_text``, the passage, and ``new_text``, what replaces
    it; or where a text is to go."""
    edit: int = 0
    """Which of a call's edits, from 0."""
    text: str
    """Empty where a field begins."""


class CallDropped(OfTurn):
    """The API was asked anew: what was typed into the call does not count, if the new answer comes."""

    kind: Literal["call_dropped"] = "call_dropped"
    call: str


class ToolUsed(OfTurn):
    """A call has arrived, or what there is of it."""

    kind: Literal["tool_used"] = "tool_used"
    name: str
    call: str = ""
    whole: bool = True
    """False: the answer was at its greatest length in the middle of the call."""


class ToolAnswered(OfTurn):
    kind: Literal["tool_answered"] = "tool_answered"
    text: str
    failed: bool
    call: str = ""


class DraftRevised(OfTurn):
    kind: Literal["draft_revised"] = "draft_revised"
    revision: int
    characters: int


class Clashed(OfTurn):
    """The writer changed the text while the model was rewriting it: theirs stands."""

    kind: Literal["clashed"] = "clashed"
    revision: int
    """The writer's."""
    aside: int
    """The model's, kept beside it."""


class CutOffKept(OfTurn):
    """What had been typed of a call that did not come to its end is a version beside the text."""

    kind: Literal["cut_off_kept"] = "cut_off_kept"
    revision: int
    characters: int
    whole: bool = False
    """All of the call had arrived; only its doing was missing."""


class MemoryProposed(OfTurn):
    """The model proposes a line for the collection's memory; nothing is in it before the writer says so."""

    kind: Literal["memory_proposed"] = "memory_proposed"
    proposal: str
    """Its id, for ``smartwriter memory review``."""
    text: str
    file: str


class Compacted(OfTurn):
    """The conversation was compacted: from here on the model is sent a summary of it."""

    kind: Literal["compacted"] = "compacted"
    by_itself: bool
    """It had become too long; False: it was asked for."""
    before: int | None
    """How many tokens the model was sent until then; None: not known."""
    after: int | None
    """How many are left of it."""


class UsageCounted(OfTurn):
    kind: Literal["usage"] = "usage"
    usage: Usage


class Retrying(OfTurn):
    """The API did not answer; it is asked again after a wait."""

    kind: Literal["retrying"] = "retrying"
    attempt: int
    of: int
    wait_s: float
    why: str


class RateLimited(OfTurn):
    kind: Literal["rate_limited"] = "rate_limited"
    until: Moment | None


class NotSaved(OfTurn):
    """Part of the transcript could not be stored where it belongs."""

    kind: Literal["not_saved"] = "not_saved"
    detail: str


class Awaited(OfDraft):
    """Before the turn can start, the CLI of a program that died is to end, which still writes the draft."""

    kind: Literal["awaited"] = "awaited"
    detail: str


class TurnRecovered(OfDraft):
    """What became of a turn whose process died."""

    kind: Literal["turn_recovered"] = "turn_recovered"
    detail: str
    turn: Turn


class Saved(OfTurn):
    """What was ``NotSaved`` is where it belongs by now, all of it."""

    kind: Literal["saved"] = "saved"


class NotKept(OfTurn):
    """No disk takes what was written in a turn: here it is, to be shown in full. It is nowhere else."""

    kind: Literal["not_kept"] = "not_kept"
    text: str


class Stopped(OfDraft):
    """The turn was stopped on request; what had been written stays."""

    kind: Literal["stopped"] = "stopped"
    turn: Turn


class Finished(OfDraft):
    kind: Literal["finished"] = "finished"
    turn: Turn


class Failed(OfDraft):
    """A turn, or the attempt to start one, ended without its answer."""

    kind: Literal["failed"] = "failed"
    detail: str
    turn: Turn | None = None
    """None: it could not even start, and nothing was recorded."""


class Reload(OfDraft):
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

_OF_THE_DEAD = {
    TurnState.recovered: "The program died; the answer was finished all the same.",
    TurnState.interrupted: "The program died before the answer had ended.",
}


def ending(turn: Turn, task: str, draft: str) -> Ending:
    """That a turn has ended, as its state says."""
    if turn.state is TurnState.finished:
        return Finished(task=task, draft=draft, turn=turn)
    if turn.state is TurnState.stopped:
        return Stopped(task=task, draft=draft, turn=turn)
    detail = _OF_THE_DEAD.get(turn.state, turn.detail)
    return Failed(task=task, draft=draft, detail=detail, turn=turn)


def ends_turn(event: Event) -> TypeGuard[Ending]:
    """Whether a turn ends with it, or the attempt to start one."""
    return isinstance(event, Finished | Stopped | Failed)


def settles_prompt(event: Event) -> bool:
    """Whether a prompt comes to its end with it."""
    return ends_turn(event) or isinstance(event, Withdrawn)


_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def parse(line: str | bytes) -> Event:
    """An event from its JSON. :raises pydantic.ValidationError:"""
    return _EVENT.validate_json(line)


def from_dict(fields: Mapping[str, Any]) -> Event:
    """An event from its fields. :raises pydantic.ValidationError:"""
    return _EVENT.validate_python(fields)
