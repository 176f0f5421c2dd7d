"""The stand-in model: a small Messages API on 127.0.0.1, for the real CLI without key or network.

    with OfflineModel(lambda request: [Text("Hello.")]) as model:
        options = ClaudeAgentOptions(env=offline_env(model.url, home))

A script turns each request into a reply: a list of steps, streamed in the form of the real API.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import uvicorn
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from smartwriter.agent.conversation import UNPRICED

BANNER = "This is SmartWriter's offline stand-in, not a model: it only repeats what it was asked."
MODEL = UNPRICED  # what replies, and so transcripts, name as their author

POLL_S = 0.01
PING_S = 1.0
CUT_S = 0.05  # for what was said to arrive: a reader may drop data that comes with the end
START_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Text:
    """Text in deltas; a Text after a Text goes on in the same block, even across a Wait."""

    text: str
    chunk_chars: int = 24
    pause_s: float = 0.0  # between deltas


@dataclass(frozen=True)
class Thinking:
    text: str


@dataclass(frozen=True)
class ToolUse:
    """A call of the tool whose full name ends in `name`.

    Of several in one reply, the CLI runs those of read-only tools at once, others one by one.
    """

    name: str
    input: Mapping[str, Any]
    chunk_chars: int = 64  # of the input's JSON, in each delta
    pause_s: float = 0.0  # between deltas
    break_at: int | None = None
    """So many characters of the input's JSON, then what follows in the reply happens inside the call:
    a Wait holds it there and it goes on; a Cut, an ApiError or a Stop leaves it without its end."""


@dataclass(frozen=True)
class Wait:
    """Hold the stream open here until the gate is set or the server stops."""

    gate: threading.Event


@dataclass(frozen=True)
class ApiError:
    """As the first step an HTTP error, later an error event in the stream; it ends the reply."""

    status: int
    type: str  # as in the API, e.g. "overloaded_error"
    message: str
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Cut:
    """Close the connection here; after a Text, or a ToolUse with ``break_at``, in the middle of its block."""


@dataclass(frozen=True)
class Stop:
    reason: str  # instead of "end_turn" or "tool_use", e.g. "max_tokens"


Step: TypeAlias = Text | Thinking | ToolUse | Wait | ApiError | Cut | Stop
Reply: TypeAlias = Sequence[Step]


@dataclass(frozen=True)
class Request:
    """The body of one `POST /v1/messages`."""

    body: dict[str, Any]

    @property
    def system(self) -> str:
        """The system prompt, then what the CLI says in the role "system" between the messages."""
        between = (m["content"] for m in self.messages if m["role"] == "system")
        return "\n".join(map(_text, (self.body.get("system", ""), *between)))

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    @property
    def texts(self) -> list[str]:
        """Everything the user, the assistant and the tools said, in order."""
        return [text for _, text in self._spoken()]

    @property
    def said(self) -> str:
        return "\n".join(self.texts)

    @property
    def prompt(self) -> str:
        """What the user asked last; what the CLI says in the user's name does not count."""
        return self._turn()[0]

    @property
    def asked(self) -> str:
        """What the writer asked last, without what the program told the model before it."""
        prompt = self.prompt
        return prompt.rpartition("]\n\n")[2] if prompt.startswith("[") else prompt

    @property
    def tool_results(self) -> list[str]:
        """The results since the prompt, in order."""
        return self._turn()[1]

    @property
    def tools(self) -> tuple[str, ...]:
        """The full names of the tools that can be called."""
        # The CLI adds a placeholder that must never be called, and marks it as deferred.
        tools = self.body.get("tools", ())
        return tuple(tool["name"] for tool in tools if not tool.get("defer_loading"))

    def tool(self, name: str) -> str | None:
        """The full name of the tool, e.g. "mcp__draft__write_draft" for "write_draft"."""
        return next((full for full in self.tools if f"__{full}".endswith(f"__{name}")), None)

    def _spoken(self) -> Iterator[tuple[str, str]]:
        """Pairs of speaker ("user", "assistant" or "tool") and text."""
        for message in self.messages:
            if message["role"] != "system":
                for block in _blocks(message["content"]):
                    if block["type"] == "text":
                        yield message["role"], block["text"]
                    elif block["type"] == "tool_result":
                        yield "tool", _text(block.get("content", ""))

    def _turn(self) -> tuple[str, list[str]]:
        # By block, because prompts that got no answer arrive together, in one message.
        prompt, results = "", list[str]()
        for speaker, text in self._spoken():
            if speaker == "tool":
                results.append(text)
            elif speaker == "user" and (asked := _ASIDE.sub("", text).strip()):
                prompt, results = asked, []
        return prompt, results


