"""What differs between two texts: by paragraphs first, and by words inside those that changed."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Final, Literal, TypeVar

from rapidfuzz.distance import Indel, LCSseq

from smartwriter.words import count_words, front_matter, is_word, paragraphs, tokens

SIMILAR: Final = 0.5
"""From this similarity on a paragraph is an edited one, in its old place."""
SIMILAR_ELSEWHERE: Final = 0.6
"""From this one on it is an edited one that was moved; chance finds more likenesses far away."""

_CONTAINED = 0.8  # so much of a paragraph's words in a longer one make that its continuation …
_CONTAINED_WORDS = 6  # … from this many words on: two or three stand in any long paragraph …
_CONTAINED_PART = 20  # … and when the longer one is no more than so many times as long
_MAX_CELLS = 1 << 24  # of an exact alignment, about 4,000 tokens against 4,000: 15 ms and 2 MB
_ANCHORS = (8, 4, 1)  # how many tokens in a row, found once on both sides, tie longer texts together
_TOUCHED = 0.9  # of their characters are the same, in order: a paragraph in which little was changed
_TOUCHED_CHARACTERS = 40  # of a shorter one, that may be another
_MAX_POSTINGS = 16  # a word or pair of words in more paragraphs than that tells none from the others
_FEW_WORDS = 4  # a paragraph with fewer is found elsewhere only when it is equal
_CANDIDATES = 3  # paragraphs whose similarity is worked out, of those that share the most
_CONTEXT = 8  # tokens on both sides of a change in notes

Kind = Literal["same", "changed", "added", "removed", "moved"]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Piece:
    kind: Literal["same", "added", "removed"]
    text: str


@dataclass(frozen=True)
class Block:
    """One paragraph, of one text or of both."""

    kind: Kind
    before: int | None
    """The paragraph's number in the text before, from 1."""
    after: int | None
    pieces: tuple[Piece, ...]
    """A moved paragraph may have been edited too."""

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
    """As ``words.count`` counts them, in paragraphs; those of a moved one count only where it was edited."""
    removed_words: int
    moved: int
    """Paragraphs."""
    front: tuple[Piece, ...] = ()
    """The front matter, when it differs."""
    spacing: bool = False
    """Nothing but blank lines, line ends or a byte order mark differs."""

    @property
    def differs(self) -> bool:
        """Whether anything but the ``spacing`` does."""
        return bool(self.front) or any(block.kind != "same" for block in self.blocks)

    def before(self) -> list[str]:
        """The paragraphs of the text before."""
        numbered = [(block.before, block.before_text) for block in self.blocks if block.before]
        return [text for _, text in sorted(numbered)]

    def after(self) -> list[str]:
        return [block.after_text for block in self.blocks if block.after]

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


def compare(before: str, after: str) -> Comparison:
    """Everything that differs; a long stretch with nothing in common is one change."""
    old, new = paragraphs(before), paragraphs(after)
    blocks = tuple(_blocks(old, new))
    gained, lost = _count(blocks)
    fronts = [text[: front_matter(text)].rstrip("\r\n") for text in (before, after)]
    front = _pieces(*fronts) if fronts[0] != fronts[1] else ()
    same = not front and all(block.kind == "same" for block in blocks)
    return Comparison(
        blocks,
        added_words=gained,
        removed_words=lost,
        moved=sum(block.kind == "moved" for block in blocks),
        front=front,
        spacing=same and before != after,
    )


def word_changes(before: str, after: str) -> tuple[int, int]:
    """Words gained and lost, as ``compare`` counts them; quick where most paragraphs are equal."""
    return (0, 0) if before == after else _count(_blocks(paragraphs(before), paragraphs(after)))


def _count(blocks: Iterable[Block]) -> tuple[int, int]:
    words = {"same": 0, "added": 0, "removed": 0}
    for piece in chain.from_iterable(block.pieces for block in blocks):
        if piece.kind != "same":
            words[piece.kind] += count_words(piece.text)
    return words["added"], words["removed"]


# Paragraphs -------------------------------------------------------------------------------------


def similarity(a: str, b: str) -> float:
    """How much two paragraphs have in common, by words in their order: from 0 to 1, all of them.

    One that stands nearly whole in the other, which grew or was split, is at least ``SIMILAR`` to it.
    """
    if a == b:
        return 1.0
    first, second = _numbered([_significant(a), _significant(b)])
    return _likeness(first, second)


