"""The article itself: heard while it is typed through the tools, and kept when it is cut off."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from turns import take_turn, take_turns

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import ApiError, Cut, Reply, Request, Step, Stop, Text, ToolUse, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.events import ArticleDelta, Event
from smartwriter.system.config import Config
from smartwriter.tasks.values import Revision, Task, Turn, TurnState
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine

ARTICLE = "# Fog 😀\n\nThe ferry “waited”.\n\n渡口没有人。\n"


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def half(characters: int, *then: Step, text: str = ARTICLE) -> list[Step]:
    """A call that breaks off after so many characters of its input."""
    call = ToolUse("write_draft", {"text": text}, chunk_chars=8, break_at=characters)
    return [Text("I begin."), call, *then]


def first(*steps: Step) -> Any:
    """A script that answers the first request with these steps, and what the CLI asks then with a word."""
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return steps if len(asked) == 1 else [Text("Done.")]

    return script


def typed(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ArticleDelta))


def cut_off(workspace: Workspace, task: Task) -> list[Revision]:
    revisions = workspace.text(task, "main").revisions()
    assert all(revision.aside for revision in revisions if revision.cut_off)
    return [revision for revision in revisions if revision.cut_off]


def stopped_in(workspace: Workspace, claude: ClaudeAgent, task: Task, when: str) -> tuple[Turn, list[Event]]:
    """A turn that is stopped as soon as so much of the article was heard."""
    heard: list[Event] = []

    async def go() -> Turn:
        with anyio.fail_after(30):
            return await stopped()

    async def stopped() -> Turn:
        async with Engine(workspace, claude, Config()) as engine, engine.events() as events:
            sent = engine.send(task, task.drafts["main"], "Write.")
            async for event in events:
                heard.append(event)
                if event.kind == "article_delta" and when in typed(heard):
                    await engine.stop(task, task.drafts["main"])
                if event.kind in ("stopped", "finished", "failed"):
                    break
            return await sent.outcome()

    return anyio.run(go), heard


def test_the_article_is_heard_as_it_is_typed(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """The input of a draft's tool is told piece by piece, on disk first, and adds up to the text."""
    model.script = first(ToolUse("write_draft", {"text": ARTICLE}, chunk_chars=8, pause_s=0.02))
    (turn,), events = take_turns(workspace, claude, [(task.id, "Write.")])
    pieces = [event for event in events if isinstance(event, ArticleDelta)]
    assert turn.state is TurnState.finished and typed(events) == ARTICLE
    assert len(pieces) > 3 and all(piece.position for piece in pieces)
    kinds = [event.kind for event in events]
    assert kinds.index("call_begun") < kinds.index("article_delta") < kinds.index("draft_revised")
    assert cut_off(workspace, task) == []


def test_a_stopped_turn_keeps_the_article_as_far_as_it_had_come(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """A call that a stop ends is a version beside the text, with its turn, to the last character that
    arrived; the text stays as it was."""
    before = workspace.text(task, "main").write("Before.\n", author="writer", turn=1)
    model.script = first(*half(50, Wait(threading.Event())))
    turn, events = stopped_in(workspace, claude, task, "ferry")
    assert turn.state is TurnState.stopped
    (kept,) = cut_off(workspace, task)
    assert ARTICLE.startswith(kept.text) and typed(events) == kept.text and "ferry" in kept.text
    assert kept.turn == turn.number and kept.number == before.number + 1
    assert [e.revision for e in events if e.kind == "cut_off_kept"] == [kept.number]
    assert workspace.text(task, "main").read() == "Before.\n"


@pytest.mark.parametrize(
    "steps",
    [pytest.param([Cut()], id="cut"), pytest.param([ApiError(529, "overloaded_error", "x")], id="error")],
)
def test_what_a_broken_answer_had_typed_is_kept_unless_it_comes_anew(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task, steps: list[Step]
) -> None:
    """The API's retry takes back what was typed; it stays a version until the article has come whole."""
    model.script = first(*half(40, *steps))
    (_,), events = take_turns(workspace, claude, [(task.id, "Write.")])
    assert "call_dropped" in [event.kind for event in events]
    (kept,) = cut_off(workspace, task)
    assert kept.text and kept.text == typed(events)

    other = workspace.new_task("Low water")
    asked: list[Request] = []

    def again(request: Request) -> Reply:
        asked.append(request)
        whole = ToolUse("write_draft", {"text": ARTICLE})
        replies: list[Reply] = [half(40, *steps), [whole], [Text("Done.")]]
        return replies[min(len(asked), 3) - 1]

    model.script = again
    assert take_turn(workspace, claude, other.id, "Write.").state is TurnState.finished
    assert workspace.text(other, "main").read() == ARTICLE and cut_off(workspace, other) == []


def test_an_article_longer_than_an_answer_is_a_version_cut_off(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """A call that the greatest length of an answer ends is kept as far as it had come."""
    model.script = first(*half(40, Stop("max_tokens")))
    take_turn(workspace, claude, task.id, "Write.")
    (kept,) = cut_off(workspace, task)
    assert kept.text and ARTICLE.startswith(kept.text)
    assert workspace.text(task, "main").read() == ""
