"""Whether a value that stands in a text has the sense there that a line of the memory gave it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from rapidfuzz.fuzz import ratio

from smartwriter.meaning.content import ALSO_WORDS, DATES, FUNCTION, adjoin, content, is_empty, of_time
from smartwriter.meaning.facts import QUANTITIES, Change
from smartwriter.meaning.numbers import Kind, Word
from smartwriter.meaning.stems import stem

_CALLED = ("叫", "名叫", "名为", "姓", "叫做", "叫作", "唤作")
_OF_NAMES = "阿"  # a name begins so, whatever dictionary it is in
_CLASSIFIERS = "个個位名"
_NO_NAME_AFTER = frozenset(
    [
        "the",
        "a",
        "an",
        "my",
        "your",
        "his",
        "her",
        "our",
        "their",
        "this",
        "that",
        "these",
        "those",
        "it",
        "him",
        "them",
        "us",
        "me",
        "to",
    ]
)
"""What follows a verb at the beginning of a sentence, and no name."""
_SPELLING = 75.0
"""Of 100: how alike two spellings of a word are at least."""
_FEW = 2
"""Content words that a sentence may have beside an amount that stands for itself."""


@dataclass(frozen=True)
class Place:
    """Where a value was found."""

    words: Sequence[Word]
    """Of the sentence."""
    found: range
    around: frozenset[str]
    """What the sentences beside it, and its own, are about."""

    @property
    def first(self) -> Word:
        return self.words[self.found.start]

    @property
    def before(self) -> Word | None:
        return self.words[self.found.start - 1] if self.found.start else None

    @property
    def after(self) -> Word | None:
        return self.words[self.found.stop] if self.found.stop < len(self.words) else None

    @property
    def beside(self) -> frozenset[str]:
        """What the rest of the sentence is about."""
        return content(self.words[: self.found.start]) | content(self.words[self.found.stop :])


class Value:
    """A part of a line that has changed, as it is looked for in texts."""

    def __init__(self, change: Change, part: range, context: frozenset[str]) -> None:
        """:param part: of the line's words, that are looked for."""
        self._line = Place(change.before, part, frozenset())
        self.words = change.before[part.start : part.stop]
        beside = change.before[max(0, part.start - 1) : part.stop + 1]
        own = content(self.words) | (content(beside) if self.words[0].kind is Kind.character else frozenset())
        self._context = (context | self._line.beside) - own
        kinds = [word.kind for word in self.words]
        order = (Kind.amount, Kind.date, Kind.duration, Kind.time, Kind.number, Kind.name, Kind.character)
        self.kind = next((kind for kind in order if kind in kinds), Kind.word)
        self._is_spelling = _is_spelling(self.words, change.new)

    # Finding -----------------------------------------------------------------------------------------

    def found_in(self, words: Sequence[Word]) -> Iterator[range]:
        """Where the value stands in a sentence."""
        for wanted in self._forms():
            for at in range(len(words) - len(wanted) + 1):
                if all(_is(one, words[at + n]) for n, one in enumerate(wanted)):
                    yield range(at, at + len(wanted))

    def first_keys(self) -> set[str]:
        """The keys of one of which every place of the value has a word."""
        word = self.words[0]
        bare = word.key.removesuffix(":00").replace("@", "#")  # ten, where the line has ten o'clock
        return {word.key, bare, stem(_bare(word.text)), stem(_bare(word.text).removesuffix("s"))}

    def _forms(self) -> list[list[Word]]:
        """What to look for: of a single character, the words that it makes with its neighbours."""
        own = list(self.words)
        if self.kind is not Kind.character or len(own) > 1:
            return [own]
        before, after = self._line.before, self._line.after
        found = []
        if before and adjoin(before, own[0]) and before.text not in FUNCTION:
            found.append([before, *own])
        if after and adjoin(own[0], after) and after.text not in FUNCTION:
            found.append([*own, after])
        return found

    # Judging -----------------------------------------------------------------------------------------

    def is_meant(self, place: Place) -> bool:
        """Whether what was found has the sense that it has in the line."""
        same = len(self._context & place.beside)
        near = len(self._context & place.around)
        share = same / len(self._context) if self._context else 1.0
        match self.kind:
            case Kind.amount:
                return self._is_amount_meant(place, same, near)
            case Kind.date:
                return near >= 1 or not _is_another_day(self._line, place)
            case Kind.time | Kind.duration:
                return near >= 1 or not self._context
            case Kind.number:
                return self._is_number_meant(place, share, near)
            case Kind.name:
                return self._is_name_meant(place, near)
            case Kind.character:
                return self._are_characters_meant(place, same, near)
            case _:
                common = same >= 1 and (share >= 0.3 or same >= 2)
                return self._is_spelling or len(self.words) > 1 or common

    def _is_amount_meant(self, place: Place, same: int, near: int) -> bool:
        """By itself only where nothing else is spoken of: £9, and that is that; not £9 for a sandwich."""
        return same > 0 or near > 0 or (len(place.beside) <= _FEW and not _is_of_something(place))

    def _is_number_meant(self, place: Place, share: float, near: int) -> bool:
        digits = self.words[0].key.lstrip("#")
        is_year = len(digits) == 4 and "1800" <= digits <= "2100"
        if "." in digits or (len(digits) >= 4 and not is_year):
            return True
        mine, theirs = _unit(self._line), _unit(place)
        if mine and theirs and mine != theirs:
            return False
        same = len(self._context & place.beside - {theirs})
        if mine and mine == theirs:
            return same >= 1 or near >= 2
        if is_year:
            return near >= 1
        return same >= 2 or (same >= 1 and (share >= 0.3 or near >= 2))

    def _is_name_meant(self, place: Place, near: int) -> bool:
        name = _bare(self.words[0].text).casefold()
        only = len(self.words) == 1
        if only and name in DATES and _is_date(self._line):
            return near >= 1
        if only and name in ALSO_WORDS:
            return not _is_date(place) and (near >= 1 or not place.first.first)
        if near:
            return True
        if only and place.first.first and (self.words[0].first or _opens_an_order(place)):
            return False  # in capitals for its place only
        own = {word.text for word in self._line.words}
        return all(_bare(one.text) in own for one in _names_beside(place))

    def _are_characters_meant(self, place: Place, same: int, near: int) -> bool:
        if self._has_the_same_neighbour(place) or same >= 1 or near >= 2:
            return True
        alone = self._is_called() or len(self.words) > 2
        return alone and (near >= 1 or not _is_dictionary_word(place))

    def _has_the_same_neighbour(self, place: Place) -> bool:
        """Whether the word goes on in the text as it does in the line: 柳河 with 镇."""
        line, here = self._as_found(place), place.found
        ours, theirs = self._line.words, place.words
        left = line.start > 0 and here.start > 0 and _same(ours, line.start - 1, theirs, here.start - 1)
        right = line.stop < len(ours) and here.stop < len(theirs)
        return left or (right and _same(ours, line.stop - 1, theirs, here.stop - 1, inner=True))

    def _as_found(self, place: Place) -> range:
        """Where in the line stands what was found: the value, or with the character on one side of it."""
        own = self._line.found
        if len(place.found) == len(own):
            return own
        is_last = place.words[place.found.stop - 1].text == self.words[0].text
        return range(own.start - 1, own.stop) if is_last else range(own.start, own.stop + 1)

    def _is_called(self) -> bool:
        before = "".join(word.text for word in self._line.words[: self._line.found.start])
        return before.endswith(_CALLED) or before[:-1].endswith(_CALLED)