def _significant(paragraph: str) -> list[str]:
    """What likeness is measured by: the words, or all but white space where there are none."""
    found = tokens(paragraph)
    return [token for token in found if is_word(token)] or [token for token in found if not token.isspace()]


def _likeness(a: list[int], b: list[int]) -> float:
    if not a or not b:
        return float(a == b)
    if len(a) * len(b) > _MAX_CELLS * 100:  # a book in one paragraph: which words, not in which order
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


def _comparable(a: int, b: int) -> bool:
    """Whether paragraphs of so many words can be alike at all."""
    return _part(a, b) or 2 * min(a, b) >= SIMILAR * (a + b)


def matches(before: Sequence[str], after: Sequence[str]) -> list[int | None]:
    """For each paragraph of ``after``, the index of the one of ``before`` that it continues.

    Equal ones first, wherever they stand, then edited ones. One of ``before`` is continued once,
    but by all that are equal to it. ``None`` for a new one.
    """
    found = _partners(before, after)
    place: dict[str, int] = {}
    for index, text in enumerate(before):
        place.setdefault(text, index)
    return [
        place[text] if text in place and (partner is None or before[partner] != text) else partner
        for text, partner in zip(after, found, strict=True)
    ]


def _partners(before: Sequence[str], after: Sequence[str]) -> list[int | None]:
    """As ``matches``, but each of ``before`` is used once at most."""
    partners: list[int | None] = [None] * len(after)
    old, new = _numbered([before, after])
    for i, j in _aligned(old, new):
        partners[j] = i
    used = {i for i in partners if i is not None}
    gaps = _gaps(partners, len(before))
    spare: dict[int, list[int]] = defaultdict(list)
    for i in reversed(range(len(before))):
        if i not in used:
            spare[old[i]].append(i)
    for j, number in enumerate(new):
        if partners[j] is None and spare[number]:
            partners[j] = spare[number].pop()
    left = sorted(i for same in spare.values() for i in same)
    fresh = [j for j, partner in enumerate(partners) if partner is None]
    for i, j in _touched(before, after, left, fresh, gaps):
        partners[j] = i
    touched = set(partners)
    left = [i for i in left if i not in touched]
    fresh = [j for j in fresh if partners[j] is None]
    for i, j in _edited(before, after, left, fresh, gaps):
        partners[j] = i
    return partners


@dataclass(frozen=True)
class _Gaps:
    """Which paragraphs of both texts stand between the same two that are equal and in order."""

    before: list[int]
    after: list[int]


def _gaps(partners: list[int | None], length: int) -> _Gaps:
    kept = {i for i in partners if i is not None}
    return _Gaps(
        list(accumulate(int(i in kept) for i in range(length))),
        list(accumulate(int(partner is not None) for partner in partners)),
    )


def _touched(
    before: Sequence[str], after: Sequence[str], left: list[int], fresh: list[int], gaps: _Gaps
) -> Iterator[tuple[int, int]]:
    """Pairs of paragraphs in the same place that are the same to nearly every character.

    They need no look at all others, which takes a hundred times as long.
    """
    used_before: set[int] = set()
    used_after: set[int] = set()
    for here, there in _rows(left, fresh, gaps):
        from_the_end = zip(reversed(here), reversed(there), strict=False)
        for i, j in chain(zip(here, there, strict=False), from_the_end):
            short = min(len(before[i]), len(after[j])) < _TOUCHED_CHARACTERS
            if short or i in used_before or j in used_after:
                continue
            if Indel.normalized_similarity(before[i], after[j], score_cutoff=_TOUCHED):
                used_before.add(i)
                used_after.add(j)
                yield i, j


def _rows(left: Iterable[int], fresh: Iterable[int], gaps: _Gaps) -> Iterator[tuple[list[int], list[int]]]:
    """What stands between the same two equal paragraphs, in both texts."""
    rows: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for i in left:
        rows[gaps.before[i]][0].append(i)
    for j in fresh:
        rows[gaps.after[j]][1].append(j)
    yield from rows.values()


