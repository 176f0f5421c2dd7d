"""SIGKILL of a host at random moments of streaming turns, over and over in one workspace.

In half of the cycles only the host is killed, so that its CLI lives on; in the others the whole
process group. A listener follows the live journal from outside until the kill. After the next start
every event that it had received must be replayable, of what the stand-in had streamed at most the
text of the last 250 ms may be missing, the session must resume, and no folder of a dead CLI be left.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline import Reply, Request, Step, Text, Wait
from smartwriter.cli.interrupts import kill_tree
from smartwriter.events import Event, TextDelta
from smartwriter.live import LiveReader
from smartwriter.tasks import Task, TurnState

KILLS = 200
_WORDS = 120
_PAUSE_S = 0.02  # between words
_LOST_S = 0.25
_LISTEN_S = 60.0


class _Mark(threading.Event):
    """A gate in the stand-in's reply that opens at its time, and remembers when it was passed."""

    def __init__(self, due: float) -> None:
        super().__init__()
        self._due = due
        self.passed: float | None = None

    def is_set(self) -> bool:
        now = time.monotonic()
        if self.passed is None and now >= self._due:
            self.passed = now
        return self.passed is not None


class _Typist:
    """The stand-in's script: a word at a time, each sent at a known moment."""

    def __init__(self) -> None:
        self._marks: list[_Mark] = []

    def __call__(self, request: Request) -> Reply:
        if not request.prompt.endswith("at length."):
            return [Text("Fine.")]
        start = time.monotonic()
        self._marks = [_Mark(start + number * _PAUSE_S) for number in range(_WORDS)]
        steps: list[Step] = []
        for number, mark in enumerate(self._marks):
            steps += [Wait(mark), Text(f"w{number:03d} ")]
        return steps

    def sent_until(self, moment: float) -> int:
        return sum(mark.passed is not None and mark.passed < moment for mark in self._marks)


@dataclass
class _Count:
    kills: int = 0
    unheard: int = 0  # events that were received and cannot be heard again
    short: int = 0  # cycles in which too much text is missing
    not_resumed: int = 0
    orphans: set[str] = field(default_factory=set)
    recovered: int = 0


def _measure(run: Run) -> Outcome:
    random, count, typist = run.random(), _Count(), _Typist()
    with stage(run, typist) as scene:
        task = scene.workspace.new_task("Herons")
        for number in range(run.scaled(KILLS)):
            delay_s = random.uniform(0.0, _WORDS * _PAUSE_S)
            _cycle(scene, typist, task, count, delay_s, whole_group=number % 2 == 0)
    got = (
        f"{count.kills} kills: {count.unheard} received events not replayable, {count.short} times over "
        f"250 ms of text missing, {count.not_resumed} not resumed, {len(count.orphans)} orphan folders left; "
        f"{count.recovered} answers were finished by the CLI and taken in"
    )
    return Outcome(got, not (count.unheard or count.short or count.not_resumed or count.orphans))


def _cycle(
    scene: Stage, typist: _Typist, task: Task, count: _Count, delay_s: float, *, whole_group: bool
) -> None:
    path = scene.workspace.live_path(task, "main")
    reader = LiveReader(path, _last_position(path))
    before = reader.position
    received: list[Event] = []
    with scene.start(f"{task.id}=Answer at length.") as process:
        _listen(reader, received, until_text=True)
        _listen(reader, received, for_s=delay_s)
        clis = psutil.Process(process.pid).children(recursive=True)
        killed_at = time.monotonic()
        if whole_group:
            kill_tree(process.pid)
        else:
            os.kill(process.pid, signal.SIGKILL)
    sent = typist.sent_until(killed_at - _LOST_S)
    psutil.wait_procs(clis, timeout=60)
    count.kills += 1
    replayed = LiveReader(path, before).read()
    count.unheard += len(received) - sum(event in replayed for event in received)
    kept = len("".join(event.text for event in replayed if isinstance(event, TextDelta)).split())
    count.short += kept < sent
    done = scene.run("write", task.id, "Go on.", "--offline")
    turns = scene.workspace.tasks.turns(task, "main")
    count.recovered += turns[-2].state is TurnState.recovered
    count.not_resumed += done.returncode != 0 or turns[-1].state is not TurnState.finished
    count.orphans |= {path.name for path in scene.temporary.glob("claude-resume-*")}


def _listen(
    reader: LiveReader, received: list[Event], *, until_text: bool = False, for_s: float = _LISTEN_S
) -> None:
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        received += reader.read()
        if until_text and any(isinstance(event, TextDelta) for event in received):
            return
        time.sleep(0.01)


def _last_position(path: Path) -> int:
    reader = LiveReader(path, 0)
    reader.read()
    return reader.position


FIGURES = [
    Figure(
        "SIGKILL of the host while it streams",
        f"{KILLS} kills; every received event replayable, at most 250 ms of text missing, every session "
        "resumes, no orphan folder",
        _measure,
    )
]
