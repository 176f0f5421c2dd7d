"""A turn that was cut off: shown, taken and told, from the moment that its process died."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from commands import command, environment, written

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.cli.app import cli
from smartwriter.events import ArticleDelta, parse
from smartwriter.tasks.values import Task
from smartwriter.turns.calls import Calls
from smartwriter.workspace import Workspace

ARTICLE = "# Fog 😀\n\nThe ferry “waited” for the tide, and nobody crossed.\n\n渡口没有人。\n"
BEGUN = "# Fog 😀\n\nThe ferry"


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def types_and_waits(request: Request) -> Reply:
    """Half an article through the tools, and then nothing; to any other prompt, a word."""
    if request.prompt.endswith("Write.") and not request.tool_results:
        call = ToolUse("write_draft", {"text": ARTICLE}, chunk_chars=8, break_at=60)
        return [Text("I begin."), call, Wait(threading.Event())]
    return [Text("Fine.")]


@contextmanager
def killed_while_typing(workspace: Path, task: Task, model: OfflineModel) -> Iterator[str]:
    """What had been heard of the article when the whole process group of ``run`` got its SIGKILL."""
    heard = ""
    with subprocess.Popen(
        command(workspace, "run", "--json", "--offline", f"{task.id}=Write."),
        env=environment(model),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = parse(line)
            if isinstance(event, ArticleDelta):
                heard += event.text
            if heard.startswith(BEGUN):
                break
        for child in psutil.Process(process.pid).children(recursive=True):
            os.kill(child.pid, signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
    yield heard


def shown(workspace: Workspace, name: str, *arguments: str) -> str:
    done = CliRunner().invoke(cli, [name, "-w", str(workspace.root), *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_dead_turn_is_cut_off_in_every_command_at_once(workspace: Workspace, task: Task) -> None:
    """After a kill, before anything else runs: show, log, status, export and take have what was typed, as a
    version of its own, each time the same one."""
    with OfflineModel(types_and_waits) as model, killed_while_typing(workspace.root, task, model) as heard:
        said = shown(workspace, "show", task.id)
        assert "[turn 1] Write." in said and "I begin." in said and heard.strip() in said
        assert f"(cut off here; kept as {task.id}@main:1)" in said
        log = shown(workspace, "log", task.id)
        assert "turn 1  Write.  interrupted" in log and ":1  model" in log and "cut off" in log
        assert f"turn 1 was cut off, its article is kept as {task.id}@main:1" in shown(workspace, "status")
        page = workspace.root / "history.md"
        shown(workspace, "export", task.id, "--history", "-o", str(page))
        assert "I begin." in page.read_text() and "The ferry" in page.read_text()
        assert "interrupted" in page.read_text()
        assert shown(workspace, "text", f"{task.id}:1").strip() == heard.strip()
        fields = json.loads(shown(workspace, "show", task.id, "--json"))
        assert fields["turns"][0]["state"] == "interrupted"
        assert fields["cut_off"] == [{"turn": 1, "revision": 1, "whole": False, "text": heard}]
        assert Calls(1).keep(workspace.text(task, "main")) == []
        assert [one.cut_off for one in workspace.text(task, "main").revisions()] == [True]
        shown(workspace, "take", task.id)
        assert shown(workspace, "text", task.id).strip() == heard.strip()
        assert len(workspace.text(task, "main").revisions()) == 2


def test_the_next_prompt_has_what_was_typed_and_go_on_goes_on(workspace: Workspace, task: Task) -> None:
    """The model is told word for word what it had typed and said, once, and goes on to the character."""
    with OfflineModel(types_and_waits) as model, killed_while_typing(workspace.root, task, model) as heard:
        rest = ARTICLE[len(heard) :]

        def goes_on(request: Request) -> Reply:
            if request.tool_results:
                return [Text("Done.")]
            return [ToolUse("append_draft", {"version": 1, "text": rest})]

        model.script = goes_on
        written(workspace.root, task.id, "Go on.", model=model)
        (prompt,) = {request.prompt for request in model.requests if request.prompt.endswith("Go on.")}
        assert heard in prompt and "append_draft with version 1" in prompt and "I begin." in prompt
        assert workspace.text(task, "main").read() == ARTICLE
        model.script = types_and_waits
        written(workspace.root, task.id, "And now?", model=model)
        assert model.requests[-1].prompt == "And now?"


def test_what_is_cut_off_in_a_turn_is_what_take_takes(workspace: Workspace, task: Task) -> None:
    """By turn and by version; where none was cut off, the answer."""
    text = workspace.text(task, "main")
    text.write("Before.\n", author="writer", turn=1)
    with OfflineModel(types_and_waits) as model, killed_while_typing(workspace.root, task, model) as heard:
        written(workspace.root, task.id, "Then.", model=model)
        assert shown(workspace, "take", task.id, "--turn", "2") and text.read() == "Fine.\n"
        assert f"{task.id}@main:2 is the text now" in shown(workspace, "take", task.id, "--turn", "1")
        assert text.read() == heard
        shown(workspace, "take", f"{task.id}:1")
        assert text.read() == "Before.\n"


def test_a_long_article_that_was_cut_off_is_read_through_the_tool(workspace: Workspace, task: Task) -> None:
    """Of what is too long for a prompt the model gets the end and the number, and reads the rest in parts."""
    text = workspace.text(task, "main")
    long = "".join(f"Paragraph {number} of the chapter.\n\n" for number in range(2000))
    with OfflineModel(types_and_waits) as model:
        written(workspace.root, task.id, "Hello.", model=model)
        text.keep_cut_off(long, 1)
        model.script = lambda request: (
            [Text("Read.")]
            if len(request.tool_results) == 4
            else [ToolUse("read_draft", {"version": 1, "part": len(request.tool_results) + 1})]
        )
        written(workspace.root, task.id, "Go on.", model=model)
        prompt = model.requests[-1].prompt
        assert len(prompt) < 4000 and "Paragraph 1999 of" in prompt and "read_draft, version 1" in prompt
        read = "".join(result.partition("\n\n")[2] for result in model.requests[-1].tool_results)
        assert read == long


def test_a_fork_has_what_was_cut_off_in_the_turns_that_it_shares(workspace: Workspace, task: Task) -> None:
    """A fork of a turn that was cut off, be it before anything of it was stored, shows, takes and tells its
    model what had been typed, as its origin does, in a version of its own; so does a fork of that fork."""
    with OfflineModel(types_and_waits) as model, killed_while_typing(workspace.root, task, model) as heard:
        shown(workspace, "fork", task.id, "--name", "trial")
        shown(workspace, "fork", f"{task.id}@trial:1", "--name", "again")
        shown(workspace, "fork", task.id, "--at", "0", "--name", "before")
        assert workspace.text(task, "before").revisions() == []
        said = shown(workspace, "show", f"{task.id}@trial")
        assert heard.strip() in said and f"(cut off here; kept as {task.id}@trial:1)" in said
        assert f"from {task.id}@main:1" in shown(workspace, "log", f"{task.id}@trial")
        assert shown(workspace, "text", f"{task.id}@again").strip() == heard.strip()
        written(workspace.root, f"{task.id}@trial", "Go on.", model=model)
        prompt = model.requests[-1].prompt
        assert heard in prompt and "append_draft with version 1" in prompt
        shown(workspace, "take", f"{task.id}@trial", "--turn", "1")
        assert shown(workspace, "text", f"{task.id}@trial").strip() == heard.strip()


def test_the_model_is_told_how_it_can_go_on(workspace: Workspace, task: Task) -> None:
    """By appending where the end was cut off, by changing again where a passage was, by nothing more where
    all had arrived; and of one call, or of one text, only the last that came."""
    text = workspace.text(task, "main")
    text.write("The ferry waited.\n\nNobody crossed.\n", author="writer", turn=1)
    with OfflineModel(types_and_waits) as model:
        written(workspace.root, task.id, "Hello.", model=model)
        text.keep_cut_off("The ferry lay.\n\nNobody crossed.\n", 1, breaks="within", call="a")
        text.keep_cut_off("The ferry lay there.\n\nNobody crossed.\n", 1, breaks="within", call="a")
        text.keep_cut_off("Another.", 1, breaks="nowhere", call="b")
        text.keep_cut_off("Half", 1, call="c")
        text.keep_cut_off("Half of it", 1, call="d")
        written(workspace.root, task.id, "Go on.", model=model)
        passage, whole, end = re.split(r"\[You were cut off|\[What you wrote", model.requests[-1].prompt)[1:]
    assert "Version 3" in passage and "lay there" in passage and "append_draft" not in passage
    assert "make the whole change again" in passage and "Nobody crossed" not in passage
    assert "Version 4" in whole and "version 4 and an empty text" in whole
    assert "version 6" in end and "append_draft with version 6" in end
