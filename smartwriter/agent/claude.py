"""Conversations with Claude: the only module that runs the Claude Agent SDK.

Every setting below is there for a reason that was measured; see the comments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from anyio import CancelScope, fail_after, move_on_after
from anyio.to_thread import run_sync
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    Message,
    MirrorErrorMessage,
    RateLimitEvent,
    ResultMessage,
    SdkMcpTool,
    SessionKey,
    SessionStore,
    SessionStoreEntry,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolAnnotations,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    get_session_messages_from_store,
)

from smartwriter.agent.compacting import hooks
from smartwriter.agent.endings import EMPTY, unusual
from smartwriter.agent.environment import blanked
from smartwriter.agent.spawning import own_session
from smartwriter.agent.tool_input import Piece, ToolInput, pieces_of
from smartwriter.agent.tools import Tool
from smartwriter.errors import SmartWriterError
from smartwriter.files.durable import write_document
from smartwriter.sessions.compaction import Compaction, of_metadata
from smartwriter.sessions.speakers import CLI_MODEL
from smartwriter.sessions.store import BoundSessionStore
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.values import Usage

_SERVER = "draft"
_STDERR_LINES = 20
UNPRICED = "smartwriter-offline"
"""What the stand-in calls its model. The CLI does not know it, and guesses at a price."""
_NOT_JSON = "__unparsedToolInput"  # the CLI's key in the input of a call that was cut off at max_tokens
LOGIN_HINT = (
    "Claude is not logged in: run `claude` once and log in, or set ANTHROPIC_API_KEY; "
    "to try everything without either, add --offline."
)


_ANYWHERE = Path("/")
_MOST_RESULT_CHARACTERS = 500_000  # of a tool's answer; the CLI allows no more
RESULT_GRACE_S = 20.0  # for the result, once the answer has ended
_SILENCES = 4  # parts of the time that the CLI may be silent


class AgentError(Exception):
    """The conversation broke; the message has the SDK's own words."""


@dataclass(frozen=True)
class Said:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class Unsaid:
    """The API was asked anew: the last of the text does not count."""

    characters: int


@dataclass(frozen=True)
class Thought:
    text: str


@dataclass(frozen=True)
class BeganCall:
    """The input of a tool begins to arrive."""

    call: str
    tool: str


@dataclass(frozen=True)
class Typed:
    """More of a call's input."""

    call: str
    piece: Piece


@dataclass(frozen=True)
class DroppedCall:
    """The API was asked anew, before the call had come to its end."""

    call: str


@dataclass(frozen=True)
class UsedTool:
    name: str
    call: str
    whole: bool
    """False: the answer ended before the call did."""


@dataclass(frozen=True)
class ToolAnswer:
    text: str
    failed: bool
    call: str


@dataclass(frozen=True)
class Retry:
    """The API is asked again after a wait."""

    attempt: int
    of: int
    wait_s: float
    why: str


@dataclass(frozen=True)
class Limited:
    """The account's rate limit is reached."""

    until: datetime | None


@dataclass(frozen=True)
class NotStored:
    """A part of the transcript did not reach the store."""

    detail: str


@dataclass(frozen=True)
class Compacted:
    """The model goes on from a summary of the conversation."""

    compaction: Compaction


@dataclass(frozen=True)
class SessionChanged:
    """The conversation goes on under another session id."""

    session_id: str


Happening = (
    Said
    | Unsaid
    | Thought
    | BeganCall
    | Typed
    | DroppedCall
    | UsedTool
    | ToolAnswer
    | Retry
    | Limited
    | NotStored
    | Compacted
    | SessionChanged
)


@dataclass(frozen=True)
class Ended:
    """A turn's result."""

    error: str
    """Why there is no whole answer; empty when there is one."""
    usage: Usage
    model: str
    stop_reason: str = ""
    """Of the model, where it was not done; see ``Turn.stop_reason``."""
    alive: bool = True
    """False: the conversation cannot be used any more."""


@dataclass(frozen=True)
class SessionSettings:
    """What one draft's session needs."""

    store: BoundSessionStore
    session_id: str
    resume: bool
    system_prompt: str
    prompt_file: Path
    """Where the CLI finds the prompt; there only while the conversation lasts."""
    tools: Sequence[Tool]
    after_compaction: Callable[[], str]
    """Called before the model is asked anything after a compaction; returns what it is to be told."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of this session's CLI alone."""
    all_kept: Callable[[], bool] = lambda: True
    """Whether all of the transcript is on a disk. If not, the CLI's own copy of it is left."""


