"""What differs between two texts: by paragraphs first, and by words inside those that changed."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import Literal

from rapidfuzz.distance import LCSseq

from smartwriter.text.differences.alignment import items_at
from smartwriter.text.differences.pairing import BREAK, Rebroken, partners_of, rebroken
from smartwriter.text.differences.pieces import Piece, hunks_of, looks_the_same, pieces_of
from smartwriter.text.words import Word, count_words, front_matter, is_word, paragraphs, tokens, words_in

Kind = Literal["same", "changed", "added", "removed", "moved", "split", "merged"]


@dataclass(frozen=True)
class Block:
    """One paragraph, of one text or of both; or one that became several, or several that became one."""

    kind: Kind
    before: int | None
    """The paragraph's number in the text before, from 1."""
    after: int | None
    pieces: tuple[Piece, ...]
    """A paragraph that was moved, split or merged may have been edited too."""
    before_last: int | None = None
    """The number of the last paragraph, where several were merged; between them stands a blank line."""
    after_last: int | None = None
    """And where one was split."""

    @property
    def before_text(self) -> str:
        return "".join(piece.text for piece in self.pieces if piece.kind != "added")

    @property
    def after_text(self) -> str:
        return "".join(piece.text for piece in self.pieces if piece.kind != "removed")


@dataclass(frozen=True)
class Step:
    """A block as a reader meets it who reads both texts side by side."""

    block: Block
    leaves: bool = False
    """It is the place that a moved paragraph has left."""


@dataclass(frozen=True)
class Comparison:
    """``dataclasses.asdict`` makes JSON of it."""

    blocks: tuple[Block, ...]
    """In the order of the text after; a removed one stands where it stood."""
    added_words: int
    """As ``words.count`` counts them, in paragraphs: what a reader does not see is none. Those of a paragraph
    that was moved, split or merged count only where it was edited."""
    removed_words: int
    moved: int
    """Paragraphs."""
    front: tuple[Piece, ...] = ()
    """The front matter, when it differs."""
    recomposed: int = 0
    """Words that look the same and whose letters are composed of other characters."""
    spacing: bool = False
    """Nothing but blank lines, line ends or a byte order mark differs."""

    @property
    def differs(self) -> bool:
        """Whether anything but the ``spacing`` does."""
        return bool(self.front) or any(block.kind != "same" for block in self.blocks)

    def before(self) -> list[str]:
        """The paragraphs of the text before."""
        blocks = sorted(
            (block.before, number, block) for number, block in enumerate(self.blocks) if block.before
        )
        return list(chain.from_iterable(_parts(block.before_text, block.before_last) for *_, block in blocks))

    def after(self) -> list[str]:
        blocks = [block for block in self.blocks if block.after]
        return list(chain.from_iterable(_parts(block.after_text, block.after_last) for block in blocks))

    def steps(self) -> list[Step]:
        """The blocks, and the places that the moved ones have left, in reading order."""
        left = sorted(
            (block for block in self.blocks if block.kind == "moved"), key=lambda block: block.before or 0
        )
        steps: list[Step] = []
        for block in self.blocks:
            if block.kind != "moved" and block.before:
                while left and (left[0].before or 0) < block.before:
                    steps.append(Step(left.pop(0), leaves=True))
            steps.append(Step(block))
        return steps + [Step(block, leaves=True) for block in left]


def _parts(text: str, last: int | None) -> list[str]:
    return [text] if last is None else text.split(BREAK)


def compare(before: str, after: str) -> Comparison:
    """Everything that differs; a long stretch with nothing in common is one change."""
    old, new = paragraphs(before), paragraphs(after)
    blocks = tuple(_blocks(old, new))
    gained, lost = _count(blocks)
    fronts = [text[: front_matter(text)].rstrip("\r\n") for text in (before, after)]
    front = pieces_of(*fronts) if fronts[0] != fronts[1] else ()
    same = not front and all(block.kind == "same" for block in blocks)
    return Comparison(
        blocks,
        added_words=gained,
        removed_words=lost,
        moved=sum(block.kind == "moved" for block in blocks),
        front=front,
        recomposed=sum(
            looks_the_same(*pair)
            for block in blocks
            if len(block.pieces) > 1
            for pair in hunks_of(block.pieces)
        ),
        spacing=same and before != after,
    )


def word_changes(before: str, after: str) -> tuple[int, int]:
    """Words gained and lost, as ``compare`` counts them; quick where most paragraphs are equal."""
    return (0, 0) if before == after else _count(_blocks(paragraphs(before), paragraphs(after)))


