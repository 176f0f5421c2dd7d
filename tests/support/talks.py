"""Conversations through the SDK alone, with its CLI and the stand-in model, as the facts about them need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import anyio
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    ResultMessage,
    SystemMessage,
)
from claude_agent_sdk.types import SessionKey, SessionStoreEntry

from smartwriter.agent.offline.environment import offline_env
from smartwriter.agent.offline.server import OfflineModel

PROMPT = "You are a writer."


@dataclass
class Store:
    """Entries by session, whatever the project, as the SDK handed them over."""

    sessions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    keys: list[SessionKey] = field(default_factory=list)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        self.keys.append(key)
        self.sessions.setdefault(key["session_id"], []).extend(cast("list[dict[str, Any]]", entries))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return cast("list[SessionStoreEntry] | None", self.sessions.get(key["session_id"]))

    def said(self, session_id: str) -> list[dict[str, Any]]:
        """The entries that are somebody's messages."""
        return [one for one in self.sessions.get(session_id, []) if one["type"] in ("user", "assistant")]


@dataclass
class Desk:
    """Where talks are had: a stand-in, and a folder that holds all that the CLI writes."""

    model: OfflineModel
    folder: Path
    store: Store = field(default_factory=Store)

    def options(self, **chosen: Any) -> ClaudeAgentOptions:
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        env = offline_env(self.model.url, self.folder / "home") | chosen.pop("env", {})
        usual: dict[str, Any] = {
            "cwd": work,
            "tools": [],
            "setting_sources": [],
            "strict_mcp_config": True,
            "session_store": self.store,
            "session_store_flush": "eager",
            "include_partial_messages": True,
            "max_buffer_size": 64 << 20,
            "system_prompt": {"type": "preset", "preset": "claude_code", "snapshot": False},
        }
        if "extra_args" not in chosen:
            usual["extra_args"] = {"system-prompt-file": str(self.prompt_file(PROMPT))}
        return ClaudeAgentOptions(env=env, **(usual | chosen))

    def prompt_file(self, text: str) -> Path:
        path = self.folder / "prompt"
        path.write_text(text, encoding="utf-8")
        return path

    @property
    def config(self) -> Path:
        return self.folder / "home" / ".claude"

    def talk(self, *prompts: Any, **chosen: Any) -> list[Message]:
        """All messages of one client that is told some prompts, one after the other."""
        return anyio.run(partial(talk, self.options(**chosen), *prompts))


async def talk(options: ClaudeAgentOptions, *prompts: str | dict[str, Any]) -> list[Message]:
    heard: list[Message] = []
    with anyio.fail_after(60):
        async with ClaudeSDKClient(options) as client:
            for prompt in prompts:
                await tell(client, prompt)
                heard += [message async for message in client.receive_response()]
    return heard


async def tell(client: ClaudeSDKClient, prompt: str | dict[str, Any]) -> None:
    async def one() -> AsyncIterator[dict[str, Any]]:
        yield verbatim(prompt) if isinstance(prompt, str) else prompt

    await client.query(one())


def verbatim(text: str, uuid: str = "") -> dict[str, Any]:
    return {**plain(text, uuid), "client_composed": True}


def plain(text: str, uuid: str = "") -> dict[str, Any]:
    return {
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
        "session_id": "default",
        "uuid": uuid or str(uuid4()),
    }


def result(heard: Iterable[Message]) -> ResultMessage:
    """The last one."""
    return [message for message in heard if isinstance(message, ResultMessage)][-1]


def of_system(heard: Iterable[Message], subtype: str) -> list[dict[str, Any]]:
    """What the CLI told of itself, under one name."""
    return [one.data for one in heard if isinstance(one, SystemMessage) and one.subtype == subtype]
