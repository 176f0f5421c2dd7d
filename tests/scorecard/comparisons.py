"""How long it takes to compare two texts of 20,000 words, in the cases that are hard for an alignment."""

from __future__ import annotations

import random
import time
from itertools import chain

from figure import Figure, Outcome, Run

from smartwriter.text.differences.comparison import compare

WORDS = 20_000
SECONDS = 1.0
_PARAGRAPH_WORDS = 100
_EDITED = 0.05  # of the words


def _measure(run: Run) -> Outcome:
    seconds = {}
    for language in ("English", "Chinese"):
        for case, (before, after) in _cases(language, run.random()).items():
            taken = []
            for _ in range(1 if run.quick else 5):
                started = time.process_time()  # whatever else runs beside it
                compare(before, after)
                taken.append(time.process_time() - started)
            seconds[f"{language}, {case}"] = sorted(taken)[len(taken) // 2]
    slowest = max(seconds, key=lambda case: seconds[case])
    got = f"{len(seconds)} cases: at most {seconds[slowest]:.2f} s ({slowest})"
    return Outcome(got, seconds[slowest] < SECONDS)


def _cases(language: str, chance: random.Random) -> dict[str, tuple[str, str]]:
    paragraphs = [_words(language, _PARAGRAPH_WORDS, chance) for _ in range(WORDS // _PARAGRAPH_WORDS)]
    edited = [_edit(language, words, chance) for words in paragraphs]
    shuffled = chance.sample(edited, len(edited))
    others = [_words(language, _PARAGRAPH_WORDS, chance, start=1_000_000) for _ in paragraphs]
    glue = "" if language == "Chinese" else " "
    whole, edited_whole = (list(chain.from_iterable(each)) for each in (paragraphs, edited))
    return {
        "every paragraph edited": (_text(paragraphs, glue), _text(edited, glue)),
        "edited and shuffled": (_text(paragraphs, glue), _text(shuffled, glue)),
        "nothing in common": (_text(paragraphs, glue), _text(others, glue)),
        "one paragraph": (glue.join(whole), glue.join(edited_whole)),
    }


def _words(language: str, count: int, chance: random.Random, start: int = 0) -> list[str]:
    """Frequent and rare ones, as in a real text; from another part of the vocabulary with ``start``."""
    ranks = [min(int(chance.paretovariate(0.7)), 3000) for _ in range(count)]
    if language == "Chinese":
        return [chr(0x4E00 + (rank + (4000 if start else 0)) % 20_000) for rank in ranks]
    return [f"w{rank + start:x}" for rank in ranks]


def _edit(language: str, words: list[str], chance: random.Random) -> list[str]:
    new = _words(language, len(words), chance)
    return [new[n] if chance.random() < _EDITED else word for n, word in enumerate(words)]


def _text(paragraphs: list[list[str]], glue: str) -> str:
    return "\n\n".join(glue.join(words) for words in paragraphs) + "\n"


FIGURES = [
    Figure(
        "comparing two texts of 20,000 words",
        f"under {SECONDS:.0f} s in each of 8 cases, English and Chinese",
        _measure,
    )
]
