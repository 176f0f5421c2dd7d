"""The demo, as a newcomer runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import smartwriter.cli.demo
from smartwriter.tasks.values import TurnState
from smartwriter.workspace import Workspace


def test_the_demo_tells_the_whole_story(tmp_path: Path) -> None:
    """Three articles are written, killed mid-sentence while they are typed through the tools, shown to the
    last word that was heard, gone on with from there, one is forked and adopted; no turn costs anything."""
    root = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "smartwriter", "demo", "-w", str(root)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("a stand-in types") == 1
    assert "stand-in, not a model" not in done.stdout and ".jsonl" not in done.stdout
    assert "kill -9" in done.stdout
    workspace = Workspace(root)
    demo = json.loads((Path(smartwriter.cli.demo.__file__).parent / "demo.json").read_text(encoding="utf-8"))
    texts = {article["title"]: article["text2_addition"] for article in demo["articles"]}
    tasks = workspace.tasks.all()
    assert len(tasks) == 3 and len({task.collection for task in tasks}) == 2
    for task in tasks:
        states = [turn.state for turn in workspace.tasks.turns(task, "main")]
        assert states == [TurnState.finished, TurnState.interrupted, TurnState.finished]
        first, cut_off, whole = workspace.text(task, "main").revisions()
        assert cut_off.cut_off and cut_off.text.startswith(first.text.rstrip())
        assert whole.text.startswith(cut_off.text) and whole.text.endswith(texts[task.title])
        end = " ".join(cut_off.text[len(first.text.rstrip()) :].split())
        assert f"kept as {task.id}@main:2" in done.stdout and end[:40] in done.stdout
        assert all(turn.usage.cost_usd == 0 for turn in workspace.tasks.turns(task, "main"))
    forked = next(task for task in tasks if len(task.drafts) == 2)
    assert forked.current != "main"
    assert [turn.number for turn in workspace.tasks.turns(forked, forked.current)] == [1, 2]
    assert list((tmp_path / "tmp").iterdir()) == []  # nothing left behind by the killed processes


def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    """Unless it is told where, the demo's folder is gone with it, and it says so."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_STORY], capture_output=True, text=True, timeout=100, cwd=tmp_path
    )
    assert "-w FOLDER" in done.stdout, done.stdout + done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_ended_leaves_nothing_behind(tmp_path: Path, how: signal.Signals) -> None:
    """Whoever ends the demo alone while its articles are typed, a program or a terminal that closes, it
    leaves no process and no folder."""
    started: list[psutil.Process] = []
    command = [sys.executable, "-m", "smartwriter", "demo"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as demo:
        try:
            itself = psutil.Process(demo.pid)
            while sum("claude" in Path(one.exe()).name for one in started) < 3:
                assert demo.poll() is None
                time.sleep(0.05)
                started = itself.children(recursive=True)
            demo.send_signal(how)
            assert demo.wait(60) == 128 + how
            assert psutil.wait_procs(started, timeout=20)[1] == []
            assert list((tmp_path / "tmp").iterdir()) == []
        finally:
            demo.kill()
            for one in started:
                if one.is_running():
                    one.kill()


_WITHOUT_STORY = """
from smartwriter.cli import demo
from smartwriter.cli.app import cli
demo._Story.tell = lambda self: None
cli(["demo"])
"""
