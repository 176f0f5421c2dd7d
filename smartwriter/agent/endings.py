"""Why an answer ended, where it was not because the model was done; and what a writer is told of it."""

from __future__ import annotations

import re

EMPTY = "empty"
"""Nothing was said, and no tool was used."""
REFUSAL = "refusal"
UNUSUAL_EXIT = 3
"""The exit code where a model ended an answer for a reason of its own."""

_USUAL = frozenset({"", "end_turn", "tool_use", "stop_sequence"})
_SENTENCES = {
    REFUSAL: "The model refused to answer.",
    "max_tokens": "The answer reached the most that the model may say at once, and breaks off there; "
    "ask it to go on.",
    "model_context_window_exceeded": "The conversation has filled the model's context, and the answer breaks "
    "off there; go on from an earlier turn, with fork or rewind.",
    "pause_turn": "The model paused before it was done; ask it to go on.",
    EMPTY: "The model answered nothing.",
}
_NOT_SENT_AGAIN = (
    "The prompt is not sent along with the next one, and the conversation goes on without it; to have it "
    "answered, send it again."
)
_TOO_LARGE = re.compile(r"too (?:long|large)|\b413\b", re.IGNORECASE)


def unusual(reason: str) -> str:
    """A reason of the API to end an answer; empty for those that mean no more than that it is whole."""
    return "" if reason in _USUAL else reason


def sentence(reason: str) -> str:
    """What an unusual reason means; empty for none."""
    return _SENTENCES.get(reason) or (f"The model ended its answer early ({reason})." if reason else "")


def left_out(why: str) -> str:
    """Why a turn failed, and that its prompt is not part of the conversation any more."""
    if is_too_large(why):  # of which the CLI's words tell what it is for programmers
        why = "The request was too large for the API"
    return f"{why.rstrip('.')}. {_NOT_SENT_AGAIN}"


def is_too_large(why: str) -> bool:
    """Whether the API took no request of this size."""
    return _TOO_LARGE.search(why) is not None
