from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import AsyncIterator
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    InMemorySessionStore,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

from smartwriter.agent.offline.environment import clean_environment, offline_env
from smartwriter.agent.offline.script import (
    ApiError,
    Cut,
    Reply,
    Request,
    Stop,
    Text,
    Thinking,
    ToolUse,
    Wait,
)
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.agent.offline.stand_in import BANNER, stand_in

pytestmark = pytest.mark.anyio


def asked(prompt: str, *, tools: bool = True, **more: Any) -> dict[str, Any]:
    """A request body as the CLI sends it."""
    return {
        "model": "claude-opus-5-5",
        "system": [{"type": "text", "text": "You are a writer."}],
        "messages": [{"role": "user", "content": prompt}],
        "tools": [
            {"name": "DeferredToolPlaceholder", "defer_loading": True},
            {"name": "mcp__draft__write_draft"},
        ]
        if tools
        else [],
        "thinking": {"type": "adaptive"},
        "max_tokens": 128000,
        "stream": True,
        **more,
    }


def send(model: OfflineModel, body: dict[str, Any], path: str = "/v1/messages") -> HTTPResponse:
    """The response, its body unread; reading it to the end closes the connection."""
    connection = HTTPConnection(urlsplit(model.url).netloc, timeout=10)
    connection.request("POST", path, json.dumps(body), {"connection": "close"})
    return connection.getresponse()


def streamed(response: HTTPResponse) -> list[dict[str, Any]]:
    events = []
    for chunk in response.read().decode().split("\n\n")[:-1]:
        name, data = chunk.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return [event for event in events if event["type"] != "ping"]


def test_a_reply_has_the_form_of_the_real_api() -> None:
    """Text, thinking and parallel tools arrive as numbered blocks between start and stop."""
    reply: Reply = [
        Thinking("Hm."),
        Text("一二三四五", chunk_chars=2),
        ToolUse("write_draft", {"text": "雨"}),
        ToolUse("write_draft", {"text": "雪" * 99}),
    ]
    with OfflineModel(lambda _: reply) as model:
        response = send(model, asked("Write."))
        assert response.headers["content-type"].startswith("text/event-stream")
        start, *blocks, delta, stop = streamed(response)

    assert start["message"]["role"] == "assistant"
    assert start["message"]["usage"]["input_tokens"] > 1
    assert delta["delta"]["stop_reason"] == "tool_use"
    assert delta["usage"]["output_tokens"] > 1
    assert stop == {"type": "message_stop"}

    by_index = [[event for event in blocks if event["index"] == index] for index in range(4)]
    assert [event for block in by_index for event in block] == blocks
    for first, *_, last in by_index:
        assert (first["type"], last["type"]) == ("content_block_start", "content_block_stop")
    kinds = [block[0]["content_block"]["type"] for block in by_index]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    assert [event["delta"]["text"] for event in by_index[1][1:-1]] == ["一二", "三四", "五"]
    assert by_index[2][0]["content_block"]["name"] == "mcp__draft__write_draft"
    partial = "".join(event["delta"]["partial_json"] for event in by_index[3][1:-1])
    assert json.loads(partial) == {"text": "雪" * 99}


def test_a_wait_holds_the_stream_inside_the_text() -> None:
    """What was said before a Wait arrives, what comes after it only once the gate is open."""
    gate = threading.Event()
    with OfflineModel(lambda _: [Text("before "), Wait(gate), Text("after")]) as model:
        response = send(model, asked("Write."))
        while b"before" not in response.readline():
            pass
        gate.set()
        events = streamed_rest(response)
    assert [event["type"] for event in events] == [
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def streamed_rest(response: HTTPResponse) -> list[dict[str, Any]]:
    response.readline()  # what is left of the event that was read
    return streamed(response)


@pytest.mark.parametrize(
    ("then", "arrives"),
    [([], "whole"), ([Text("Done.")], "whole"), ([Stop("max_tokens")], "half"), ([Cut()], "half")],
)
def test_a_call_is_broken_off_inside_its_input(then: list[Text | Stop | Cut], arrives: str) -> None:
    """A tool's input arrives in pieces of the wanted size; it goes on where it broke off, or stays a half."""
    call = ToolUse("write_draft", {"text": "渡口的雾。" * 3}, chunk_chars=8, break_at=40)
    gate = threading.Event()
    gate.set()
    with OfflineModel(lambda request: [call, Wait(gate), *then]) as model:
        response = send(model, asked("Write."))
        data = b""
        try:
            while piece := response.read1():
                data += piece
        except IncompleteRead as error:
            data += error.partial
    events = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]
    pieces = [event["delta"]["partial_json"] for event in events if "partial_json" in event.get("delta", {})]
    whole = json.dumps(call.input)
    assert max(map(len, pieces)) == 8
    assert "".join(pieces) == (whole if arrives == "whole" else whole[:40])