def _edited(
    before: Sequence[str], after: Sequence[str], left: list[int], fresh: list[int], gaps: _Gaps
) -> Iterator[tuple[int, int]]:
    """Pairs of paragraphs that are alike, the most alike first, one in its old place before others."""
    if not left or not fresh:
        return
    numbered = _numbered([_significant(text) for text in chain(_at(before, left), _at(after, fresh))])
    old, new = dict(zip(left, numbered, strict=False)), dict(zip(fresh, numbered[len(left) :], strict=True))
    found: list[tuple[float, int, int]] = []
    for j, candidates in _candidates(old, new, gaps).items():
        for i in candidates:
            if not _comparable(len(old[i]), len(new[j])):
                continue
            likeness, stays = _likeness(old[i], new[j]), gaps.before[i] == gaps.after[j]
            few = min(len(old[i]), len(new[j])) < _FEW_WORDS
            if likeness >= (SIMILAR if stays else 1.0 if few else SIMILAR_ELSEWHERE):
                found.append((-likeness - 0.1 * stays, j, i))
    used_before: set[int] = set()
    used_after: set[int] = set()
    for _, j, i in sorted(found):
        if i not in used_before and j not in used_after:
            used_before.add(i)
            used_after.add(j)
            yield i, j


def _candidates(old: dict[int, list[int]], new: dict[int, list[int]], gaps: _Gaps) -> dict[int, set[int]]:
    """For each paragraph after, the few before that it may continue, by rare words and pairs of words.

    Comparing each with each would take a minute for a book.
    """
    places: dict[object, list[int]] = defaultdict(list)
    for i, words in old.items():
        for feature in _features(words):
            places[feature].append(i)
    found: dict[int, set[int]] = {}
    for j, words in new.items():
        votes = Counter(
            chain.from_iterable(
                near
                for feature in _features(words)
                if (near := places.get(feature, ())) and len(near) <= _MAX_POSTINGS
            )
        )
        found[j] = {i for i, _ in votes.most_common(_CANDIDATES)}
    for here, there in _rows(old, new, gaps):  # what stands in the same place, counted from either end
        for i, j in chain(zip(here, there, strict=False), zip(reversed(here), reversed(there), strict=False)):
            found[j].add(i)
    return found


def _features(words: list[int]) -> set[object]:
    return {*words, *pairwise(words)}


def _blocks(before: list[str], after: list[str]) -> Iterator[Block]:
    partners = _partners(before, after)
    stay = _staying(before, partners)
    origin = {
        j: i
        for j, i in enumerate(partners)
        # A rule across the page is not moved: one went and another came.
        if i is not None and (j in stay or any(map(is_word, tokens(after[j]))))
    }
    kept = set(origin.values())
    ends = [*(origin[j] for j in sorted(stay)), len(before)]
    at = 0
    for j, text in enumerate(after):
        if j == 0 or j - 1 in stay:  # what was removed stands before what came in its place
            yield from _removed(before, range(at, ends[0]), kept)
            at = ends.pop(0) + 1
        yield _block(j, text, before, origin.get(j), j in stay)
    if ends:
        yield from _removed(before, range(at, ends[0]), kept)


def _block(j: int, text: str, before: list[str], i: int | None, stays: bool) -> Block:
    if i is None:
        return Block("added", None, j + 1, (Piece("added", text),))
    equal = before[i] == text
    pieces = (Piece("same", text),) if equal else _pieces(before[i], text)
    return Block(("same" if equal else "changed") if stays else "moved", i + 1, j + 1, pieces)


def _removed(before: list[str], places: range, kept: set[int]) -> Iterator[Block]:
    for i in places:
        if i not in kept:
            yield Block("removed", i + 1, None, (Piece("removed", before[i]),))


def _staying(before: list[str], partners: list[int | None]) -> set[int]:
    """Which paragraphs of after kept their order, chosen so that as little text as can be was moved."""
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


# Words ------------------------------------------------------------------------------------------


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


def _pieces(before: str, after: str) -> tuple[Piece, ...]:
    a, b = tokens(before), tokens(after)
    pieces: list[Piece] = []
    for run in _readable(_snapped(_runs(_pairs(a, b), len(a), len(b)), a, b), a, b):
        if run.equal:
            pieces.append(Piece("same", "".join(a[slice(*run.a)])))
            continue
        if removed := "".join(a[slice(*run.a)]):
            pieces.append(Piece("removed", removed))
        if added := "".join(b[slice(*run.b)]):
            pieces.append(Piece("added", added))
    return tuple(pieces)


def _pairs(a: list[str], b: list[str]) -> list[tuple[int, int]]:
    """Which tokens of both are the same. White space follows the words around it."""
    wide = [[n for n, token in enumerate(side) if not token.isspace()] for side in (a, b)]
    ids = _numbered([_at(a, wide[0]), _at(b, wide[1])])
    pairs: list[tuple[int, int]] = []
    at = (0, 0)
    ends = [(wide[0][i], wide[1][j]) for i, j in _aligned(ids[0], ids[1])]
    for end in [*ends, (len(a), len(b))]:
        head, tail = _trimmed(a, b, (at[0], end[0]), (at[1], end[1]))
        pairs += [(at[0] + n, at[1] + n) for n in range(head)]
        pairs += [(end[0] - n, end[1] - n) for n in range(tail, 0, -1)]
        pairs.append(end)
        at = (end[0] + 1, end[1] + 1)
    return pairs[:-1]


