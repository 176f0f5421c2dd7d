"""What an agent is to those who write with one: it opens conversations, and tells what happens in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from smartwriter.agent.tools import Tool
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
from smartwriter.sessions.store import BoundSessionStore
from smartwriter.tasks.values import Usage

UNPRICED = "smartwriter-offline"
"""What the stand-in calls its model. The CLI does not know it, and guesses at a price."""


class AgentError(Exception):
    """The conversation broke; the message has the SDK's own words."""


Happening = (
    TextDelta
    | TextDropped
    | ThinkingDelta
    | CallBegun
    | ArticleDelta
    | CallDropped
    | ToolUsed
    | ToolAnswered
    | Retrying
    | RateLimited
    | NotSaved
    | Compacted
)
"""What is heard while a turn is taken: events, but without task, draft and turn, which only the hearer knows.

Of all tools: an ``ArticleDelta`` may belong to any call.
"""


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
    session_id: str = ""
    """The one that it goes on under, where that has changed."""


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


class Conversation(Protocol):
    """A live session, for one turn after the other."""

    async def turn(
        self, prompt: str, uuid: str, hear: Callable[[Happening], None], silence_s: float
    ) -> Ended:
        """Send a prompt and follow it to its result.

        :param uuid: becomes that of the prompt's transcript entry.
        :param hear: is told what happens.
        :param silence_s: how long there may be nothing to hear at all.
        :raises AgentError: it died, or fell silent; the conversation cannot be used any more.
        """

    async def interrupt(self) -> None:
        """Stop the turn; it still comes to its result, and what was written stays.

        :raises AgentError: the conversation is over.
        """


class Agent(Protocol):
    """Opens conversations, all of them with the same account and model."""

    @property
    def config_folder(self) -> Path:
        """Where it keeps its own things: the first turns of sessions, too, until they are stored."""

    def converse(self, settings: SessionSettings) -> AbstractAsyncContextManager[Conversation]:
        """A live conversation in one session. :raises AgentError: when it does not start."""

    async def ask(self, prompt: str, cwd: Path, timeout_s: float = ...) -> str:
        """The answer to one question, in a session of its own that nothing keeps.

        :raises AgentError: when there is none.
        """
