"""How long large texts take: of one repeated shape, and of many revisions."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from bench.ratio import Clock, Got, Row, Samples, Target, Timed, interleaved, shown
from smartwriter.storage.journal import Journal
from smartwriter.storage.records import to_line
from smartwriter.tasks.revisions import sha256_of
from smartwriter.tasks.values import MAIN, Revision, Task
from smartwriter.text.differences.comparison import compare
from smartwriter.text.differences.pairing import continued
from smartwriter.text.words import paragraphs
from smartwriter.trials.provenance import provenance
from smartwriter.trials.timeline import timeline
from smartwriter.workspace import Workspace

_SHAPES = {"dashes": "-", "brackets": "[", "parentheses": "(", "rules": "---\n\n"}
_CHARACTERS = 1_000_000


async def _compared(_: Path) -> Got:
    return await _slowest(lambda before, after: compare(before, after))


async def _blamed(_: Path) -> Got:
    return await _slowest(lambda before, after: continued(paragraphs(before), paragraphs(after)))


async def _slowest(work: Callable[[str, str], object]) -> Got:
    samples = await interleaved(*(_timed(work, shape) for shape in _SHAPES.values()), runs=3)
    by_run = zip(*(one.values for one in samples), strict=True)
    in_cpu = zip(*(one.cpu for one in samples), strict=True)
    told = {name: shown(one.middle) for name, one in zip(_SHAPES, samples, strict=True)}
    return Got(Samples([max(run) for run in by_run], [max(run) for run in in_cpu]), told)


def _timed(work: Callable[[str, str], object], shape: str) -> Timed:
    before = shape * (_CHARACTERS // len(shape))
    half = len(before) // 2
    after = f"{before[:half]} changed here {before[half:]}"

    async def run() -> Clock:
        with Clock() as clock:
            work(before, after)
        return clock

    return run


def _long_draft(folder: Path) -> tuple[Workspace, Task]:
    """A draft of 300 revisions of 20,000 words, in each of which three paragraphs were edited."""
    source = random.Random(1)
    workspace = Workspace.create(folder / "workspace")
    task = workspace.new_task("Long")
    parts = [_some_words(source, 100) for _ in range(200)]
    workspace.text(task, MAIN).write("\n\n".join(parts), author="model", turn=1)
    lines = []
    for number in range(2, 301):
        for place in source.sample(range(200), 3):
            parts[place] = _some_words(source, 5) + parts[place][20:]
        text = "\n\n".join(parts)
        one = Revision(
            number=number, author="model", turn=number, text=text, sha256=sha256_of(text), gained=15, lost=15
        )
        lines.append({**to_line(one, brief=True), "at": one.at.isoformat()})
    Journal(workspace.hidden / "revisions" / task.id / f"{MAIN}.jsonl").append(lines)
    return workspace, task


def _some_words(source: random.Random, count: int) -> str:
    return " ".join(f"w{source.randrange(3000)}" for _ in range(count))


async def _log(folder: Path) -> Got:
    workspace, task = _long_draft(folder)
    return await _beside_reading(workspace, task, lambda: timeline(workspace, task))


async def _blame(folder: Path) -> Got:
    workspace, task = _long_draft(folder)
    text = workspace.text(task, MAIN)
    return await _beside_reading(
        workspace, task, lambda: provenance(lambda *_: text.revisions(), task.id, MAIN, 300)
    )


async def _beside_reading(workspace: Workspace, task: Task, work: Callable[[], object]) -> Got:
    def timed(does: Callable[[], object]) -> Timed:
        async def run() -> Clock:
            with Clock() as clock:
                does()
            return clock

        return run

    ours, reading = await interleaved(timed(work), timed(workspace.text(task, MAIN).revisions))
    return Got(ours, {"beside reading all revisions": shown(reading.middle)})


ROWS = [
    Row("text: 1 MB of one repeated shape compared, the slowest of four", Target(2, " s"), _compared),
    Row("text: the same followed from one revision to the next", Target(2, " s"), _blamed),
    Row("text: log of 300 revisions of 20,000 words", Target(0.3, " s"), _log),
    Row("text: blame of the same", Target(0.3, " s"), _blame),
]
