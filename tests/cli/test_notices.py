"""What a person who waits is told, in a sentence each."""

from __future__ import annotations

import shlex

import pytest
from commands import smartwriter, written

from smartwriter.agent.offline.script import ApiError, Reply, Request, Text, ToolUse
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.cli.notices import names
from smartwriter.tasks.values import Task
from smartwriter.workspace import Workspace


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


@pytest.mark.parametrize("arguments", [["write"], ["write", "--json"], ["run"]])
def test_an_api_that_does_not_answer_is_said(workspace: Workspace, task: Task, arguments: list[str]) -> None:
    """While the API is asked again, whoever waits reads the reason, the try, and when it comes."""
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return [ApiError(529, "overloaded_error", "busy")] if len(asked) == 1 else [Text("Here.")]

    job = [f"{task.id}=Go."] if arguments[0] == "run" else [task.id, "Go."]
    with OfflineModel(script) as model:
        done = smartwriter(workspace.root, *arguments, *job, model=model)
    assert done.returncode == 0
    said = (done.stdout if arguments[0] == "run" else done.stderr).decode()
    assert "The API does not answer (overloaded); retry 1 of " in said


def test_a_text_that_both_changed_is_said_with_the_command_to_compare(
    workspace: Workspace, task: Task, model: OfflineModel
) -> None:
    """Saved by hand while the model rewrites it, the text stays the writer's; they are told where the
    model's is, by a command that shows both."""
    text = workspace.text(task, "main")
    text.write("Fog.\n", author="writer", turn=1)

    def script(request: Request) -> Reply:
        if request.tool_results:
            return [Text("Oh.")]
        text.path.write_text("Fog, by hand.\n")
        return [ToolUse("write_draft", {"text": "Rain, by the model.\n"})]

    model.script = script
    done = smartwriter(workspace.root, "write", task.id, "Go.", model=model)
    (line,) = [line for line in done.stderr.decode().splitlines() if "To compare: " in line]
    words = shlex.split(line.partition("To compare: smartwriter ")[2])
    compared = smartwriter(workspace.root, *words).stdout.decode()
    assert "hand" in compared and "model" in compared
    assert text.path.read_text() == "Fog, by hand.\n"


def test_drafts_of_one_task_carry_their_names(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    """How each of several drafts of one task ended is said by its name; a single one is its title."""
    written(workspace.root, task.id, "Begin.", model=model)
    done = smartwriter(workspace.root, "fork", task.id, "--variants", "2", "-p", "Try.", model=model)
    ended = sorted(line.partition(",")[0] for line in done.stdout.decode().splitlines() if " s." in line)
    assert ended == ["Herons @draft-2: finished", "Herons @draft-3: finished"]
    assert names({"a": "A", "b": "B"}, [("a", "main"), ("b", "main"), ("b", "x")]) == {
        ("a", "main"): "A",
        ("b", "main"): "B @main",
        ("b", "x"): "B @x",
    }


@pytest.mark.parametrize(
    ("command", "title"), [("/nowhere {}", "Herons"), ("tell 'it", "Herons"), ("echo {}", "He\0rons")]
)
def test_a_command_that_cannot_be_run_is_said_and_costs_no_turn(
    command: str, title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that is not there, a quote without its pair, a title that no program takes."""
    from smartwriter.cli.running import Notifier
    from smartwriter.events import Finished
    from smartwriter.tasks.values import Turn, TurnState

    turn = Turn(number=1, uuid="u", session_id="s", prompt="Go.", state=TurnState.finished)
    done = Finished(task="k7mq", draft="main", turn=turn)
    Notifier(command, {("k7mq", "main"): title}).hear(done)
    assert "could not be run: " in capsys.readouterr().err
