"""A reply in the form of the real API: as the events of its stream, or as one message."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeAlias

from pydantic_core import from_json

from smartwriter.agent.conversation import UNPRICED
from smartwriter.agent.offline.script import (
    ApiError,
    Cut,
    Reply,
    Request,
    Step,
    Stop,
    Text,
    Thinking,
    ToolUse,
    Wait,
)

MODEL = UNPRICED  # what replies, and so transcripts, name as their author

POLL_S = 0.01
PING_S = 1.0
CUT_S = 0.05  # for what was said to arrive: a reader may drop data that comes with the end

ApiEvent: TypeAlias = dict[str, Any]


class CutOff(Exception):
    """Ends the response unfinished, on which uvicorn closes the connection."""


class Streaming:
    """One reply, on its way."""

    def __init__(self, request: Request, stopping: threading.Event) -> None:
        """:param stopping: set when the server stops: nothing is waited for any more."""
        self._request = request
        self._stopping = stopping
        self._index = -1  # of the content block
        self._in_text = False  # it stays open until something else begins: a Cut falls inside it
        self._rest: ToolUse | None = (
            None  # of a call that was broken off: unless something ends it, it goes on
        )
        self._failed = False
        self._stop_reason = "end_turn"
        self._input_tokens = tokens(request.body)
        self._output_tokens = 0

    async def events(self, reply: Reply) -> AsyncIterator[ApiEvent]:
        """:raises CutOff: as the reply wants it."""
        yield {"type": "message_start", "message": self._message()}
        yield {"type": "ping"}
        for step in reply:
            async for event in self._take(step):
                yield event
            if self._failed:
                return
        async for event in self._go_on():
            yield event
        if self._in_text:
            yield self._closed()
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": self._stop_reason, "stop_sequence": None},
            "usage": self._usage(max(1, self._output_tokens)),
        }
        yield {"type": "message_stop"}

    def _message(self) -> dict[str, Any]:
        return {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._usage(1),
        }

    def _usage(self, output_tokens: int) -> dict[str, int]:
        return {
            "input_tokens": self._input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output_tokens,
        }

    async def _take(self, step: Step) -> AsyncIterator[ApiEvent]:
        match step:
            case Wait(gate):
                while not await self._held(gate, PING_S):
                    yield {"type": "ping"}
            case ApiError():
                self._failed = True
                yield error_body(step)
            case Cut():
                await self._held(self._stopping, CUT_S)
                raise CutOff
            case Stop(reason):
                self._stop_reason = reason
                if self._rest is not None:
                    yield self._closed()
            case Text() | Thinking() | ToolUse():
                async for event in self._say(step):
                    yield event

    async def _say(self, step: Text | Thinking | ToolUse) -> AsyncIterator[ApiEvent]:
        async for event in self._go_on():
            yield event
        if self._in_text and not isinstance(step, Text):
            yield self._closed()
        if not self._in_text:
            self._index += 1
            new = _opened(step, self._request)
            yield {"type": "content_block_start", "index": self._index, "content_block": new}
        async for event in self._typed(_deltas(step), step):
            yield event
        self._in_text = isinstance(step, Text)
        self._rest = step if isinstance(step, ToolUse) and step.break_at is not None else None
        if not self._in_text and self._rest is None:
            yield self._closed()
        if isinstance(step, ToolUse):
            self._stop_reason = "tool_use"
        self._output_tokens += tokens(step.input if isinstance(step, ToolUse) else step.text)

    async def _go_on(self) -> AsyncIterator[ApiEvent]:
        """With a call that was broken off."""
        if self._rest is not None:
            deltas = _input_deltas(self._rest, slice(self._rest.break_at, None))
            async for event in self._typed(deltas, self._rest):
                yield event
            yield self._closed()

    def _closed(self) -> ApiEvent:
        self._in_text, self._rest = False, None
        return {"type": "content_block_stop", "index": self._index}

    async def _typed(
        self, deltas: Iterator[dict[str, Any]], step: Text | Thinking | ToolUse
    ) -> AsyncIterator[ApiEvent]:
        for delta in deltas:
            yield {"type": "content_block_delta", "index": self._index, "delta": delta}
            if not isinstance(step, Thinking) and step.pause_s:
                await self._held(self._stopping, step.pause_s)

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


def error_body(error: ApiError) -> dict[str, Any]:
    return {"type": "error", "error": {"type": error.type, "message": error.message}}


async def as_stream(events: AsyncIterator[ApiEvent]) -> AsyncIterator[str]:
    async for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


async def as_message(events: AsyncIterator[ApiEvent]) -> AsyncIterator[str]:
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


def tokens(value: Any) -> int:
    """About as many as the real API would count."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return max(1, len(text) // 4)
