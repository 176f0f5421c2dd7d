"""Which lines of a memory are nearest to a new one: what they have in common, and how rare that is.

No judgement: a line that is near may contradict the new one, say the same, or only be of the same thing. What
two lines have in common are words by their stems, pairs of Chinese characters, names, and numbers, amounts
and times however they are written. The rarer something is among all lines, the more it counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from smartwriter.meaning.content import FUNCTION, content
from smartwriter.meaning.facts import QUANTITIES, read
from smartwriter.meaning.numbers import Kind, Word

MOST = 3
"""As many lines are looked at by a person."""
_WEIGHT_OF_BEGINNING = 0.5
_BEGINNING = 4  # characters of a word: of other spellings and forms, most begin alike
_QUANTITY_WEIGHT = 0.7
_WEIGHT_OF_CHARACTER = 0.35  # of Chinese, by itself
_LENGTH_COUNTS = 0.5


def nearest(line: str, lines: Sequence[str], most: int = MOST) -> list[int]:
    """Which of the lines are nearest to another one, nearest first; those that share nothing are left out."""
    wanted = _features(line)
    features = [_features(other) for other in lines]
    spread = Counter(name for found in features for name in found)
    rarity = {name: math.log(1 + len(lines) / count) for name, count in spread.items()}
    scores = []
    for number, found in enumerate(features):
        shared = sum(rarity[name] * min(wanted[name], found[name]) for name in wanted.keys() & found.keys())
        if shared:
            scores.append((-shared / (1 + len(found)) ** _LENGTH_COUNTS, number))
    return [number for _, number in sorted(scores)[:most]]


def _features(line: str) -> dict[str, float]:
    """What a line can have in common with another, each with its weight."""
    words = read(line)
    found = dict.fromkeys(content(words), 1.0)
    for name, weight in _weaker(words):
        found.setdefault(name, weight)
    return found


def _weaker(words: Sequence[Word]) -> Iterator[tuple[str, float]]:
    for word in words:
        if word.kind in QUANTITIES:
            yield word.key, _QUANTITY_WEIGHT
        elif word.kind in (Kind.word, Kind.name) and len(word.key) > _BEGINNING:
            yield f"{word.key[:_BEGINNING]}…", _WEIGHT_OF_BEGINNING
        elif word.kind is Kind.character and word.text not in FUNCTION:
            yield word.text, _WEIGHT_OF_CHARACTER
