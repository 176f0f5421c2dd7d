"""SIGKILL of a host at random moments of turns that say something and write an article, over and over in one
workspace.

The stand-in sends a short answer, then an article through ``write_draft``, ``append_draft`` and
``edit_draft`` in turn, in pieces of 8 characters, then the end of the answer. A turn is killed while it
streams, or while it comes to its end and is recorded; in half of the cycles the next one is killed, too,
while it begins and connects. In every other cycle only the host is killed, so that its CLI lives on; else
the whole process group.

Before the next start the words in the live journal are read, by a plain split at LF and a strict parse. Each
of them must be there after it: shown to the writer, as a version in a file that ``take`` has made the text,
and in the next request. Of what had been sent at most the last 250 ms may be missing, what a listener had
heard must be heard again, no prompt is sent twice, and no folder of a dead CLI is left.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import psutil
from click.testing import CliRunner
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.agent.offline.streaming import ApiEvent
from smartwriter.cli.app import cli
from smartwriter.cli.interrupts import kill_tree
from smartwriter.events import Event
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Task, TurnState
from smartwriter.turns.live import LiveReader

KILLS = 200
_QUICK_KILLS = 4  # one of each kind
_WORDS = 100  # of the article
_ANSWER_WORDS = 12  # before it, and as many behind it
_PIECE = 8  # characters
_PAUSE_S = 0.01  # between pieces
_BEGINNING_S = 1.0  # of a process, until it hears the first piece
_ENDING_S = 0.3  # of a turn, after its last piece
_LOST_S = 0.25
_PATIENCE_S = 60.0

_WORD = re.compile(r"[as]\d{4}x\d{3}")
"""Of an article, or of what is said beside it; no two cycles have the same."""


class _Author:
    """The stand-in's script, and when each of its pieces was sent."""

    def __init__(self) -> None:
        self.call = ToolUse("read_draft", {})
        self.sent: list[tuple[float, str]] = []
        self._number = 0

    def begin(self, number: int, text: str) -> None:
        """:param text: of the draft, as it stands."""
        article = " ".join(f"a{number:04d}x{word:03d}" for word in range(_WORDS))
        given: dict[str, Any] = {"text": f"# Article {number}\n\n{article}\n"}
        tool = ("write_draft", "append_draft", "edit_draft")[number % 3]
        if tool == "edit_draft" and (heading := text.partition("\n")[0]):
            given = {"edits": [{"old_text": heading, "new_text": f"{heading}\n\n{article}"}]}
        else:
            tool = "write_draft" if not text else tool.replace("edit", "append")
        self.call = ToolUse(tool, given, chunk_chars=_PIECE, pause_s=_PAUSE_S)
        self.sent, self._number = [], number

    def __call__(self, request: Request) -> Reply:
        if not request.prompt.endswith(f"Write article {self._number}."):
            return [Text("Fine.")]
        first = _ANSWER_WORDS if request.tool_results else 0
        words = " ".join(f"s{self._number:04d}x{first + word:03d}" for word in range(_ANSWER_WORDS))
        said = Text(f"{words} ", chunk_chars=_PIECE, pause_s=_PAUSE_S)
        return [said] if request.tool_results else [said, self.call]

    def watched(self, scene: Stage) -> Any:
        """Remember what is sent, while this is open."""

        def sent(event: ApiEvent) -> None:
            if event["type"] == "content_block_delta":
                delta = event["delta"]
                self.sent.append((time.monotonic(), delta.get("partial_json") or delta.get("text") or ""))

        return mock.patch.object(scene.model, "sent", sent)

    @property
    def pieces(self) -> int:
        """How many it takes in all."""
        said = 2 * _ANSWER_WORDS * len("s0000x000 ")
        return (said + len(json.dumps(self.call.input))) // _PIECE

    def words_by(self, moment: float) -> set[str]:
        return set(_WORD.findall("".join(piece for when, piece in self.sent if when <= moment)))


@dataclass
class _Count:
    kills: int = 0
    words: int = 0  # in the live journal before the next start
    not_shown: int = 0
    not_takeable: int = 0
    not_told: int = 0
    late: int = 0  # kills after which too much of what had been sent is missing
    unheard: int = 0  # events that were received and cannot be heard again
    not_resumed: int = 0
    twice: int = 0
    orphans: set[str] = field(default_factory=set)
    states: dict[str, int] = field(default_factory=dict)


def _measure(run: Run) -> Outcome:
    seeds, count, author = run.random(), _Count(), _Author()
    with stage(run, author) as scene, author.watched(scene):
        task = scene.workspace.new_task("Herons")
        for number in range(_QUICK_KILLS if run.quick else KILLS):
            _cycle(scene, author, task, count, number, seeds)
    ended = ", ".join(f"{number} {state}" for state, number in sorted(count.states.items()))
    got = (
        f"{count.kills} kills ({ended}), {count.words:,} words in the live journal before the next start: "
        f"after it {count.not_shown} not shown, {count.not_takeable} not takeable, {count.not_told} not in "
        f"the next request; {count.late} times over 250 ms missing, {count.unheard} received events not "
        f"replayable, {count.not_resumed} not resumed, {count.twice} prompts twice, "
        f"{len(count.orphans)} orphan folders left"
    )
    short = count.not_shown or count.not_takeable or count.not_told or count.late or count.unheard
    return Outcome(got, not (short or count.not_resumed or count.twice or count.orphans) and count.words > 0)