def _trimmed(
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


# Sequences --------------------------------------------------------------------------------------


def _at(items: Sequence[_T], places: Iterable[int]) -> list[_T]:
    return [items[place] for place in places]


def _numbered(sides: Sequence[Sequence[str]]) -> list[list[int]]:
    """The same number for the same text: an alignment of numbers is exact where one of hashes is not."""
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(text, len(numbers)) for text in side] for side in sides]


def _aligned(a: list[int], b: list[int]) -> list[tuple[int, int]]:
    """Pairs of places where both have the same, in order on both sides; as many as can be.

    Of sequences too long for that: as many as lie between what is found once on both sides.
    """
    pairs: list[tuple[int, int]] = []
    todo = [((0, len(a)), (0, len(b)), 0)]
    while todo:
        in_a, in_b, depth = todo.pop()
        head, tail = _trimmed(a, b, in_a, in_b)
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


# For a language model ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Note:
    where: str
    text: str


def notes(before: str, after: str, limit: int = 4000) -> str:
    """What changed, for a language model: a line for each place, with the words around it.

    Removed words stand as ``[-…-]``, added ones as ``{+…+}``, each verbatim. A place that does not
    fit is left out whole, and the last line says which. Empty when no paragraph differs.

    :param limit: characters; only that last line alone may be longer.
    """
    comparison = compare(before, after)
    places = list(_places(comparison))
    lines = [place.text for place in places]
    if len("\n".join(lines)) <= limit:
        return "\n".join(lines)
    kept: list[int] = []
    for number, line in enumerate(lines):
        if len(line) + 1 <= limit - sum(len(lines[n]) + 1 for n in kept):
            kept.append(number)
    while True:
        missing = [place.where for n, place in enumerate(places) if n not in kept]
        text = "\n".join([*(lines[n] for n in kept), _missing(missing)])
        if len(text) <= limit or not kept:
            return text
        kept.pop()


def _missing(places: list[str]) -> str:
    named = list(dict.fromkeys(places))
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    changes = "1 more change does" if len(places) == 1 else f"{len(places)} more changes do"
    return f"({changes} not fit in here: {', '.join(named[:5])}{more}.)"


def _places(comparison: Comparison) -> Iterator[_Note]:
    if comparison.front:
        yield from _hunks("front matter", comparison.front)
    for block in comparison.blocks:
        if block.kind == "removed":
            where = f"old paragraph {block.before}"
            yield _Note(where, f"{where.capitalize()} was removed: {_marked(block.pieces[0])}")
        elif block.kind == "added":
            where = f"paragraph {block.after}"
            yield _Note(where, f"{where.capitalize()} is new: {_marked(block.pieces[0])}")
        elif block.kind == "moved":
            where = f"paragraph {block.after}"
            yield _Note(
                where,
                f"{where.capitalize()} was moved here; it was paragraph {block.before}: "
                f"{_shortened(tokens(block.after_text), 0, 2 * _CONTEXT)}",
            )
            yield from _hunks(where, block.pieces)
        elif block.kind == "changed":
            yield from _hunks(f"paragraph {block.after}", block.pieces)


def _hunks(where: str, pieces: Sequence[Piece]) -> Iterator[_Note]:
    """One note for the changes that stand close together."""
    said = f"{where.capitalize()}: "
    line = ""
    for number, piece in enumerate(pieces):
        if piece.kind != "same":
            line += _marked(piece)
            continue
        found = tokens(piece.text)
        first, last = number == 0, number == len(pieces) - 1
        if not first and not last and len(found) <= 2 * _CONTEXT:
            line += piece.text
            continue
        if not first:
            yield _Note(where, said + line + _shortened(found, 0, _CONTEXT))
        line = "" if last else _shortened(found, max(0, len(found) - _CONTEXT), len(found))
    if line:
        yield _Note(where, said + line)


def _shortened(found: list[str], start: int, end: int) -> str:
    return ("…" if start else "") + "".join(found[start:end]) + ("…" if end < len(found) else "")


def _marked(piece: Piece) -> str:
    return {"same": "{}", "added": "{{+{}+}}", "removed": "[-{}-]"}[piece.kind].format(piece.text)
