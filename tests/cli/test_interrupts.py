"""What a terminal, a signal or a reader that leaves does to a turn, with a real terminal."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pyte
import pytest
from click.testing import CliRunner
from commands import command, environment, written
from terminal import Terminal, terminal

from smartwriter.agent.offline.script import Reply, Request, Text, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.cli.app import cli
from smartwriter.tasks.values import Task, TurnState
from smartwriter.workspace import Workspace


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def _half(request: Request) -> Reply:
    return [Text("The first half"), Wait(threading.Event()), Text(" and the rest.")]


def _ctrl_c(window: Terminal) -> int:
    window.type("\x03")
    return window.end()


def _close(window: Terminal) -> int:
    return window.close()


def _terminate(window: Terminal) -> int:
    window.process.send_signal(signal.SIGTERM)
    return window.end()


@pytest.mark.parametrize(
    ("name", "ending", "code"),
    [
        ("write", _ctrl_c, 130),
        ("run", _close, 129),
        ("write", _terminate, 143),
    ],
)
def test_whatever_a_terminal_does_stops_the_turn_in_order(
    workspace: Workspace, task: Task, name: str, ending: Callable[[Terminal], int], code: int
) -> None:
    """Ctrl-C, a closed window and SIGTERM alike: the turn is stopped, with what was heard of it, and
    stopping is no error."""
    with OfflineModel(_half) as model:
        jobs = [task.id, "Go."] if name == "write" else [f"{task.id}=Go."]
        with terminal(command(workspace.root, name, *jobs, "--offline"), environment(model)) as window:
            window.wait_for("The first half")
            assert ending(window) == code
        screen = window.screen
        assert "Error" not in screen and "diagnostic" not in screen and "Traceback" not in screen
        assert ending is _close or "Stopped; what had been written is kept." in screen
    (turn,) = workspace.tasks.turns(task, "main")
    assert (turn.state, turn.detail, turn.partial) == (TurnState.stopped, "", "The first half")


def test_ctrl_c_before_a_turn_has_its_code_too(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a command was at when ctrl-C came, it ends with the shell's code for it, not as a failure."""

    def is_interrupted(_: Path) -> Workspace:
        raise KeyboardInterrupt

    monkeypatch.setattr(Workspace, "around", is_interrupted)
    done = CliRunner().invoke(cli, ["write", task.id, "Go."])
    assert (done.exit_code, done.output.strip()) == (130, "")


def test_a_cli_is_out_of_reach_of_the_terminal_and_dies_with_a_second_ctrl_c(
    workspace: Workspace, task: Task
) -> None:
    """The CLI leads a session of its own; ctrl-C once more ends the command and the CLI at once."""
    with (
        OfflineModel(_half) as model,
        terminal(command(workspace.root, "write", task.id, "Go.", "--offline"), environment(model)) as window,
    ):
        window.wait_for("The first half")
        (cli,) = psutil.Process(window.process.pid).children()
        assert os.getsid(cli.pid) == cli.pid != os.getsid(window.process.pid)
        cli.suspend()  # so that it cannot end the turn
        window.type("\x03")
        window.wait_for("once more to kill")
        while window.process.poll() is None and cli.is_running():
            window.type("\x03")
            threading.Event().wait(0.1)  # until it takes one for a second one
        assert window.end() == 130
        psutil.wait_procs([cli], timeout=10)
        assert not cli.is_running()


def test_a_turn_whose_cli_dies_of_a_stop_is_stopped(workspace: Workspace, task: Task) -> None:
    """Whatever ends after a stop is stopped, also when the CLI is gone before it could be asked."""
    with (
        OfflineModel(_half) as model,
        terminal(command(workspace.root, "write", task.id, "Go.", "--offline"), environment(model)) as window,
    ):
        window.wait_for("The first half")
        (cli,) = psutil.Process(window.process.pid).children()
        cli.suspend()
        window.type("\x03")
        window.wait_for("Stopping")
        cli.kill()
        assert window.end() == 130
    (turn,) = workspace.tasks.turns(task, "main")
    assert (turn.state, turn.detail, turn.partial) == (TurnState.stopped, "", "The first half")


@pytest.mark.parametrize("name", ["write", "run"])
def test_a_reader_that_leaves_never_touches_the_turn(workspace: Workspace, task: Task, name: str) -> None:
    """``… | head`` gets its bytes, the turn comes to its end, one line says so at most, and the exit
    code is that of ``yes | head``."""
    gone = threading.Event()
    with OfflineModel(lambda request: [Text("Begun. "), Wait(gone), Text("word " * 200)]) as model:
        jobs = [task.id, "Go."] if name == "write" else [f"{task.id}=Go.", "--json"]
        piped = shlex.join(command(workspace.root, name, *jobs, "--offline"))
        process = subprocess.Popen(
            ["bash", "-c", f"{piped} | head -c 5; echo ${{PIPESTATUS[0]}}"],
            env=environment(model),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert len(process.stdout.read(5)) == 5
        gone.set()
        out, err = process.communicate(timeout=60)
    assert out == b"141\n"
    assert len(err.splitlines()) <= 1 and b"Error" not in err, err
    (turn,) = workspace.tasks.turns(task, "main")
    assert turn.state is TurnState.finished


def test_watch_ends_with_its_reader(workspace: Workspace, task: Task, model: OfflineModel) -> None:
    """``watch | head -1`` ends, although nothing more happens that it could fail to print."""
    written(workspace.root, task.id, "Begin.", model=model)
    piped = shlex.join(command(workspace.root, "watch", "--json", task.id))
    done = subprocess.run(
        ["bash", "-c", f"{piped} | head -n 1; echo ${{PIPESTATUS[0]}}"], capture_output=True, timeout=60
    )
    assert done.stdout.splitlines()[1:] == [b"141"] and done.stderr == b""


def test_what_is_printed_to_a_full_disk_costs_no_turn(
    workspace: Workspace, task: Task, model: OfflineModel
) -> None:
    """When standard output takes nothing any more, the turn ends as it would have; then it is said."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command(workspace.root, "write", task.id, "Go.", "--offline"),
            env=environment(model),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert done.returncode == 1 and b"No space left on device" in done.stderr
    (turn,) = workspace.tasks.turns(task, "main")
    assert turn.state is TurnState.finished


def test_a_live_display_keeps_no_stale_rows(workspace: Workspace) -> None:
    """Whatever is typed while ``run`` shows its rows, ctrl-C among it, each draft has one row in the end,
    and the terminal echoes keys again."""
    tasks = [workspace.new_task(f"渡口 number {number}") for number in range(3)]
    jobs = [f"{task.id}=Go." for task in tasks]
    with (
        OfflineModel(_half) as model,
        terminal(command(workspace.root, "run", *jobs, "--offline"), environment(model)) as window,
    ):
        window.wait_for("The first half")
        window.type("\r\rwhat is typed meanwhile\r")
        window.type("\x03")
        window.wait_for("what had been written is kept")
        echoes = window.echoes()
        assert window.end() == 130
    screen = pyte.Screen(100, 30)
    pyte.Stream(screen).feed(window.screen)
    rows = [line for line in screen.display if "number" in line]
    assert len(rows) == 3 and all("stopped" in row for row in rows), screen.display
    assert echoes
