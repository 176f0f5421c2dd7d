"""Turns: what is sent, what is heard of it and stored of it, and how they end badly."""

from __future__ import annotations

import json
import threading
from functools import partial
from typing import Any
from uuid import uuid4

import anyio
import psutil
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKClient,
    ClaudeSDKError,
    Message,
    MirrorErrorMessage,
    ResultMessage,
    SdkMcpTool,
    StreamEvent,
    ToolAnnotations,
    ToolUseBlock,
    create_sdk_mcp_server,
)
from talks import Desk, of_system, result, tell

from smartwriter.agent.offline.script import ApiError, Cut, Reply, Request, Stop, Text, ToolUse, Wait

LONG = "heron " * 40_000
"""More than a tool's answer may hold before the CLI puts it into a file."""


@pytest.fixture
def session() -> str:
    return str(uuid4())


def _server(name: str = "draft", **more: Any) -> dict[str, Any]:
    """Options for a server with a tool ``keep``, which answers with a long text."""

    async def keep(arguments: dict[str, Any]) -> dict[str, Any]:
        failed = arguments["text"] == "bad"
        said = "It cannot be kept." if failed else LONG
        return {"content": [{"type": "text", "text": said}], "is_error": failed}

    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    annotations = ToolAnnotations(maxResultSizeChars=500_000)
    tool = SdkMcpTool("keep", "Keeps a text.", schema, keep, annotations=annotations)
    return {
        "mcp_servers": {name: create_sdk_mcp_server(name, tools=[tool])},
        "allowed_tools": [f"mcp__{name}__keep"],
        **more,
    }


def _events(heard: list[Message]) -> list[dict[str, Any]]:
    return [message.event for message in heard if isinstance(message, StreamEvent)]


# --- one conversation with a tool, from which several facts are read ---------------------------


@pytest.fixture(scope="module")
def with_tool(shared_desk: Desk) -> tuple[Desk, list[Message]]:
    def script(request: Request) -> Reply:
        texts = ["good", "bad"]
        done = len(request.tool_results)
        return [ToolUse("keep", {"text": texts[done]}, chunk_chars=4)] if done < 2 else [Text("Kept.")]

    shared_desk.model.script = script
    (shared_desk.folder / "work").mkdir()
    (shared_desk.folder / "work" / "CLAUDE.md").write_text("Bitterns only.", encoding="utf-8")
    (shared_desk.folder / "secret").write_text("Nobody's business.", encoding="utf-8")
    prompt = f"Keep @{shared_desk.folder}/secret"
    return shared_desk, shared_desk.talk(prompt, "/cost", **_server())


def test_only_our_tools_are_offered(with_tool: tuple[Desk, list[Message]]) -> None:
    """With ``tools=[]`` and ``strict_mcp_config`` the model is offered the tools of the SDK's own servers
    alone, as ``mcp__<server>__<tool>``."""
    assert {request.tools for request in with_tool[0].model.requests} == {("mcp__draft__keep",)}


def test_nothing_of_a_folder_leaks_in(with_tool: tuple[Desk, list[Message]]) -> None:
    """With ``setting_sources=[]`` no CLAUDE.md of the folder is sent."""
    assert "Bitterns" not in json.dumps([request.body for request in with_tool[0].model.requests])


def test_a_composed_prompt_is_sent_as_it_is(with_tool: tuple[Desk, list[Message]]) -> None:
    """A prompt that is ``client_composed`` is sent verbatim: what it names with an @ is not read, and what
    begins with a slash is no command."""
    desk, _ = with_tool
    bodies = json.dumps([request.body for request in desk.model.requests])
    assert f"Keep @{desk.folder}/secret" in bodies and "Nobody's business" not in bodies
    assert desk.model.requests[-1].prompt == "/cost"


def test_a_long_answer_of_a_tool_is_sent_whole(with_tool: tuple[Desk, list[Message]]) -> None:
    """A tool's answer of up to ``maxResultSizeChars`` reaches the model whole, and no file."""
    assert with_tool[0].model.requests[1].tool_results == [LONG]


def test_a_tool_that_fails_says_so(with_tool: tuple[Desk, list[Message]]) -> None:
    """A tool's ``is_error`` reaches the model with its words."""
    sent = json.dumps(with_tool[0].model.requests[2].messages)
    assert "It cannot be kept." in sent and '"is_error": true' in sent


