"""SIGKILL of a host at random moments of an article, its CLI left alive, and at once the next turn.

The stand-in streams each article through ``write_draft`` in pieces, and the CLI of the dead host takes
it to its end, with nobody there to run the tool. The next turn, asked for at once, must have waited for
it: the whole article is among the draft's versions once, with no other version of that turn beside it,
the model is told of the turn, and no folder and no process is left.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.events import ArticleDelta
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Task, TurnState
from smartwriter.turns.live import LiveReader

KILLS = 200
_QUICK_KILLS = 4  # each waits for an article to its end
WORDS = 2_000
_PIECE = 64  # characters
_PAUSE_S = 0.005  # between pieces
_BEGIN_S = 60.0


class _Author:
    """The stand-in's script: a long article for some prompts, a word for the others."""

    def __call__(self, request: Request) -> Reply:
        name = request.prompt.rpartition("article ")[2]
        if not name.isdigit() or request.tool_results:
            return [Text("Fine.")]
        return [ToolUse("write_draft", {"text": article(int(name))}, chunk_chars=_PIECE, pause_s=_PAUSE_S)]


def article(number: int) -> str:
    return f"# Article {number}\n\n" + " ".join(f"a{number}w{word:04d}" for word in range(WORDS)) + "\n"


@dataclass
class _Count:
    kills: int = 0
    missing: int = 0
    doubled: int = 0
    not_resumed: int = 0
    unanswered: int = 0  # turns that are not said to have their answer
    left: set[str] = field(default_factory=set)


def _measure(run: Run) -> Outcome:
    random, count = run.random(), _Count()
    streams_s = len(article(100)) / _PIECE * _PAUSE_S
    with stage(run, _Author()) as scene:
        task = scene.workspace.new_task("Herons")
        for number in range(_QUICK_KILLS if run.quick else KILLS):
            _cycle(scene, task, count, number, random.uniform(0.0, streams_s))
    got = (
        f"{count.kills} kills: {count.missing} articles not whole, {count.doubled} there in more than one "
        f"version, {count.unanswered} turns without their answer, {count.not_resumed} not resumed, "
        f"{len(count.left)} folders and processes left"
    )
    wrong = count.missing + count.doubled + count.unanswered + count.not_resumed + len(count.left)
    return Outcome(got, not wrong)


def _cycle(scene: Stage, task: Task, count: _Count, number: int, delay_s: float) -> None:
    path = OpenDraft(scene.workspace, task, "main").live_path
    reader = LiveReader(path, _last_position(path))
    with scene.start(f"{task.id}=Write article {number}") as process:
        _until_typed(reader)
        time.sleep(delay_s)
        clis = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGKILL)
    count.kills += 1
    done = scene.run("write", task.id, "Go on.", "--offline")
    turns = scene.workspace.tasks.turns(task, "main")
    count.not_resumed += done.returncode != 0 or turns[-1].state is not TurnState.finished
    count.unanswered += turns[-2].state is not TurnState.recovered
    texts = [
        one.text for one in scene.workspace.text(task, "main").revisions() if one.turn == turns[-2].number
    ]
    count.missing += article(number) not in texts
    count.doubled += len(texts) > 1
    count.left |= {folder.name for folder in scene.temporary.iterdir() if "resume" in folder.name}
    count.left |= {str(cli.pid) for cli in clis if _lives(cli)}


def _lives(process: psutil.Process) -> bool:
    """Whether a process has not ended; one that init has not reaped yet has."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _until_typed(reader: LiveReader) -> None:
    end = time.monotonic() + _BEGIN_S
    while not any(isinstance(event, ArticleDelta) for event in reader.read()):
        if time.monotonic() > end:
            raise RuntimeError("no article has begun")
        time.sleep(0.01)


def _last_position(path: Path) -> int:
    reader = LiveReader(path, 0)
    reader.read()
    return reader.position


FIGURES = [
    Figure(
        "SIGKILL of the host in an article, its CLI left alive",
        f"{KILLS} kills in articles of {WORDS:,} words: the whole article is there, once, and nothing left",
        _measure,
    )
]
