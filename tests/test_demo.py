"""The demo, as a newcomer runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from smartwriter.tasks import TurnState
from smartwriter.workspace import Workspace


def test_the_demo_tells_the_whole_story(tmp_path: Path) -> None:
    """Three articles are written, killed, resumed, one is forked and adopted, all without a login."""
    root = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "smartwriter", "demo", "-w", str(root)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "offline stand-in, not a model" in done.stdout
    assert "kill -9" in done.stdout
    workspace = Workspace(root)
    tasks = workspace.tasks.all()
    assert len(tasks) == 3 and len({task.collection for task in tasks}) == 2
    for task in tasks:
        states = [turn.state for turn in workspace.tasks.turns(task, "main")]
        assert states == [TurnState.finished, TurnState.interrupted, TurnState.finished]
        assert len(workspace.text(task, "main").revisions()) == 2
    forked = next(task for task in tasks if len(task.drafts) == 2)
    assert forked.current != "main"
    assert [turn.number for turn in workspace.tasks.turns(forked, forked.current)] == [1, 2]
    assert list((tmp_path / "tmp").iterdir()) == []  # nothing left behind by the killed processes
