"""Sessions: their ids, how they are resumed from a store, and what the CLI makes of their histories."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import anyio
import pytest
from claude_agent_sdk import ClaudeSDKClient, ClaudeSDKError, get_session_messages_from_store
from talks import Desk, result, tell, verbatim
from transcripts import entries, entry, entry_uuid

from smartwriter.agent.offline.script import Reply, Request, Text


def _answers(request: Request) -> Reply:
    return [Text(f"Answer to {request.prompt}")]


@pytest.fixture(autouse=True)
def answering(desk: Desk) -> None:
    desk.model.script = _answers


@pytest.fixture
def session() -> str:
    return str(uuid4())


def _said(request: Request) -> list[str]:
    """What was said, without what the CLI adds to it."""
    return [text for text in request.texts if not text.startswith("<system-reminder>")]


def _history(*numbers: int, session_id: str) -> list[dict[str, Any]]:
    return [entry(n, sessionId=session_id) for n in numbers]


def test_a_session_has_the_id_that_it_was_given(desk: Desk, session: str) -> None:
    """The option ``session_id`` names a new session: the store's key, every entry and the result have it;
    a prompt's ``uuid`` becomes that of its entry."""
    uuid = str(uuid4())
    heard = desk.talk(verbatim("One.", uuid), session_id=session)
    assert result(heard).session_id == session and list(desk.store.sessions) == [session]
    assert {one.get("sessionId", session) for one in desk.store.sessions[session]} == {session}
    prompt, answer = desk.store.said(session)
    assert prompt["uuid"] == uuid and prompt["message"] == {"role": "user", "content": "One."}
    assert answer["parentUuid"] is not None and answer["message"]["role"] == "assistant"


def test_a_session_resumes_from_the_store_alone(desk: Desk, session: str) -> None:
    """A session resumes under its id from what the store loads, with no file of its own left, in another
    folder whose name the SDK and the CLI spell differently."""
    desk.talk("One.", session_id=session)
    for path in desk.config.glob("projects/*/*.jsonl"):
        path.unlink()
    moved = desk.folder / "小说 🎉"
    moved.mkdir()
    heard = desk.talk("Two.", resume=session, cwd=moved)
    assert result(heard).session_id == session
    assert _said(desk.model.requests[-1]) == ["One.", "Answer to One.", "Two."]
    assert [one["message"]["role"] for one in desk.store.said(session)] == ["user", "assistant"] * 2


def test_a_session_that_the_store_lacks_is_refused_by_the_cli(desk: Desk, session: str) -> None:
    """Resuming a session that neither the store nor the CLI knows raises, and writes nothing."""
    with pytest.raises(ClaudeSDKError, match="No conversation found"):
        desk.talk("One.", resume=session)
    assert not desk.store.sessions and not desk.model.requests


def test_a_minimal_history_resumes(desk: Desk, session: str) -> None:
    """Entries of type, uuid, parentUuid and message alone are a history that resumes."""
    names = ("type", "uuid", "parentUuid", "message")
    desk.store.sessions[session] = [{name: one[name] for name in names} for one in entries(0, 1)]
    desk.talk("Two.", resume=session)
    assert _said(desk.model.requests[-1]) == ["text 0", "text 1", "Two."]


def test_entries_of_another_session_resume(desk: Desk, session: str) -> None:
    """A history whose entries carry another session's id resumes: new ones carry the new id, and follow on
    the last of the old."""
    desk.store.sessions[session] = [*entries(0, 1)]
    desk.talk("Two.", resume=session)
    new = desk.store.sessions[session][2:]
    assert _said(desk.model.requests[-1])[:2] == ["text 0", "text 1"]
    assert {one["sessionId"] for one in new if "sessionId" in one} == {session}
    assert entry_uuid(1) in [one.get("parentUuid") for one in new]


def test_a_prefix_of_a_history_is_a_fork(desk: Desk, session: str) -> None:
    """The first entries of a history, up to the end of a turn, under another id, are sent as the origin was
    there."""
    desk.talk("One.", "Two.", session_id=session)
    there = desk.store.sessions[session]
    first_end = next(n for n, one in enumerate(there) if one["type"] == "assistant") + 1
    fork = str(uuid4())
    desk.store.sessions[fork] = there[:first_end]
    desk.talk("Two.", resume=fork)
    _, origin, forked = desk.model.requests
    assert _said(forked) == _said(origin) == ["One.", "Answer to One.", "Two."]


def test_entries_of_unknown_types_are_passed_over(desk: Desk, session: str) -> None:
    """An entry of a type that the CLI does not know stands in a history without changing what is sent, and
    is not handed back."""
    desk.store.sessions[session] = [
        {"type": "smartwriter", "workspace": "5f"},
        *_history(0, 1, session_id=session),
    ]
    desk.talk("Two.", resume=session)
    assert _said(desk.model.requests[-1]) == ["text 0", "text 1", "Two."]
    assert [one["type"] for one in desk.store.sessions[session]].count("smartwriter") == 1


