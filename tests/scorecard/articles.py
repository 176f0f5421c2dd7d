"""An article that is typed through the tools and ended at random moments, in every way that a turn can end.

The stand-in streams the input of a tool in pieces of 8 characters, and remembers when each had been sent.
Every character that it had sent 250 ms before the end must be in a version, shown, takeable, and in the next
request. What had been sent is read from the JSON by another reader than the program's own.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil
from figure import Figure, Outcome, Run
from pydantic_core import from_json
from stage import Stage, stage

from smartwriter.agent.offline.script import ApiError, Cut, Reply, Request, Step, Text, ToolUse
from smartwriter.agent.offline.streaming import ApiEvent
from smartwriter.cli.interrupts import kill_tree
from smartwriter.tasks.values import Task

MOMENTS = 200
_QUICK_MOMENTS = 1  # each takes four processes
_WORDS = 2000
_PIECE_CHARACTERS = 8
_PAUSE_S = 0.001
_LOST_S = 0.25
_PATIENCE_S = 60.0
_WORD = ("Nebel", "ferry", "“tide”", "渡口", "😀", "crossing,", "well.\n\n", "and", "the", "Überfahrt")


@dataclass
class _Writer:
    """The stand-in's script, and what it has sent of the article."""

    article: str
    break_at: int | None = None
    """Where the API is cut, of the input's JSON."""
    sent: list[tuple[float, str]] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        if not request.prompt.endswith("Write the article.") or request.tool_results:
            return [Text("Fine.")]
        if self.sent:  # the answer was cut, and is asked for again
            return [ApiError(400, "invalid_request_error", "no more of it")]
        call = ToolUse(
            "write_draft",
            {"text": self.article},
            chunk_chars=_PIECE_CHARACTERS,
            pause_s=_PAUSE_S,
            break_at=self.break_at,
        )
        steps: list[Step] = [Text("I begin."), call]
        return steps if self.break_at is None else [*steps, Cut()]

    def watch(self, scene: Stage) -> None:
        """Remember when each piece has been sent."""

        def sent(event: ApiEvent) -> None:
            if data := event.get("delta", {}).get("partial_json"):
                self.sent.append((time.monotonic(), data))

        scene.model.sent = sent

    def length(self) -> int:
        """Of the input, as far as it has been sent."""
        return len(self.sent) * _PIECE_CHARACTERS

    def sent_by(self, moment: float) -> str:
        """The article as far as it had been sent by then."""
        data = "".join(piece for when, piece in self.sent if when <= moment)
        whole = _HALF_ESCAPE.sub("", data)
        sent: str = from_json(whole, allow_partial="trailing-strings").get("text", "") if whole else ""
        return sent


@dataclass
class _Count:
    moments: int = 0
    characters: int = 0
    lost: int = 0  # in no version
    not_shown: int = 0
    not_taken: int = 0
    not_told: int = 0
    whole: int = 0  # ended before the article did


# At the end: the beginning of an escape, or of a pair of them.
_HALF_ESCAPE = re.compile(r"(\\u[dD][89abAB][0-9a-fA-F]{2})?(\\(u[0-9a-fA-F]{0,3})?)?$")

End = Callable[[Stage, Task, psutil.Process], None]


def _kill(scene: Stage, task: Task, process: psutil.Process) -> None:
    kill_tree(process.pid)


def _stop(scene: Stage, task: Task, process: psutil.Process) -> None:
    scene.run("stop", task.id)


def _hang_up(scene: Stage, task: Task, process: psutil.Process) -> None:
    os.kill(process.pid, signal.SIGHUP)


def _wait(scene: Stage, task: Task, process: psutil.Process) -> None:
    """The API does it."""


_ENDS: dict[str, End] = {"killed": _kill, "stopped": _stop, "hung up": _hang_up, "cut from the API": _wait}


def _measure(run: Run) -> Outcome:
    seeds, counts = run.random(), {name: _Count() for name in _ENDS}
    article = " ".join(seeds.choice(_WORD) for _ in range(_WORDS))
    writer = _Writer(article)
    with stage(run, writer) as scene:
        writer.watch(scene)
        for number in range(_QUICK_MOMENTS if run.quick else MOMENTS):
            for name, end in _ENDS.items():
                task = scene.workspace.new_task(f"{name} {number}")
                _moment(scene, writer, task, end, counts[name], seeds)
    said = [
        f"{name} {count.moments} times, {count.characters:,} characters sent: {count.lost} times some lost, "
        f"{count.not_shown} not shown, {count.not_taken} not takeable, {count.not_told} not told; "
        f"{count.whole} had come to their end"
        for name, count in counts.items()
    ]
    short = any(c.lost or c.not_shown or c.not_taken or c.not_told for c in counts.values())
    return Outcome("; ".join(said), not short)


def _moment(scene: Stage, writer: _Writer, task: Task, end: End, count: _Count, seeds: random.Random) -> None:
    data = len(json.dumps({"text": writer.article}))
    writer.sent, writer.break_at = [], seeds.randrange(20, data - 2) if end is _wait else None
    with scene.start(f"{task.id}=Write the article.") as process:
        _until(lambda: bool(writer.sent))
        if end is _wait:
            process.wait(_PATIENCE_S)
            ended_at = time.monotonic() + _LOST_S  # all of it: the turn came to its end
        else:
            wanted = seeds.uniform(0, data)  # of the input; so the moments lie all over it
            _until(
                lambda: sum(len(piece) for _, piece in writer.sent) >= wanted or process.poll() is not None
            )
            ended_at = time.monotonic()
            end(scene, task, psutil.Process(process.pid))
            process.wait(_PATIENCE_S)
    sent = writer.sent_by(ended_at - _LOST_S)
    count.moments += 1
    count.characters += len(sent)
    _look(scene, task, sent, count)


def _look(scene: Stage, task: Task, sent: str, count: _Count) -> None:
    """Whether what had been sent is where a writer looks for it, and where the model is told."""
    shown = scene.run("show", task.id).stdout
    text = scene.workspace.text(task, "main")
    kept = [revision for revision in text.revisions() if revision.text.startswith(sent)]
    if text.read():
        count.whole += 1
        count.lost += not text.read().startswith(sent)
        return
    if not sent:
        return
    if not kept:
        count.lost += 1
        return
    count.not_shown += sent.strip() not in shown or f"kept as {task.id}@main:{kept[-1].number}" not in shown
    scene.run("write", task.id, "Go on.", "--offline")
    count.not_told += sent not in scene.model.requests[-1].said
    scene.run("take", f"{task.id}:{kept[-1].number}")
    count.not_taken += not text.read().startswith(sent)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not holds() and time.monotonic() < end:
        time.sleep(0.002)


FIGURES = [
    Figure(
        "an article typed through the tools, and ended",
        f"{_WORDS:,} words in pieces; killed, stopped, hung up, cut from the API at {MOMENTS} random moments "
        "each: every character sent 250 ms before is in a version, shown, takeable, and in the next request",
        _measure,
    )
]
