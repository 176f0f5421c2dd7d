"""What the stand-in model is asked, and what a script lets it reply, step by step."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


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
