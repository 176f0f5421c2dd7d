"""What a command needs of long records: the newest of them, without all that came before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.ratio import Clock, Got, Row, Samples, Target, interleaved, shown
from smartwriter.storage.journal import Journal
from smartwriter.storage.records import to_line
from smartwriter.tasks.revisions import sha256_of
from smartwriter.tasks.values import MAIN, Draft, Revision, Task
from smartwriter.workspace import Workspace

_REVISIONS = 300
_TEXT_BYTES = 120_000
_TASKS = 10_000


def _long_draft(folder: Path) -> tuple[Workspace, Task]:
    """A draft of 300 revisions of 120 KB each."""
    workspace = Workspace.create(folder / "workspace")
    task = workspace.new_task("Long")
    text = workspace.text(task, MAIN)
    words = "The heron waits where the water slows. " * (_TEXT_BYTES // 39)
    text.write(words, author="model", turn=1)
    lines = []
    for number in range(2, _REVISIONS + 1):
        changed = f"{words}{number}\n"
        one = Revision(number=number, author="model", turn=number, text=changed, sha256=sha256_of(changed))
        lines.append({**to_line(one, brief=True), "at": one.at.isoformat()})
    Journal(workspace.hidden / "revisions" / task.id / f"{MAIN}.jsonl").append(lines)
    text.path.write_text(changed)
    return workspace, task


async def _taken(work: Callable[[], object], beside: Callable[[], object], name: str) -> Got:
    def timed(function: Callable[[], object]) -> Any:
        async def once() -> Clock:
            with Clock() as clock:
                function()
            return clock

        return once

    mine, other = await interleaved(timed(work), timed(beside))
    in_ms = Samples([1000 * value for value in mine.values], [1000 * value for value in mine.cpu])
    return Got(in_ms, {name: shown(other.middle)})


async def _text(folder: Path) -> Got:
    workspace, task = _long_draft(folder)
    text = workspace.text(task, MAIN)
    return await _taken(text.read, text.revisions, "beside reading all revisions")


async def _hand_edit(folder: Path) -> Got:
    workspace, task = _long_draft(folder)
    text = workspace.text(task, MAIN)
    return await _taken(lambda: text.take_hand_edit(1), text.revisions, "beside reading all revisions")


async def _found(folder: Path) -> Got:
    """By its title, in a process that has looked before, while others change other tasks."""
    workspace = Workspace.create(folder / "workspace")
    tasks = [
        Task(
            id=f"t{number}",
            title=f"Title {number}",
            collection="unfiled",
            project_key="unfiled",
            folder=f"Title {number}",
            drafts={MAIN: Draft(name=MAIN, session_id=f"s{number}")},
        )
        for number in range(_TASKS)
    ]
    Journal(workspace.hidden / "tasks.jsonl").append(map(to_line, tasks))
    workspace.tasks.resolve("Title 1")

    def find() -> None:
        assert workspace.tasks.resolve("title 7777")[0].id == "t7777"

    return await _taken(find, Workspace(workspace.root).tasks.all, "beside validating all")


ROWS = [
    Row("the text of a draft with 300 revisions of 120 KB", Target(10, " ms"), _text),
    Row("the check for a hand edit of a draft with 300 revisions of 120 KB", Target(10, " ms"), _hand_edit),
    Row("a task found by its title among 10,000, warm", Target(20, " ms"), _found),
]
