"""How much two paragraphs have in common, by words in their order."""

from __future__ import annotations

from collections import Counter
from typing import Final

from rapidfuzz.distance import LCSseq

from smartwriter.text.differences.alignment import numbered
from smartwriter.text.words import is_word, tokens

SIMILAR: Final = 0.5
"""From this similarity on a paragraph is an edited one, in its old place."""
SIMILAR_ELSEWHERE: Final = 0.6
"""From this one on it is an edited one that was moved; chance finds more likenesses far away."""

_CONTAINED = 0.8  # so much of a paragraph's words in a longer one make that its continuation …
_CONTAINED_WORDS = 6  # … from this many words on: two or three stand in any long paragraph …
_CONTAINED_PART = 20  # … and when the longer one is no more than so many times as long
_MAX_CELLS = 100 << 24  # of words against words: a longer one takes over a second


def similarity(a: str, b: str) -> float:
    """How much two paragraphs have in common, by words in their order: from 0 to 1, all of them.

    One that stands nearly whole in the other, which grew or was split, is at least ``SIMILAR`` to it.
    """
    if a == b:
        return 1.0
    first, second = numbered([significant(a), significant(b)])
    return likeness(first, second)


def significant(paragraph: str) -> list[str]:
    """What likeness is measured by: the words, or all but white space where there are none."""
    found = tokens(paragraph)
    return [token for token in found if is_word(token)] or [token for token in found if not token.isspace()]


def likeness(a: list[int], b: list[int]) -> float:
    if not a or not b:
        return float(a == b)
    if len(a) * len(b) > _MAX_CELLS:  # a book in one paragraph: which words, not in which order
        common = sum((Counter(a) & Counter(b)).values())
    else:
        common = LCSseq.similarity(a, b)
    share = 2 * common / (len(a) + len(b))
    if share < SIMILAR and _part(len(a), len(b)) and common >= _CONTAINED * min(len(a), len(b)):
        return SIMILAR
    return share


def _part(a: int, b: int) -> bool:
    """Whether, of paragraphs of so many words, one can be a part of the other worth the name."""
    return min(a, b) >= max(_CONTAINED_WORDS, max(a, b) / _CONTAINED_PART)


def comparable(a: int, b: int) -> bool:
    """Whether paragraphs of so many words can be alike at all."""
    return _part(a, b) or 2 * min(a, b) >= SIMILAR * (a + b)
