"""How a text is cut into words and paragraphs, and counted, in any script.

A word is what a writer calls one: apostrophes, hyphens and combining marks inside it stay, so that
"don't" and "state-of-the-art" are one word each, as word processors count them, and so are "10:30" and
an address. In Chinese, Japanese and Korean every character is a word. Thai, Lao, Khmer and Burmese put
spaces between phrases only: their words are found by the dictionaries of ICU.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
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
# A letter of the scripts without spaces whose words ICU knows.
_UNSPACED = r"(?=[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])(?=[\p{L}\p{M}\u0e46\u0ec6\u17d7])"
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
    rf"|(?!{_CJK})(?!{_UNSPACED})(?=[\p{{L}}\p{{N}}])"
    r"(?!.\ufe0f?\u20e3)\X)"  # 1 with U+20E3 is an emoji, not a number
)
# What stays inside a word when letters stand on both sides. A digit holds its point, comma and colon, and a
# Hebrew abbreviation the double quote before its last letter.
_JOINT = (
    r"(?:['’.·_\-\u2010\u2011\u00ad\u05f3\u05f4](?![\p{M}\u200d])"
    r"|(?<=\d)[,:](?=\d)|(?<=\p{Hebrew}\p{M}*)\"(?=\p{Hebrew}))"
)
_WORD = rf"(?>{_LETTER}+(?:{_JOINT}{_LETTER}+)*)"
_PHRASE = rf"(?>(?:{_UNSPACED}\X)+)"

_TOKENS = regex.compile(rf"{_WORD}|{_PHRASE}|(?>(?:(?=\s)\X)+)|\X", regex.DOTALL)
# Stands where Markdown's marks inside a word were.
_GONE = "\0"
# A bare address counts as one word; its letters are ASCII, so Chinese right after it is not in it. That of a
# person is looked for at the start of its letters alone: at each of a million dashes it would take hours.
_ADDRESS = (
    r"(?:(?:https?|ftp)://|www\.(?=[A-Za-z0-9]))[!#-;=?-Z\\^-~]+"
    r"|(?<![A-Za-z0-9._%+\-])(?>[A-Za-z0-9._%+\-]+)@(?:[A-Za-z0-9\-]+\.)+[A-Za-z]{2,}"
)
_COUNTED = regex.compile(
    rf"(?P<cjk>(?={_CJK})\X)|{_ADDRESS}|(?P<phrase>{_PHRASE})"
    rf"|(?>{_LETTER}+(?:\0*(?:{_JOINT}\0*|(?<=\0)){_LETTER}+)*)",
    regex.DOTALL,
)
_CLUSTERS = regex.compile(r"\r\n|\X")
# Every character is a cluster in a text of these: simple letters, ASCII, kana, Han, syllables of Hangul,
# and their punctuation.
_ONE_BY_ONE = regex.compile(
    rf"[\x00-\x7f{_SIMPLE}\u2010-\u2027\u3000-\u3029\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff"
    r"\uac00-\ud7a3\uff01-\uff5e]*+"
)
_LINE_ENDS = regex.compile(r"\r\n|\r|\n")
_IS_CJK = regex.compile(_CJK)
_IS_WORD = regex.compile(rf"{_WORD}|{_CJK}|{_UNSPACED}", regex.DOTALL)
_HAS_PHRASES = regex.compile(_UNSPACED)

# What a reader of the finished page does not see: comments, tags, where links lead and what they are called
# in the text, marks of footnotes, the numbers of lists, the language of a code block. Where ``inside`` is
# found, the letters around it are still one word.
_UNSEEN = regex.compile(
    r"(?P<inside><!--.{0,5000}?-->"
    r"|</?(?:abbr|b|big|cite|code|del|dfn|em|i|ins|kbd|mark|q|s|small|span|strong|sub|sup|u|var|wbr)"
    r"(?:\s[^<>]{0,1000})?/?>)"
    r"|</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]{0,1000})?/?>"
    r"|(?<=\])\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*+\)"
    r"|(?<=[^\s\[\]]\])\[[^\[\]\n]{0,200}\](?![(\[])"
    r"|^[ \t]*\[(?!\^)[^\]\n]+\]:[ \t]*[!-~]+[ \t]*(?:[\"'(][^\r\n]*)?(?=[\r\n]|\Z)"
    r"|\[\^[^\]\s]+\]"
    r"|^[ \t>]*\d{1,9}[.)](?=[ \t])"
    r"|^[ \t>]*(?:`{3,}|~{3,})[^\r\n]*"
    r"|(?P<entity>&(?:[A-Za-z][A-Za-z0-9]{1,30}|\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6});)"
    r"|(?P<escape>\\(?=[!-/:-@\[-`{-~]))",
    regex.DOTALL | regex.MULTILINE,
)
# Marks of emphasis that come in pairs, within a line.
_EMPHASIS = regex.compile(r"(?P<mark>\*{1,3}|~~|`)(?=[^\s*~`])(?P<held>[^\r\n*`]{1,500}?)(?<=\S)(?P=mark)")

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
    if not _HAS_PHRASES.search(text):
        return found
    cut: list[str] = []
    for token in found:
        cut += _words_of(token) if _HAS_PHRASES.match(token) else [token]
    return cut


def _words_of(phrase: str) -> Iterator[str]:
    """The words of a phrase without spaces, none of which ends inside a user-perceived character."""
    from icu4py.breakers import WordBreaker  # few texts need it

    whole = {cluster.end() for cluster in regex.finditer(r"\X", phrase)}
    word = ""
    at = 0
    for part in WordBreaker(phrase, "th"):  # the script chooses the dictionary, the language nothing here
        word += part
        at += len(part)
        if at in whole:
            yield word
            word = ""
    if word:
        yield word


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
    for at, words in _lines(text, front_matter(text) or int(text.startswith("\ufeff"))):
        if not words or words.isspace():
            if start >= 0 and not fence:
                found.append((start, end))
                start = -1
            continue
        ends = False
        if fence:
            if ends := _closes(words, fence):
                fence = ""
        elif (sign := words.lstrip(" \t")[0]) in "#`~=-":  # most lines start with a letter
            opening = _FENCE.match(words) if sign in "`~" else None
            heading = _HEADING.match(words) is not None
            if start >= 0 and (opening or heading):
                found.append((start, end))
                start = -1
            fence = opening["marks"] if opening else ""
            ends = heading or (start >= 0 and _UNDERLINE.match(words) is not None)
        if start < 0:
            start = at
        end = at + len(words)
        if ends:
            found.append((start, end))
            start = -1
    if start >= 0:
        found.append((start, end))
    return found


def _lines(text: str, at: int) -> Iterator[tuple[int, str]]:
    """Each line from a place on, without its end, and where it starts."""
    if "\r" in text:
        for line in _LINE.finditer(text, at):
            yield line.start(), line.group().rstrip("\r\n")
        return
    for words in text[at:].split("\n"):  # several times as fast
        yield at, words
        at += len(words) + 1


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


@dataclass(frozen=True)
class Word:
    """One that counts, as a reader of the finished page sees it."""

    start: int
    """In characters of the text, with the marks that stand inside the word."""
    end: int
    text: str


def words_in(paragraph: str) -> list[Word]:
    """The words of a paragraph that count, in order."""
    found: list[Word] = []
    for match in _COUNTED.finditer(_seen(paragraph)):
        at = match.start()
        for part in _words_of(match.group()) if match["phrase"] else [match.group()]:
            found.append(Word(at, at + len(part), part.replace(_GONE, "")))
            at += len(part)
    return found


def _words(text: str) -> tuple[int, int]:
    """How many words between spaces, and how many characters of Chinese, Japanese and Korean."""
    spaced = cjk = 0
    for is_cjk, phrase in _COUNTED.findall(_seen(text[front_matter(text) :])):
        if is_cjk:
            cjk += 1
        else:
            spaced += sum(1 for _ in _words_of(phrase)) if phrase else 1
    return spaced, cjk


def _seen(text: str) -> str:
    """A text of the same length in which what a reader does not see is a space, or ``_GONE`` in a word."""
    return _EMPHASIS.sub(_unmarked, _UNSEEN.sub(_blank, text.replace(_GONE, " ")))


def _blank(found: regex.Match[str]) -> str:
    length = found.end() - found.start()
    if found["entity"]:
        letters = html.unescape(found["entity"])
        return letters + _GONE * (length - len(letters))
    return (_GONE if found["inside"] or found["escape"] else " ") * length


def _unmarked(found: regex.Match[str]) -> str:
    marks = _GONE * len(found["mark"])
    held = _EMPHASIS.sub(_unmarked, found["held"])
    return f"{marks}{held}{marks}"


def _characters(text: str) -> int:
    if _ONE_BY_ONE.fullmatch(text):
        return len(text) - text.count("\n") - text.count("\r")
    return len(_CLUSTERS.findall(text)) - len(_LINE_ENDS.findall(text))
