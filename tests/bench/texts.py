"""How long texts take that no writer means and a file may hold all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.ratio import Clock, Got, Row, Samples, Target, Timed, interleaved, shown
from smartwriter.text.differences.comparison import compare
from smartwriter.text.differences.pairing import continued
from smartwriter.text.words import paragraphs

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


ROWS = [
    Row("text: 1 MB of one repeated shape compared, the slowest of four", Target(2, " s"), _compared),
    Row("text: the same followed from one revision to the next", Target(2, " s"), _blamed),
]
