"""How a text is cut into words and paragraphs, and counted, in any script.

A word is what a writer calls one: apostrophes, hyphens and combining marks inside it stay, so that
"don't" and "state-of-the-art" are one word each, as word processors count them. In Chinese, Japanese
and Korean every character is a word. Scripts that put spaces between phrases only, such as Thai,
are cut at those spaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

WORDS_PER_MINUTE: Final = 240
"""Silent reading of English prose: averaged over nearly two hundred studies, grown-ups read about this
many words of it a minute; fiction goes a little faster."""
CJK_PER_MINUTE: Final = 400
"""Silent reading of Chinese: a round figure from the middle of what studies and publishers report, which
is from 300 characters a minute to above 500. Kana and Hangul are taken to go as fast."""

# A letter of Chinese, Japanese or Korean. The two long-vowel marks belong to no single script.
_CJK = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\u30fc\uff70]"
# Letters that no neighbour in this set or in ASCII joins to one user-perceived character: of Latin, Greek,
# Cyrillic, Hebrew and Arabic.
_SIMPLE = (
    r"A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0388-\u03ce\u0400-\u0481\u048a-\u052f"
    r"\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3"
)
# The end of one grapheme cluster is the start of the next, so a pattern made of whole clusters (\X) never
# cuts one. Runs of simple letters are by far faster without \X.
_LETTER = (
    rf"(?:[{_SIMPLE}]+(?=[\x00-\x7f{_SIMPLE}]|\Z)"
    rf"|(?!{_CJK})(?=[\p{{L}}\p{{N}}])(?!.\ufe0f?\u20e3)\X)"  # 1 with U+20E3 is an emoji, not a number
)
# What stays inside a word when letters stand on both sides. A digit holds its point and comma, and a
# Hebrew abbreviation the double quote before its last letter.
_JOINT = (
    r"(?:['’.·_\-\u2010\u2011\u00ad\u05f3\u05f4](?![\p{M}\u200d])"
    r"|(?<=\d),(?=\d)|(?<=\p{Hebrew}\p{M}*)\"(?=\p{Hebrew}))"
)
_WORD = rf"(?>{_LETTER}+(?:{_JOINT}{_LETTER}+)*)"

_TOKENS = regex.compile(rf"{_WORD}|(?>(?:(?=\s)\X)+)|\X", regex.DOTALL)
# A bare address counts as one word; its letters are ASCII, so Chinese right after it is not in it.
_COUNTED = regex.compile(rf"(?P<cjk>(?={_CJK})\X)|https?://[!#-;=?-Z\\^-~]+|{_WORD}", regex.DOTALL)
_CLUSTERS = regex.compile(r"\r\n|\X")
# Every character is a cluster in a text of these: simple letters, ASCII, kana, Han, syllables of Hangul,
# and their punctuation.
_ONE_BY_ONE = regex.compile(
    rf"[\x00-\x7f{_SIMPLE}\u2010-\u2027\u3000-\u3029\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff"
    r"\uac00-\ud7a3\uff01-\uff5e]*+"
)
_LINE_ENDS = regex.compile(r"\r\n|\r|\n")
_IS_CJK = regex.compile(_CJK)
_IS_WORD = regex.compile(rf"{_WORD}|{_CJK}", regex.DOTALL)

# What a reader of the finished page does not see: comments, tags, where links lead, marks of footnotes, the
# numbers of lists, the language of a code block.
_UNSEEN = regex.compile(
    r"<!--.{0,5000}?-->"
    r"|</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]{0,1000})?/?>"
    r"|(?<=\])\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*+\)"
    r"|^[ \t]*\[(?!\^)[^\]\n]+\]:[ \t]*[!-~]+[ \t]*(?:[\"'(][^\r\n]*)?(?=[\r\n]|\Z)"
    r"|\[\^[^\]\s]+\]"
    r"|^[ \t>]*\d{1,9}[.)](?=[ \t])"
    r"|^[ \t>]*(?:`{3,}|~{3,})[^\r\n]*",
    regex.DOTALL | regex.MULTILINE,
)

_LINE = regex.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_FRONT_MATTER = regex.compile(
    # A blank line after the first mark makes it a rule across the page instead.
    r"\ufeff?---[ \t]*(?:\r\n|\r|\n)(?![ \t]*[\r\n])"
    r"(?:(?!---[ \t]*(?:[\r\n]|\Z))[^\r\n]*(?:\r\n|\r|\n))*+---[ \t]*(?:\r\n|\r|\n|\Z)"
)
_HEADING = regex.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_UNDERLINE = regex.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_FENCE = regex.compile(r"[ \t]*(?P<marks>`{3,}(?=[^`]*$)|~{3,})")


def tokens(text: str) -> list[str]:
    """A text in pieces that, joined, are the text again.

    Each is a word, a run of white space, or one user-perceived character: of Chinese, Japanese or
    Korean, of punctuation, or an emoji however many code points it is made of.
    """
    found: list[str] = _TOKENS.findall(text)
    return found


def is_word(token: str) -> bool:
    """Whether a token counts as a word."""
    if token.isascii():  # no more than a quicker way to the same
        return token[:1].isalnum()
    return _IS_WORD.match(token) is not None


def is_cjk(token: str) -> bool:
    """Whether a token is a character of Chinese, Japanese or Korean; their punctuation is not."""
    return _IS_CJK.match(token) is not None


def front_matter(text: str) -> int:
    """Length of the YAML block at the start, with the end of its closing line; 0 when there is none."""
    found = _FRONT_MATTER.match(text)
    return found.end() if found else 0


def spans(text: str) -> list[tuple[int, int]]:
    """Where each paragraph starts and ends, in characters, without the end of its last line.

    A paragraph is what stands between blank lines; a heading is one, and so is a fenced code block
    with all its blank lines. The front matter is none.
    """
    found: list[tuple[int, int]] = []
    start = end = -1  # of the paragraph that is being read; start is -1 between paragraphs
    fence = ""

    def close() -> None:
        nonlocal start
        if start >= 0:
            found.append((start, end))
        start = -1

    first = front_matter(text) or (1 if text.startswith("\ufeff") else 0)
    for line in _LINE.finditer(text, first):
        at, words = line.start(), line.group().rstrip("\r\n")
        blank = not words.strip()
        if fence:
            if not blank:
                end = at + len(words)
            if _closes(words, fence):
                fence = ""
                close()
            continue
        if blank:
            close()
            continue
        opening = _FENCE.match(words)
        heading = _HEADING.match(words)
        if opening or heading:
            close()
        underline = start >= 0 and _UNDERLINE.match(words)
        if start < 0:
            start = at
        end = at + len(words)
        if opening:
            fence = opening["marks"]
        elif heading or underline:
            close()
    close()
    return found


def _closes(line: str, fence: str) -> bool:
    marks = line.strip(" \t")
    return len(marks) >= len(fence) and not marks.strip(fence[0])


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a Markdown text, as ``spans`` finds them."""
    return [text[start:end] for start, end in spans(text)]