def test_a_call_without_its_result_is_closed(desk: Desk, session: str) -> None:
    """A history that ends with a call of a tool resumes: no call is sent without its result."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "mcp__draft__write_draft", "input": {"text": "A"}}
    history = _history(0, 1, session_id=session)
    history[1]["message"]["content"] = [call]
    desk.store.sessions[session] = history
    assert not result(desk.talk("Two.", resume=session)).is_error
    sent = json.dumps(desk.model.requests[-1].messages)
    assert sent.count('"tool_use"') == sent.count('"tool_use_id"') == sent.count("toolu_1") // 2


def test_damaged_histories_resume(desk: Desk, session: str) -> None:
    """Entries that are there twice, in another order or with a parent that is missing are sent once, in
    their order."""
    there = _history(0, 1, 2, 3, session_id=session)
    desk.store.sessions[session] = [there[0], there[2], there[1], there[1], there[3]]
    desk.talk("Two.", resume=session)
    assert _said(desk.model.requests[-1]) == ["text 0", "text 1", "text 2", "text 3", "Two."]


@pytest.mark.parametrize("kept", [False, True], ids=["removed", "kept"])
def test_the_folder_of_a_resumed_session(desk: Desk, session: str, kept: bool) -> None:
    """A resumed session is written to a private folder ``claude-resume-*`` for temporary files, in
    ``projects/*/<id>.jsonl``, and its CLI knows it as CLAUDE_CONFIG_DIR; the client removes it, unless it
    has forgotten ``_materialized``."""
    desk.store.sessions[session] = _history(0, 1, session_id=session)
    place, options = Path(tempfile.gettempdir()), desk.options(resume=session)

    def found() -> Path:
        (folder,) = place.glob("claude-resume-*")
        assert folder.stat().st_mode & 0o077 == 0
        (transcript,) = folder.glob(f"projects/*/{session}.jsonl")
        return transcript

    async def run() -> None:
        async with ClaudeSDKClient(options) as client:
            transcript = found()
            await tell(client, "Two.")
            assert not result([one async for one in client.receive_response()]).is_error
            told = [json.loads(line) for line in transcript.read_text("utf-8").splitlines()]
            assert "Two." in [one["message"]["content"] for one in told if one["type"] == "user"]
            assert client._materialized is not None
            if kept:
                client._materialized = None

    anyio.run(run)
    assert len(list(place.glob("claude-resume-*"))) == kept


def test_a_new_session_is_written_in_the_configuration(desk: Desk, session: str) -> None:
    """A first turn is written to ``projects/*/<id>.jsonl`` in CLAUDE_CONFIG_DIR, and nowhere else."""
    desk.talk("One.", session_id=session)
    found = list(desk.folder.rglob(f"{session}.jsonl"))
    assert found and all(path in desk.config.glob("projects/*/*") for path in found)


def test_a_side_question_leaves_nothing(desk: Desk) -> None:
    """With ``no-session-persistence`` the CLI keeps no transcript."""
    heard = desk.talk("One.", session_store=None, extra_args={"no-session-persistence": None})
    assert not result(heard).is_error
    assert not list(desk.folder.rglob("*.jsonl"))


def test_the_sdks_reader_only_loads(desk: Desk, session: str) -> None:
    """``get_session_messages_from_store`` asks a store for ``load`` alone, waits for nothing else, and gives
    each message its entry's uuid."""
    desk.store.sessions[session] = _history(0, 1, 2, session_id=session)

    class Loads:
        load = staticmethod(desk.store.load)

    reading: Any = get_session_messages_from_store(cast(Any, Loads()), session)
    with pytest.raises(StopIteration) as done:
        reading.send(None)
    assert [message.uuid for message in done.value.value] == [entry_uuid(n) for n in range(3)]


def test_a_changed_prompt_reaches_a_resumed_session(desk: Desk, session: str) -> None:
    """With the preset's ``snapshot`` off, a file as ``system-prompt-file`` replaces the preset's text, and
    what it says now is sent when a session is resumed."""
    desk.talk("One.", session_id=session)
    file = desk.prompt_file("You are a poet.")
    desk.talk("Two.", resume=session, extra_args={"system-prompt-file": str(file)})
    first, second = desk.model.requests
    assert "You are a writer." in first.system and "software engineering" not in first.system
    assert "You are a poet." in second.system and "You are a writer." not in second.system


def test_the_place_is_in_an_attachment(desk: Desk, session: str) -> None:
    """Where a session is had stands in an entry ``attachment`` of type ``environment``, in its ``snapshot``
    as ``workingDirectory``."""
    desk.talk("One.", session_id=session)
    (attachment,) = [
        one["attachment"]
        for one in desk.store.sessions[session]
        if one.get("attachment", {}).get("type") == "environment"
    ]
    work = attachment["snapshot"]["workingDirectory"]
    assert work == str(desk.folder / "work")
