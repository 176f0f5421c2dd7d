"""Turns without their whole answer: what is said of them, and that they do no harm to the next ones."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from commands import smartwriter
from turns import make_fork, take_turn, take_turns

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.environment import offline_env
from smartwriter.agent.offline.script import ApiError, Reply, Request, Step, Stop, Text, ToolUse
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine

TOO_LARGE = ApiError(413, "request_too_large", "Request exceeds the maximum size")
LIMIT = 50_000


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def failing(*steps: Step) -> Callable[[Request], Reply]:
    """A script that ends so where a prompt says "fail", and answers otherwise."""
    return lambda request: list(steps) if "fail" in request.prompt else [Text("Fine.")]


def limited(request: Request) -> Reply:
    """An API that takes no more than so much."""
    return [TOO_LARGE] if len(request.said) > LIMIT else [Text("Fine.")]


def prompts_sent(request: Request) -> list[str]:
    said = [text for message in request.messages if message["role"] == "user" for text in texts(message)]
    return [text.strip() for text in said if not text.startswith("<system-reminder>")]


def texts(message: dict[str, Any]) -> list[str]:
    content = message["content"]
    return [content] if isinstance(content, str) else [block.get("text", "") for block in content]


def test_case_109_a_prompt_that_is_too_large_does_no_harm_to_the_next(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """A prompt that the API refused for its size fails in a sentence, and every later turn works without
    it, in the same process, in another one and in a fork (github/copilot-cli#3767)."""
    model.script = limited
    prompts = ["First.", "x" * 2 * LIMIT, "Short.", "x" * 2 * LIMIT]
    (_, large, short, _), _ = take_turns(workspace, claude, [(task.id, prompt) for prompt in prompts])
    assert large.state is TurnState.failed and large.left_out
    assert "100,000 characters; send it in parts" in large.detail
    assert short.state is TurnState.finished
    fork = make_fork(workspace, task, "main")
    later, _ = take_turns(
        workspace, claude, [(f"{task.id}@{name}", "Later.") for name in ("main", fork.name)]
    )
    assert [turn.state for turn in later] == [TurnState.finished] * 2
    for request in model.requests[-2:]:
        assert prompts_sent(request) == ["First.", "Short.", "Later."]


def test_a_prompt_that_never_got_an_answer_is_sent_once(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """Whatever kept a prompt from its answer, login, overload or size, also at the very beginning of a
    draft: repeated until it is answered, it is sent to the model once, and show has each try."""
    for error in (
        ApiError(401, "authentication_error", "bad key"),
        ApiError(529, "overloaded_error", "busy"),
        TOO_LARGE,
    ):
        model.script = failing(error)
        failed = take_turn(workspace, claude, task.id, "Please fail.")
        assert failed.state is TurnState.failed and failed.left_out
        assert "send it again" in failed.detail
    model.script = failing(Text("At last."))
    assert take_turn(workspace, claude, task.id, "Please fail.").state is TurnState.finished
    assert prompts_sent(model.requests[-1]) == ["Please fail."]
    shown = smartwriter(workspace.root, "show", task.id).stdout.decode()
    assert [f"[turn {number}] Please fail." in shown for number in range(1, 5)] == [True] * 4
    assert "bad key" in shown and "At last." in shown
    assert shown.index("bad key") < shown.index("[turn 2]")


def test_a_refused_connection_keeps_nothing_back(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task, tmp_path: Path
) -> None:
    """A prompt that found no API is sent once when there is one again, with the notes that it had."""
    model.script = failing()
    take_turn(workspace, claude, task.id, "First.")
    workspace.text(task, "main").write("By hand, a heron.\n", author="writer", turn=2)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    lost = ClaudeAgent(env=offline_env(f"http://127.0.0.1:{port}", tmp_path / "lost"))
    failed = take_turn(workspace, lost, task.id, "Second.")
    assert failed.state is TurnState.failed and failed.left_out
    assert take_turn(workspace, claude, task.id, "Second.").state is TurnState.finished
    said = model.requests[-1].said
    assert said.count("Second.") == 1 and said.count("By hand, a heron.") == 1


def test_a_failure_names_the_earlier_turn_that_caused_it(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """Where an earlier, answered prompt fills the conversation, a refusal for size says which, and how to
    go on without it; what it says works."""
    take_turn(workspace, claude, task.id, "First.")
    take_turn(workspace, claude, task.id, "x" * 2 * LIMIT)
    model.script = limited
    failed = take_turn(workspace, claude, task.id, "Short.")
    assert f"smartwriter rewind {task.id}@main --to 1" in failed.detail and "turn 2" in failed.detail
    smartwriter(workspace.root, "rewind", f"{task.id}@main", "--to", "1")
    assert take_turn(workspace, claude, task.id, "Short.").state is TurnState.finished


@pytest.mark.parametrize(
    ("reason", "steps", "state", "left_out"),
    [
        ("refusal", [Text("I can"), Stop("refusal")], TurnState.failed, True),
        ("max_tokens", [Text("Half a"), Stop("max_tokens")], TurnState.failed, False),
        (
            "model_context_window_exceeded",
            [Text("Half a"), Stop("model_context_window_exceeded")],
            TurnState.failed,
            False,
        ),
        ("pause_turn", [Text("Half a"), Stop("pause_turn")], TurnState.finished, False),
        ("something_new", [Text("Half a"), Stop("something_new")], TurnState.finished, False),
        ("empty", [], TurnState.failed, True),
    ],
)
def test_an_answer_that_the_model_ended_early_is_said_to_be_so(
    workspace: Workspace,
    claude: ClaudeAgent,
    model: OfflineModel,
    task: Task,
    reason: str,
    steps: list[Step],
    state: TurnState,
    left_out: bool,
) -> None:
    """Every reason of the model to end an answer, other than that it is done, is recorded in the turn."""
    model.script = failing(*steps)
    (turn, after), _ = take_turns(workspace, claude, [(task.id, "Now fail."), (task.id, "Next.")])
    assert (turn.stop_reason, turn.state, turn.left_out) == (reason, state, left_out)
    assert turn.detail and turn.model != "<synthetic>"
    assert after.state is TurnState.finished and not after.stop_reason
    assert ("Now fail." in model.requests[-1].said) is not left_out


def test_an_early_end_is_an_exit_code_and_said_by_every_command(
    workspace: Workspace, model: OfflineModel, task: Task
) -> None:
    """write and run end with 3 where the model ended the answer, and with 1 where it failed otherwise;
    show, status, log and run say why."""
    model.script = failing(Text("Half a"), Stop("pause_turn"))
    done = smartwriter(workspace.root, "write", task.id, "Now fail.", model=model)
    assert done.returncode == 3 and b"The model paused" in done.stderr and b"Half a" in done.stdout
    done = smartwriter(workspace.root, "run", f"{task.id}=Now fail.", model=model)
    assert done.returncode == 3 and b"The model paused" in done.stdout
    for command in ("show", "status"):
        assert (
            b"The model paused"
            in smartwriter(workspace.root, command, *([task.id] if command == "show" else [])).stdout
        )
    assert b"(pause_turn)" in smartwriter(workspace.root, "log", task.id).stdout
    shown = json.loads(smartwriter(workspace.root, "show", task.id, "--json").stdout)
    assert [turn["stop_reason"] for turn in shown["turns"]] == ["pause_turn", "pause_turn"]
    model.script = failing(ApiError(400, "invalid_request_error", "no"))
    assert smartwriter(workspace.root, "write", task.id, "Now fail.", model=model).returncode == 1
    model.script = failing(Text("Fine."))
    assert smartwriter(workspace.root, "write", task.id, "Now fail.", model=model).returncode == 0


def test_a_turn_that_only_used_tools_is_no_empty_answer(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """A model that has written the draft and says nothing about it has answered."""
    model.script = lambda request: (
        [Text("Done.")] if request.tool_results else [ToolUse("write_draft", {"text": "A heron.\n"})]
    )
    turn = take_turn(workspace, claude, task.id, "Write.")
    assert turn.state is TurnState.finished and not turn.stop_reason


def test_a_prompt_stopped_while_the_api_did_not_answer_is_sent_once(
    workspace: Workspace, model: OfflineModel, task: Task, tmp_path: Path
) -> None:
    """Who stops a turn that only asks the API again and again, and sends it anew, has asked once: the stopped
    ones got no answer, are said to be left out, and are."""
    patient = ClaudeAgent(
        env=offline_env(model.url, tmp_path / "cli-home") | {"CLAUDE_CODE_MAX_RETRIES": "10"}
    )

    async def stopped() -> Turn:
        async with Engine(workspace, patient) as engine, engine.events() as events:
            sent = engine.send(task, task.drafts["main"], "Please fail.")
            async for event in events:
                if event.kind == "retrying":
                    break
            await engine.stop(task, task.drafts["main"])
            return await sent.outcome()

    model.script = failing(ApiError(529, "overloaded_error", "busy"))
    take_turn(workspace, patient, task.id, "First.")
    for _ in range(2):
        turn = anyio.run(stopped)
        assert turn.state is TurnState.stopped and turn.left_out and "send it again" in turn.detail
    model.script = failing(Text("At last."))
    take_turn(workspace, patient, task.id, "Please fail.")
    assert prompts_sent(model.requests[-1]) == ["First.", "Please fail."]
    assert (
        "(stopped: The API had not answered." in smartwriter(workspace.root, "show", task.id).stdout.decode()
    )
