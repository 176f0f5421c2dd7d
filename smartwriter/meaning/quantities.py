"""Numbers, amounts and times in the words of a sentence, however they are written.

``£9``, ``9 pounds``, ``nine pounds`` and ``九镑`` are one amount; ``half past nine``, ``9:30`` and ``九点半``
one time of day, whether in the morning or the evening; ``half an hour``, ``30 minutes`` and ``半小时`` one
duration; ``周一`` and ``星期一`` one day; ``1,140`` and ``eleven hundred and forty`` one number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smartwriter.meaning.numbers import (
    Kind,
    Word,
    decimal,
    made_of,
    number_at,
    spelled_number,
    texts_at,
    whole_of,
)
from smartwriter.meaning.stems import stem

_NTH = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
_NTH += " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
_ORDINALS = {word: value for value, word in enumerate(_NTH.split(), 1)}
_ORDINALS |= {"thirtieth": 30, "thirty-first": 31}
_ORDINALS |= {f"twenty-{word}": 20 + value for word, value in _ORDINALS.items() if value < 10}
_IN_A_YEAR = "january february march april may june july august september october november december"
_MONTHS = {word: value for value, word in enumerate(_IN_A_YEAR.split(), 1)}
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
_DIGITAL = re.compile(r"(\d{1,2})[:：.](\d{2})")


def joined(words: Sequence[Word]) -> Iterator[Word]:
    """The words with each number, amount and time as one."""
    at = 0
    while at < len(words):
        rules = (_amount, _date, _duration, _clock, _bare_number)
        word, at = next(filter(None, (rule(words, at) for rule in rules)), (words[at], at + 1))
        yield word


# Numbers ----------------------------------------------------------------------------------------


def _bare_number(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    if (found := number_at(words, at)) is None:
        return None
    value, end = found
    return made_of(words, at, end, f"#{value}", Kind.number)


# Amounts ----------------------------------------------------------------------------------------


def _amount(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """A number with its money or per cent, on either side."""
    if words[at].text in _BEFORE and (found := number_at(words, at + 1)):
        return made_of(words, at, found[1], f"{_SIGN_OF[words[at].text]}{found[0]}", Kind.amount)
    if texts_at(words, at, 3) == ["百", "分", "之"] and (found := number_at(words, at + 3)):
        return made_of(words, at, found[1], f"%{found[0]}", Kind.amount)
    if (found := number_at(words, at)) is None:
        return None
    value, end = found
    if (
        texts_at(words, end, 1) in (["块"], ["塊"])
        and (tenths := number_at(words, end + 1))
        and len(tenths[0]) == 1
    ):
        return made_of(words, at, tenths[1], f"¥{value}.{tenths[0]}", Kind.amount)
    if texts_at(words, end, 2) == ["per", "cent"]:
        return made_of(words, at, end + 2, f"%{value}", Kind.amount)
    for length in range(_LONGEST_UNIT, 0, -1):
        unit = "".join(texts_at(words, end, length))
        if end + length <= len(words) and (sign := _SIGN_OF.get(unit) or _SIGN_OF.get(stem(unit))):
            return made_of(words, at, end + length, f"{sign}{value}", Kind.amount)
    return None


# Dates ------------------------------------------------------------------------------------------


def _date(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """A day of a month: 3 April, the third of April, April 3rd, 四月三日, 三月初八."""
    if words[at].kind is Kind.name and (month := _MONTHS.get(words[at].text.casefold())):
        found = _ordinal(words, at + 1) or number_at(words, at + 1)
        return _day(words, at, month, found) if found else None
    found = _ordinal(words, at) or number_at(words, at)
    if found is None:
        return None
    end = found[1] + (texts_at(words, found[1], 1) == ["of"])
    if (
        end < len(words)
        and words[end].kind is Kind.name
        and (month := _MONTHS.get(words[end].text.casefold()))
    ):
        return _day(words, at, month, (found[0], end + 1))
    if texts_at(words, end, 1) == ["月"]:
        end += 1 + (texts_at(words, end + 1, 1) == ["初"])
        return _day(words, at, whole_of(found), number_at(words, end))
    return None


def _day(words: Sequence[Word], at: int, month: int, day: tuple[str, int] | None) -> tuple[Word, int] | None:
    if day is None or not (1 <= whole_of(day) <= 31 and 1 <= month <= 12):
        return None
    end = day[1] + (texts_at(words, day[1], 1) in (["日"], ["号"], ["號"]))
    return made_of(words, at, end, f"@{month}-{day[0]}", Kind.date)


def _ordinal(words: Sequence[Word], at: int) -> tuple[str, int] | None:
    text = "".join(texts_at(words, at, 1))
    if match := re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)", text):
        return match[1], at + 1
    return (str(_ORDINALS[text]), at + 1) if text in _ORDINALS else None


# Durations --------------------------------------------------------------------------------------


def _duration(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """So many minutes or hours: 30 minutes, a thirty-minute walk, half an hour, 半小时, 一个半小时."""
    for phrase, minutes in _PHRASES.items():
        if texts_at(words, at, len(phrase)) == list(phrase):
            return _minutes(words, at, at + len(phrase), minutes)
    number, dash, unit = words[at].text.casefold().rpartition("-")
    if dash and unit in _MINUTES_IN and (value := decimal(number) or _text_of(spelled_number(number))):
        return _minutes(words, at, at + 1, float(value) * _MINUTES_IN[unit])
    return _counted(words, at)


def _counted(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    if (found := number_at(words, at)) is None:
        return None
    value, end = float(found[0]), found[1]
    counted = texts_at(words, end, 1) == ["个"]
    end += counted
    if texts_at(words, end, 1) == ["半"]:
        value, end = value + 0.5, end + 1
    if not counted and texts_at(words, end, 1) == ["月"]:  # of a date
        return None
    for length in (2, 1):
        unit = "".join(texts_at(words, end, length)).removesuffix("s")
        if end + length <= len(words) and unit in _MINUTES_IN:
            return _minutes(words, at, end + length, value * _MINUTES_IN[unit])
    return None


def _minutes(words: Sequence[Word], at: int, end: int, minutes: float) -> tuple[Word, int]:
    return made_of(words, at, end, f"~{minutes:g}", Kind.duration)


def _text_of(value: int | None) -> str | None:
    return None if value is None else str(value)


# Times ------------------------------------------------------------------------------------------


def _clock(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """A time of day: 9:30, half past nine, quarter to ten, ten o'clock, 九点半, 9 点 30 分."""
    for rule in (_weekday, _fraction_of_hour, _minutes_to_hour, _digital):
        if found := rule(words, at):
            return found
    number = number_at(words, at)
    if number is None or not 0 <= (hour := whole_of(number)) <= 24:
        return None
    end = number[1]
    after = "".join(texts_at(words, end, 1))
    if after in _CLOCK_WORDS or after in _HALVES:
        return _time(words, at, end + (after in _CLOCK_WORDS), hour, 0)
    return _han_clock(words, at, end + 1, hour) if after in _HOURS else None


