"""Numbers, amounts and times in the words of a sentence, however they are written.

``£9``, ``9 pounds``, ``nine pounds`` and ``九镑`` are one amount; ``half past nine``, ``9:30`` and ``九点半``
one time of day, whether in the morning or the evening; ``half an hour``, ``30 minutes`` and ``半小时`` one
duration; ``周一`` and ``星期一`` one day; ``1,140`` and ``eleven hundred and forty`` one number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from smartwriter.meaning.stems import stem


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


_SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_SMALL += " sixteen seventeen eighteen nineteen"
_ONES = {word: value for value, word in enumerate(_SMALL.split())}
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * value for value, word in enumerate(_ROUND.split(), 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_NTH = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
_NTH += " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
_ORDINALS = {word: value for value, word in enumerate(_NTH.split(), 1)}
_ORDINALS |= {"thirtieth": 30, "thirty-first": 31}
_ORDINALS |= {f"twenty-{word}": 20 + value for word, value in _ORDINALS.items() if value < 10}
_IN_A_YEAR = "january february march april may june july august september october november december"
_MONTHS = {word: value for value, word in enumerate(_IN_A_YEAR.split(), 1)}
_HAN_DIGITS = {word: value for value, word in enumerate("零一二三四五六七八九")} | {"两": 2, "兩": 2, "〇": 0}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000, "亿": 100_000_000}
_SCALES_OF_DIGITS = {"thousand": 1000, "million": 1_000_000, "万": 10_000, "萬": 10_000, "亿": 100_000_000}
_MONEY = {
    "£": "£ pound quid 镑 鎊 英镑",
    "$": "$ dollar 美元",
    "€": "€ euro 欧元",
    "¥": "¥ ￥ yuan 元 块 塊 块钱 元钱",
    "%": "% ％ percent",
    "p": "p penni penc",
    "c": "cent",
}
_SIGN_OF = {unit: sign for sign, units in _MONEY.items() for unit in units.split()}
_BEFORE = ("£", "$", "€", "¥", "￥")
_LONGEST_UNIT = 2  # words or characters
_HOURS = ("点", "點", "时", "時")
_WEEK = {"一": "1", "二": "2", "三": "3", "四": "4", "五": "5", "六": "6", "日": "7", "天": "7"}
_MINUTES_IN = {"minute": 1.0, "hour": 60.0, "分钟": 1.0, "小时": 60.0, "钟头": 60.0}
_MINUTES_IN |= dict.fromkeys(["day", "天"], 1440.0) | dict.fromkeys(["week", "星期", "周"], 7 * 1440.0)
_MINUTES_IN |= dict.fromkeys(["month", "月"], 30 * 1440.0) | {"fortnight": 14 * 1440.0}
_PHRASES = {
    ("half", "an", "hour"): 30.0,
    ("an", "hour", "and", "a", "half"): 90.0,
    ("a", "quarter", "of", "an", "hour"): 15.0,
    ("three", "quarters", "of", "an", "hour"): 45.0,
    ("an", "hour"): 60.0,
    ("a", "fortnight"): 14 * 1440.0,
    ("半", "年"): 180 * 1440.0,
    ("半", "小", "时"): 30.0,
    ("半", "个", "小", "时"): 30.0,
    ("半", "个", "钟", "头"): 30.0,
}
_CLOCK_WORDS = ("o'clock", "o’clock")
_HALVES = ("am", "pm", "a.m", "p.m")
_MOST = 10**18
"""What is counted with is less; a longer row of digits or scales is only looked at as it is spelled."""
_DIGITAL = re.compile(r"(\d{1,2})[:：.](\d{2})")


def decimal(token: str) -> str | None:
    """A number in digits, as all spell it alike; None for what is none."""
    plain = unicodedata.normalize("NFKC", token).replace(",", "").replace("_", "")
    if re.fullmatch(r"\d+(?:\.\d+)?", plain):
        return plain.lstrip("0").removesuffix(".0") or "0"
    return None


def joined(words: Sequence[Word]) -> Iterator[Word]:
    """The words with each number, amount and time as one."""
    at = 0
    while at < len(words):
        rules = (_amount, _date, _duration, _clock, _bare_number)
        word, at = next(filter(None, (rule(words, at) for rule in rules)), (words[at], at + 1))
        yield word


def _made(words: Sequence[Word], at: int, end: int, key: str, kind: Kind) -> tuple[Word, int]:
    text = words[at].text
    for before, word in zip(words[at:end], words[at + 1 : end], strict=False):
        text += " " * (word.start > before.end) + word.text
    return Word(text, key, kind, words[at].start, words[end - 1].end), end


def _texts(words: Sequence[Word], at: int, count: int) -> list[str]:
    return [word.text.casefold() for word in words[at : at + count]]


# Numbers ----------------------------------------------------------------------------------------


def _bare_number(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    if (found := _number(words, at)) is None:
        return None
    value, end = found
    return _made(words, at, end, f"#{value}", Kind.number)


def _number(words: Sequence[Word], at: int) -> tuple[str, int] | None:
    """A number in digits, in English words or in Chinese characters, and where it ends."""
    if at >= len(words):
        return None
    if words[at].kind is Kind.number:
        return _in_digits(words, at)
    if words[at].kind is Kind.character:
        return _in_han(words, at)
    return _in_english(words, at)


def _whole(number: tuple[str, int] | None) -> int:
    """The value of a whole number; -1 for any other, and for none."""
    if number is None or not number[0].isdecimal() or len(number[0]) > len(str(_MOST)):
        return -1
    return int(number[0])


def _in_digits(words: Sequence[Word], at: int) -> tuple[str, int]:
    value = words[at].key.removeprefix("#")
    for scale in _texts(words, at + 1, 1):
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
        value, scale = _spelled(text), _SCALES.get(text)
        if value is not None and _continues(current, value, end == at):
            current += value
        elif scale and current < _MOST and (end > at or _texts(words, at - 1, 1) == ["a"]):
            current = max(current, 1) * scale
            total, current = (total, current) if scale == 100 else (total + current, 0)
        elif not (text == "and" and end > at and _spelled(*_texts(words, end + 1, 1) or [""]) is not None):
            break
        end += 1
    return (str(total + current), end) if end > at else None


def _continues(current: int, value: int, first: bool) -> bool:
    """Whether a spelled number goes on with a value: a hundred with five, twenty with one."""
    return first or current % 100 == 0 or (current % 10 == 0 and value < 10 <= current % 100)


def _spelled(text: str) -> int | None:
    tens, _, ones = text.partition("-")
    if ones:
        return _TENS[tens] + _ONES[ones] if tens in _TENS and _ONES.get(ones, 10) < 10 else None
    return _ONES.get(text, _TENS.get(text))


# Amounts ----------------------------------------------------------------------------------------


def _amount(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """A number with its money or per cent, on either side."""
    if words[at].text in _BEFORE and (found := _number(words, at + 1)):
        return _made(words, at, found[1], f"{_SIGN_OF[words[at].text]}{found[0]}", Kind.amount)
    if _texts(words, at, 3) == ["百", "分", "之"] and (found := _number(words, at + 3)):
        return _made(words, at, found[1], f"%{found[0]}", Kind.amount)
    if (found := _number(words, at)) is None:
        return None
    value, end = found
    if (
        _texts(words, end, 1) in (["块"], ["塊"])
        and (tenths := _number(words, end + 1))
        and len(tenths[0]) == 1
    ):
        return _made(words, at, tenths[1], f"¥{value}.{tenths[0]}", Kind.amount)
    if _texts(words, end, 2) == ["per", "cent"]:
        return _made(words, at, end + 2, f"%{value}", Kind.amount)
    for length in range(_LONGEST_UNIT, 0, -1):
        unit = "".join(_texts(words, end, length))
        if end + length <= len(words) and (sign := _SIGN_OF.get(unit) or _SIGN_OF.get(stem(unit))):
            return _made(words, at, end + length, f"{sign}{value}", Kind.amount)
    return None


# Dates ------------------------------------------------------------------------------------------


def _date(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """A day of a month: 3 April, the third of April, April 3rd, 四月三日, 三月初八."""
    if words[at].kind is Kind.name and (month := _MONTHS.get(words[at].text.casefold())):
        found = _ordinal(words, at + 1) or _number(words, at + 1)
        return _day(words, at, month, found) if found else None
    found = _ordinal(words, at) or _number(words, at)
    if found is None:
        return None
    end = found[1] + (_texts(words, found[1], 1) == ["of"])
    if (
        end < len(words)
        and words[end].kind is Kind.name
        and (month := _MONTHS.get(words[end].text.casefold()))
    ):
        return _day(words, at, month, (found[0], end + 1))
    if _texts(words, end, 1) == ["月"]:
        end += 1 + (_texts(words, end + 1, 1) == ["初"])
        return _day(words, at, _whole(found), _number(words, end))
    return None


def _day(words: Sequence[Word], at: int, month: int, day: tuple[str, int] | None) -> tuple[Word, int] | None:
    if day is None or not (1 <= _whole(day) <= 31 and 1 <= month <= 12):
        return None
    end = day[1] + (_texts(words, day[1], 1) in (["日"], ["号"], ["號"]))
    return _made(words, at, end, f"@{month}-{day[0]}", Kind.date)


def _ordinal(words: Sequence[Word], at: int) -> tuple[str, int] | None:
    text = "".join(_texts(words, at, 1))
    if match := re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)", text):
        return match[1], at + 1
    return (str(_ORDINALS[text]), at + 1) if text in _ORDINALS else None


# Durations --------------------------------------------------------------------------------------


def _duration(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """So many minutes or hours: 30 minutes, a thirty-minute walk, half an hour, 半小时, 一个半小时."""
    for phrase, minutes in _PHRASES.items():
        if _texts(words, at, len(phrase)) == list(phrase):
            return _minutes(words, at, at + len(phrase), minutes)
    number, dash, unit = words[at].text.casefold().rpartition("-")
    if dash and unit in _MINUTES_IN and (value := decimal(number) or _text_of(_spelled(number))):
        return _minutes(words, at, at + 1, float(value) * _MINUTES_IN[unit])
    return _counted(words, at)


def _counted(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    if (found := _number(words, at)) is None:
        return None
    value, end = float(found[0]), found[1]
    counted = _texts(words, end, 1) == ["个"]
    end += counted
    if _texts(words, end, 1) == ["半"]:
        value, end = value + 0.5, end + 1
    if not counted and _texts(words, end, 1) == ["月"]:  # of a date
        return None
    for length in (2, 1):
        unit = "".join(_texts(words, end, length)).removesuffix("s")
        if end + length <= len(words) and unit in _MINUTES_IN:
            return _minutes(words, at, end + length, value * _MINUTES_IN[unit])
    return None


def _minutes(words: Sequence[Word], at: int, end: int, minutes: float) -> tuple[Word, int]:
    return _made(words, at, end, f"~{minutes:g}", Kind.duration)


def _text_of(value: int | None) -> str | None:
    return None if value is None else str(value)


# Times ------------------------------------------------------------------------------------------


def _clock(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """A time of day: 9:30, half past nine, quarter to ten, ten o'clock, 九点半, 9 点 30 分."""
    for rule in (_weekday, _fraction_of_hour, _minutes_to_hour, _digital):
        if found := rule(words, at):
            return found
    number = _number(words, at)
    if number is None or not 0 <= (hour := _whole(number)) <= 24:
        return None
    end = number[1]
    after = "".join(_texts(words, end, 1))
    if after in _CLOCK_WORDS or after in _HALVES:
        return _time(words, at, end + (after in _CLOCK_WORDS), hour, 0)
    return _han_clock(words, at, end + 1, hour) if after in _HOURS else None


