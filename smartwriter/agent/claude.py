"""Conversations with Claude, through the Agent SDK and its CLI.

Every setting below is there for a reason that was measured; see the comments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from anyio import CancelScope, fail_after, move_on_after
from anyio.to_thread import run_sync
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    Message,
    ResultMessage,
    SdkMcpTool,
    TextBlock,
    ToolAnnotations,
    create_sdk_mcp_server,
)

from smartwriter.agent.compacting import hooks
from smartwriter.agent.conversation import (
    UNPRICED,
    AgentError,
    Conversation,
    Ended,
    Happening,
    SessionSettings,
)
from smartwriter.agent.endings import EMPTY
from smartwriter.agent.environment import blanked, config_folder
from smartwriter.agent.listening import SERVER, Listener
from smartwriter.agent.spawning import own_session
from smartwriter.agent.tools import Tool
from smartwriter.errors import SmartWriterError
from smartwriter.files.durable import write_document
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.values import Usage

_STDERR_LINES = 20
LOGIN_HINT = (
    "Claude is not logged in: run `claude` once and log in, or set ANTHROPIC_API_KEY; "
    "to try everything without either, add --offline."
)
_ANYWHERE = Path("/")
_MOST_RESULT_CHARACTERS = 500_000  # of a tool's answer; the CLI allows no more
RESULT_GRACE_S = 20.0  # for the result, once the answer has ended
_SILENCES = 4  # parts of the time that the CLI may be silent


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

    @property
    def config_folder(self) -> Path:
        return config_folder(self.env)

    @asynccontextmanager
    async def converse(self, settings: SessionSettings) -> AsyncIterator[Conversation]:
        """A live CLI process for one session; see ``Agent.converse``."""
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
                yield _Conversation(client, settings.session_id, stderr)
            finally:
                if not settings.all_kept():
                    client._materialized = None  # which the SDK would remove
                await client.disconnect()
        finally:
            with suppress(OSError):  # its disk may be gone
                await run_sync(settings.prompt_file.unlink, True)

    async def ask(self, prompt: str, cwd: Path, timeout_s: float = 120.0) -> str:
        """See ``Agent.ask``."""
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
            mcp_servers={SERVER: create_sdk_mcp_server(SERVER, tools=[_sdk(t) for t in settings.tools])},
            allowed_tools=[f"mcp__{SERVER}__{tool.name}" for tool in settings.tools],
            include_partial_messages=True,
            hooks=hooks(settings.after_compaction),
            # The model is told where it is; the writer's folders are none of its business.
            cwd=_ANYWHERE,
            env={**blanked(also=self.pass_on), **self.env, **settings.env},
            model=self.model,
            cli_path=self.cli_path,
            stderr=stderr.append,
        )


class _Conversation:
    """One CLI process; see ``Conversation``."""

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
        listener = Listener(hear)
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
        changed = message.session_id if message.session_id != self._session_id else ""
        self._session_id = changed or self._session_id
        usage = _usage(message, self._cost_usd)
        if listener.model == UNPRICED:
            usage = usage.model_copy(update={"cost_usd": 0.0})
        self._cost_usd = message.total_cost_usd or self._cost_usd
        why = _error(message)
        if is_command(prompt):
            why = why or ("" if listener.compacted else listener.not_compacted)
            return Ended(why, usage, listener.model, session_id=changed)
        empty = not (why or listener.spoke or self._interrupted)
        stopped_by = EMPTY if empty else listener.stop_reason
        return Ended(why, usage, listener.model, stopped_by, session_id=changed)

    async def interrupt(self) -> None:
        self._interrupted = True
        try:
            await self._client.interrupt()
        except (ClaudeSDKError, RuntimeError, OSError) as error:
            raise _agent_error(error, self._stderr) from error

    async def _next(self, listener: Listener, silence_s: float) -> Message | None:
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
