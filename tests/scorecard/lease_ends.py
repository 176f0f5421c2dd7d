"""The end of a lease is raced: whoever has it at the first moment may write, so no CLI process may be left.

A turn is taken; then the engine is left, or is stopped in a turn and left, or is asked for the lease while it
is idle. Meanwhile another one tries for the lease without a pause, and looks for the CLI processes of that
engine as soon as it has it. A second CLI on one session would lose one of the two lines from its chain.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import anyio
import psutil
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Reply, Request, Text
from smartwriter.errors import DraftBusy
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.interface import Lease
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task
from smartwriter.writing.engine import Engine

RACES = 100
_QUICK_RACES = 6
_ENDS = ("left", "stopped and left", "asked for it")
_LONGEST_S = 30.0


def _script(request: Request) -> Reply:
    slowly = 0.05 if "slowly" in request.prompt else 0.0
    return [Text("word " * 40, chunk_chars=5, pause_s=slowly)]


class _Racer(threading.Thread):
    """Takes the lease at the first moment, and looks who is there."""

    def __init__(self, lease: Lease, take: Callable[[], None], clis: list[psutil.Process]) -> None:
        super().__init__(daemon=True)
        self._lease, self._take, self._clis = lease, take, clis
        self.left: int | None = None
        """CLI processes that lived; None: it never had the lease."""

    def run(self) -> None:
        deadline = time.monotonic() + _LONGEST_S
        while time.monotonic() < deadline:
            try:
                self._take()
            except DraftBusy:
                time.sleep(0.0005)
                continue
            self.left = sum(map(_lives, self._clis))
            self._lease.release()
            return


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _measure(run: Run) -> Outcome:
    races = _QUICK_RACES if run.quick else RACES
    totals = Counter[str]()
    with stage(run, _script) as scene:
        task = scene.workspace.new_task("Herons")
        for number in range(races):
            end = _ENDS[number % len(_ENDS)]
            racer = anyio.run(partial(_race, scene, task, end))
            racer.join(_LONGEST_S)
            totals[f"{end}: never had" if racer.left is None else f"{end}: {racer.left} CLIs left"] += 1
    wrong = {what: count for what, count in totals.items() if not what.endswith(": 0 CLIs left")}
    got = ", ".join(f"{count} times {what}" for what, count in sorted(totals.items()))
    return Outcome(f"{races} races: {got}", not wrong)


async def _race(scene: Stage, task: Task, end: str) -> _Racer:
    lease = OpenDraft(scene.workspace, task, "main").lease()
    take = lease.borrow if end == "asked for it" else partial(lease.acquire, wait_s=0)
    async with Engine(scene.workspace, scene.claude, Config()) as engine:
        stopped = end == "stopped and left"
        sent = engine.send(task, task.drafts["main"], "Go on slowly." if stopped else "Go on.")
        if stopped:
            async with engine.events() as events:
                async for event in events:
                    if event.kind == "text_delta":
                        break
        else:
            await sent.outcome()
        clis = [each for each in psutil.Process().children(recursive=True) if "claude" in each.name()]
        if not clis:
            raise RuntimeError("there is no CLI process to be raced")
        racer = _Racer(lease, take, clis)
        racer.start()
        if stopped:
            await engine.stop(task, task.drafts["main"])
            await sent.outcome()
        if end == "asked for it":
            with anyio.fail_after(_LONGEST_S):
                while racer.is_alive():  # noqa: ASYNC110  it is a thread
                    await anyio.sleep(0.01)
    return racer


FIGURES = [
    Figure(
        "the end of a lease, raced by another writer",
        f"{RACES} races: whoever has the lease finds no CLI process of the one before",
        _measure,
    )
]
