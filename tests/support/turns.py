"""Turns taken by an engine of their own, and what they need."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Reply, Request, Text
from smartwriter.events import Event
from smartwriter.open_draft import OpenDraft
from smartwriter.system.config import Config
from smartwriter.tasks.values import Draft, Task, Turn
from smartwriter.trials.forking import fork
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine


def take_turns(
    workspace: Workspace,
    claude: ClaudeAgent,
    jobs: list[tuple[str, str]],
    parallel: int = 4,
    patience_s: float = 30.0,
) -> tuple[list[Turn], list[Event]]:
    """Write drafts, by address, in one engine: how their turns ended, and all that happened."""
    resolved = [(*workspace.tasks.resolve(address), prompt) for address, prompt in jobs]
    events: list[Event] = []

    async def run() -> list[Turn]:
        config = Config(parallel=parallel, patience_s=patience_s)
        async with Engine(workspace, claude, config) as engine, engine.events() as stream:
            sent = [engine.send(task, draft, prompt) for task, draft, prompt in resolved]
            turns = [await prompt.outcome() for prompt in sent]
            while stream.statistics().current_buffer_used:
                events.append(stream.receive_nowait())
        return turns

    return anyio.run(run), events


def take_turn(workspace: Workspace, claude: ClaudeAgent, address: str, prompt: str) -> Turn:
    return take_turns(workspace, claude, [(address, prompt)])[0][0]


def transcript(workspace: Workspace, task: Task, draft: str = "main") -> Path:
    task = workspace.tasks.find(task.id)
    return OpenDraft(workspace, task, draft).transcript.path


def make_task(workspace: Workspace, title: str, collection: str | None = None) -> Task:
    if collection and collection not in [known.name for known in workspace.collections()]:
        workspace.new_collection(collection)
    return workspace.new_task(title, collection)


def make_fork(workspace: Workspace, task: Task, draft: str, at: int | None = None) -> Draft:
    task = workspace.tasks.find(task.id)
    return anyio.run(partial(fork, OpenDraft(workspace, task, draft), at=at))


def echo(request: Request) -> Reply:
    return [Text(f"You said: {request.prompt}")]