@dataclass(frozen=True)
class ClaudeAgent:
    """Opens conversations, all of them with the same account and model."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the CLI, over those of this process that it needs."""
    pass_on: Sequence[str] = ()
    """Names of variables of this process that it gets, too."""
    model: str | None = None
    """None: the CLI's own choice."""
    cli_path: Path | None = None
    """None: the CLI that the SDK bundles."""

    @asynccontextmanager
    async def converse(self, settings: SessionSettings) -> AsyncIterator[Conversation]:
        """A live CLI process for one session. :raises AgentError: when it does not start."""
        stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        # In a file, not in an argument: those end at 128 KiB, and anybody may read them.
        try:
            await run_sync(write_document, settings.prompt_file, settings.system_prompt)
        except OSError as error:
            raise AgentError(str(error)) from error
        try:
            client = ClaudeSDKClient(self._options(settings, stderr))
            try:
                with own_session():
                    await client.connect()
            except (ClaudeSDKError, RuntimeError, OSError) as error:
                raise _agent_error(error, stderr) from error
            try:
                yield Conversation(client, settings.session_id, stderr)
            finally:
                if not settings.all_kept():
                    client._materialized = None  # which the SDK would remove
                await client.disconnect()
        finally:
            with suppress(OSError):  # its disk may be gone
                await run_sync(settings.prompt_file.unlink, True)

    async def ask(self, prompt: str, cwd: Path, timeout_s: float = 120.0) -> str:
        """The answer to one question, in a session of its own that nothing keeps.

        :raises AgentError: when there is none.
        """
        stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        options = ClaudeAgentOptions(
            system_prompt="",
            extra_args={"no-session-persistence": None},
            setting_sources=[],
            strict_mcp_config=True,
            tools=[],
            max_turns=1,
            cwd=cwd,
            env={**blanked(also=self.pass_on), **self.env},
            model=self.model,
            cli_path=self.cli_path,
            stderr=stderr.append,
        )
        said: list[str] = []
        failed = ""
        # Not query(): left at an error, it prints a traceback; followed to its end, the SDK's log.
        client = ClaudeSDKClient(options)
        try:
            with fail_after(timeout_s):
                with own_session():
                    await client.connect()
                await client.query(_one(_verbatim(prompt, str(uuid4()))))
                async for message in client.receive_response():
                    if isinstance(message, AssistantMessage):
                        said += [block.text for block in message.content if isinstance(block, TextBlock)]
                    elif isinstance(message, ResultMessage):
                        failed = _error(message)
        except TimeoutError:
            raise AgentError(f"The model has not answered in {timeout_s:.0f} s.") from None
        except (ClaudeSDKError, RuntimeError, OSError) as error:
            raise _agent_error(error, stderr) from error
        finally:
            with CancelScope(shield=True):
                await client.disconnect()
        if failed:
            raise AgentError(failed)
        return "".join(said)

    def _options(self, settings: SessionSettings, stderr: deque[str]) -> ClaudeAgentOptions:
        return ClaudeAgentOptions(
            session_store=settings.store,
            # "batched" loses the whole turn when this process is killed in it.
            session_store_flush="eager",
            session_id=None if settings.resume else settings.session_id,
            resume=settings.session_id if settings.resume else None,
            # With a store, a transcript line over the default 1 MiB kills the client.
            max_buffer_size=64 << 20,
            # With snapshots a resumed session silently keeps its old prompt, and its old memory.
            # The file replaces the preset's text; only as a preset does "snapshot" reach the CLI.
            system_prompt={"type": "preset", "preset": "claude_code", "snapshot": False},
            extra_args={"system-prompt-file": str(settings.prompt_file)},
            # The writer's coding setup must not leak in; no shell, no files.
            setting_sources=[],
            strict_mcp_config=True,
            tools=[],
            mcp_servers={_SERVER: create_sdk_mcp_server(_SERVER, tools=[_sdk(t) for t in settings.tools])},
            allowed_tools=[f"mcp__{_SERVER}__{tool.name}" for tool in settings.tools],
            include_partial_messages=True,
            hooks=hooks(settings.after_compaction),
            # The model is told where it is; the writer's folders are none of its business.
            cwd=_ANYWHERE,
            env={**blanked(also=self.pass_on), **self.env, **settings.env},
            model=self.model,
            cli_path=self.cli_path,
            stderr=stderr.append,
        )


