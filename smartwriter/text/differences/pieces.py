"""What differs within a paragraph, word by word, as a reader likes to see it."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Literal

from smartwriter.text.differences.alignment import in_order, items_at, numbered, trimmed
from smartwriter.text.words import is_word, tokens

_NEAR = 400  # characters beside a change that are looked at with it
# Where a token ends whatever stands around: behind a space, between signs, between Chinese characters.
_BETWEEN = re.compile(r" (?=[!-~])|[!-/:-@\[-`{-~](?=[!-/:-@\[-`{-~])|[\u4e00-\u9fff](?=[\u4e00-\u9fff])")


@dataclass(frozen=True)
class Piece:
    kind: Literal["same", "added", "removed"]
    text: str


def pieces_of(before: str, after: str) -> tuple[Piece, ...]:
    head, tail = _ends(before, after)
    pieces = _pieces(before[head : len(before) - tail], after[head : len(after) - tail])
    if head:
        first = pieces.pop(0).text if pieces and pieces[0].kind == "same" else ""
        pieces.insert(0, Piece("same", before[:head] + first))
    if tail:
        last = pieces.pop().text if pieces[-1:] and pieces[-1].kind == "same" else ""
        pieces.append(Piece("same", last + before[-tail:]))
    return tuple(pieces)


def _pieces(before: str, after: str) -> list[Piece]:
    a, b = tokens(before), tokens(after)
    pieces: list[Piece] = []
    for run in _readable(_snapped(_runs(aligned(a, b), len(a), len(b)), a, b), a, b):
        if run.equal:
            pieces.append(Piece("same", "".join(a[slice(*run.a)])))
            continue
        if removed := "".join(a[slice(*run.a)]):
            pieces.append(Piece("removed", removed))
        if added := "".join(b[slice(*run.b)]):
            pieces.append(Piece("added", added))
    return pieces


def _ends(before: str, after: str) -> tuple[int, int]:
    """How many characters at the start and at the end of both need no look, since all that changed is far.

    A book in one paragraph would be cut into words for a change of one.
    """
    most = min(len(before), len(after))
    head = _most(most, lambda size: before[:size] == after[:size])
    tail = _most(most - head, lambda size: before[len(before) - size :] == after[len(after) - size :])
    first = [
        found.end() for found in _BETWEEN.finditer(before, max(0, head - 2 * _NEAR), max(0, head - _NEAR))
    ]
    start = len(before) - tail + _NEAR
    last = _BETWEEN.search(before, start, start + _NEAR) if tail > _NEAR else None
    return first[-1] if first else 0, len(before) - last.end() if last else 0


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """The most that fits, where whatever is less fits too."""
    return bisect_left(range(1, limit + 1), True, key=lambda size: not fits(size))


def hunks_of(pieces: Sequence[Piece]) -> Iterator[tuple[str, str]]:
    """What was removed and what came in its place, of each place that changed."""
    for same, stretch in groupby(pieces, key=lambda piece: piece.kind == "same"):
        if not same:
            held = list(stretch)
            yield (
                "".join(piece.text for piece in held if piece.kind == "removed"),
                "".join(piece.text for piece in held if piece.kind == "added"),
            )


def looks_the_same(removed: str, added: str) -> bool:
    return removed != added and unicodedata.normalize("NFC", removed) == unicodedata.normalize("NFC", added)


def aligned(a: list[str], b: list[str]) -> list[tuple[int, int]]:
    """Which tokens of both are the same. White space follows the words around it."""
    wide = [[n for n, token in enumerate(side) if not token.isspace()] for side in (a, b)]
    ids = numbered([items_at(a, wide[0]), items_at(b, wide[1])])
    pairs: list[tuple[int, int]] = []
    at = (0, 0)
    ends = [(wide[0][i], wide[1][j]) for i, j in in_order(ids[0], ids[1])]
    for end in [*ends, (len(a), len(b))]:
        head, tail = trimmed(a, b, (at[0], end[0]), (at[1], end[1]))
        pairs += [(at[0] + n, at[1] + n) for n in range(head)]
        pairs += [(end[0] - n, end[1] - n) for n in range(tail, 0, -1)]
        pairs.append(end)
        at = (end[0] + 1, end[1] + 1)
    return pairs[:-1]


@dataclass(frozen=True)
class _Run:
    """A stretch of both token lists, equal or not."""

    equal: bool
    a: tuple[int, int]
    b: tuple[int, int]

    def upto(self, end: _Run) -> _Run:
        return _Run(False, (self.a[0], end.a[1]), (self.b[0], end.b[1]))

    @property
    def one_sided(self) -> str:
        """Whether it only adds or only removes, and which."""
        return ("+" if self.a[0] == self.a[1] else "") + ("-" if self.b[0] == self.b[1] else "")


def _runs(pairs: list[tuple[int, int]], in_a: int, in_b: int) -> list[_Run]:
    runs: list[_Run] = []
    start = at = (0, 0)  # of the equal run that is being read, and behind its end
    for pair in [*pairs, (in_a, in_b)]:
        if pair != at:
            if start != at:
                runs.append(_Run(True, (start[0], at[0]), (start[1], at[1])))
            runs.append(_Run(False, (at[0], pair[0]), (at[1], pair[1])))
            start = pair
        at = pair[0] + 1, pair[1] + 1
    if start != (in_a, in_b):
        runs.append(_Run(True, (start[0], in_a), (start[1], in_b)))
    return runs


def _snapped(runs: list[_Run], a: list[str], b: list[str]) -> list[_Run]:
    """Where a stretch that came or went can stand here or a token on, let it start with a word.

    "one[+. Two+]. Three" says the same as "one. [+Two. +]Three", but reads worse.
    """
    for n in range(1, len(runs) - 1):
        left, run, right = runs[n - 1 : n + 2]
        if run.equal or len(run.one_sided) != 1:
            continue
        text, (start, end) = (b, run.b) if run.one_sided == "+" else (a, run.a)
        room, by = right.a[1] - right.a[0] - 1, 0
        while by < room and not is_word(text[start + by]) and text[start + by] == text[end + by]:
            by += 1
        if by:
            runs[n - 1] = _Run(True, (left.a[0], left.a[1] + by), (left.b[0], left.b[1] + by))
            runs[n] = _Run(False, (run.a[0] + by, run.a[1] + by), (run.b[0] + by, run.b[1] + by))
            runs[n + 1] = _Run(True, (right.a[0] + by, right.a[1]), (right.b[0] + by, right.b[1]))
    return runs


def _readable(runs: list[_Run], a: list[str], b: list[str]) -> list[_Run]:
    """Take what is equal by mere chance between two changes into one change."""
    sizes = [0, *accumulate(map(len, a))], [0, *accumulate(map(len, b))]

    def size(run: _Run) -> int:
        return max(sizes[0][run.a[1]] - sizes[0][run.a[0]], sizes[1][run.b[1]] - sizes[1][run.b[0]])

    kept: list[_Run] = []
    for run in runs:
        kept.append(run)
        while len(kept) >= 3 and not kept[-1].equal and kept[-2].equal:
            left, middle, right = kept[-3:]
            if not _island(a[slice(*middle.a)], min(size(left), size(right)), left, right):
                break
            kept[-3:] = [left.upto(right)]
    return kept


def _island(same: list[str], around: int, left: _Run, right: _Run) -> bool:
    """Whether a reader is better off without seeing that a stretch between two changes is the same.

    :param around: characters of the smaller change beside it.
    """
    if len(same) > 8:
        return False
    found = [token for token in same if is_word(token)]
    if not found:
        return True
    if left.one_sided and left.one_sided == right.one_sided:
        return False
    size = sum(map(len, found))
    short = size <= 3 and all(token.isspace() for token in same if token != found[0])
    return short or size * 2 <= around
