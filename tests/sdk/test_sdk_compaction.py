"""Compactions: how one is asked for, heard, stored, and influenced."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from claude_agent_sdk import HookMatcher, Message
from talks import Desk, of_system, plain

from smartwriter.agent.offline.script import Reply, Request, Text, asks_for_summary
from smartwriter.sessions.compaction import without_places

SESSION = str(uuid4())
ADVICE, REMINDER = "Keep the name of the ferryman.", "The text so far is told anew."


@pytest.fixture(scope="module")
def compacted(shared_desk: Desk) -> tuple[Desk, list[Message]]:
    """Two turns, a compaction with hooks, and a turn after it."""

    def script(request: Request) -> Reply:
        said = "<summary>What was said before.</summary>" if asks_for_summary(request) else "An answer."
        return [Text(said)]

    async def before(*_: Any) -> Any:
        return {"systemMessage": ADVICE}

    async def after(*_: Any) -> Any:
        told = {"hookEventName": "SessionStart", "additionalContext": REMINDER}
        return {"hookSpecificOutput": told}

    shared_desk.model.script = script
    hooks: Any = {
        "PreCompact": [HookMatcher(hooks=[before])],
        "SessionStart": [HookMatcher("compact", hooks=[after])],
    }
    asked = plain("/compact keep the names")
    heard = shared_desk.talk("One.", "Two.", asked, "Three.", session_id=SESSION, hooks=hooks)
    return shared_desk, heard


def _summary_request(desk: Desk) -> Request:
    (request,) = [one for one in (*desk.model.requests, *desk.model.side_requests) if asks_for_summary(one)]
    return request


def test_a_compaction_can_be_asked_for(compacted: tuple[Desk, list[Message]]) -> None:
    """``/compact`` as a plain prompt asks the model for a summary, with the words that follow it, and tells
    of it in a system message ``compact_boundary``: what triggered it, and how many tokens it was before."""
    desk, heard = compacted
    assert "keep the names" in _summary_request(desk).said
    (told,) = of_system(heard, "compact_boundary")
    assert told["compact_metadata"]["trigger"] == "manual"
    assert isinstance(told["compact_metadata"]["pre_tokens"], int)


def test_a_compaction_is_in_the_store(compacted: tuple[Desk, list[Message]]) -> None:
    """The store gets an entry ``compact_boundary`` with ``compactMetadata``, then a user's with
    ``isCompactSummary``; all that was before stays."""
    entries = compacted[0].store.sessions[SESSION]
    (at,) = [n for n, one in enumerate(entries) if one.get("subtype") == "compact_boundary"]
    assert entries[at]["type"] == "system" and entries[at]["compactMetadata"]["trigger"] == "manual"
    (summary,) = [n for n, one in enumerate(entries) if one.get("isCompactSummary")]
    assert summary > at and entries[summary]["type"] == "user"
    assert "What was said before." in entries[summary]["message"]["content"]
    assert "One." in [one["message"]["content"] for one in entries[:at] if one["type"] == "user"]


def test_a_summary_names_the_transcript(compacted: tuple[Desk, list[Message]]) -> None:
    """A summary ends with a sentence that names the transcript's file, in words that we know to take out."""
    (summary,) = [one for one in compacted[0].store.sessions[SESSION] if one.get("isCompactSummary")]
    assert re.search(r"full transcript at: \S+\.jsonl", summary["message"]["content"])
    (clean,) = without_places([summary])
    assert ".jsonl" not in str(clean["message"])


def test_the_model_goes_on_from_the_summary(compacted: tuple[Desk, list[Message]]) -> None:
    """After a compaction the model is sent the summary in place of what was said before."""
    last = compacted[0].model.requests[-1]
    assert "What was said before." in last.said and "Two." not in last.texts and last.prompt == "Three."


def test_hooks_have_their_say_in_a_compaction(compacted: tuple[Desk, list[Message]]) -> None:
    """What a ``PreCompact`` hook gives as ``systemMessage`` is in the request for the summary; what a
    ``SessionStart`` hook for "compact" gives as ``additionalContext`` is sent after it."""
    desk, _ = compacted
    assert ADVICE in str(_summary_request(desk).body)
    last = str(desk.model.requests[-1].body)
    assert REMINDER in last


def test_too_little_is_not_compacted(desk: Desk) -> None:
    """A conversation that is too short is not compacted: a status with ``compact_error`` says why."""
    heard = desk.talk(plain("/compact"))
    told = [one.get("compact_error") for one in of_system(heard, "status")]
    assert any(isinstance(why, str) and why for why in told) or not of_system(heard, "compact_boundary")
