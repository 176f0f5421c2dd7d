"""Where a text uses a value that a line of the memory has otherwise now.

A value is used where it stands in the sense that the line gave it: an amount or a name stands for itself; a
bare number, a time or a common word counts where the sentence around it shares words with the line. Case
matters for names, and parts of words are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from rapidfuzz.fuzz import ratio

from smartwriter.facts import Change, read, sentences
from smartwriter.quantities import Kind, Word
from smartwriter.words import spans

_STOP_WORDS = """
a an the this that these those there here it he she they we i you his her their our my your its him them
us me is are was were be been being am do doe did have has had will would shall should may might can could
must and or but not no nor so as if than then when while of in on at by to for from with without into onto
over under up down out off about after befor until till sinc dure per each everi all ani some one ha wa
thi call name say said now onli also just still yet veri too more most much mani who what which whose
where how never alway onc again becaus
"""  # as stems
_STOP = frozenset(_STOP_WORDS.split())
_FUNCTION = frozenset(
    "的了在是和与及或不也都就还又很太只把被让给对从到向往于而但若如则并且之其这那哪此个们着过地得吗呢吧啊嘛呀"
    "我你他她它有没无要会能可应该为以因所由每各某第"
)
"""Characters that by themselves tell nothing of what a sentence is about."""
_CALLED = ("叫", "名叫", "名为", "姓", "叫做", "叫作", "唤作")
_WORDS_TOO = """
may will mark rose june april august grace hope joy faith dawn bill jack frank art rich sunny summer
autumn winter spring monday tuesday wednesday thursday friday saturday sunday january february march july
september october november december pat rob sue ray gene dean guy drew iris ivy lily violet daisy ruby
amber crystal pearl olive basil sage ginger bob nick pete chuck wade reed forest brook river sky storm
"""
ALSO_WORDS = frozenset(_WORDS_TOO.split())
"""Names that are also words, or months and days: by themselves they may be either."""
_TIME_WORDS = (
    "in on since until till by from to last next this every during before after of early late mid around"
)
_OF_TIME = frozenset(_TIME_WORDS.split())
_SPELLING = 75.0
"""Of 100: how alike two spellings of a word are at least."""
_COMPLEMENT = ("for", "per", "a", "an", "each", "every", "on", "的")


@dataclass(frozen=True)
class Use:
    """A place where a text uses a value."""

    value: str
    """As the text has it."""
    sentence: str
    paragraph: int
    """From 1; 0 outside of all."""


class Text:
    """A text, read once to be asked of many changes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.sentences = [_Sentence(text, start, end) for start, end in sentences(text)]

    def use_of(self, change: Change) -> Use | None:
        """The first use of the old value of a change."""
        value = _Value(change)
        if not value.words:
            return None
        for number, sentence in enumerate(self.sentences):
            for found in value.found_in(sentence):
                around = self.sentences[max(0, number - 1) : number + 2]
                if value.is_meant(found, sentence, around):
                    return self._use(sentence, found)
        return None

    def statement_of(self, words: Sequence[Word]) -> Use | None:
        """The first sentence that says what another one says, in most of its own words."""
        wanted = content(words)
        if len(wanted) < 3:
            return None
        for sentence in self.sentences:
            if len(wanted & sentence.content) >= 0.6 * len(wanted):
                return self._use(sentence, range(len(sentence.words)))
        return None

    def _use(self, sentence: _Sentence, found: range) -> Use:
        start, end = sentence.words[found[0]].start, sentence.words[found[-1]].end
        return Use(self._text[start:end], sentence.text.strip(), self._paragraph(start))

    def _paragraph(self, at: int) -> int:
        return next((n for n, (start, end) in enumerate(self._spans, 1) if start <= at < end), 0)

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return spans(self._text)


class _Sentence:
    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text[start:end]
        shifted = read(self.text)
        self.words = [Word(w.text, w.key, w.kind, w.start + start, w.end + start, w.first) for w in shifted]

    @cached_property
    def content(self) -> frozenset[str]:
        return content(self.words)