def values_of(change: Change, context: frozenset[str]) -> Iterator[Value]:
    """What of a change is looked for: the whole, then each quantity and name in it."""
    start, end = change.at, change.at + len(change.old)
    while start < end and is_empty(change.before[start]):
        start += 1
    while end > start and is_empty(change.before[end - 1]):
        end -= 1
    if start < end:
        yield Value(change, range(start, end), context)
    if end - start > 1:
        for at in range(start, end):
            if change.before[at].kind in (*QUANTITIES, Kind.name):
                yield Value(change, range(at, at + 1), context)


def _same(
    ours: Sequence[Word], mine: int, theirs: Sequence[Word], other: int, *, inner: bool = False
) -> bool:
    """Whether two pairs of characters side by side have the same first one, or second if inner."""
    outer = int(inner)
    pairs = (ours[mine : mine + 2], theirs[other : other + 2])
    if not all(len(pair) == 2 and adjoin(*pair) for pair in pairs):
        return False
    one, another = (pair[outer] for pair in pairs)
    return one.text == another.text and one.text not in FUNCTION


def _is(wanted: Word, word: Word) -> bool:
    if wanted.kind is Kind.name and word.kind in (Kind.name, Kind.word):
        mine, theirs = _bare(wanted.text), _bare(word.text)
        if mine.removesuffix("s").casefold() in DATES:
            mine, theirs = mine.removesuffix("s"), theirs.removesuffix("s")
        return mine == theirs or (theirs.isupper() and len(theirs) > 1 and mine.upper() == theirs)
    if wanted.kind is Kind.time and word.kind is Kind.number:
        return wanted.key == f"@{word.key[1:]}:00"
    if wanted.kind in QUANTITIES or wanted.kind is Kind.word:
        return wanted.key == word.key
    return wanted.text == word.text