def _count(blocks: Iterable[Block]) -> tuple[int, int]:
    gained = lost = 0
    for block in blocks:
        if block.kind == "added":
            gained += count_words(block.after_text)
        elif block.kind == "removed":
            lost += count_words(block.before_text)
        elif len(block.pieces) > 1:
            more, less = _count_inside(block)
            gained, lost = gained + more, lost + less
    return gained, lost


def _count_inside(block: Block) -> tuple[int, int]:
    """Words gained and lost where a paragraph was edited, as a reader of both finished pages sees them."""
    before, after = words_in(block.before_text), words_in(block.after_text)
    gained = lost = at = to = 0
    for same, stretch in groupby(block.pieces, key=lambda piece: piece.kind == "same"):
        pieces = list(stretch)
        removed = sum(len(piece.text) for piece in pieces if piece.kind != "added")
        added = sum(len(piece.text) for piece in pieces if piece.kind != "removed")
        if not same:
            old = _touching(before, at, at + removed)
            new = _touching(after, to, to + added)
            common = LCSseq.similarity(old, new)
            gained, lost = gained + len(new) - common, lost + len(old) - common
        at, to = at + removed, to + added
    return gained, lost


def _touching(words: list[Word], start: int, end: int) -> list[str]:
    """The words of which any part lies in a stretch, or that are open where an empty one is."""
    first = bisect_right(words, start, key=lambda word: word.end)
    last = bisect_left(words, end, key=lambda word: word.start)
    return [unicodedata.normalize("NFC", word.text) for word in words[first:last]]


def _blocks(before: list[str], after: list[str]) -> Iterator[Block]:
    partners = partners_of(before, after)
    groups = {one.after.start: one for one in rebroken(before, after, partners)}
    for one in groups.values():
        for j in one.after:
            partners[j] = None
        partners[one.after.start] = one.before.start
    inner = {j for one in groups.values() for j in one.after[1:]}
    stay = _staying(before, partners)
    origin = {
        j: i
        for j, i in enumerate(partners)
        # A rule across the page is not moved: one went and another came.
        if i is not None and (j in stay or any(map(is_word, tokens(after[j]))))
    }
    kept = {i for j, start in origin.items() for i in (groups[j].before if j in groups else [start])}
    ends = deque([*(origin[j] for j in sorted(stay)), len(before)])
    at, due = 0, True
    for j, text in enumerate(after):
        if j in inner:
            continue
        if due:  # what was removed stands before what came in its place
            if at < ends[0]:
                yield from _removed(before, range(at, ends[0]), kept)
            at = ends.popleft() + 1
        due = j in stay
        if j in groups:
            yield _group(groups[j], before, after, due)
            if due:
                at = groups[j].before.stop
        else:
            yield _block(j, text, before, origin.get(j), due)
    if ends:
        yield from _removed(before, range(at, ends[0]), kept)


def _group(one: Rebroken, before: list[str], after: list[str], stays: bool) -> Block:
    split = len(one.after) > 1
    return Block(
        ("split" if split else "merged") if stays else "moved",
        one.before.start + 1,
        one.after.start + 1,
        pieces_of(BREAK.join(items_at(before, one.before)), BREAK.join(items_at(after, one.after))),
        before_last=None if split else one.before.stop,
        after_last=one.after.stop if split else None,
    )


def _block(j: int, text: str, before: list[str], i: int | None, stays: bool) -> Block:
    if i is None:
        return Block("added", None, j + 1, (Piece("added", text),))
    equal = before[i] == text
    pieces = (Piece("same", text),) if equal else pieces_of(before[i], text)
    return Block(("same" if equal else "changed") if stays else "moved", i + 1, j + 1, pieces)


def _removed(before: list[str], places: range, kept: set[int]) -> Iterator[Block]:
    for i in places:
        if i not in kept:
            yield Block("removed", i + 1, None, (Piece("removed", before[i]),))


def _staying(before: list[str], partners: list[int | None]) -> set[int]:
    """Which paragraphs of after kept their order, chosen so that as little text as can be was moved."""
    kept = [i for i in partners if i is not None]
    if all(i < following for i, following in pairwise(kept)):
        return {j for j, i in enumerate(partners) if i is not None}
    # For every paragraph before, the best chain that ends at or below it: kept in a Fenwick tree of maxima.
    tree: list[tuple[int, int]] = [(0, -1)] * (len(before) + 1)
    previous: dict[int, int] = {}
    for j, i in enumerate(partners):
        if i is None:
            continue
        best, at = (0, -1), i
        while at > 0:
            best = max(best, tree[at])
            at -= at & -at
        previous[j] = best[1]
        entry, at = (best[0] + len(before[i]) + 1, j), i + 1
        while at < len(tree):
            tree[at] = max(tree[at], entry)
            at += at & -at
    last = max(tree)[1]
    stay = set()
    while last >= 0:
        stay.add(last)
        last = previous[last]
    return stay
