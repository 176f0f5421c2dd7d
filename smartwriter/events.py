"""What happens while drafts are written, as typed values."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from smartwriter.tasks import Turn, Value


class _OfDraft(Value):
    task: str
    """The task's id."""
    draft: str


class Queued(_OfDraft):
    """A prompt waits for a free place, or for the draft's earlier prompts."""

    kind: Literal["queued"] = "queued"
    prompt: str


class TurnStarted(_OfDraft):
    kind: Literal["turn_started"] = "turn_started"
    turn: int
    prompt: str


class TextDelta(_OfDraft):
    """A piece of the answer, as it is typed."""

    kind: Literal["text_delta"] = "text_delta"
    turn: int
    text: str


class ToolUsed(_OfDraft):
    kind: Literal["tool_used"] = "tool_used"
    turn: int
    name: str


class DraftRevised(_OfDraft):
    kind: Literal["draft_revised"] = "draft_revised"
    turn: int
    revision: int
    characters: int


class NotSaved(_OfDraft):
    """Part of the transcript could not be stored."""

    kind: Literal["not_saved"] = "not_saved"
    turn: int
    detail: str


class Finished(_OfDraft):
    kind: Literal["finished"] = "finished"
    turn: Turn


class Failed(_OfDraft):
    """A turn, or the attempt to start one, ended without an answer."""

    kind: Literal["failed"] = "failed"
    detail: str


Event = Queued | TurnStarted | TextDelta | ToolUsed | DraftRevised | NotSaved | Finished | Failed


def parse(line: str | bytes) -> Event:
    """An event from its JSON. :raises pydantic.ValidationError:"""
    return _EVENT.validate_json(line)


_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])
