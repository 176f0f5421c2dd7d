"""The commands that run, watch and stop several drafts, as a writer uses them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import command, environment, smartwriter, written

from smartwriter.agent.offline.script import Reply, Request, Text, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.errors import Invalid
from smartwriter.events import parse
from smartwriter.system.config import Config, load
from smartwriter.tasks.values import Task, TurnState
from smartwriter.turns.parts import Part
from smartwriter.workspace import Workspace


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def _long(request: Request) -> Reply:
    return [Text("The first half"), Wait(threading.Event()), Text(" and the rest.")]


def test_variants_of_one_draft(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    """``fork --variants`` writes one prompt in several forks; the first has begun to answer before
    the others ask, so that they find their common past in the prompt cache."""
    written(workspace.root, task.id, "Begin.", model=model)
    asked: list[str] = []

    def script(request: Request) -> Reply:
        asked.append(request.prompt)
        return [Text(f"Answer {len(asked)}. ", pause_s=0.01)]

    model.script = script
    done = smartwriter(workspace.root, "fork", task.id, "--variants", "3", "-p", "Try.", model=model)
    assert done.returncode == 0, done.stderr.decode()
    found = workspace.tasks.find(task.id)
    assert list(found.drafts) == ["main", "draft-2", "draft-3", "draft-4"]
    for name in list(found.drafts)[1:]:
        states = [turn.state for turn in workspace.tasks.turns(found, name)]
        assert states == [TurnState.finished] * 2
    assert asked == ["Try."] * 3
    refused = smartwriter(workspace.root, "fork", task.id, "--variants", "2")
    assert refused.returncode == 1 and b"Variants need a prompt" in refused.stderr


def test_a_new_task_as_json(workspace: Workspace, model: OfflineModel) -> None:
    """``new --json`` prints the task, so that a program knows its id, and with a prompt its turn, too."""
    alone = json.loads(smartwriter(workspace.root, "new", "Granite", "--json").stdout)
    assert workspace.tasks.find(alone["id"]).title == alone["title"] == "Granite"
    done = smartwriter(workspace.root, "new", "Slate", "-p", "Begin.", "--json", model=model)
    task, turn = (json.loads(line) for line in done.stdout.splitlines())
    assert (task["title"], turn["prompt"], turn["state"]) == ("Slate", "Begin.", "finished")


def test_variants_as_json(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    """``fork --json`` with a prompt prints the forks and then what happens, all of it a line each."""
    written(workspace.root, task.id, "Begin.", model=model)
    arguments = ("--variants", "2", "-p", "Try.", "--json")
    done = smartwriter(workspace.root, "fork", task.id, *arguments, model=model)
    first, second, *events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [first["name"], second["name"]] == ["draft-2", "draft-3"]
    assert [event["kind"] for event in events].count("finished") == 2
    alone = smartwriter(workspace.root, "fork", task.id, "--json")
    assert json.loads(alone.stdout)["name"] == "draft-4"


def test_watch_tells_again_and_goes_on(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    """``watch --json`` in another process tells what is kept of the last turn, then what happens,
    and ends quietly with ctrl-C."""
    written(workspace.root, task.id, "Begin.", model=model)
    with subprocess.Popen(
        command(workspace.root, "watch", "--json", task.id), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as watching:
        assert watching.stdout is not None and watching.stderr is not None
        kinds = []
        while "finished" not in kinds:
            kinds.append(parse(watching.stdout.readline()).kind)
        assert kinds[:2] == ["reload", "turn_started"]
        written(workspace.root, task.id, "Go on.", model=model)
        event = parse(watching.stdout.readline())
        assert event.kind == "turn_started" and event.prompt == "Go on."
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.stderr.read() == b""


def test_watch_tells_of_any_prompt(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    """``watch --json`` tells of a prompt with a stray byte in it, as a terminal in GBK sends one."""
    done = smartwriter(workspace.root, "write", task.id, os.fsdecode(b"Fog \xce\xed."), model=model)
    assert done.returncode == 0, done.stderr.decode()
    with subprocess.Popen(
        command(workspace.root, "watch", "--json", task.id), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as watching:
        assert watching.stdout is not None and watching.stderr is not None
        reload, started = (json.loads(watching.stdout.readline() or "{}") for _ in range(2))
        assert reload["kind"] == "reload" and started.get("prompt") == "Fog \udcce\udced."
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.stderr.read() == b""


def test_ctrl_c_stops_in_order(workspace: Workspace, task: Task) -> None:
    """One ctrl-C interrupts the turn, which keeps its text and says that it was stopped."""
    with OfflineModel(_long) as model:
        with subprocess.Popen(
            command(workspace.root, "run", "--json", "--offline", f"{task.id}=Go."),
            env=environment(model),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            while parse(process.stdout.readline()).kind != "text_delta":
                pass
            process.send_signal(signal.SIGINT)
            rest = [parse(line).kind for line in process.stdout]
        assert process.returncode == 130 and rest[-1] == "stopped"
    (turn,) = workspace.tasks.turns(task, "main")
    assert turn.state is TurnState.stopped and turn.partial == "The first half"


def test_notify_runs_a_command(workspace: Workspace, task: Task, model: OfflineModel, tmp_path: Path) -> None:
    """``--notify`` runs the writer's command with a message when a draft is done; one that cannot be
    run is only said."""
    told = tmp_path / "told.txt"
    program = tmp_path / "tell.py"
    program.write_text(f"import sys; open({str(told)!r}, 'w').write(sys.argv[1])")
    notify = shlex.join([sys.executable, str(program), "{}"])
    done = smartwriter(workspace.root, "run", f"{task.id}=Go.", "--notify", notify, model=model)
    assert done.returncode == 0, done.stderr.decode()
    for _ in range(200):
        if told.exists() and told.read_text():
            break
        threading.Event().wait(0.05)  # the command runs by itself
    assert told.read_text() == "Herons: finished"
    done = smartwriter(workspace.root, "run", f"{task.id}=Go.", "--notify", "/nowhere", model=model)
    assert done.returncode == 0 and b"/nowhere could not be run" in done.stderr


def test_a_file_of_jobs(workspace: Workspace, task: Task, model: OfflineModel, tmp_path: Path) -> None:
    """A file names new tasks and drafts of old ones, and all are written."""
    file = tmp_path / "jobs.yaml"
    file.write_text(f"- {{task: {task.id}, draft: main, prompt: Go.}}\n- title: Granite\n  prompt: Begin.\n")
    done = smartwriter(workspace.root, "run", "-f", str(file), model=model)
    assert done.returncode == 0, done.stderr.decode()
    for title in ("Herons", "Granite"):
        (turn,) = workspace.tasks.turns(workspace.tasks.find(title), "main")
        assert turn.state is TurnState.finished


def test_usage_adds_up(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    """``usage`` shows each draft's tokens and their sum."""
    written(workspace.root, task.id, "Begin.", model=model)
    used = json.loads(smartwriter(workspace.root, "usage", task.id, "--json").stdout)
    assert used["drafts"]["main"]["output_tokens"] == used["total"]["output_tokens"] > 0
    assert b"in all:" in smartwriter(workspace.root, "usage", task.id).stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("parallel = 0", "parallel: "),
        ("idle = 1", "idle: "),
        ("parallel = ", "is not TOML"),
        ("x", "is not TOML"),
    ],
)
def test_a_wrong_config_is_said_before_anything_starts(
    workspace: Workspace, task: Task, text: str, why: str
) -> None:
    """What is wrong in config.toml is one sentence, and no turn is begun."""
    (workspace.hidden / "config.toml").write_text(text)
    with pytest.raises(Invalid, match=why):
        workspace.config()
    done = smartwriter(workspace.root, "write", task.id, "Go.")
    assert done.returncode == 1 and why in done.stderr.decode() and b"Traceback" not in done.stderr
    assert workspace.tasks.turns(task, "main") == []


def test_config_defaults(workspace: Workspace, tmp_path: Path) -> None:
    """A new workspace's config.toml says what can be set and sets nothing; so does a missing one."""
    assert workspace.config() == load(tmp_path / "nowhere") == Config()
    assert 1 <= Config().parallel <= 8


def test_what_is_not_saved_is_an_exit_code(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    """When part of a conversation waits in the spool and cannot be stored, the command says so and
    fails, although the turn went well; once there is room, all is well again."""
    written(workspace.root, task.id, "Begin.", model=model)
    key: Any = {"project_key": "elsewhere", "session_id": "s"}
    blocked = workspace.hidden / "sessions" / "elsewhere"
    blocked.write_text("in the way")
    workspace.spool.put(Part("transcript", task.id, "main", [{"type": "x", "uuid": "u"}], key))
    done = smartwriter(workspace.root, "write", task.id, "Go on.", model=model)
    assert done.returncode == 1 and b"1 part waits in " in done.stderr and b"/spool; make room" in done.stderr
    blocked.unlink()
    written(workspace.root, task.id, "Go on.", model=model)
    assert workspace.spool.waiting() == 0