_ASIDE = re.compile(
    r"<system-reminder>.*?</system-reminder>"
    r"|\[Request interrupted by user[^]]*\]",
    re.DOTALL,
)


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: Any) -> str:
    return "\n".join(block["text"] for block in _blocks(content) if block["type"] == "text")


def asks_for_summary(request: Request) -> bool:
    """Whether the CLI asks for a summary, to go on from it in place of the conversation."""
    return request.prompt.startswith("CRITICAL: Respond with TEXT ONLY")


Script: TypeAlias = Callable[[Request], Reply]
Event: TypeAlias = dict[str, Any]


class OfflineModel:
    """The server, running in a thread of its own while the context is open.

    Opening and closing block for about 0.1 s, so neither belongs on an event loop.
    The script runs on the server's event loop: it sees requests one by one, in order of arrival,
    and must not block; a reply to be held back says so with `Wait`. What it raises becomes the
    reply's error.
    """

    url: str  # known once the context is open

    def __init__(self, script: Script | None = None) -> None:
        self.requests: list[Request] = []  # of the conversation, each before its reply begins
        self.side_requests: list[Request] = []  # the CLI's own: titles, probes, token counts
        self.script = script or stand_in  # may be exchanged while running
        self._stopping = threading.Event()

    def __enter__(self) -> OfflineModel:
        app = Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/api/hello", _hello, methods=["GET", "HEAD"]),
            ],
            exception_handlers={404: _not_found},
        )
        config = uvicorn.Config(
            app,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            # The CLI keeps its connections; one closed under it would look like a fault.
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=2,
        )
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="offline-model", daemon=True
        )
        # The web face may log through the same logger from its own thread, so only ours is dropped.
        logging.getLogger("uvicorn.error").addFilter(self._logged_elsewhere)
        self._thread.start()
        if not self._server.ready.wait(START_TIMEOUT_S):
            self.__exit__(None, None, None)
            raise RuntimeError("the offline model did not start")
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
        logging.getLogger("uvicorn.error").removeFilter(self._logged_elsewhere)

    def _logged_elsewhere(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread.ident

    async def _messages(self, http: HttpRequest) -> Response:
        request = Request(await http.json())
        if _is_side_request(request):
            self.side_requests.append(request)
            reply = _side_reply(request)
        else:
            self.requests.append(request)
            try:
                reply = self.script(request)
            except Exception as error:
                reply = [ApiError(400, "invalid_request_error", f"The script failed: {error!r}")]
        streams = request.body.get("stream", False)
        for step in reply[:1] if streams else reply:
            if isinstance(step, ApiError):
                return _http_error(step)
        events = self._events(request, reply)
        if streams:
            return StreamingResponse(_sse(events), media_type="text/event-stream")
        return StreamingResponse(_whole(events), media_type="application/json")

    async def _count_tokens(self, http: HttpRequest) -> Response:
        request = Request(await http.json())
        self.side_requests.append(request)
        return JSONResponse({"input_tokens": _tokens(request.body)})

    async def _events(self, request: Request, reply: Reply) -> AsyncIterator[Event]:
        usage = {
            "input_tokens": _tokens(request.body),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
        }
        message: dict[str, Any] = {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield {"type": "message_start", "message": message}
        yield {"type": "ping"}

        index = -1
        in_text = False  # text stays open until something else begins: a Cut falls inside it
        rest: ToolUse | None = None  # of a call that was broken off: as long as nothing ends it, it goes on
        stop_reason = "end_turn"
        output_tokens = 0
        for step in reply:
            if rest is not None and isinstance(step, Text | Thinking | ToolUse):
                async for event in self._rest(rest, index):
                    yield event
                rest = None
            match step:
                case Wait(gate):
                    while not await self._held(gate, PING_S):
                        yield {"type": "ping"}
                case ApiError():
                    yield _error(step)
                    return
                case Cut():
                    await self._held(self._stopping, CUT_S)
                    raise _CutOff
                case Stop(reason):
                    stop_reason = reason
                    if rest is not None:
                        yield {"type": "content_block_stop", "index": index}
                        rest = None
                case Text() | Thinking() | ToolUse():
                    if in_text and not isinstance(step, Text):
                        yield {"type": "content_block_stop", "index": index}
                        in_text = False
                    if not in_text:
                        index += 1
                        new = _opened(step, request)
                        yield {"type": "content_block_start", "index": index, "content_block": new}
                    async for event in self._typed(_deltas(step), step, index):
                        yield event
                    in_text = isinstance(step, Text)
                    rest = step if isinstance(step, ToolUse) and step.break_at is not None else None
                    if not in_text and rest is None:
                        yield {"type": "content_block_stop", "index": index}
                    if isinstance(step, ToolUse):
                        stop_reason = "tool_use"
                    output_tokens += _tokens(step.input if isinstance(step, ToolUse) else step.text)
        if rest is not None:
            async for event in self._rest(rest, index):
                yield event
        if in_text:
            yield {"type": "content_block_stop", "index": index}
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {**usage, "output_tokens": max(1, output_tokens)},
        }
        yield {"type": "message_stop"}

    async def _typed(
        self, deltas: Iterator[dict[str, Any]], step: Text | Thinking | ToolUse, index: int
    ) -> AsyncIterator[Event]:
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            if not isinstance(step, Thinking) and step.pause_s:
                await self._held(self._stopping, step.pause_s)

    async def _rest(self, call: ToolUse, index: int) -> AsyncIterator[Event]:
        async for event in self._typed(_input_deltas(call, slice(call.break_at, None)), call, index):
            yield event
        yield {"type": "content_block_stop", "index": index}

    async def _held(self, gate: threading.Event, limit_s: float) -> bool:
        """Whether the gate opened, or the server began to stop, within the limit."""
        # Polled, because a thread per waiting stream would outlive a client that goes away.
        until = time.monotonic() + limit_s
        while not (gate.is_set() or self._stopping.is_set()):
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            await asyncio.sleep(min(POLL_S, left_s))
        return True


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class _CutOff(Exception):
    """Ends the response unfinished, on which uvicorn closes the connection."""


def _is_side_request(request: Request) -> bool:
    # The conversation carries tools or thinking, or both; the CLI's side calls carry neither.
    body = request.body
    return not (body.get("tools") or body.get("thinking")) or body.get("max_tokens") == 1


def _side_reply(request: Request) -> Reply:
    wants_json = "format" in request.body.get("output_config", {})
    return [Text(json.dumps({"title": "Offline"}) if wants_json else BANNER)]


def _opened(step: Text | Thinking | ToolUse, request: Request) -> dict[str, Any]:
    match step:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUse(name):
            full_name = request.tool(name) or name
            tool_id = f"toolu_{uuid.uuid4().hex[:24]}"
            return {"type": "tool_use", "id": tool_id, "name": full_name, "input": {}}


def _deltas(step: Text | Thinking | ToolUse) -> Iterator[dict[str, Any]]:
    match step:
        case Text(text, chunk_chars):
            for at in range(0, len(text), chunk_chars):
                yield {"type": "text_delta", "text": text[at : at + chunk_chars]}
        case Thinking(text):
            yield {"type": "thinking_delta", "thinking": text}
            yield {"type": "signature_delta", "signature": "b2ZmbGluZQ=="}
        case ToolUse():
            yield from _input_deltas(step, slice(step.break_at))


def _input_deltas(call: ToolUse, part: slice) -> Iterator[dict[str, Any]]:
    text = json.dumps(call.input)[part]
    for at in range(0, len(text), call.chunk_chars):
        yield {"type": "input_json_delta", "partial_json": text[at : at + call.chunk_chars]}


def _error(error: ApiError) -> dict[str, Any]:
    return {"type": "error", "error": {"type": error.type, "message": error.message}}


def _http_error(error: ApiError) -> Response:
    headers = {"request-id": f"req_{uuid.uuid4().hex[:24]}"}
    if error.retry_after_s is not None:
        headers["retry-after"] = f"{error.retry_after_s:g}"
    return JSONResponse(_error(error), error.status, headers)


async def _hello(_: HttpRequest) -> Response:
    return Response()


async def _not_found(http: HttpRequest, _: Exception) -> Response:
    return _http_error(ApiError(404, "not_found_error", f"There is no {http.url.path} here."))


async def _sse(events: AsyncIterator[Event]) -> AsyncIterator[str]:
    async for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


async def _whole(events: AsyncIterator[Event]) -> AsyncIterator[str]:
    """The message that the events build: the CLI asks again without a stream when one breaks."""
    message: dict[str, Any] = {}
    async for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                message["content"].append(event["content_block"])
            case "content_block_delta":
                block = message["content"][-1]
                (key,) = event["delta"].keys() - {"type"}
                block[key] = block.get(key, "") + event["delta"][key]
            case "content_block_stop":
                block = message["content"][-1]
                if "partial_json" in block:
                    block["input"] = from_json(block.pop("partial_json"), allow_partial=True)
            case "message_delta":
                message |= event["delta"] | {"usage": event["usage"]}
    yield json.dumps(message)


def _tokens(value: Any) -> int:
    """About as many as the real API would count."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return max(1, len(text) // 4)


def stand_in(request: Request) -> Reply:
    """Who it is and what it was asked, a draft that repeats it, and what became of the draft."""
    if asks_for_summary(request):
        return [Text(f"<summary>{BANNER}</summary>")]
    words = " ".join(request.asked.split())[:400]
    chinese = _CJK.search(words) is not None
    if request.tool_results:
        answer = request.tool_results[-1].partition("\n")[0][:200]
        return [Text(f"{'草稿工具答复：' if chinese else 'The draft tool answered: '}{answer}")]
    asked = f"它收到的要求是：“{words}”。" if chinese else f"It was asked: “{words}”."
    spoken = Text(f"{BANNER}\n{asked}", pause_s=0.02)
    write_draft = request.tool("write_draft")
    if write_draft is None:
        return [spoken]
    draft = _CHINESE_DRAFT if chinese else _DRAFT
    return [spoken, ToolUse(write_draft, {"text": draft.format(words=words)})]


_CJK = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")

_DRAFT = """\
What was asked for here: {words}

No model has written this. The offline stand-in repeats the request,
so that there is a text to keep, compare and fork.
"""

_CHINESE_DRAFT = """\
这里要写的是：{words}

这段文字不是模型写的。离线替身只把要求复述一遍，好让这里有一份可以保存、比较和分叉的文稿。
"""


def offline_env(url: str, home: Path) -> dict[str, str]:
    """The CLI's environment for the server at `url`; what it writes, it writes into `home`."""
    config, tmp = home / ".claude", home / "tmp"
    for folder in (config, tmp):
        folder.mkdir(parents=True, exist_ok=True)
    # The SDK adds to the environment and cannot take away, so what would lead elsewhere is blanked.
    return dict.fromkeys(filter(_leads_elsewhere, os.environ), "") | {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-offline",
        "HOME": str(home),
        "USERPROFILE": str(home),
        "CLAUDE_CONFIG_DIR": str(config),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_TMPDIR": str(tmp),
        "CLAUDE_CODE_MAX_RETRIES": "1",  # of ten, the last would come after minutes
        "NO_PROXY": "127.0.0.1",
    }


@contextmanager
def clean_environment() -> Iterator[None]:
    """Without any variable that would point the CLI, or an HTTP client, at something real."""
    taken = {name: os.environ.pop(name) for name in list(os.environ) if _leads_elsewhere(name)}
    try:
        yield
    finally:
        os.environ.update(taken)


def _leads_elsewhere(name: str) -> bool:
    name = name.upper()
    return name.startswith(("ANTHROPIC_", "CLAUDE")) or name.endswith("_PROXY")
