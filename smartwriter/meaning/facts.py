"""What a sentence states that may change: numbers, amounts, times, names, and the words around them.

A sentence is read as a list of :class:`~smartwriter.meaning.numbers.Word`; two that mean the same
have the same ``key``, however they are written. Names keep their case, other words are reduced to their stem.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import regex
from rapidfuzz.distance import Indel

from smartwriter.meaning.numbers import Kind, Word, decimal
from smartwriter.meaning.quantities import joined
from smartwriter.meaning.stems import stem
from smartwriter.text.words import is_cjk, is_word, tokens

ALIKE = 0.3
"""Two sentences are versions of one when as much of their words, in order, is the same."""
QUANTITIES = (Kind.number, Kind.amount, Kind.time, Kind.duration, Kind.date)
# In scripts with spaces a sentence ends where what follows is no small letter.
_SENTENCE_END = regex.compile(
    r"(?<=[。！？；])[”’」』》）]*|(?<=[.!?;])[\"”’)\]]*\s+(?=[\"“‘(\[]*[^\p{Ll}\s])|\n+"
)
_ABBREVIATION = regex.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|St|No|vs|etc|approx|Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec|\p{Lu})\.$"
)


@dataclass(frozen=True)
class Change:
    """One value of a sentence that another sentence has otherwise."""

    old: tuple[Word, ...]
    """Never empty."""
    new: tuple[Word, ...]
    """Empty: nothing stands in its place."""
    before: tuple[Word, ...]
    """The whole sentence that it stood in."""
    at: int
    """Where ``old`` begins in ``before``."""


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence starts and ends, in characters; a line ends one."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text[max(0, match.start() - 12) : match.start()]):
            continue
        if text[start : match.start()].strip():
            yield start, match.start()
        start = match.end()
    if text[start:].strip():
        yield start, len(text)


def read(text: str) -> list[Word]:
    """The words of a text, without its marks."""
    found: list[Word] = []
    for start, end in sentences(text):
        words = [word for word in joined(_plain(text, start, end)) if word.kind is not Kind.mark]
        found += [replace(word, first=at == 0) for at, word in enumerate(words)]
    return found


def _plain(text: str, start: int, end: int) -> list[Word]:
    """Each word, character and mark by itself."""
    found = []
    at = start
    for token in tokens(text[start:end]):
        if token.strip():
            found.append(Word(token, _key(token), _kind(token), at, at + len(token)))
        at += len(token)
    return found


def _kind(token: str) -> Kind:
    if is_cjk(token):
        return Kind.character
    if not is_word(token):
        return Kind.mark
    if decimal(token) is not None:
        return Kind.number
    return Kind.name if token[0].isupper() or token[0].isdecimal() else Kind.word


def _key(token: str) -> str:
    if is_cjk(token) or not is_word(token):
        return unicodedata.normalize("NFKC", token)
    number = decimal(token)
    return stem(token) if number is None else f"#{number}"


# Changes ----------------------------------------------------------------------------------------


def likeness(one: Sequence[Word], other: Sequence[Word]) -> float:
    """From 0 to 1: how much of two sentences is the same, in order."""
    return Indel.normalized_similarity([word.key for word in one], [word.key for word in other])


def is_reordered(before: Sequence[Word], after: Sequence[Word]) -> bool:
    """Whether two versions have the same words, in another order."""
    return sorted(map(_exact, before)) == sorted(map(_exact, after))


def changes(before: Sequence[Word], after: Sequence[Word]) -> list[Change]:
    """The values that two versions of a sentence have differently."""
    one, other = [_exact(word) for word in before], [_exact(word) for word in after]
    if is_reordered(before, after):  # what is written and what is not changed places
        moved = [at for at in range(len(one)) if one[at] != other[at]]
        return [Change((before[at],), (after[at],), tuple(before), at) for at in moved]
    found = []
    for tag, start, end, new_start, new_end in SequenceMatcher(
        None, one, other, autojunk=False
    ).get_opcodes():
        if tag == "replace" and end - start == new_end - new_start and not _in_characters(before[start:end]):
            pairs = zip(range(start, end), after[new_start:new_end], strict=True)
            found += [Change((before[at],), (new,), tuple(before), at) for at, new in pairs]
        elif tag in ("replace", "delete"):
            found.append(
                Change(tuple(before[start:end]), tuple(after[new_start:new_end]), tuple(before), start)
            )
    return found


def _in_characters(words: Sequence[Word]) -> bool:
    return any(word.kind is Kind.character for word in words)


def _exact(word: Word) -> str:
    """As a line's author wrote it: a changed spelling is a change."""
    return word.key if word.kind in QUANTITIES else word.text