def test_a_tools_input_is_heard_in_pieces(with_tool: tuple[Desk, list[Message]]) -> None:
    """With partial messages the input of a call comes as ``partial_json``, piece by piece, before the call;
    its block begins with the call's id and full name."""
    heard = with_tool[1]
    called = next(
        n
        for n, message in enumerate(heard)
        if isinstance(message, AssistantMessage) and isinstance(message.content[0], ToolUseBlock)
    )
    events = _events(heard[:called])
    pieces = [one["delta"]["partial_json"] for one in events if "partial_json" in one.get("delta", {})]
    assert len([piece for piece in pieces if piece]) > 2 and json.loads("".join(pieces)) == {"text": "good"}
    begun = [one["content_block"] for one in events if one["type"] == "content_block_start"]
    assert [(one["type"], one["name"]) for one in begun] == [("tool_use", "mcp__draft__keep")]


def test_the_end_of_a_message_is_heard(with_tool: tuple[Desk, list[Message]]) -> None:
    """Each message of the API ends with a ``message_delta`` that gives its stop reason."""
    reasons = [one["delta"]["stop_reason"] for one in _events(with_tool[1]) if one["type"] == "message_delta"]
    assert reasons[:3] == ["tool_use", "tool_use", "end_turn"]


def test_costs_are_summed_up(with_tool: tuple[Desk, list[Message]]) -> None:
    """A result's ``total_cost_usd`` is that of all the client's turns so far, its usage that of its own."""
    first, second = [message for message in with_tool[1] if isinstance(message, ResultMessage)]
    assert 0 < (first.total_cost_usd or 0) < (second.total_cost_usd or 0)
    assert first.usage and second.usage and {"input_tokens", "output_tokens"} <= first.usage.keys()


def test_entries_come_to_one_key(with_tool: tuple[Desk, list[Message]]) -> None:
    """The store is handed entries of a session without a subpath, some of them without a uuid."""
    store = with_tool[0].store
    assert len({json.dumps(key) for key in store.keys}) == 1 and "subpath" not in store.keys[0]
    (entries,) = store.sessions.values()
    assert any("uuid" not in one for one in entries)
    uuids = [one["uuid"] for one in entries if "uuid" in one]
    assert len(uuids) == len(set(uuids))


# --- the store while a turn runs ----------------------------------------------------------------


def test_a_prompt_is_stored_before_its_answer(desk: Desk, session: str) -> None:
    """Flushed eagerly, a prompt is in the store while the model still answers; when the CLI dies then, the
    client raises, and the store has nothing of the answer."""
    gate = threading.Event()
    desk.model.script = lambda _: [Text("Half an answer. " * 5), Wait(gate)]
    options = desk.options(session_id=session)

    async def run() -> None:
        async with ClaudeSDKClient(options) as client:
            await tell(client, "One.")
            with anyio.fail_after(20):
                while not desk.store.said(session):  # noqa: ASYNC110 - nobody tells
                    await anyio.sleep(0.02)
                for child in psutil.Process().children(recursive=True):
                    child.kill()
                async for _ in client.receive_response():
                    pass

    with pytest.raises(ClaudeSDKError):
        anyio.run(run)
    gate.set()
    assert [one["message"]["content"] for one in desk.store.said(session)] == ["One."]


def test_an_interrupted_answer_is_kept(desk: Desk, session: str) -> None:
    """After an interrupt there is a result, and the store has what was said until then, and the CLI's note
    "[Request interrupted by user]"."""
    gate = threading.Event()
    desk.model.script = lambda _: [Text("Half an answer. " * 5), Wait(gate)]
    options = desk.options(session_id=session)

    async def run() -> list[Message]:
        heard: list[Message] = []
        with anyio.fail_after(60):
            async with ClaudeSDKClient(options) as client:
                await tell(client, "One.")
                async for message in client.receive_response():
                    heard.append(message)
                    if isinstance(message, StreamEvent) and "text" in message.event.get("delta", {}):
                        await client.interrupt()
        return heard

    heard = anyio.run(run)
    gate.set()
    assert result(heard).subtype == "error_during_execution"
    said = json.dumps(desk.store.said(session))
    assert "Half an answer." in said and "[Request interrupted by user]" in said