def content(words: Sequence[Word]) -> frozenset[str]:
    """What tells of what a sentence is about: its words, and pairs of Chinese characters; no numbers."""
    found = {word.key for word in words if word.kind in (Kind.word, Kind.name) and word.key not in _STOP}
    for word, following in pairwise(words):
        if _adjoin(word, following) and not {word.text, following.text} & _FUNCTION:
            found.add(word.text + following.text)
    return frozenset(found)


class _Value:
    """The old value of a change, as it is looked for."""

    def __init__(self, change: Change) -> None:
        start, end = change.at, change.at + len(change.old)
        line = change.before
        while start < end and _is_empty(line[start]):
            start += 1
        while end > start and _is_empty(line[end - 1]):
            end -= 1
        self.words = line[start:end]
        self._line = line
        self._span = range(start, end)
        self._context = content([*line[:start]]) | content([*line[end:]])
        self.kind = _leading_kind(self.words)
        self._is_spelling = _is_spelling(self.words, change.new)

    # Finding -----------------------------------------------------------------------------------------

    def found_in(self, sentence: _Sentence) -> Iterator[range]:
        """Where the value stands in a sentence."""
        wanted = self._keys()
        for keys, offset, length in wanted:
            words = sentence.words
            for at in range(len(words) - len(keys) + 1):
                if all(self._is(one, words[at + n]) for n, one in enumerate(keys)):
                    yield range(at + offset, at + offset + length)

    def _keys(self) -> list[tuple[list[Word], int, int]]:
        """What to look for: the value; of a single character, the words that it makes with its neighbours."""
        own = list(self.words)
        if self.kind is not Kind.character or len(own) > 1:
            return [(own, 0, len(own))]
        found = []
        for before in self._line[self._span.start - 1 : self._span.start] if self._span.start else ():
            if _adjoin(before, own[0]) and before.text not in _FUNCTION:
                found.append(([before, *own], 0, 2))
        for after in self._line[self._span.stop : self._span.stop + 1]:
            if _adjoin(own[0], after) and after.text not in _FUNCTION:
                found.append(([*own, after], 0, 2))
        return found

    def _is(self, wanted: Word, word: Word) -> bool:
        if wanted.kind is Kind.name and word.kind in (Kind.name, Kind.word):
            mine, theirs = _bare(wanted.text), _bare(word.text)
            return mine == theirs or (theirs.isupper() and len(theirs) > 1 and mine.upper() == theirs)
        if wanted.kind in (Kind.number, Kind.amount, Kind.time):
            return wanted.key == word.key or (
                wanted.kind is Kind.time and wanted.key == f"@{word.key[1:]}:00"
            )
        if wanted.kind is Kind.word:  # another spelling is another word, another form is not
            return wanted.key == word.key
        return wanted.text == word.text

    # Judging -----------------------------------------------------------------------------------------

    def is_meant(self, found: range, sentence: _Sentence, around: Sequence[_Sentence]) -> bool:
        """Whether what was found has the sense that it has in the line."""
        same = len(self._context & content_without(sentence.words, found))
        near = len(self._context & frozenset().union(*(one.content for one in around)))
        share = same / len(self._context) if self._context else 1.0
        match self.kind:
            case Kind.amount:
                return same > 0 or not self._is_for_something_else(found, sentence.words)
            case Kind.time:
                return same >= 1 or near >= 2 or not self._context
            case Kind.number:
                return self._is_number_meant(found, sentence.words, same, near, share)
            case Kind.name:
                return self._is_name_meant(found, sentence.words, same, near)
            case Kind.character:
                return self._is_called() or len(self.words) > 2 or same >= 1 or near >= 2
            case _:
                common = same >= 1 and (share >= 0.3 or same >= 2)
                return self._is_spelling or len(self.words) > 1 or common

    def _is_for_something_else(self, found: range, words: Sequence[Word]) -> bool:
        """Whether an amount is that of a thing which the line does not speak of: £9 for a sandwich."""
        after = words[found.stop : found.stop + 4]
        if not after or after[0].text.casefold() not in _COMPLEMENT:
            return False
        things = content(after)
        return bool(things) and not things & content(self._line)

    def _is_number_meant(
        self, found: range, words: Sequence[Word], same: int, near: int, share: float
    ) -> bool:
        digits = self.words[0].key.lstrip("#")
        if "." in digits or (len(digits) >= 4 and not ("1800" <= digits <= "2100" and len(digits) == 4)):
            return True
        mine = _unit(self._line, self._span.stop)
        theirs = _unit(words, found.stop)
        if mine and theirs and mine != theirs:
            return False
        if mine and mine == theirs:
            return share >= 0.3 or same >= 2 or near >= 2
        return same >= 2 or share >= 0.5 or (same >= 1 and near >= 2)

    def _is_name_meant(self, found: range, words: Sequence[Word], same: int, near: int) -> bool:
        only = len(self.words) == 1
        name = _bare(self.words[0].text)
        if near or (same and not only):
            return not (only and name.casefold() in ALSO_WORDS and self._is_date(found, words))
        before = words[found.start - 1] if found.start else None
        after = words[found.stop] if found.stop < len(words) else None
        if only and name.casefold() in ALSO_WORDS:
            return not (words[found.start].first or self._is_date(found, words))
        if only and self.words[0].first and words[found.start].first:
            return False  # both are in capitals for their places only
        beside = [one for one in (before, after) if one and one.kind is Kind.name and not one.first]
        own = {word.text for word in self._line}
        return all(
            _bare(one.text) in own for one in beside if _touch(one, words[found.start], words[found.stop - 1])
        )

    def _is_date(self, found: range, words: Sequence[Word]) -> bool:
        before = words[found.start - 1] if found.start else None
        after = words[found.stop] if found.stop < len(words) else None
        return bool(
            (before and (before.text.casefold() in _OF_TIME or before.kind is Kind.number))
            or (after and after.kind is Kind.number)
        )

    def _is_called(self) -> bool:
        start = self._span.start - (len(self.words) == 1)  # found with the character before it
        return "".join(word.text for word in self._line[max(0, start - 2) : max(0, start)]).endswith(_CALLED)


