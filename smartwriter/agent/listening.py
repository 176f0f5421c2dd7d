"""What happens in a turn, from the SDK's messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    MirrorErrorMessage,
    RateLimitEvent,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from smartwriter.agent.conversation import Happening
from smartwriter.agent.endings import unusual
from smartwriter.agent.tool_input import Piece, ToolInput, pieces_of
from smartwriter.events import (
    ArticleDelta,
    CallBegun,
    CallDropped,
    Compacted,
    NotSaved,
    RateLimited,
    Retrying,
    TextDelta,
    TextDropped,
    ThinkingDelta,
    ToolAnswered,
    ToolUsed,
)
from smartwriter.sessions.compaction import of_metadata
from smartwriter.sessions.speakers import CLI_MODEL

SERVER = "draft"
"""What the CLI knows our tools by: those of this server."""
_NOT_JSON = "__unparsedToolInput"  # the CLI's key in the input of a call that was cut off at max_tokens


class Listener:
    """Turns the SDK's messages into what happened."""

    def __init__(self, hear: Callable[[Happening], None]) -> None:
        self.model = ""
        self.answered = False
        """The last message of the API is whole, and it asks for no tool."""
        self.compacted = False
        self.not_compacted = "There is nothing to compact yet."
        """Why a compaction did not come about."""
        self.stop_reason = ""
        """Of the last message of the API, if it is unusual."""
        self.spoke = False
        """The model has said something, or used a tool."""
        self._hear = hear
        self._characters = 0  # of the message so far, while it is not whole
        self._inputs: dict[int, tuple[str, ToolInput]] = {}  # of the message's calls, by block
        self._calls: dict[str, bool] = {}  # of the answer, and whether each has arrived

    def take(self, message: Message) -> None:
        match message:
            case StreamEvent():
                self._take_event(message.event)
            case AssistantMessage():
                if message.model == CLI_MODEL:  # the CLI's own words
                    return
                self.model = message.model
                self.stop_reason = unusual(message.stop_reason or self.stop_reason)
                for block in message.content:
                    self.spoke |= isinstance(block, ToolUseBlock)
                    self.spoke |= isinstance(block, TextBlock) and bool(block.text.strip())
                    if isinstance(block, ToolUseBlock):
                        self._take_call(block)
            case UserMessage(content=list(blocks)):
                for block in blocks:
                    if isinstance(block, ToolResultBlock):
                        said = _text(block.content)
                        self._hear(
                            ToolAnswered(text=said, failed=bool(block.is_error), call=block.tool_use_id)
                        )
            case MirrorErrorMessage():
                self._hear(NotSaved(detail=message.error))
            case SystemMessage(subtype="compact_boundary"):
                self.compacted = True
                self._hear(Compacted(**asdict(of_metadata(message.data.get("compact_metadata")))))
            case SystemMessage(subtype="status", data={"compact_error": str(why)}):
                self.not_compacted = why
            case SystemMessage(subtype="api_retry"):
                self._drop_broken()
                self._hear(_retry(message.data))
            case RateLimitEvent(rate_limit_info=info) if info.status == "rejected":
                until = info.resets_at and datetime.fromtimestamp(info.resets_at, timezone.utc)
                self._hear(RateLimited(until=until or None))

    def _take_event(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "message_start"}:
                self._drop_broken()
                self.answered, self.stop_reason = False, ""
            case {"type": "content_block_delta", "delta": {"text": str(text)}}:
                self._characters += len(text)
                self._hear(TextDelta(text=text))
            case {"type": "content_block_delta", "delta": {"thinking": str(text)}}:
                self._hear(ThinkingDelta(text=text))
            case {
                "type": "content_block_start",
                "index": int(block),
                "content_block": {"type": "tool_use", "id": str(call), "name": str(name)},
            }:
                self._inputs[block] = (call, ToolInput())
                self._calls[call] = False
                self._hear(CallBegun(call=call, tool=_bare(name)))
            case {
                "type": "content_block_delta",
                "index": int(block),
                "delta": {"partial_json": str(data)},
            } if block in self._inputs:
                call, reader = self._inputs[block]
                for piece in reader.feed(data):
                    self._take_piece(call, piece)
            case {"type": "message_delta", "delta": {"stop_reason": reason}}:
                self.answered, self.stop_reason = reason == "end_turn", unusual(str(reason or ""))
                self._characters = 0
                self._calls.clear()

    def _drop_broken(self) -> None:
        # The CLI closes a message that was broken off as if it were whole, but gives no reason.
        if self._characters:
            self._hear(TextDropped(characters=self._characters))
            self._characters = 0
        for call, arrived in self._calls.items():
            if not arrived:
                self._hear(CallDropped(call=call))
        self._calls.clear()
        self._inputs.clear()

    def _take_call(self, block: ToolUseBlock) -> None:
        name, cut_off = _bare(block.name), _NOT_JSON in block.input
        if block.id not in {call for call, _ in self._inputs.values()}:  # it came as a whole, not as a stream
            self._hear(CallBegun(call=block.id, tool=name))
            for piece in pieces_of(block.input) if not cut_off else []:
                self._take_piece(block.id, piece)
        if block.id in self._calls:
            self._calls[block.id] = True
        self._hear(ToolUsed(name=name, call=block.id, whole=not cut_off))

    def _take_piece(self, call: str, piece: Piece) -> None:
        if piece.path:  # else the input is no object
            self._hear(ArticleDelta(call=call, field=piece.field, edit=piece.edit, text=piece.text))


def _bare(name: str) -> str:
    """A tool's name as we gave it."""
    return name.removeprefix(f"mcp__{SERVER}__")


def _retry(data: dict[str, Any]) -> Retrying:
    status = data.get("error_status")
    return Retrying(
        attempt=data.get("attempt") or 0,
        of=data.get("max_retries") or 0,
        wait_s=(data.get("retry_delay_ms") or 0) / 1000,
        why=str(data.get("error") or (f"HTTP {status}" if status else "no answer")),
    )


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block["text"]) for block in content or [] if "text" in block)