def test_a_stop_releases_what_waits() -> None:
    """Leaving the context ends a held reply instead of hanging on it."""
    with OfflineModel(lambda _: [Text("before"), Wait(threading.Event()), Text("after")]) as model:
        response = send(model, asked("Write."))
        while b"before" not in response.readline():
            pass
    assert streamed_rest(response)[-1]["type"] == "message_stop"


def test_an_error_comes_first_or_in_the_middle() -> None:
    """A first ApiError is an HTTP status, a later one an event that ends the stream."""
    error = ApiError(429, "rate_limit_error", "Slow down.", retry_after_s=2)
    expected = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
    with OfflineModel(lambda _: [error]) as model:
        response = send(model, asked("Write."))
        assert (response.status, response.headers["retry-after"]) == (429, "2")
        assert json.loads(response.read()) == expected
    with OfflineModel(lambda _: [Text("Once"), error, Text("never")]) as model:
        response = send(model, asked("Write."))
        assert response.status == 200
        assert streamed(response)[-1] == expected


def test_a_cut_breaks_off_without_a_sound(caplog: pytest.LogCaptureFixture) -> None:
    """A Cut loses nothing that was said, ends nothing properly and logs nothing."""
    with OfflineModel(lambda _: [Text("Once upon"), Cut()]) as model:
        response = send(model, asked("Write."))
        with pytest.raises(IncompleteRead) as broken:
            response.read()
        response.close()
    assert b"Once upon" in broken.value.partial
    assert b"content_block_stop" not in broken.value.partial
    assert not caplog.records


def test_a_reply_without_a_stream_is_one_message() -> None:
    """Without "stream" the same reply comes as one JSON message, as the CLI's fallback needs it."""
    tool_use = ToolUse("write_draft", {"n": 1})
    reply: Reply = [Text("Once "), Text("more"), tool_use, Stop("pause_turn")]
    with OfflineModel(lambda _: reply) as model:
        message = json.loads(send(model, asked("Write.", stream=False)).read())
    text, call = message["content"]
    assert text == {"type": "text", "text": "Once more"}
    assert (call["name"], call["input"]) == ("mcp__draft__write_draft", {"n": 1})
    assert message["stop_reason"] == "pause_turn"


def test_side_requests_are_kept_apart() -> None:
    """A title, a token count and a probe get sensible answers and never reach the script."""
    title = asked("Name it.", tools=False, output_config={"format": {"type": "json_schema"}})
    del title["thinking"]
    with OfflineModel(lambda _: [Text("scripted")]) as model:
        named = streamed(send(model, title))
        counted = json.loads(send(model, asked("Count."), "/v1/messages/count_tokens").read())
        lost = send(model, {}, "/v1/elsewhere")
        lost.read()
        connection = HTTPConnection(urlsplit(model.url).netloc, timeout=10)
        connection.request("HEAD", "/api/hello")
        hello = connection.getresponse()
        connection.close()
    assert json.loads(named[2]["delta"]["text"]).keys() == {"title"}
    assert counted["input_tokens"] > 1
    assert (hello.status, lost.status) == (200, 404)
    assert len(model.side_requests) == 2
    assert model.requests == []


def test_a_failing_script_is_reported() -> None:
    """What the script raises comes back as the API's error."""
    with OfflineModel(lambda request: [Text(request.texts[99])]) as model:
        response = send(model, asked("Write."))
        assert response.status == 400
        assert b"IndexError" in response.read()


