"""Which paragraph of one text continues which of another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Final, TypeVar

from rapidfuzz.distance import Indel, LCSseq

from smartwriter.text.differences.alignment import in_order, items_at, numbered
from smartwriter.text.differences.likeness import (
    SIMILAR,
    SIMILAR_ELSEWHERE,
    comparable,
    likeness,
    significant,
)
from smartwriter.text.words import tokens

BREAK: Final = "\n\n"
"""Stands between paragraphs that were one."""

_TOUCHED = 0.9  # of their characters are the same, in order: a paragraph in which little was changed
_TOUCHED_CHARACTERS = 40  # of a shorter one, that may be another
_MAX_POSTINGS = 16  # a word or pair of words in more paragraphs than that tells none from the others
_FEW_WORDS = 4  # a paragraph with fewer is found elsewhere only when it is equal
_CANDIDATES = 3  # paragraphs whose similarity is worked out, of those that share the most
_HELD = 0.7  # so much of a paragraph's words in a neighbour's makes it a part of what was split or merged
_T = TypeVar("_T")


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
    partners = partners_of(before, after)
    found = [
        Continued() if i is None else Continued((i,), before[i] == after[j]) for j, i in enumerate(partners)
    ]
    for one in rebroken(before, after, partners):
        for j in one.after:
            found[j] = Continued(tuple(one.before), _same_words(items_at(before, one.before), after[j]))
    place = dict(zip(reversed(before), reversed(range(len(before))), strict=True))  # the first of equal ones
    for j, text in enumerate(after):
        places = found[j].places
        if not (len(places) == 1 and before[places[0]] == text) and text in place:
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


def partners_of(before: Sequence[str], after: Sequence[str]) -> list[int | None]:
    """As ``matches``, but each of ``before`` is used once at most."""
    partners: list[int | None] = [None] * len(after)
    old, new = numbered([before, after])
    for i, j in in_order(old, new):
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
    both = chain(items_at(before, left), items_at(after, fresh))
    ids = numbered([significant(text) for text in both])
    old, new = dict(zip(left, ids, strict=False)), dict(zip(fresh, ids[len(left) :], strict=True))
    found: list[tuple[float, int, int]] = []
    for j, candidates in _candidates(old, new, gaps).items():
        for i in candidates:
            if not comparable(len(old[i]), len(new[j])):
                continue
            alike, stays = likeness(old[i], new[j]), gaps.before[i] == gaps.after[j]
            few = min(len(old[i]), len(new[j])) < _FEW_WORDS
            if alike >= (SIMILAR if stays else 1.0 if few else SIMILAR_ELSEWHERE):
                found.append((-alike - 0.1 * stays, j, i))
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
class Rebroken:
    """Paragraphs that say the same with other breaks between: one became several, or several one."""

    before: range
    after: range


def rebroken(before: Sequence[str], after: Sequence[str], partners: Sequence[int | None]) -> list[Rebroken]:
    """Found beside paragraphs that were continued: their neighbours that nothing else explains."""
    used = {i for i in partners if i is not None}
    new = {j for j, partner in enumerate(partners) if partner is None}
    gone = set(range(len(before))) - used
    found: list[Rebroken] = []
    for j, i in enumerate(partners):
        if i is None or before[i] == after[j]:
            continue
        if len(split := _grown(before[i], after, j, new)) > 1:
            found.append(Rebroken(range(i, i + 1), split))
            new.difference_update(split)
        elif len(merged := _grown(after[j], before, i, gone)) > 1:
            found.append(Rebroken(merged, range(j, j + 1)))
            gone.difference_update(merged)
    return found


def _grown(whole: str, parts: Sequence[str], at: int, free: set[int]) -> range:
    """The paragraphs in a row around one that are parts of the same whole."""
    first, last = at, at
    if not (_is_prose(whole) and _is_prose(parts[at]) and {at - 1, at + 1} & free):
        return range(at, at + 1)
    held, words = [significant(parts[at])], significant(whole)
    common = LCSseq.similarity(words, held[0])
    while True:
        for place in (last + 1, first - 1):
            if place not in free or not _is_prose(parts[place]):
                continue
            more = significant(parts[place])
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
    return not paragraph.lstrip().startswith(("#", "```", "~~~")) and BREAK not in paragraph
