"""Lines that may contradict each other, by a rule that can be explained in a sentence.

Two lines belong together when both define the same term, or when at least :data:`ALIKE` of all their
words are in both. A defined term is what a line sets in bold, in “quotes”, 「brackets」 or 《title
marks》, or the words before its first colon, `` = ``, `` is ``, `` are ``, `` was ``, `` were ``,
`` means `` or ``是``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from smartwriter.text.sameness import same_words
from smartwriter.text.words import is_cjk, is_word, tokens

ALIKE = 0.5
"""Of the words that two lines have between them, as many as this are in both."""
MAX_TERM_WORDS = 6
MAX_TERM_CHARACTERS = 12
"""Of Chinese, Japanese and Korean. What is longer is a clause, and defines nothing."""

_MARKED = re.compile(r"\*\*(.+?)\*\*|“(.+?)”|「(.+?)」|《(.+?)》|\"(.+?)\"")
_SUBJECT = re.compile(
    r"(.+?)(?:\s*[:：]|\s=\s|\s(?:is|are|was|were|means)\s|(?<![还就但不可只总要都也才更])是)", re.IGNORECASE
)
_ARTICLE = re.compile(r"(?:the|a|an|our|my|his|her|their)\s+", re.IGNORECASE)
_NO_TERMS = (
    frozenset(
        ["it", "he", "she", "they", "we", "i", "you", "this", "that", "these", "those", "there", "here"]
    )
    | frozenset(
        ["what", "which", "who", "all", "some", "one", "nobody", "everybody", "nothing", "everything"]
    )
    | frozenset(["他", "她", "它", "他们", "她们", "我", "我们", "你", "这", "那", "这里", "那里"])
    | frozenset(["什么", "谁", "大家", "没有人", "所有人", "一切"])
)


@dataclass(frozen=True)
class Group:
    """Lines that are to be looked at together."""

    members: tuple[int, ...]
    """Which of the lines, from 0, in order."""
    why: str
    """A sentence."""


def groups(lines: Sequence[str]) -> list[Group]:
    """The lines that may contradict each other, each in one group at most."""
    together = list(range(len(lines)))  # the number of the group that each is in
    why: dict[int, str] = {}
    read = [_Read.of(line) for line in lines]
    for second in range(len(lines)):
        for first in range(second):
            if found := _reason(read[first], read[second]):
                one, other = sorted((together[first], together[second]))
                together = [one if group == other else group for group in together]
                why[one] = why.get(one) or why.pop(other, "") or found
                if one != other:
                    why.pop(other, None)
    members = {group: tuple(n for n, of in enumerate(together) if of == group) for group in why}
    return [Group(members[group], why[group]) for group in sorted(members)]


def reason(one: str, other: str) -> str:
    """Why two lines may contradict each other, as a sentence; empty when they do not, or are equal."""
    return _reason(_Read.of(one), _Read.of(other))


def defined(line: str) -> frozenset[str]:
    """The terms that a line defines, in lower case."""
    found = ["".join(match) for match in _MARKED.findall(line)]
    if subject := _SUBJECT.match(line.replace("*", "")):
        found.append(subject[1])
    terms = (_ARTICLE.sub("", same_words(term).strip(" .,;'\"“”「」《》，。；")) for term in found)
    return frozenset(term for term in terms if term and term not in _NO_TERMS and _is_short(term))


@dataclass(frozen=True)
class _Read:
    """A line, as far as it matters here."""

    key: str
    terms: frozenset[str]
    words: frozenset[str]

    @classmethod
    def of(cls, line: str) -> _Read:
        words = frozenset(token for token in tokens(same_words(line)) if is_word(token))
        return cls(same_words(line), defined(line), words)


def _reason(one: _Read, other: _Read) -> str:
    if one.key == other.key:
        return ""
    if shared := sorted(one.terms & other.terms):
        return f"They say something of the same term, “{shared[0]}”."
    common = len(one.words & other.words)
    if common and common >= ALIKE * len(one.words | other.words):
        return "They have most of their words in common."
    return ""


def _is_short(term: str) -> bool:
    found = [token for token in tokens(term) if is_word(token)]
    cjk = sum(map(is_cjk, found))
    return bool(found) and cjk <= MAX_TERM_CHARACTERS and len(found) - cjk <= MAX_TERM_WORDS
