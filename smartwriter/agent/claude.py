"""Conversations with Claude: the only module that runs the Claude Agent SDK.

Every setting below is there for a reason that was measured; see the comments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from anyio.to_thread import run_sync
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    MirrorErrorMessage,
    ResultMessage,
    SdkMcpTool,
    SessionKey,
    SessionStore,
    SessionStoreEntry,
    StreamEvent,
    ToolUseBlock,
    create_sdk_mcp_server,
    fork_session_via_store,
    get_session_messages_from_store,
)

from smartwriter.agent.tools import Tool
from smartwriter.errors import SmartWriterError
from smartwriter.journal import write_document
from smartwriter.session_store import BoundSessionStore
from smartwriter.tasks import Usage

_SERVER = "draft"
_STDERR_LINES = 20
LOGIN_HINT = (
    "Claude is not logged in: run `claude` once and log in, or set ANTHROPIC_API_KEY; "
    "to try everything without either, add --offline."
)


class AgentError(Exception):
    """The conversation broke; the message has the SDK's own words."""


@dataclass(frozen=True)
class Said:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class UsedTool:
    name: str


@dataclass(frozen=True)
class NotStored:
    """A part of the transcript did not reach the store."""

    detail: str


@dataclass(frozen=True)
class Ended:
    """The turn's result."""

    error: str
    """Why there is no answer; empty when there is one."""
    usage: Usage
    model: str


Happening = Said | UsedTool | NotStored | Ended


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
    cwd: Path


@dataclass(frozen=True)
class ClaudeAgent:
    """Opens conversations, all of them with the same account and model."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the CLI, over those of this process."""
    model: str | None = None
    """None: the CLI's own choice."""

    @asynccontextmanager
    async def converse(self, settings: SessionSettings) -> AsyncIterator[Conversation]:
        """A live CLI process for one session. :raises AgentError: when it does not start."""
        stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        # In a file, not in an argument: those end at 128 KiB, and anybody may read them.
        await run_sync(write_document, settings.prompt_file, settings.system_prompt)
        try:
            client = ClaudeSDKClient(self._options(settings, stderr))
            try:
                await client.connect()
            except (ClaudeSDKError, RuntimeError, OSError) as error:
                raise _agent_error(error, stderr) from error
            try:
                yield Conversation(client, stderr)
            finally:
                await client.disconnect()
        finally:
            await run_sync(settings.prompt_file.unlink, True)

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
            cwd=settings.cwd,
            env=dict(self.env),
            model=self.model,
            stderr=stderr.append,
        )


class Conversation:
    """A live session, for one turn after the other."""

    def __init__(self, client: ClaudeSDKClient, stderr: deque[str]) -> None:
        self._client = client
        self._stderr = stderr

    async def turn(self, prompt: str, uuid: str) -> AsyncIterator[Happening]:
        """Send a prompt and follow it to its result, which is the last thing yielded.

        :param uuid: becomes that of the prompt's transcript entry.
        :raises AgentError: when the CLI dies under it.
        """
        model = ""
        try:
            await self._client.query(_one(_verbatim(prompt, uuid)))
            async for message in self._client.receive_response():
                match message:
                    case StreamEvent(event={"type": "content_block_delta", "delta": {"text": str(text)}}):
                        yield Said(text)
                    case AssistantMessage():
                        model = message.model
                        for block in message.content:
                            if isinstance(block, ToolUseBlock):
                                yield UsedTool(block.name.removeprefix(f"mcp__{_SERVER}__"))
                    case MirrorErrorMessage():
                        yield NotStored(message.error)
                    case ResultMessage():
                        yield Ended(_error(message), _usage(message), model)
                        return
        except (ClaudeSDKError, RuntimeError, OSError) as error:
            raise _agent_error(error, self._stderr) from error
        raise AgentError("the CLI ended without a result. " + " ".join(self._stderr))


async def fork_transcript(store: BoundSessionStore, session_id: str, last_entry: str) -> str:
    """Copy a session up to and including an entry, without starting the CLI.

    Returns the new session's id. Its entries have new uuids; ``forkedFrom`` holds the old ones.
    """
    result = await fork_session_via_store(store, session_id, up_to_message_id=last_entry)
    return result.session_id


def sdk_reads(session_id: str, entries: Sequence[Mapping[str, Any]]) -> set[str]:
    """The uuids of the messages that the SDK's own reader finds in a transcript."""

    class Shown:
        async def load(self, key: SessionKey) -> list[SessionStoreEntry]:
            return cast("list[SessionStoreEntry]", entries)

    reading = get_session_messages_from_store(cast("SessionStore", Shown()), session_id)
    try:
        reading.send(None)  # there is nothing in it to wait for
    except StopIteration as done:
        return {message.uuid for message in done.value}
    raise RuntimeError("The SDK's reader waits for something.")


async def _one(message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield message


def _verbatim(prompt: str, uuid: str) -> dict[str, Any]:
    return {
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "parent_tool_use_id": None,
        "session_id": "default",
        "uuid": uuid,
        # Else "@/any/path" in a pasted text makes the CLI read that file and send it.
        "client_composed": True,
    }


def _sdk(tool: Tool) -> SdkMcpTool[Any]:
    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            text, failed = await tool.run(arguments), False
        except SmartWriterError as error:
            text, failed = str(error), True
        return {"content": [{"type": "text", "text": text}], "is_error": failed}

    schema = {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": meaning} for name, meaning in tool.parameters.items()
        },
        "required": list(tool.parameters),
    }
    return SdkMcpTool(name=tool.name, description=tool.description, input_schema=schema, handler=handle)


def _error(result: ResultMessage) -> str:
    if not result.is_error:
        return ""
    said = result.result or "; ".join(result.errors or []) or result.subtype
    return _explained(said)


def _usage(result: ResultMessage) -> Usage:
    usage = result.usage or {}
    cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(
        input_tokens=usage.get("input_tokens") or 0,
        cached_tokens=sum(usage.get(name) or 0 for name in cached),
        output_tokens=usage.get("output_tokens") or 0,
        cost_usd=result.total_cost_usd or 0.0,
        duration_ms=result.duration_ms,
    )


def _agent_error(error: Exception, stderr: deque[str]) -> AgentError:
    said = " ".join([str(error), *stderr]).strip()
    return AgentError(_explained(said))


def _explained(said: str) -> str:
    """The CLI's words, or for a missing login what to do about it."""
    lower = said.lower()
    return LOGIN_HINT if "not logged in" in lower or "/login" in lower else said
