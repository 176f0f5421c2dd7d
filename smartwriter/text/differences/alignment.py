"""What two sequences have in common, in order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from rapidfuzz.distance import LCSseq

_MAX_CELLS = 1 << 24  # of an exact alignment, about 4,000 tokens against 4,000: 15 ms and 2 MB
_ANCHORS = (8, 4, 1)  # how many tokens in a row, found once on both sides, tie longer texts together
_T = TypeVar("_T")


def items_at(items: Sequence[_T], places: Iterable[int]) -> list[_T]:
    return [items[place] for place in places]


def numbered(sides: Sequence[Sequence[str]]) -> list[list[int]]:
    """The same number for the same text: an alignment of numbers is exact where one of hashes is not."""
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(text, len(numbers)) for text in side] for side in sides]


def in_order(a: list[int], b: list[int]) -> list[tuple[int, int]]:
    """Pairs of places where both have the same, in order on both sides; as many as can be.

    Of sequences too long for that: as many as lie between what is found once on both sides.
    """
    pairs: list[tuple[int, int]] = []
    todo = [((0, len(a)), (0, len(b)), 0)]
    while todo:
        in_a, in_b, depth = todo.pop()
        head, tail = trimmed(a, b, in_a, in_b)
        pairs += [(in_a[0] + n, in_b[0] + n) for n in range(head)]
        pairs += [(in_a[1] - n, in_b[1] - n) for n in range(1, tail + 1)]
        in_a, in_b = (in_a[0] + head, in_a[1] - tail), (in_b[0] + head, in_b[1] - tail)
        if in_a[0] == in_a[1] or in_b[0] == in_b[1]:
            continue
        if (in_a[1] - in_a[0]) * (in_b[1] - in_b[0]) <= _MAX_CELLS:
            for op in LCSseq.opcodes(a[slice(*in_a)], b[slice(*in_b)]):
                if op.tag == "equal":
                    start_a, start_b = in_a[0] + op.src_start, in_b[0] + op.dest_start
                    pairs += [(start_a + n, start_b + n) for n in range(op.src_end - op.src_start)]
        elif depth < len(_ANCHORS):
            at = in_a[0], in_b[0]
            for x, y in [*_anchors(a, b, in_a, in_b, _ANCHORS[depth]), (in_a[1], in_b[1])]:
                todo.append(((at[0], x), (at[1], y), depth + 1))
                if x < in_a[1]:
                    pairs.append((x, y))
                at = x + 1, y + 1
    return sorted(pairs)


def _anchors(
    a: list[int], b: list[int], in_a: tuple[int, int], in_b: tuple[int, int], width: int
) -> list[tuple[int, int]]:
    """Where the same items in a row stand once on each side: the longest series in order on both."""
    there = _once(b, in_b, width)
    common = [(x, there[key]) for key, x in _once(a, in_a, width).items() if key in there]
    tops: list[int] = []  # the smallest last place of a series of each length
    ends: list[int] = []
    previous: list[int] = []
    for n, (_, y) in enumerate(common):
        length = bisect_left(tops, y)
        tops[length : length + 1] = [y]
        ends[length : length + 1] = [n]
        previous.append(ends[length - 1] if length else -1)
    chosen: list[tuple[int, int]] = []
    n = ends[-1] if ends else -1
    while n >= 0:
        chosen.append(common[n])
        n = previous[n]
    return chosen[::-1]


def _once(items: list[int], within: tuple[int, int], width: int) -> dict[tuple[int, ...], int]:
    """Where each row of items that is found once starts."""
    rows = list(zip(*(items[within[0] + n : within[1]] for n in range(width)), strict=False))
    times = Counter(rows)
    return {row: within[0] + n for n, row in enumerate(rows) if times[row] == 1}


def trimmed(
    a: Sequence[_T], b: Sequence[_T], in_a: tuple[int, int], in_b: tuple[int, int]
) -> tuple[int, int]:
    """How many items both stretches have in common at their start, and then at their end."""
    most = min(in_a[1] - in_a[0], in_b[1] - in_b[0])
    head = 0
    while head < most and a[in_a[0] + head] == b[in_b[0] + head]:
        head += 1
    tail = 0
    while tail < most - head and a[in_a[1] - tail - 1] == b[in_b[1] - tail - 1]:
        tail += 1
    return head, tail
