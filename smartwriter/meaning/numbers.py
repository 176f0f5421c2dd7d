"""Numbers in the words of a sentence, in digits, in English words and in Chinese characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Kind(str, Enum):
    number = "number"
    amount = "amount"
    """A number of money or per cent: it stands for itself."""
    time = "time"
    """Of the day, or a day of the week in Chinese."""
    duration = "duration"
    date = "date"
    """A day of a month."""
    name = "name"
    """A word in capitals of which it is not known that only its place in the sentence made it so."""
    word = "word"
    character = "character"
    """Of Chinese, Japanese or Korean."""
    mark = "mark"


@dataclass(frozen=True)
class Word:
    """One word, number or character of a sentence."""

    text: str
    key: str
    """The same for all that mean the same."""
    kind: Kind
    start: int
    """In characters of the text that was read; with ``end``."""
    end: int
    first: bool = False
    """It begins a sentence, so that its capital letter says nothing."""


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_ONES = {word: value for value, word in enumerate(_SMALL.split())}
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * value for value, word in enumerate(_ROUND.split(), 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_HAN_DIGITS = {word: value for value, word in enumerate("零一二三四五六七八九")} | {"两": 2, "兩": 2, "〇": 0}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000, "亿": 100_000_000}
_SCALES_OF_DIGITS = {"thousand": 1000, "million": 1_000_000, "万": 10_000, "萬": 10_000, "亿": 100_000_000}
_MOST = 10**18
"""What is counted with is less; a longer row of digits or scales is only looked at as it is spelled."""


def decimal(token: str) -> str | None:
    """A number in digits, as all spell it alike; None for what is none."""
    plain = unicodedata.normalize("NFKC", token).replace(",", "").replace("_", "")
    if re.fullmatch(r"\d+(?:\.\d+)?", plain):
        return plain.lstrip("0").removesuffix(".0") or "0"
    return None


def made_of(words: Sequence[Word], at: int, end: int, key: str, kind: Kind) -> tuple[Word, int]:
    text = words[at].text
    for before, word in zip(words[at:end], words[at + 1 : end], strict=False):
        text += " " * (word.start > before.end) + word.text
    return Word(text, key, kind, words[at].start, words[end - 1].end), end


def texts_at(words: Sequence[Word], at: int, count: int) -> list[str]:
    return [word.text.casefold() for word in words[at : at + count]]


def number_at(words: Sequence[Word], at: int) -> tuple[str, int] | None:
    """A number in digits, in English words or in Chinese characters, and where it ends."""
    if at >= len(words):
        return None
    if words[at].kind is Kind.number:
        return _in_digits(words, at)
    if words[at].kind is Kind.character:
        return _in_han(words, at)
    return _in_english(words, at)


def whole_of(number: tuple[str, int] | None) -> int:
    """The value of a whole number; -1 for any other, and for none."""
    if number is None or not number[0].isdecimal() or len(number[0]) > len(str(_MOST)):
        return -1
    return int(number[0])


def _in_digits(words: Sequence[Word], at: int) -> tuple[str, int]:
    value = words[at].key.removeprefix("#")
    for scale in texts_at(words, at + 1, 1):
        if factor := _SCALES_OF_DIGITS.get(scale):
            scaled = float(value) * factor
            return (str(int(scaled)) if scaled.is_integer() else str(scaled)), at + 2
    return value, at + 1


def _in_han(words: Sequence[Word], at: int) -> tuple[str, int] | None:
    total = section = 0
    digit: int | None = None
    row = ""  # of digits alone: a year, a telephone number
    end = at
    while end < len(words) and (end == at or words[end].start == words[end - 1].end):
        character = words[end].text
        if character in _HAN_DIGITS:
            digit = _HAN_DIGITS[character]
            row += str(digit)
        elif max(total, section) >= _MOST:
            break
        elif (scale := _HAN_SCALES.get(character)) and scale < 10_000:
            section += (1 if digit is None else digit) * scale
            digit = None
        elif scale:
            total, section, digit = (total + section + (digit or 0)) * scale, 0, None
        else:
            break
        end += 1
    if end == at:
        return None
    if len(row) == end - at > 1:
        return row.lstrip("0") or "0", end
    return str(total + section + (digit or 0)), end


def _in_english(words: Sequence[Word], at: int) -> tuple[str, int] | None:
    total = current = 0
    end = at
    while end < len(words):
        text = words[end].text.casefold()
        value, scale = spelled_number(text), _SCALES.get(text)
        if value is not None and _continues(current, value, end == at):
            current += value
        elif scale and current < _MOST and (end > at or texts_at(words, at - 1, 1) == ["a"]):
            current = max(current, 1) * scale
            total, current = (total, current) if scale == 100 else (total + current, 0)
        elif not (
            text == "and" and end > at and spelled_number(*texts_at(words, end + 1, 1) or [""]) is not None
        ):
            break
        end += 1
    return (str(total + current), end) if end > at else None


def _continues(current: int, value: int, first: bool) -> bool:
    """Whether a spelled number goes on with a value: a hundred with five, twenty with one."""
    return first or current % 100 == 0 or (current % 10 == 0 and value < 10 <= current % 100)


def spelled_number(text: str) -> int | None:
    tens, _, ones = text.partition("-")
    if ones:
        return _TENS[tens] + _ONES[ones] if tens in _TENS and _ONES.get(ones, 10) < 10 else None
    return _ONES.get(text, _TENS.get(text))