class Conversation:
    """A live session, for one turn after the other."""

    def __init__(self, client: ClaudeSDKClient, session_id: str, stderr: deque[str]) -> None:
        self._client = client
        self._session_id = session_id
        self._stderr = stderr
        self._interrupted = False
        self._cost_usd = 0.0  # of the turns so far: the SDK reports the sum
        self._messages: AsyncIterator[Message]

    async def turn(
        self, prompt: str, uuid: str, hear: Callable[[Happening], None], silence_s: float
    ) -> Ended:
        """Send a prompt and follow it to its result.

        :param uuid: becomes that of the prompt's transcript entry.
        :param hear: is told what happens.
        :param silence_s: how long the CLI may say nothing at all.
        :raises AgentError: it died, or fell silent; the conversation cannot be used any more.
        """
        listener = _Listener(hear)
        self._interrupted = False
        try:
            await self._client.query(_one(_verbatim(prompt, uuid)))
            self._messages = self._client.receive_messages()
            while not isinstance(message := await self._next(listener, silence_s), ResultMessage):
                if message is None:
                    return Ended("", Usage(), listener.model, listener.stop_reason, alive=False)
                listener.take(message)
        except (ClaudeSDKError, RuntimeError, OSError) as error:
            raise _agent_error(error, self._stderr) from error
        if message.session_id and message.session_id != self._session_id:
            self._session_id = message.session_id
            hear(SessionChanged(message.session_id))
        usage = _usage(message, self._cost_usd)
        if listener.model == UNPRICED:
            usage = usage.model_copy(update={"cost_usd": 0.0})
        self._cost_usd = message.total_cost_usd or self._cost_usd
        why = _error(message)
        if is_command(prompt):
            why = why or ("" if listener.compacted else listener.not_compacted)
            return Ended(why, usage, listener.model)
        empty = not (why or listener.spoke or self._interrupted)
        return Ended(why, usage, listener.model, EMPTY if empty else listener.stop_reason)

    async def interrupt(self) -> None:
        """Stop the turn; it still comes to its result, and what was written stays.

        :raises AgentError: the CLI is gone.
        """
        self._interrupted = True
        try:
            await self._client.interrupt()
        except (ClaudeSDKError, RuntimeError, OSError) as error:
            raise _agent_error(error, self._stderr) from error

    async def _next(self, listener: _Listener, silence_s: float) -> Message | None:
        """The next message; None when the answer has ended but no result comes."""
        near_end = listener.answered or self._interrupted
        wait_s = min(RESULT_GRACE_S, silence_s) if near_end else silence_s
        # In parts, each counted for no more than it was to last: while this process slept (ctrl-Z, a closed
        # lid), it is not the CLI that was silent. What came meanwhile is heard in the next part.
        for _ in range(_SILENCES):
            with move_on_after(wait_s / _SILENCES):
                try:
                    return await anext(self._messages)
                except StopAsyncIteration:
                    raise AgentError("The CLI ended without a result. " + " ".join(self._stderr)) from None
            self._messages = self._client.receive_messages()  # cancelled, the one before has ended
        if listener.answered:
            return None
        raise AgentError(f"The CLI has said nothing for {wait_s:.0f} s. " + " ".join(self._stderr))


class _Listener:
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
                        self._hear(ToolAnswer(said, bool(block.is_error), block.tool_use_id))
            case MirrorErrorMessage():
                self._hear(NotStored(message.error))
            case SystemMessage(subtype="compact_boundary"):
                self.compacted = True
                self._hear(Compacted(of_metadata(message.data.get("compact_metadata"))))
            case SystemMessage(subtype="status", data={"compact_error": str(why)}):
                self.not_compacted = why
            case SystemMessage(subtype="api_retry"):
                self._drop_broken()
                self._hear(_retry(message.data))
            case RateLimitEvent(rate_limit_info=info) if info.status == "rejected":
                until = info.resets_at and datetime.fromtimestamp(info.resets_at, timezone.utc)
                self._hear(Limited(until or None))

    def _take_event(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "message_start"}:
                self._drop_broken()
                self.answered, self.stop_reason = False, ""
            case {"type": "content_block_delta", "delta": {"text": str(text)}}:
                self._characters += len(text)
                self._hear(Said(text))
            case {"type": "content_block_delta", "delta": {"thinking": str(text)}}:
                self._hear(Thought(text))
            case {
                "type": "content_block_start",
                "index": int(block),
                "content_block": {"type": "tool_use", "id": str(call), "name": str(name)},
            }:
                self._inputs[block] = (call, ToolInput())
                self._calls[call] = False
                self._hear(BeganCall(call, _bare(name)))
            case {
                "type": "content_block_delta",
                "index": int(block),
                "delta": {"partial_json": str(data)},
            } if block in self._inputs:
                call, reader = self._inputs[block]
                for piece in reader.feed(data):
                    self._hear(Typed(call, piece))
            case {"type": "message_delta", "delta": {"stop_reason": reason}}:
                self.answered, self.stop_reason = reason == "end_turn", unusual(str(reason or ""))
                self._characters = 0
                self._calls.clear()

    def _drop_broken(self) -> None:
        # The CLI closes a message that was broken off as if it were whole, but gives no reason.
        if self._characters:
            self._hear(Unsaid(self._characters))
            self._characters = 0
        for call, arrived in self._calls.items():
            if not arrived:
                self._hear(DroppedCall(call))
        self._calls.clear()
        self._inputs.clear()

    def _take_call(self, block: ToolUseBlock) -> None:
        name, cut_off = _bare(block.name), _NOT_JSON in block.input
        if block.id not in {call for call, _ in self._inputs.values()}:  # it came as a whole, not as a stream
            self._hear(BeganCall(block.id, name))
            for piece in pieces_of(block.input) if not cut_off else []:
                self._hear(Typed(block.id, piece))
        if block.id in self._calls:
            self._calls[block.id] = True
        self._hear(UsedTool(name, block.id, whole=not cut_off))


