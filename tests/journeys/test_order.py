"""Order is by number: what a clock that goes back must not change."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, tzinfo

import pytest
from commands import smartwriter

from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.trials.history import history_of
from smartwriter.workspace import Workspace

HOURS = (0, 24, -7, 3, -30)
"""Where the clock stands in each turn."""


class Clock(datetime):
    """One that is set anew all the time."""

    shift = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Clock:
        return cls.fromtimestamp(datetime.now(tz).timestamp(), tz) + cls.shift


@pytest.fixture
def written(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A draft of five turns, each with a hand edit before it and a version of its own."""
    monkeypatch.setattr("smartwriter.storage.records.datetime", Clock)
    task = workspace.new_task("Herons")
    text = workspace.text(task, "main")
    for number, hours in enumerate(HOURS, 1):
        monkeypatch.setattr(Clock, "shift", timedelta(hours=hours))
        text.path.parent.mkdir(parents=True, exist_ok=True)
        text.path.write_text(f"By hand before turn {number}.\n")
        OpenDraft(workspace, task, "main").take_hand_edit()
        turn = Turn(
            number=number, uuid=f"u{number}", session_id="s", prompt=f"P{number}", state=TurnState.finished
        )
        workspace.tasks.record(task, "main", [turn])
        text.write(f"Of turn {number}.\n", author="model", turn=number)
    return workspace.tasks.find(task.id)


def test_case_111_the_log_is_in_order_under_a_clock_that_goes_back(
    workspace: Workspace, written: Task
) -> None:
    """Turns and versions stand in the order of their numbers in log and history, whatever the clock
    said at the time (anomalyco/opencode#38575)."""
    shown = smartwriter(workspace.root, "log", written.id).stdout.decode()
    expected = []
    for number in range(1, len(HOURS) + 1):
        expected += [f":{2 * number - 1}", f"turn {number}", f":{2 * number}"]
    assert re.findall(r"turn \d+|(?<=  ):\d+", shown) == expected
    (branch,) = json.loads(smartwriter(workspace.root, "log", written.id, "--json").stdout)
    kinds = [f"turn {item['turn']['number']}" if "turn" in item else "" for item in branch["items"]]
    assert [kind for kind in kinds if kind] == [f"turn {number + 1}" for number in range(len(HOURS))]


def test_the_history_is_in_order_under_a_clock_that_goes_back(workspace: Workspace, written: Task) -> None:
    """An export of the history goes by number, too."""
    (OpenDraft(workspace, written, "main").transcript.path.parent).mkdir(parents=True)
    OpenDraft(workspace, written, "main").transcript.path.write_text('{"type":"mode"}\n')
    steps = history_of(OpenDraft(workspace, written, "main")).steps
    for kind in ("turn", "revision"):
        numbers = [step.number for step in steps if step.kind == kind]
        assert numbers == sorted(numbers)
