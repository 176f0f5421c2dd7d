"""What differs between two texts: by paragraphs first, and by words inside those that changed."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, pairwise
from typing import Final, Literal, TypeVar

from rapidfuzz.distance import Indel, LCSseq

from smartwriter.text.words import Word, count_words, front_matter, is_word, paragraphs, tokens, words_in

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
_BREAK = "\n\n"  # stands between paragraphs that were one
_HELD = 0.7  # so much of a paragraph's words in a neighbour's makes it a part of what was split or merged
_FEW_PLACES = 3  # the same change in as many places is told once
_CONTEXT = 8  # tokens on both sides of a change in notes

Kind = Literal["same", "changed", "added", "removed", "moved", "split", "merged"]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Piece:
    kind: Literal["same", "added", "removed"]
    text: str


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
    return [text] if last is None else text.split(_BREAK)


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
        recomposed=sum(_looks_the_same(*pair) for block in blocks for pair in _hunks_of(block.pieces)),
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


def _hunks_of(pieces: Sequence[Piece]) -> Iterator[tuple[str, str]]:
    """What was removed and what came in its place, of each place that changed."""
    for same, stretch in groupby(pieces, key=lambda piece: piece.kind == "same"):
        if not same:
            held = list(stretch)
            yield (
                "".join(piece.text for piece in held if piece.kind == "removed"),
                "".join(piece.text for piece in held if piece.kind == "added"),
            )


def _looks_the_same(removed: str, added: str) -> bool:
    return removed != added and unicodedata.normalize("NFC", removed) == unicodedata.normalize("NFC", added)


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


@dataclass(frozen=True)
class Continued:
    """What a paragraph was made of."""

    places: tuple[int, ...] = ()
    """The indexes of the paragraphs that it continues: none for a new one, several where they were merged."""
    whole: bool = False
    """Its words are theirs, of a merged one all of theirs: at most breaks between paragraphs differ."""


def matches(before: Sequence[str], after: Sequence[str]) -> list[int | None]:
    """For each paragraph of ``after``, the index of the one of ``before`` that it continues.

    Equal ones first, wherever they stand, then edited ones. One of ``before`` is continued once,
    but by all that are equal to it, and by all parts that it was split into; a merged one continues
    the longest of its parts. ``None`` for a new one.
    """
    return [
        max(one.places, key=lambda place: len(before[place]), default=None)
        for one in continued(before, after)
    ]


def continued(before: Sequence[str], after: Sequence[str]) -> list[Continued]:
    """As ``matches``, with all parts of what was merged."""
    partners = _partners(before, after)
    found = [
        Continued() if i is None else Continued((i,), before[i] == after[j]) for j, i in enumerate(partners)
    ]
    for one in _rebroken(before, after, partners):
        for j in one.after:
            found[j] = Continued(tuple(one.before), _same_words(_at(before, one.before), after[j]))
    place: dict[str, int] = {}
    for index, text in enumerate(before):
        place.setdefault(text, index)
    for j, text in enumerate(after):
        if text in place and [before[i] for i in found[j].places] != [text]:
            found[j] = Continued((place[text],), True)
    return found


def _same_words(parts: list[str], text: str) -> bool:
    """Whether a text is several others in a row, or a stretch of one."""
    whole, part = list(chain.from_iterable(map(_dense, parts))), _dense(text)
    return whole == part if len(parts) > 1 else _stands_in(part, whole)


def _dense(text: str) -> list[str]:
    return [token for token in tokens(text) if not token.isspace()]


def _stands_in(part: Sequence[_T], whole: Sequence[_T]) -> bool:
    """Whether a sequence stands in another one, in a row."""
    length = len(part)
    return any(whole[n : n + length] == part for n in range(len(whole) - length + 1))


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


@dataclass(frozen=True)
class _Rebroken:
    """Paragraphs that say the same with other breaks between: one became several, or several one."""

    before: range
    after: range


def _rebroken(before: Sequence[str], after: Sequence[str], partners: Sequence[int | None]) -> list[_Rebroken]:
    """Found beside paragraphs that were continued: their neighbours that nothing else explains."""
    used = {i for i in partners if i is not None}
    new = {j for j, partner in enumerate(partners) if partner is None}
    gone = set(range(len(before))) - used
    found: list[_Rebroken] = []
    for j, i in enumerate(partners):
        if i is None or before[i] == after[j]:
            continue
        if len(split := _grown(before[i], after, j, new)) > 1:
            found.append(_Rebroken(range(i, i + 1), split))
            new.difference_update(split)
        elif len(merged := _grown(after[j], before, i, gone)) > 1:
            found.append(_Rebroken(merged, range(j, j + 1)))
            gone.difference_update(merged)
    return found


def _grown(whole: str, parts: Sequence[str], at: int, free: set[int]) -> range:
    """The paragraphs in a row around one that are parts of the same whole."""
    first, last = at, at
    if not (_is_prose(whole) and _is_prose(parts[at]) and {at - 1, at + 1} & free):
        return range(at, at + 1)
    held, words = [_significant(parts[at])], _significant(whole)
    common = LCSseq.similarity(words, held[0])
    while True:
        for place in (last + 1, first - 1):
            if place not in free or not _is_prose(parts[place]):
                continue
            more = _significant(parts[place])
            joined = [*held, more] if place > last else [more, *held]
            size = LCSseq.similarity(words, list(chain.from_iterable(joined)))
            enough = size - common >= _HELD * len(more)
            if more and enough and (len(more) >= _FEW_WORDS or _stands_in(more, words)):
                held, common = joined, size
                first, last = min(first, place), max(last, place)
                break
        else:
            return range(first, last + 1)


def _is_prose(paragraph: str) -> bool:
    """Not a heading or code, whose breaks are its own."""
    return not paragraph.lstrip().startswith(("#", "```", "~~~")) and _BREAK not in paragraph


def _blocks(before: list[str], after: list[str]) -> Iterator[Block]:
    partners = _partners(before, after)
    groups = {one.after.start: one for one in _rebroken(before, after, partners)}
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
    ends = [*(origin[j] for j in sorted(stay)), len(before)]
    at, due = 0, True
    for j, text in enumerate(after):
        if j in inner:
            continue
        if due:  # what was removed stands before what came in its place
            yield from _removed(before, range(at, ends[0]), kept)
            at = ends.pop(0) + 1
        due = j in stay
        if j in groups:
            yield _group(groups[j], before, after, due)
            if due:
                at = groups[j].before.stop
        else:
            yield _block(j, text, before, origin.get(j), due)
    if ends:
        yield from _removed(before, range(at, ends[0]), kept)


def _group(one: _Rebroken, before: list[str], after: list[str], stays: bool) -> Block:
    split = len(one.after) > 1
    return Block(
        ("split" if split else "merged") if stays else "moved",
        one.before.start + 1,
        one.after.start + 1,
        _pieces(_BREAK.join(_at(before, one.before)), _BREAK.join(_at(after, one.after))),
        before_last=None if split else one.before.stop,
        after_last=one.after.stop if split else None,
    )


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
    for run in _readable(_snapped(_runs(aligned(a, b), len(a), len(b)), a, b), a, b):
        if run.equal:
            pieces.append(Piece("same", "".join(a[slice(*run.a)])))
            continue
        if removed := "".join(a[slice(*run.a)]):
            pieces.append(Piece("removed", removed))
        if added := "".join(b[slice(*run.b)]):
            pieces.append(Piece("added", added))
    return tuple(pieces)


def aligned(a: list[str], b: list[str]) -> list[tuple[int, int]]:
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
    common = _common(comparison)
    for (removed, added), found in common.items():
        places = list(dict.fromkeys(found))
        said = f"{len(found)} places (paragraphs {', '.join(map(str, places))})"
        one_hunk = (Piece("removed", removed), Piece("added", added))
        yield _Note(f"paragraph {places[0]}", f"In {said}: {''.join(map(_marked, one_hunk))}")
    for block in comparison.blocks:
        where = f"paragraph {block.after}"
        if block.kind == "removed":
            where = f"old paragraph {block.before}"
            yield _Note(where, f"{where.capitalize()} was removed: {_marked(block.pieces[0])}")
        elif block.kind == "added":
            yield _Note(where, f"{where.capitalize()} is new: {_marked(block.pieces[0])}")
        elif block.kind == "moved":
            yield _Note(
                where,
                f"{where.capitalize()} was moved here; it was paragraph {block.before}: "
                f"{_shortened(tokens(block.after_text), 0, 2 * _CONTEXT)}",
            )
        elif block.after_last:
            where = f"old paragraph {block.before}"
            yield _Note(
                where,
                f"{where.capitalize()} was split into paragraphs {block.after} to {block.after_last}.",
            )
        elif block.before_last:
            yield _Note(
                where,
                f"{where.capitalize()} was merged from old paragraphs {block.before} to {block.before_last}.",
            )
        if block.kind in ("changed", "moved", "split", "merged"):
            yield from _hunks(where, _without(common, block.pieces))


def _common(comparison: Comparison) -> dict[tuple[str, str], list[int]]:
    """Words that became other words in several places, with the paragraph of each."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for block in comparison.blocks:
        if block.after and len(block.pieces) > 1:
            for removed, added in _hunks_of(block.pieces):
                if removed.strip() and added.strip():
                    found[removed, added].append(block.after)
    return {hunk: where for hunk, where in found.items() if len(where) >= _FEW_PLACES}


def _without(common: Mapping[tuple[str, str], object], pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces in which changes that were told already are no changes."""
    left: list[Piece] = []
    for same, stretch in groupby(pieces, key=lambda piece: piece.kind == "same"):
        held = list(stretch)
        hunk = next(_hunks_of(held), ("", ""))
        if same or hunk in common:
            text = "".join(piece.text for piece in held) if same else hunk[1]
            if left and left[-1].kind == "same":
                text = left.pop().text + text
            left.append(Piece("same", text))
        else:
            left += held
    return left


def _hunks(where: str, pieces: Sequence[Piece]) -> Iterator[_Note]:
    """One note for the changes that stand close together."""
    if all(piece.kind == "same" for piece in pieces):
        return
    said = f"{where.capitalize()}: "
    line = ""
    for number, piece in enumerate(pieces):
        if piece.kind != "same":
            line += _marked(piece)
            if piece.kind == "added" and number and _looks_the_same(pieces[number - 1].text, piece.text):
                line += " (which looks the same: its letters are composed of other characters)"
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