def test_a_request_knows_its_prompt() -> None:
    """The prompt is what the user said last, whatever else speaks in the user's name."""
    reminder = "<system-reminder>\nMind the gap.\n</system-reminder>"
    content: list[dict[str, Any]] = [
        {"type": "tool_result", "content": "old"},
        {"type": "text", "text": "[Request interrupted by user for tool use]\n"},
        {"type": "text", "text": "雨, please."},
    ]
    results = [
        {"type": "tool_result", "content": [{"type": "text", "text": "saved"}]},
        {"type": "text", "text": reminder},
    ]
    request = Request(
        asked("")
        | {
            "messages": [
                {"role": "user", "content": "First."},
                {"role": "system", "content": "# Environment"},
                {"role": "user", "content": content},
                {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
                {"role": "user", "content": results},
            ]
        }
    )
    assert request.prompt == "雨, please."
    assert request.tool_results == ["saved"]
    assert request.system == "You are a writer.\n# Environment"
    assert request.tools == ("mcp__draft__write_draft",)
    assert request.texts[0] == "First."
    assert request.said.endswith(f"Yes.\nsaved\n{reminder}")


@pytest.mark.parametrize("prompt", ["Rain on a tin roof", "写一篇关于雨的短文"])
def test_the_stand_in_says_what_it_is(prompt: str) -> None:
    """The banner comes first, and the draft repeats the prompt in the prompt's own script."""
    spoken, call = stand_in(Request(asked(prompt)))
    assert isinstance(spoken, Text) and isinstance(call, ToolUse)
    assert spoken.text.splitlines()[0] == BANNER
    assert prompt in spoken.text and prompt in call.input["text"]
    assert ("不是模型" in call.input["text"]) == (not prompt.isascii())

    (only,) = stand_in(Request(asked(prompt, tools=False)))
    assert only == spoken


def test_the_environment_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real keys, endpoints and proxies are out of reach, and come back afterwards."""
    names = ("ANTHROPIC_AUTH_TOKEN", "CLAUDECODE", "CLAUDE_CODE_USE_BEDROCK", "https_proxy")
    for name in names:
        monkeypatch.setenv(name, "real")
    env = offline_env("http://127.0.0.1:1", tmp_path)
    assert all(env[name] == "" for name in names)
    assert Path(env["CLAUDE_CONFIG_DIR"]).is_relative_to(tmp_path)
    with clean_environment():
        assert not any(name in os.environ for name in names)
    assert all(os.environ[name] == "real" for name in names)


@pytest.fixture
def env(model: OfflineModel, tmp_path: Path) -> dict[str, str]:
    return offline_env(model.url, tmp_path / "cli-home")


def options(env: dict[str, str], drafts: list[str], **more: Any) -> ClaudeAgentOptions:
    @tool("write_draft", "Replaces the draft.", {"text": str})
    async def write_draft(args: dict[str, Any]) -> dict[str, Any]:
        drafts.append(args["text"])
        return {"content": [{"type": "text", "text": f"Saved {args['text']}"}]}

    return ClaudeAgentOptions(
        env=env,
        cwd=env["HOME"],
        system_prompt={"type": "custom", "prompt": "You are a writer.", "snapshot": False},
        setting_sources=[],
        strict_mcp_config=True,
        tools=[],
        mcp_servers={"draft": create_sdk_mcp_server("draft", tools=[write_draft])},
        allowed_tools=["mcp__draft__write_draft"],
        include_partial_messages=True,
        **more,
    )


async def turn(prompt: str, options: ClaudeAgentOptions) -> ResultMessage:
    """One prompt, in a CLI of its own."""

    async def prompts() -> AsyncIterator[dict[str, Any]]:
        yield {
            "type": "user",
            "message": {"role": "user", "content": prompt},
            "parent_tool_use_id": None,
            "session_id": "default",
            "uuid": str(uuid.uuid4()),
            "client_composed": True,
        }

    with anyio.fail_after(30):
        async with ClaudeSDKClient(options) as client:
            await client.query(prompts())
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    return message
    raise AssertionError("the turn has no result")


async def test_the_cli_takes_a_turn(model: OfflineModel, env: dict[str, str]) -> None:
    """The real CLI writes the stand-in's draft with the tool and is told what became of it."""
    drafts: list[str] = []
    result = await turn("Rain on a tin roof", options(env, drafts))
    assert not result.is_error
    (draft,) = drafts
    assert "Rain on a tin roof" in draft
    first, second = model.requests
    assert first.prompt == second.prompt == "Rain on a tin roof"
    assert "You are a writer." in first.system
    assert (first.tool_results, second.tool_results) == ([], [f"Saved {draft}"])
    assert model.side_requests == []


async def test_the_cli_runs_every_tool(model: OfflineModel, env: dict[str, str]) -> None:
    """Both calls of one reply are made, and their results come back in the calls' order."""

    def script(request: Request) -> Reply:
        if request.tool_results:
            return [Text("Done.")]
        return [ToolUse("write_draft", {"text": text}) for text in ("one", "two")]

    model.script = script
    drafts: list[str] = []
    result = await turn("Write twice.", options(env, drafts))
    assert result.result == "Done."
    assert sorted(drafts) == ["one", "two"]
    assert model.requests[-1].tool_results == ["Saved one", "Saved two"]


async def test_the_cli_resumes(model: OfflineModel, env: dict[str, str]) -> None:
    """A session resumed from a store sends what was said before to the model."""
    model.script = lambda request: [Text(f"Re: {request.prompt}")]
    session_id, store = str(uuid.uuid4()), InMemorySessionStore()
    await turn("One.", options(env, [], session_id=session_id, session_store=store))
    await turn("Two.", options(env, [], resume=session_id, session_store=store))
    assert [text.strip() for text in model.requests[-1].texts] == ["One.", "Re: One.", "Two."]


async def test_the_cli_gives_up(model: OfflineModel, env: dict[str, str]) -> None:
    """An error that lasts is tried once more and then ends the turn in words."""
    model.script = lambda _: [ApiError(529, "overloaded_error", "Overloaded")]
    result = await turn("Write.", options(env, []))
    assert result.is_error
    assert result.result is not None and "Overloaded" in result.result
    assert len(model.requests) == 2
