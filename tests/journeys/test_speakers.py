"""Whose words are whose: with the real CLI, which puts words into the model's and the writer's mouths."""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import pytest
from commands import smartwriter
from transcripts import entry
from turns import make_fork, take_turn

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import ApiError, Reply, Request, Text, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.speakers import speaker, whole_answer, words
from smartwriter.sessions.transcript import answer_to, messages
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.trials.edits import take_answer
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine

FILLERS = ("No response requested.", "[Request interrupted by user]", "API Error", "(no content)")


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def stopped_turn(workspace: Workspace, claude: ClaudeAgent, task: Task, prompt: str) -> Turn:
    """A turn that is stopped once its first words were heard."""

    async def go() -> Turn:
        async with Engine(workspace, claude) as engine, engine.events() as events:
            sent = engine.send(task, task.drafts["main"], prompt)
            async for event in events:
                if event.kind == "text_delta":
                    break
            await engine.stop(task, task.drafts["main"])
            return await sent.outcome()

    return anyio.run(go)


def printed(workspace: Workspace, *arguments: str) -> str:
    done = smartwriter(workspace.root, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_case_108_what_the_cli_says_after_a_stop_is_nobodys(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """After a stop, a turn's answer is the words that were heard and nothing else, wherever it is shown,
    taken, exported or counted (CherryHQ/cherry-studio#20798, anthropics/claude-code#53260)."""
    gate = threading.Event()
    model.script = lambda request: (
        [Text("The heron stood still.")] + ([Wait(gate)] if "Stop" in request.prompt else [])
    )
    turn = stopped_turn(workspace, claude, task, "Stop here.")
    gate.set()
    assert turn.state is TurnState.stopped
    model.script = lambda request: [Text("Then it flew.")]
    take_turn(workspace, claude, task.id, "Write on.")
    stored = OpenDraft(workspace, task, "main").transcript.path.read_text()
    assert "[Request interrupted by user]" in stored  # the CLI has said it, in the writer's name
    for shown in (
        printed(workspace, "show", task.id),
        printed(workspace, "show", task.id, "--json"),
        printed(workspace, "export", task.id, "--history"),
    ):
        assert "The heron stood still." in shown and "Then it flew." in shown
        assert not any(filler in shown for filler in FILLERS)
    revision = take_answer(OpenDraft(workspace, task, "main"), 1)
    assert revision.text == "The heron stood still.\n"
    fork = make_fork(workspace, task, "main", at=1)
    assert (
        take_answer(OpenDraft(workspace, workspace.tasks.find(task.id), fork.name), 1).text
        == "The heron stood still.\n"
    )


def test_an_error_of_the_api_is_nobodys_answer(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """What the CLI says of the API in the model's name is no answer: it cannot be taken, and neither
    show nor export has it as one."""

    def script(request: Request) -> Reply:
        fails = "fail" in request.prompt
        return [ApiError(400, "invalid_request_error", "bad luck")] if fails else [Text("Fine.")]

    model.script = script
    take_turn(workspace, claude, task.id, "Now fail.")
    task = workspace.tasks.find(task.id)
    with pytest.raises(Invalid, match="no answer to take"):
        take_answer(OpenDraft(workspace, task, "main"), 1)
    answers = json.loads(printed(workspace, "show", task.id, "--json"))["messages"]
    assert not [one for one in answers if one["role"] == "assistant"]
    assert "[turn 1] Now fail." in printed(workspace, "show", task.id)


def test_notes_before_a_prompt_are_not_the_writers_words(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """What the program tells the model before a prompt is a quiet line of the program's own, in a fork
    too, and the writer's prompt is what they wrote."""
    take_turn(workspace, claude, task.id, "First.")
    workspace.text(task, "main").path.write_text("By hand, a heron.\n")
    take_turn(workspace, claude, task.id, "Second.")
    assert "By hand, a heron." in model.requests[-1].said
    fork = make_fork(workspace, task, "main")
    for name in ("main", fork.name):
        shown = printed(workspace, "show", f"{task.id}@{name}")
        assert "[turn 2] Second.\n" in shown
        assert "told with it: The author edited the draft by hand." in shown
        said = json.loads(printed(workspace, "show", f"{task.id}@{name}", "--json"))["messages"]
        assert [one["text"] for one in said if one["role"] == "user"] == ["First.", "Second."]


def own(n: int, text: str, **more: Any) -> dict[str, Any]:
    """An answer as the CLI gives it itself."""
    made = entry(n, text, **more)
    made["message"]["model"] = "<synthetic>"
    return made


@pytest.mark.parametrize(
    "said",
    [
        own(1, "No response requested.", isApiErrorMessage=False),
        own(1, "Not logged in"),
        entry(1, "API Error: 529", isApiErrorMessage=True),
        entry(1, "No response requested."),
        entry(1, "(no content)"),
        entry(2, "[Request interrupted by user]"),
        entry(2, "[Request interrupted by user for tool use]"),
        entry(2, "Output token limit hit.", isMeta=True),
        entry(1, "Of a subagent.", isSidechain=True),
    ],
)
def test_every_kind_of_filler_is_nobodys(said: dict[str, Any]) -> None:
    """No entry that the CLI makes by itself has a speaker, a place in the conversation or in an answer."""
    assert speaker(said) is None
    talk = [entry(0, "Prompt."), said]
    assert [message.text for message in messages(talk)] == ["Prompt."]
    assert not answer_to(talk, talk[0]["uuid"], whole=False)


def test_a_writer_may_say_what_the_cli_says() -> None:
    """A prompt that reads as a filler is the writer's all the same: its turn says so."""
    prompt = entry(0, "No response requested.")
    assert speaker(prompt) is None
    (said,) = messages([prompt], {prompt["uuid"]: "No response requested."})
    assert said.role == "user" and said.text == "No response requested."


def test_an_answer_in_pieces_is_kept_once() -> None:
    """What was heard of an answer and what was stored of it are put together without saying it twice."""
    assert whole_answer("One.\n\nTwo.", "One.Two.") == "One.\n\nTwo."
    assert whole_answer("One.", "One. Two") == "One. Two"
    assert whole_answer("", "heard") == "heard" and whole_answer("stored", "") == "stored"
    assert words(entry(1, "One."))[0] == "One."