def sdk_reads(entries: Sequence[Mapping[str, Any]]) -> set[str]:
    """The uuids of the messages that the SDK's own reader finds in a transcript."""

    class Shown:
        async def load(self, key: SessionKey) -> list[SessionStoreEntry]:
            return cast("list[SessionStoreEntry]", entries)

    reading = get_session_messages_from_store(cast("SessionStore", Shown()), str(uuid4()))
    try:
        reading.send(None)  # there is nothing in it to wait for
    except StopIteration as done:
        return {message.uuid for message in done.value}
    raise RuntimeError("The SDK's reader waits for something.")


def _bare(name: str) -> str:
    """A tool's name as we gave it."""
    return name.removeprefix(f"mcp__{_SERVER}__")


async def _one(message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield message


def _verbatim(prompt: str, uuid: str) -> dict[str, Any]:
    message = {
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "parent_tool_use_id": None,
        "session_id": "default",
        "uuid": uuid,
    }
    # Else "@/any/path" in a pasted text makes the CLI read that file and send it.
    return message if is_command(prompt) else message | {"client_composed": True}


def _sdk(tool: Tool) -> SdkMcpTool[Any]:
    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            text, failed = await tool.run(arguments), False
        except SmartWriterError as error:
            text, failed = str(error), True
        return {"content": [{"type": "text", "text": text}], "is_error": failed}

    schema = {
        "type": "object",
        "properties": dict(tool.parameters),
        "required": [name for name in tool.parameters if name not in tool.optional],
    }
    return SdkMcpTool(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        handler=handle,
        # A longer answer goes into a file that the model has no tool to read, and it sees 2 kB of it.
        annotations=ToolAnnotations(maxResultSizeChars=_MOST_RESULT_CHARACTERS),
    )


def _error(result: ResultMessage) -> str:
    if not result.is_error:
        return ""
    said = result.result or "; ".join(result.errors or []) or result.subtype
    return _explained(said)


def _retry(data: dict[str, Any]) -> Retry:
    status = data.get("error_status")
    return Retry(
        attempt=data.get("attempt") or 0,
        of=data.get("max_retries") or 0,
        wait_s=(data.get("retry_delay_ms") or 0) / 1000,
        why=str(data.get("error") or (f"HTTP {status}" if status else "no answer")),
    )


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block["text"]) for block in content or [] if "text" in block)


def _usage(result: ResultMessage, cost_before_usd: float) -> Usage:
    usage = result.usage or {}
    cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(
        input_tokens=usage.get("input_tokens") or 0,
        cached_tokens=sum(usage.get(name) or 0 for name in cached),
        output_tokens=usage.get("output_tokens") or 0,
        cost_usd=max(0.0, (result.total_cost_usd or 0.0) - cost_before_usd),
        duration_ms=result.duration_ms,
    )


def _agent_error(error: Exception, stderr: deque[str]) -> AgentError:
    said = " ".join([str(error), *stderr]).strip()
    return AgentError(_explained(said))


def _explained(said: str) -> str:
    """The CLI's words, or for a missing login what to do about it."""
    lower = said.lower()
    if "not logged in" in lower or "/login" in lower:
        return LOGIN_HINT
    return f"{said}. {LOGIN_HINT}" if "failed to authenticate" in lower else said