def _fraction_of_hour(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    texts = _texts(words, at, 2)
    if texts[0] not in ("half", "quarter") or texts[1:] not in (["past"], ["to"]):
        return None
    if (found := _number(words, at + 2)) is None or (hour := _whole(found)) < 0:
        return None
    minutes = {"half": 30, "quarter": 15}[texts[0]]
    if texts[1] == "to":
        hour, minutes = hour - 1, 60 - minutes
    return _made(words, at, found[1], f"@{hour}:{minutes:02}", Kind.time)


def _weekday(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    texts = [word.text for word in words[at : at + 3]]
    length = 2 if texts[:2] in (["星", "期"], ["礼", "拜"]) else 1 if texts[:1] in (["周"], ["週"]) else 0
    if not length or len(texts) <= length or texts[length] not in _WEEK:
        return None
    return _made(words, at, at + length + 1, f"@day{_WEEK[texts[length]]}", Kind.time)


def _minutes_to_hour(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """Twenty to ten, five past six, ten minutes to eight."""
    if (found := _number(words, at)) is None or (minutes := _whole(found)) < 0:
        return None
    end = found[1] + (_texts(words, found[1], 1) == ["minutes"])
    direction = _texts(words, end, 1)
    number = _number(words, end + 1) if direction in (["to"], ["past"]) else None
    if number is None or not 0 < (hour := _whole(number)) <= 12 or minutes not in range(5, 60, 5):
        return None  # eight to ten is a span
    past = minutes if direction == ["past"] else 60 - minutes
    return _time(words, at, number[1], hour - (direction == ["to"]), past)


def _digital(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """One with its minutes in digits; the colon may be a word of its own."""
    for length in (1, 3):
        match = _DIGITAL.fullmatch("".join(_texts(words, at, length)))
        if match and int(match[1]) <= 24 and int(match[2]) < 60 and at + length <= len(words):
            return _time(words, at, at + length, int(match[1]), int(match[2]))
    return None


def _han_clock(words: Sequence[Word], at: int, end: int, hour: int) -> tuple[Word, int]:
    if _texts(words, end, 1) == ["半"]:
        return _time(words, at, end + 1, hour, 30)
    if (found := _number(words, end)) and 0 <= (minutes := _whole(found)) < 60:
        stop = found[1] + (_texts(words, found[1], 1) == ["分"])
        return _time(words, at, stop, hour, minutes)
    return _time(words, at, end, hour, 0)


def _time(words: Sequence[Word], at: int, end: int, hour: int, minutes: int) -> tuple[Word, int]:
    end += "".join(_texts(words, end, 1)) in _HALVES
    return _made(words, at, end, f"@{hour if hour <= 12 else hour - 12}:{minutes:02}", Kind.time)
