"""Words by which it is told what a sentence is about, and which say nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from smartwriter.meaning.numbers import Kind, Word

_STOP_WORDS = """
a an the this that these those there here it he she they we i you his her their our my your its him them
us me is are was were be been being am do doe did have has had will would shall should may might can could
must and or but not no nor so as if than then when while of in on at by to for from with without into onto
over under up down out off about after befor until till sinc dure per each everi all ani some one ha wa
thi call name say said now onli also just still yet veri too more most much mani who what which whose
where how never alway onc again becaus
"""  # as stems
_STOP = frozenset(_STOP_WORDS.split())
FUNCTION = frozenset(
    "的了在是和与及或不也都就还又很太只把被让给而但若如则并且之其这那哪个们着吗呢吧啊嘛呀我你他她它有没无为由"
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
_MONTHS = "january february march april may june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
DATES = frozenset([*_MONTHS.split(), *_DAYS.split(), *(f"{day}s" for day in _DAYS.split())])


def content(words: Sequence[Word]) -> frozenset[str]:
    """What tells of what a sentence is about: its words, and pairs of Chinese characters; no numbers."""
    found = {word.key for word in words if word.kind in (Kind.word, Kind.name) and word.key not in _STOP}
    for word, following in pairwise(words):
        if adjoin(word, following) and not {word.text, following.text} & FUNCTION:
            found.add(word.text + following.text)
    return frozenset(found)


def is_empty(word: Word) -> bool:
    """Whether a word says nothing by itself; one in capitals inside a sentence is a name."""
    if word.kind is Kind.name and (not word.first or word.text.casefold() in ALSO_WORDS):
        return False
    return word.text in FUNCTION if word.kind is Kind.character else word.key in _STOP


def adjoin(one: Word, other: Word) -> bool:
    """Whether two characters of Chinese stand side by side."""
    return one.kind is other.kind is Kind.character and one.end == other.start


def of_time(word: Word) -> bool:
    """Whether a word before a name makes it that of a month or a day."""
    return word.text.casefold() in _OF_TIME or word.kind is Kind.number