def content_without(words: Sequence[Word], found: range) -> frozenset[str]:
    return content(words[: found.start]) | content(words[found.stop :])


def _leading_kind(words: Sequence[Word]) -> Kind | None:
    """The kind by which a value of several words is judged: that which says most."""
    kinds = [word.kind for word in words]
    for kind in (Kind.amount, Kind.name, Kind.time, Kind.number, Kind.character):
        if kind in kinds:
            return kind
    return Kind.word if kinds else None


def _is_spelling(old: Sequence[Word], new: Sequence[Word]) -> bool:
    """Whether two values are one word, written in two ways."""
    one, other = ("".join(word.text for word in words).casefold() for words in (old, new))
    return min(len(one), len(other)) >= 4 and one != other and ratio(one, other) >= _SPELLING


def _is_empty(word: Word) -> bool:
    """Whether a word says nothing by itself; one in capitals inside a sentence is a name."""
    if word.kind is Kind.name and (not word.first or word.text.casefold() in ALSO_WORDS):
        return False
    return word.text in _FUNCTION if word.kind is Kind.character else word.key in _STOP


def _adjoin(one: Word, other: Word) -> bool:
    """Whether two characters of Chinese stand side by side."""
    return one.kind is other.kind is Kind.character and one.end == other.start


def _unit(words: Sequence[Word], at: int) -> str:
    """What a number counts: the word behind it."""
    if at >= len(words):
        return ""
    word = words[at]
    return "" if word.kind in (Kind.number, Kind.mark) or word.key in _STOP else word.key


def _bare(text: str) -> str:
    return text.removesuffix("'s").removesuffix("’s").rstrip("'’")


def _touch(one: Word, first: Word, last: Word) -> bool:
    """Whether a word stands right beside others, with no more than a space between."""
    return 0 <= first.start - one.end <= 1 or 0 <= one.start - last.end <= 1