@dataclass(frozen=True)
class Counts:
    words: int
    """Each character of Chinese, Japanese and Korean is one. Markdown's marks and addresses are none."""
    characters: int
    """User-perceived ones, Markdown's marks among them, line ends not."""
    paragraphs: int
    reading_s: float
    """Seconds that a practised reader takes."""


def count(text: str) -> Counts:
    """What a text amounts to, its front matter left out."""
    spaced, cjk = _words(text)
    body = text[front_matter(text) :].removeprefix("\ufeff")
    return Counts(
        words=spaced + cjk,
        characters=_characters(body),
        paragraphs=len(spans(text)),
        reading_s=round(60 * (spaced / WORDS_PER_MINUTE + cjk / CJK_PER_MINUTE), 1),
    )


def count_words(text: str) -> int:
    """``count(text).words``, and no more work than that."""
    return sum(_words(text))


def _words(text: str) -> tuple[int, int]:
    """How many words between spaces, and how many characters of Chinese, Japanese and Korean."""
    seen = _UNSEEN.sub(" ", text[front_matter(text) :])
    found = _COUNTED.findall(seen)  # the text of the one group: empty for a word between spaces
    cjk = sum(map(bool, found))
    return len(found) - cjk, cjk


def _characters(text: str) -> int:
    if _ONE_BY_ONE.fullmatch(text):
        return len(text) - text.count("\n") - text.count("\r")
    return len(_CLUSTERS.findall(text)) - len(_LINE_ENDS.findall(text))
