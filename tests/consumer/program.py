"""A program of somebody else's, on what ``smartwriter`` makes public: it is type-checked, and it runs."""

from __future__ import annotations

from pathlib import Path

import anyio
from claude_agent_sdk import ClaudeAgentOptions

from smartwriter import (
    Agent,
    ArticleDelta,
    ClaudeAgent,
    Config,
    DraftBusy,
    Engine,
    Event,
    Failed,
    FileSessionStore,
    Finished,
    JournalError,
    Revision,
    SmartWriterError,
    Stopped,
    Task,
    TaskNotFound,
    Turn,
    Workspace,
)


def options(folder: Path) -> ClaudeAgentOptions:
    store = FileSessionStore(folder, durability="os")
    return ClaudeAgentOptions(session_store=store.bind("mine"), session_store_flush="eager")


def found(workspace: Workspace, title: str) -> Task:
    try:
        return workspace.tasks.find(title)
    except TaskNotFound as error:
        assert error.task == title
        return workspace.new_task(title, target=800)


def told(event: Event) -> str:
    """One line of what happens; a type checker knows what each event has."""
    if isinstance(event, ArticleDelta):
        return event.text
    if event.kind == "retrying":
        return f"{event.attempt} of {event.of}: {event.why}"
    if isinstance(event, Finished | Stopped):
        return f"turn {event.turn.number} is {event.turn.state.value}"
    if isinstance(event, Failed):
        return event.detail
    return ""


async def write(workspace: Workspace, config: Config, agent: Agent, task: Task, prompt: str) -> Turn:
    """Write on with a prompt, and print the article as it is typed."""
    async with Engine(workspace, agent, config) as engine, engine.events() as events:
        sent = engine.send(task, task.drafts[task.current], prompt)
        async for event in events:
            print(told(event), end="", flush=True)
            if isinstance(event, Finished | Stopped | Failed):
                break
        return await sent.outcome()


def last(workspace: Workspace, task: Task) -> Revision | None:
    revisions = workspace.text(task, task.current).revisions()
    return revisions[-1] if revisions else None


def main(folder: Path, agent: Agent | None = None) -> str:
    workspace = Workspace.create(folder)
    try:
        task = found(workspace, "The last ferry")
        turn = anyio.run(
            write, workspace, workspace.config(), agent or ClaudeAgent(), task, "Open with the fog."
        )
    except DraftBusy as error:
        return f"somebody else writes it: {error}"
    except JournalError as error:
        return f"{error.path} could not be written, {error.errno}"
    except SmartWriterError as error:
        return str(error)
    revision = last(workspace, task)
    return f"{turn.state.value} for {turn.usage.cost_usd:.2f} USD: {revision.text if revision else ''}"