def test_a_store_that_fails_is_told_of(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a store refuses to append is tried three times and then told in a ``MirrorErrorMessage``, while
    the turn goes on; a ``TimeoutError`` is not tried again."""
    tries: list[str] = []

    async def refuse(error: Exception, *_: Any) -> None:
        tries.append(type(error).__name__)
        raise error

    desk.model.script = lambda _: [Text("Done.")]
    for error in (OSError("full"), TimeoutError("late")):
        monkeypatch.setattr(desk.store, "append", partial(refuse, error))
        heard = desk.talk("One.", session_store_flush="batched")
        assert not result(heard).is_error and any(isinstance(one, MirrorErrorMessage) for one in heard)
    batches = tries.count("TimeoutError")
    assert tries.count("OSError") == 3 * batches


def test_a_line_longer_than_the_default_buffer(desk: Desk, session: str) -> None:
    """A prompt longer than the default ``max_buffer_size`` passes, and is stored, with a larger one."""
    desk.model.script = lambda _: [Text("Done.")]
    heard = desk.talk("word " * 300_000, session_id=session)
    assert not result(heard).is_error and len(json.dumps(desk.store.sessions[session])) > 1_500_000


# --- turns that end badly -----------------------------------------------------------------------


def test_an_error_of_the_api_is_the_clis_own_answer(desk: Desk, session: str) -> None:
    """What the API refuses ends in a result that is an error, and in an answer of the model "<synthetic>"
    that is marked ``isApiErrorMessage``; the prompt is sent again with the next."""
    desk.model.script = lambda _: [ApiError(400, "invalid_request_error", "The model is ill.")]
    heard = desk.talk("One.", session_id=session)
    assert result(heard).is_error and "The model is ill." in (result(heard).result or "")
    (answer,) = [one for one in desk.store.said(session) if one["type"] == "assistant"]
    assert answer["message"]["model"] == "<synthetic>" and answer["isApiErrorMessage"]
    desk.model.script = lambda _: [Text("Done.")]
    desk.talk("Two.", resume=session)
    assert {"One.", "Two."} <= {text.strip() for text in desk.model.requests[-1].texts}


def test_a_retry_is_told_of(desk: Desk) -> None:
    """A request that is refused because of load is sent again, which a system message ``api_retry`` tells:
    which attempt of how many, after how long, and why."""

    def script(_: Request) -> Reply:
        first = len(desk.model.requests) == 1
        return [ApiError(529, "overloaded_error", "Busy.", retry_after_s=0)] if first else [Text("Done.")]

    desk.model.script = script
    heard = desk.talk("One.")
    (told,) = of_system(heard, "api_retry")
    assert told["attempt"] == 1 and told["max_retries"] == 1 and told["retry_delay_ms"] >= 0
    assert told["error_status"] == 529 and result(heard).result == "Done."


def test_a_broken_answer_is_begun_anew(desk: Desk) -> None:
    """An answer whose connection breaks is asked for again: a second ``message_start`` comes, and between
    the two no stop reason."""

    def script(_: Request) -> Reply:
        first = len(desk.model.requests) == 1
        return [Text("Half an answer. " * 5), Cut()] if first else [Text("Done.")]

    desk.model.script = script
    heard = desk.talk("One.")
    kinds = [one["type"] for one in _events(heard)]
    assert kinds.count("message_start") == 2
    again = kinds.index("message_start", 1)
    reasons = [
        one["delta"].get("stop_reason") for one in _events(heard)[:again] if one["type"] == "message_delta"
    ]
    assert not any(reasons) and result(heard).result == "Done."


def test_a_call_that_is_cut_off_at_the_most_tokens(desk: Desk) -> None:
    """A call whose input ends at ``max_tokens`` comes with ``__unparsedToolInput`` in its input."""

    def script(request: Request) -> Reply:
        if request.tool_results or len(desk.model.requests) > 1:
            return [Text("Done.")]
        return [ToolUse("keep", {"text": "A long text that has no end."}, break_at=20), Stop("max_tokens")]

    desk.model.script = script
    heard = desk.talk("One.", **_server())
    calls = [
        block.input
        for message in heard
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, ToolUseBlock)
    ]
    assert calls and "__unparsedToolInput" in calls[0]


# --- the process ---------------------------------------------------------------------------------


def test_the_cli_is_started_by_anyio(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK starts the CLI by ``anyio.open_process``, looked up when it is called, with the options'
    environment over this process's own; an empty value stays empty."""
    started: list[dict[str, Any]] = []
    open_process = anyio.open_process

    async def watched(*arguments: Any, **options: Any) -> Any:
        started.append(options)
        return await open_process(*arguments, **options)

    monkeypatch.setattr(anyio, "open_process", watched)
    monkeypatch.setenv("OURS", "kept")
    monkeypatch.setenv("SECRET", "told to nobody")
    desk.talk("One.", env={"SECRET": ""})
    (env,) = [options["env"] for options in started if "env" in options][-1:]
    assert env["OURS"] == "kept" and env["SECRET"] == ""
