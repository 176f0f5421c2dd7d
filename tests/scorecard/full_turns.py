"""Whole turns through the real CLI on a disk that fills in them: at each of their writes, one after another.

The disk is simulated: in place of the ``os`` module, all that writes gets one whose ``write``
refuses every file in some folders from the n-th write of the turn on. The disk stays full, and another one
is there; or is emptied once the turn has said that it waits; or no disk takes anything any more. The
verdict is by plain means: the bytes of the transcript, split at LF and parsed strictly, and of the article.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "support"))

import anyio
from disks import in_place_of_os
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.errors import SmartWriterError
from smartwriter.system.config import Config
from smartwriter.tasks.values import TurnState
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine
from smartwriter.writing.recovery import recover

_WORDS = " ".join(f"word{number}" for number in range(400))
_MODES = ("stays full", "is emptied", "no other disk")
_MOST_WRITES = 200


@dataclass
class _Disk:
    """Stands in for ``os``: from the n-th write on, there is no room in some folders."""

    after: int
    folders: list[Path]
    writes: int = 0
    emptied: bool = False
    refused: int = field(default=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, fd: int, data: bytes) -> int:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if any(path.is_relative_to(folder) for folder in self.folders):
            self.writes += 1
            if self.writes > self.after and not self.emptied:
                self.refused += 1
                raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(fd, data)


def _script(request: Request) -> Reply:
    if request.tool_results:
        return [Text("Done.")]
    if "article" in request.prompt:
        return [ToolUse("write_draft", {"text": _WORDS}, chunk_chars=200)]
    return [Text(_WORDS, chunk_chars=200)]


def _measure(run: Run) -> Outcome:
    if not Path("/proc/self/fd").is_dir():
        return Outcome("there is no /proc to ask where a file is", None)
    step = 7 if run.quick else 1
    totals = Counter[str]()
    with stage(run, _script) as scene:
        for kind, mode in product(("article", "answer"), _MODES):
            for after in count(run.random().randrange(step), step):
                verdict = anyio.run(partial(_turn, scene, run.folder, kind, mode, after))
                if verdict == "no fault" or after > _MOST_WRITES:
                    break
                totals[verdict] += 1
    turns = sum(totals.values())
    lost = totals["LOST"]
    how = ", ".join(f"{number} {verdict}" for verdict, number in sorted(totals.items()) if verdict != "LOST")
    return Outcome(f"{turns} turns ({how}); words lost without a sound in {lost}", turns > 0 and not lost)


async def _turn(scene: Stage, folder: Path, kind: str, mode: str, after: int) -> str:
    root = folder / f"{kind}-{mode}-{after}".replace(" ", "-")
    workspace = Workspace.create(root)
    task = workspace.new_task("Herons")
    workspace.identify()
    everywhere = [root, scene.temporary, folder / "home"]
    disk = _Disk(after, everywhere if mode == "no other disk" else [root])
    said, state = "", None
    try:
        config = Config(patience_s=30 if mode == "is emptied" else 0)
        with in_place_of_os(disk):
            async with Engine(workspace, scene.claude, config) as engine, engine.events() as events:
                sent = engine.send(task, task.drafts["main"], f"Write an {kind}.")
                async for event in events:
                    if event.kind == "not_saved" and "Tried again" in event.detail:
                        disk.emptied = mode == "is emptied"
                    elif event.kind == "not_kept":
                        said += event.text
                    elif event.kind in ("finished", "failed", "stopped"):
                        break
                state = (await sent.outcome()).state
    except (SmartWriterError, OSError) as error:
        return "refused with the file's name" if str(root) in str(error) else "LOST"
    if not disk.refused:
        return "no fault"
    waiting = workspace.spool.waiting()
    recover(workspace)
    if _in_place(workspace, kind):
        return "waited for elsewhere" if waiting else "in place"
    return "printed, and failed" if state is TurnState.failed and _WORDS in said else "LOST"


def _in_place(workspace: Workspace, kind: str) -> bool:
    task = workspace.tasks.all()[0]
    if kind == "article":
        path = workspace.text(task, "main").path
        return path.exists() and path.read_text(encoding="utf-8") == _WORDS
    draft = task.drafts["main"]
    path = workspace.hidden / "sessions" / task.project_key / f"{draft.session_id}.jsonl"
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    entries = [json.loads(line) for line in lines if line]
    return any(entry["type"] == "assistant" and _WORDS in json.dumps(entry) for entry in entries)


FIGURES = [
    Figure(
        "whole turns through the CLI, an answer or an article, on a disk that fills at each of their writes",
        "0 words lost: in place once there is room, kept on another disk, or printed with the turn failed",
        _measure,
    )
]