def _is_of_something(place: Place) -> bool:
    """Whether an amount is said to be that of a thing."""
    after = place.words[place.found.stop : place.found.stop + 4]
    opens = ("for", "per", "a", "an", "each", "every", "on", "的")
    return bool(after) and after[0].text.casefold() in opens and bool(content(after))


def _is_date(place: Place) -> bool:
    """Whether a name that is also that of a month or day is one here."""
    if place.words[place.found.start].text.casefold().removesuffix("s").endswith("day"):
        return True
    before, after = place.before, place.after
    return bool((before and of_time(before)) or (after and after.kind is Kind.number))


def _is_another_day(line: Place, place: Place) -> bool:
    """Whether a year or a day of the week stands beside a date that the line does not have."""
    own = {word.key for word in line.words}
    beside = [*place.words[max(0, place.found.start - 2) : place.found.start], place.after]
    return any(
        word and word.key not in own and (word.kind is Kind.number or word.text.casefold() in DATES)
        for word in beside
    )


def _opens_an_order(place: Place) -> bool:
    """Whether a sentence begins with a verb, and no name: Polish the spoons."""
    return place.after is not None and place.after.text.casefold() in _NO_NAME_AFTER


def _names_beside(place: Place) -> list[Word]:
    """Words in capitals right beside what was found: of a longer name that is another one's."""
    first, last = place.words[place.found.start], place.words[place.found.stop - 1]
    beside = [one for one in (place.before, place.after) if one and one.kind is Kind.name and not one.first]
    return [one for one in beside if 0 <= first.start - one.end <= 1 or 0 <= one.start - last.end <= 1]


def _unit(place: Place) -> str:
    """What a number counts: the word behind it, or the month that it is a day of."""
    after = place.words[place.found.stop : place.found.stop + 2]
    if len(after) == 2 and after[0].text in _CLASSIFIERS:
        after = after[1:]
    if not after or after[0].kind in (*QUANTITIES, Kind.name) or is_empty(after[0]):
        return ""
    return after[0].key


def _is_spelling(old: Sequence[Word], new: Sequence[Word]) -> bool:
    """Whether two values are one word, written in two ways."""
    one, other = ("".join(word.text for word in words).casefold() for words in (old, new))
    return min(len(one), len(other)) >= 4 and one != other and ratio(one, other) >= _SPELLING


def _bare(text: str) -> str:
    return re.sub(r"['’]s?$", "", text)


def _is_dictionary_word(place: Place) -> bool:
    """Whether what was found is a common word of Chinese, or a part of one."""
    run, start, end = _run(place)
    if run[start] in _OF_NAMES:
        return False
    at = 0
    for word in _segmented(run):
        if at < end and start < at + len(word):
            return len(word) > 1
        at += len(word)
    return False


def _run(place: Place) -> tuple[str, int, int]:
    """The characters that stand side by side around what was found, and where it is in them."""
    first, last = place.found.start, place.found.stop - 1
    while first > 0 and adjoin(place.words[first - 1], place.words[first]):
        first -= 1
    while last + 1 < len(place.words) and adjoin(place.words[last], place.words[last + 1]):
        last += 1
    run = "".join(word.text for word in place.words[first : last + 1])
    start = sum(len(word.text) for word in place.words[first : place.found.start])
    return run, start, start + sum(len(place.words[at].text) for at in place.found)


@cache
def _segmented(run: str) -> tuple[str, ...]:
    from icu4py.breakers import WordBreaker  # few texts need it

    return tuple(WordBreaker(run, "zh"))