def _cycle(scene: Stage, author: _Author, task: Task, count: _Count, number: int, seeds: Random) -> None:
    whole_group, recording, again = number % 2 == 0, number % 4 >= 2, number % 8 in (0, 3, 5, 6)
    author.begin(number, scene.workspace.text(task, "main").read())
    path, prompt = OpenDraft(scene.workspace, task, "main").live_path, f"Write article {number}."
    reader = LiveReader(path, _last_position(path))
    before, received = reader.position, list[Event]()
    wanted = author.pieces if recording else seeds.randrange(1, author.pieces)
    with scene.start(f"{task.id}={prompt}") as process:
        _until(lambda: len(author.sent) >= wanted or process.poll() is not None, reader, received)
        _listen(seeds.uniform(0, _ENDING_S if recording else _PAUSE_S), reader, received)
        killed_at = time.monotonic()
        _kill(process.pid, whole_group)
    count.kills += 1
    replayed = LiveReader(path, before).read()
    count.unheard += len(received) - sum(event in replayed for event in received)
    said, article = _in_live(path)
    count.late += not author.words_by(killed_at - _LOST_S) <= said | article
    if again:
        with scene.start(f"{task.id}=And on.") as process:
            time.sleep(seeds.uniform(0, _BEGINNING_S))
            _kill(process.pid, whole_group)
        count.kills += 1
    done = scene.run("write", task.id, "Go on.", "--offline")
    turns = scene.workspace.tasks.turns(task, "main")
    count.not_resumed += done.returncode != 0 or turns[-1].state is not TurnState.finished
    count.orphans |= {folder.name for folder in scene.temporary.glob("claude-resume-*")}
    own = [turn for turn in turns if turn.prompt == prompt]
    count.twice += len(own) > 1
    for turn in own:
        count.states[turn.state.value] = count.states.get(turn.state.value, 0) + 1
        _look(scene, task, turn.number, said, article, count)


def _look(scene: Stage, task: Task, turn: int, said: set[str], article: set[str], count: _Count) -> None:
    """Whether the words that were in the live journal are where a writer, and the model, look for them."""
    count.words += len(said) + len(article)
    told = json.dumps(scene.model.requests[-1].body)
    count.not_told += sum(word not in told for word in said | article)
    shown = _printed(scene, "show", task.id)
    count.not_shown += sum(word not in shown for word in said)
    versions = _versions(scene, task, turn)
    best = max(versions, key=lambda one: len(article & _words(one[1])), default=(0, ""))
    missing = article - _words(best[1])
    count.not_takeable += len(missing)
    if article and not missing:
        count.not_shown += len(article - _words(_printed(scene, "text", f"{task.id}:{best[0]}")))
        _printed(scene, "take", f"{task.id}:{best[0]}")
        text = scene.workspace.text(task, "main").path.read_text(encoding="utf-8")
        count.not_takeable += len(article - _words(text))


def _printed(scene: Stage, name: str, *arguments: str) -> str:
    """By a command, in this process. One that fails prints nothing."""
    done = CliRunner().invoke(cli, [name, "-w", str(scene.workspace.root), *arguments])
    return done.stdout if done.exit_code == 0 else ""


def _kill(pid: int, whole_group: bool) -> None:
    clis = psutil.Process(pid).children(recursive=True) if psutil.pid_exists(pid) else []
    if whole_group:
        kill_tree(pid)
    else:
        os.kill(pid, signal.SIGKILL)
    psutil.wait_procs(clis, timeout=_PATIENCE_S)


# What is on the disk, by plain means --------------------------------------------------------------


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _lines(path: Path) -> list[dict[str, Any]]:
    """The entries of a journal, of which a kill may have torn the last."""
    *whole, _ = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [json.loads(line) for line in whole]


def _in_live(path: Path) -> tuple[set[str], set[str]]:
    """The words of the answer and of the article in the live journal."""
    said, article = "", ""
    for entry in _lines(path):
        if entry["type"] == "text_delta":
            said += entry["text"]
        elif entry["type"] == "article_delta" and entry["field"] in ("text", "new_text"):
            article += entry["text"]
    return _words(said), _words(article)


def _versions(scene: Stage, task: Task, turn: int) -> list[tuple[int, str]]:
    """The numbers and texts of the versions that a turn has made."""
    path = scene.workspace.hidden / "revisions" / task.id / "main.jsonl"
    return [(entry["number"], entry["text"]) for entry in _lines(path) if entry["turn"] == turn]


# Listening ----------------------------------------------------------------------------------------


def _until(holds: Callable[[], bool], reader: LiveReader, received: list[Event]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not holds() and time.monotonic() < end:
        _listen(0.005, reader, received)


def _listen(for_s: float, reader: LiveReader, received: list[Event]) -> None:
    received += reader.read()
    time.sleep(for_s)
    received += reader.read()


def _last_position(path: Path) -> int:
    reader = LiveReader(path, 0)
    reader.read()
    return reader.position


FIGURES = [
    Figure(
        "SIGKILL of the host while it connects, streams an article and records it",
        f"{KILLS} turns killed, some twice: every word of the live journal is there after the next start, "
        "shown, takeable and told; at most 250 ms missing, every received event replayable, every session "
        "resumes, no prompt twice, no orphan folder",
        _measure,
    )
]