def _fraction_of_hour(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    texts = texts_at(words, at, 2)
    if texts[0] not in ("half", "quarter") or texts[1:] not in (["past"], ["to"]):
        return None
    if (found := number_at(words, at + 2)) is None or (hour := whole_of(found)) < 0:
        return None
    minutes = {"half": 30, "quarter": 15}[texts[0]]
    if texts[1] == "to":
        hour, minutes = hour - 1, 60 - minutes
    return made_of(words, at, found[1], f"@{hour}:{minutes:02}", Kind.time)


def _weekday(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    texts = [word.text for word in words[at : at + 3]]
    length = 2 if texts[:2] in (["星", "期"], ["礼", "拜"]) else 1 if texts[:1] in (["周"], ["週"]) else 0
    if not length or len(texts) <= length or texts[length] not in _WEEK:
        return None
    return made_of(words, at, at + length + 1, f"@day{_WEEK[texts[length]]}", Kind.time)


def _minutes_to_hour(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """Twenty to ten, five past six, ten minutes to eight."""
    if (found := number_at(words, at)) is None or (minutes := whole_of(found)) < 0:
        return None
    end = found[1] + (texts_at(words, found[1], 1) == ["minutes"])
    direction = texts_at(words, end, 1)
    number = number_at(words, end + 1) if direction in (["to"], ["past"]) else None
    if number is None or not 0 < (hour := whole_of(number)) <= 12 or minutes not in range(5, 60, 5):
        return None  # eight to ten is a span
    past = minutes if direction == ["past"] else 60 - minutes
    return _time(words, at, number[1], hour - (direction == ["to"]), past)


def _digital(words: Sequence[Word], at: int) -> tuple[Word, int] | None:
    """One with its minutes in digits; the colon may be a word of its own."""
    for length in (1, 3):
        match = _DIGITAL.fullmatch("".join(texts_at(words, at, length)))
        if match and int(match[1]) <= 24 and int(match[2]) < 60 and at + length <= len(words):
            return _time(words, at, at + length, int(match[1]), int(match[2]))
    return None


def _han_clock(words: Sequence[Word], at: int, end: int, hour: int) -> tuple[Word, int]:
    if texts_at(words, end, 1) == ["半"]:
        return _time(words, at, end + 1, hour, 30)
    if (found := number_at(words, end)) and 0 <= (minutes := whole_of(found)) < 60:
        stop = found[1] + (texts_at(words, found[1], 1) == ["分"])
        return _time(words, at, stop, hour, minutes)
    return _time(words, at, end, hour, 0)


def _time(words: Sequence[Word], at: int, end: int, hour: int, minutes: int) -> tuple[Word, int]:
    end += "".join(texts_at(words, end, 1)) in _HALVES
    return made_of(words, at, end, f"@{hour if hour <= 12 else hour - 12}:{minutes:02}", Kind.time)
