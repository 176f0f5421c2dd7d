"""The answer to one prompt: what has been heard of it, and what the turn comes to by that."""

from __future__ import annotations

from collections.abc import Sequence

from smartwriter.agent.conversation import Ended, Happening
from smartwriter.agent.endings import EMPTY, REFUSAL, is_too_large, left_out, sentence
from smartwriter.events import (
    ArticleDelta,
    CallBegun,
    CallDropped,
    Compacted,
    Event,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolUsed,
)
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.values import Turn, TurnState
from smartwriter.turns.calls import DRAFT_TOOLS, Calls
from smartwriter.turns.heard import Heard

_NO_ANSWER = "The API had not answered"


class Answer:
    def __init__(self, turn: int, earlier: Sequence[Turn] = (), address: str = "") -> None:
        """
        :param turn: its number.
        :param earlier: those before it.
        :param address: of the draft.
        """
        self.calls = Calls(turn)
        self.under_way = False
        """The model has begun to answer."""
        self._retrying = False  # the API is asked again, and has not answered since
        self._compacted = False  # the conversation, in this turn
        self._writing: set[str] = set()  # the calls that write into the draft
        self._used_tool = False
        self._earlier, self._address = earlier, address
        self._heard = Heard()

    @property
    def text(self) -> str:
        return self._heard.text

    def hear(self, event: Happening) -> bool:
        """Go on with what happened next; whether it is to be told."""
        answers = isinstance(event, TextDelta | ThinkingDelta | CallBegun | ToolUsed)
        self.under_way = self.under_way or answers
        self._retrying = isinstance(event, Retrying) or (self._retrying and not answers)
        self._heard.take(event)
        match event:
            case CallBegun():
                if event.tool in DRAFT_TOOLS:
                    self._writing.add(event.call)
                return event.call in self._writing
            case ArticleDelta():
                return event.call in self._writing
            case CallDropped():
                was_heard = event.call in self._writing
                self._writing.discard(event.call)
                return was_heard
            case ToolUsed():
                self._used_tool = True
            case Compacted():
                self._compacted = True
        return True

    def told(self, event: Event) -> None:
        """What has been told is kept of the calls."""
        self.calls.take(event)

    @property
    def is_any(self) -> bool:
        """Whether the model has said or done anything."""
        return bool(self.text.strip() or self._writing) or self._used_tool

    def ended(self, turn: Turn, ended: Ended, *, stopped: bool) -> Turn:
        """What the turn comes to by its result. :param stopped: on request."""
        told = {"stop_reason": ended.stop_reason, "detail": sentence(ended.stop_reason)}
        turn = turn.model_copy(update={"usage": ended.usage, "model": ended.model, **told})
        if ended.error or ended.stop_reason == EMPTY or stopped:
            return self.broken(turn, turn.detail or ended.error, stopped=stopped)
        return turn.model_copy(update={"state": TurnState.finished})

    def broken(self, turn: Turn, why: str, *, stopped: bool) -> Turn:
        """A turn without its whole answer: what was heard of it is kept."""
        turn = turn.model_copy(update={"state": TurnState.failed, "detail": why, "partial": self.text})
        if stopped:
            turn = turn.model_copy(update={"state": TurnState.stopped, "detail": "", "stop_reason": ""})
        if is_command(turn.prompt):  # which nobody said: if nothing came of it, it was not
            return turn.model_copy(update={"left_out": not self._compacted})
        if stopped:
            if not self._retrying or self.is_any:
                return turn
            # Who stops that, and asks again, does not ask twice.
            return turn.model_copy(update={"left_out": True, "detail": left_out(_NO_ANSWER)})
        if self.is_any and turn.stop_reason != REFUSAL:
            return turn
        # After a refused one the next ones would be refused as well.
        return turn.model_copy(update={"left_out": True, "detail": left_out(why) + self._cause(turn, why)})

    def _cause(self, turn: Turn, why: str) -> str:
        """Of a request that was too large: the turn that made it so."""
        earlier = [one for one in self._earlier if not one.left_out]
        largest = max([turn, *earlier], key=lambda one: len(one.prompt))
        if not is_too_large(why):
            return ""
        if largest is turn:
            return f" It has {len(turn.prompt):,} characters; send it in parts."
        return (
            f" The largest part of the conversation is the prompt of turn {largest.number}, with "
            f"{len(largest.prompt):,} characters; to go back before it: smartwriter rewind "
            f"{self._address} --to {largest.number - 1}"
        )
