"""Where a text uses a value that a line of the memory has otherwise now.

A value is used where it stands in the sense that the line gave it (``sense``): an amount or a name stands for
itself; a bare number, a time or a common word counts where the sentence around it shares words with the line.
Case matters for names, and parts of words are none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from smartwriter.meaning.content import content
from smartwriter.meaning.facts import Change, read, sentences
from smartwriter.meaning.numbers import Kind, Word
from smartwriter.meaning.sense import Place, Value, values_of
from smartwriter.text.words import spans

_MOST_OF = 0.6
_LEAST_WORDS = 3
"""Of a statement: what has fewer words of its own is met anywhere."""


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
        self._sentences = [_Sentence(text, start, end) for start, end in sentences(text)]

    def use_of(self, change: Change, context: frozenset[str] = frozenset()) -> Use | None:
        """The first use of the old value of a change.

        :param context: what the other sentences of the line are about.
        """
        for value in values_of(change, context):
            for number in self._with(value):
                sentence, around = self._sentences[number], self._around(number)
                for found in value.found_in(sentence.words):
                    if value.is_meant(Place(sentence.words, found, around)):
                        return self._use(sentence, found)
        return None

    def statement_of(self, words: Sequence[Word], *, in_one: bool = False) -> Use | None:
        """The first place that says what a sentence says, in most of its own words.

        :param in_one: in one sentence, all of its words but names; else two in a row may share them.
        """
        wanted = content(words)
        if in_one:
            wanted -= {word.key for word in words if word.kind is Kind.name}
        if not wanted or (len(wanted) < _LEAST_WORDS and not in_one):
            return None
        least = len(wanted) if in_one else _MOST_OF * len(wanted)
        for number, sentence in enumerate(self._sentences):
            said = sentence.content
            if number and not in_one:
                said |= self._sentences[number - 1].content
            names = {word.key for word in words if word.kind is Kind.name}
            if len(wanted & said) >= least and (wanted - names) & sentence.content:
                return self._use(sentence, range(len(sentence.words)))
        return None

    def phrase_of(self, phrase: str) -> Use | None:
        """The first place where a phrase stands to the letter, and is no part of a longer word."""
        for sentence in self._sentences:
            left = r"(?<![^\W_])" if phrase[0].isascii() else ""
            right = r"(?![^\W_])" if phrase[-1].isascii() else ""
            if found := re.search(f"{left}{re.escape(phrase)}{right}", sentence.text):
                start = sentence.words[0].start if sentence.words else 0
                return Use(found[0], sentence.text.strip(), self._paragraph(start))
        return None

    def sequence_of(self, words: Sequence[Word]) -> Use | None:
        """The first place where words stand in the same order, with nothing between them."""
        wanted = [word.text for word in words]
        for sentence in self._sentences:
            texts = [word.text for word in sentence.words]
            for at in range(len(texts) - len(wanted) + 1):
                if texts[at : at + len(wanted)] == wanted:
                    return self._use(sentence, range(at, at + len(wanted)))
        return None

    def _with(self, value: Value) -> list[int]:
        """The sentences that may have a value: those with its first word, in any of its forms."""
        return sorted({number for key in value.first_keys() for number in self._at.get(key, ())})

    @cached_property
    def _at(self) -> dict[str, list[int]]:
        """In which sentences each word is, by its key."""
        found: dict[str, list[int]] = {}
        for number, sentence in enumerate(self._sentences):
            for key in {word.key for word in sentence.words}:
                found.setdefault(key, []).append(number)
        return found

    def _around(self, number: int) -> frozenset[str]:
        """What is spoken of around a sentence: in its paragraph, and close before and after it."""
        here = self._sentences[number]
        beside = self._sentences[max(0, number - 2) : number + 3]
        paragraph = self._paragraph(here.start)
        return frozenset().union(self._contents.get(paragraph, ()), *(one.content for one in beside))

    @cached_property
    def _contents(self) -> dict[int, frozenset[str]]:
        """What each paragraph is about, by its number."""
        found: dict[int, frozenset[str]] = {}
        for one in self._sentences:
            if paragraph := self._paragraph(one.start):
                found[paragraph] = found.get(paragraph, frozenset()) | one.content
        return found

    def _use(self, sentence: _Sentence, found: range) -> Use:
        start, end = sentence.words[found[0]].start, sentence.words[found[-1]].end
        return Use(self._text[start:end], sentence.text.strip(), self._paragraph(start))

    def _paragraph(self, at: int) -> int:
        found = bisect_right(self._starts, at)
        return found if found and at < self._spans[found - 1][1] else 0

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self._spans]

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return spans(self._text)


class _Sentence:
    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start = text[start:end], start
        self.words = [
            replace(word, start=word.start + start, end=word.end + start) for word in read(self.text)
        ]

    @cached_property
    def content(self) -> frozenset[str]:
        return content(self.words)
