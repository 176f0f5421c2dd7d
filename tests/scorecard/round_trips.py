"""Round trips: generated entries, appended through the store and loaded again.

What must come back is what the standard library's ``json`` makes of an entry: itself, but for a
surrogate pair of two code points, which is one character in JSON. Strings draw
from all that has ever broken a line of JSON; numbers from all kinds of float and integers up to
the 4,300 digits that Python reads. A few are nested 900 deep, and one is a line of 13 MB. Of every
file is asked, too, that it is UTF-8 without a raw NUL, that every reader who splits lines in his
own way finds as many as there are LFs, and that infinity is written ``1e999``.
"""

from __future__ import annotations

import json
import math
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import anyio
from claude_agent_sdk.types import SessionKey, SessionStoreEntry
from figure import Figure, Outcome, Run

from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage.salvage import Entry

ENTRIES = 100_000
_BATCH = 50
_FILE_BATCHES = 20  # in one session
_LONG_LINE_BYTES = 13_000_000
_DEPTH = 900
_DIGITS = 4300


def entry(rng: random.Random) -> Entry:
    """With nested values of every kind. No uuid of its own: all are to be kept."""
    made: Entry = {"type": rng.choice(["user", "assistant"]), "value": _value(rng, 4)}
    for _ in range(rng.randrange(4)):
        made[_key(rng)] = _value(rng, 2)
    if rng.random() < 0.002:
        made["deep"] = _deep(rng)
    if rng.random() < 0.002:
        made["digits"] = rng.choice([1, -1]) * rng.randrange(10 ** (_DIGITS - 1), 10**_DIGITS)
    return made


def _value(rng: random.Random, depth: int) -> Any:
    makers: list[Callable[[random.Random], Any]] = [_text, _text, _number, _constant]
    if depth and rng.random() < 0.4:
        size = rng.randrange(4)
        if rng.random() < 0.5:
            return [_value(rng, depth - 1) for _ in range(size)]
        return {_key(rng): _value(rng, depth - 1) for _ in range(size)}
    return rng.choice(makers)(rng)


def _constant(rng: random.Random) -> Any:
    return rng.choice([None, True, False, [], {}, ""])


_PIECES = [
    *["\0", "\r\n", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x7f", "\x85", "\u2028", "\u2029"],
    *["\ud83d", "\ude00", "\ud83d\ude00", "\udc80", "\udfff", "\ufeff", "\ufffe", "\U0010ffff", "😀"],
    *[
        '"',
        "\\",
        "\\u0000",
        "\\ud83d",
        '"uuid":"u1"',
        '{"type":"user"}',
        "1e999",
        "Infinity",
        "-Infinity",
        "NaN",
    ],
    *["写", "é", "e\u0301", "한", "ا", "/", "</script>", " ", "a", "word "],
]


def _text(rng: random.Random) -> str:
    if rng.random() < 0.05:
        return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(8)))
    return "".join(rng.choices(_PIECES, k=rng.randrange(6)))


def _key(rng: random.Random) -> str:
    return rng.choice(["", "uuid ", "Uuid", '"uuid":"', "uuid\0", "parentUuid", "a", _text(rng), _text(rng)])


def _number(rng: random.Random) -> Any:
    match rng.randrange(6):
        case 0:
            return rng.choice([0, -0.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 1e16, 1e22, 0.1])
        case 1:
            return rng.choice([1, -1]) * rng.getrandbits(rng.choice([8, 53, 54, 63, 64, 65, 128, 1000]))
        case 2:
            return 10.0 ** rng.randrange(-30, 30)
        case 3:
            return rng.random()
        case _:
            # Any float there is; JSON has none that is not a number.
            (value,) = struct.unpack("d", rng.randbytes(8))
            return 0.5 if math.isnan(value) else value


def _deep(rng: random.Random) -> Any:
    value: Any = _text(rng)
    for _ in range(_DEPTH):
        value = [value] if rng.random() < 0.5 else {"uuid": value}
    return value


def is_same(a: Any, b: Any) -> bool:
    """Equal, also in what ``==`` passes over: the types, the sign of zero, the order of keys.

    A loop, because what is nested 900 deep would need more frames than Python allows.
    """
    pairs = [(a, b)]
    while pairs:
        a, b = pairs.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, dict | list):
            if len(a) != len(b) or (isinstance(a, dict) and list(a) != list(b)):
                return False
            pairs += zip(_items(a), _items(b), strict=True)
        elif isinstance(a, float):
            if struct.pack("d", a) != struct.pack("d", b):
                return False
        elif a != b:
            return False
    return True


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _infinities(value: Any) -> int:
    found, left = 0, [value]
    while left:
        value = left.pop()
        left += _items(value)
        found += isinstance(value, float) and math.isinf(value)
    return found


# --- measuring ------------------------------------------------------------------------------


def _measure(run: Run) -> Outcome:
    counts = anyio.run(_measure_entries, run)
    problems = {name: number for name, number in counts.items() if name != "equal" and number}
    got = f"{counts['equal']:,} deep-equal, " + (
        ", ".join(f"{number:,} {name}" for name, number in problems.items())
        or "0 not; every file well-formed"
    )
    return Outcome(got, counts["equal"] == run.scaled(ENTRIES) and not problems)


async def _measure_entries(run: Run) -> dict[str, int]:
    rng = run.random()
    counts = {"equal": 0}
    left = run.scaled(ENTRIES)
    first_of_all: list[Entry] = [{"type": "user", "long": "渡" * (_LONG_LINE_BYTES // 3)}]
    session = 0
    while left:
        store = FileSessionStore(run.folder, durability="os")
        key: SessionKey = {"project_key": "p", "session_id": f"s{session}"}
        entries = first_of_all + [
            entry(rng) for _ in range(min(left, _BATCH * _FILE_BATCHES) - len(first_of_all))
        ]
        first_of_all = []
        for at in range(0, len(entries), _BATCH):
            await store.append(key, cast("list[SessionStoreEntry]", entries[at : at + _BATCH]))
        loaded = cast("list[Entry] | None", await store.load(key)) or []
        # In a thread, as the store's own work: there the stack is short enough for json, too.
        await anyio.to_thread.run_sync(_compare, entries, loaded, counts)
        await anyio.to_thread.run_sync(_check_file, store.path(key), entries, counts)
        left -= len(entries)
        session += 1
    return counts


def _compare(entries: list[Entry], loaded: list[Entry], counts: dict[str, int]) -> None:
    if len(entries) != len(loaded):
        _count(counts, f"entries too many or too few in a session of {len(entries)}")
    for sent, got in zip(entries, loaded, strict=False):
        _count(counts, "equal" if is_same(got, json.loads(json.dumps(sent))) else "not equal")


def _check_file(path: Path, entries: list[Entry], counts: dict[str, int]) -> None:
    data = path.read_bytes()
    path.unlink()
    lines = data.count(b"\n")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _count(counts, "files not UTF-8")
    if b"\0" in data or b"\r" in data:
        _count(counts, "files with a raw control character")
    if not lines == len(text.splitlines()) == len(entries) or not data.endswith(b"\n"):
        _count(counts, "files with other lines than entries")
    outside = _STRING.sub("", text)
    if "Infinity" in outside or "NaN" in outside:
        _count(counts, "files with what is no JSON")
    infinities = sum(_infinities(json.loads(line)) for line in text.split("\n")[:-1])
    if len(re.findall(r"1e999\b", outside)) != infinities:
        _count(counts, "files with another form of infinity than 1e999")


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def _count(counts: dict[str, int], what: str) -> None:
    counts[what] = counts.get(what, 0) + 1


FIGURES = [
    Figure(
        "round trip of generated entries",
        "100,000 deep-equal after append and load; files UTF-8, without NUL, one line an entry",
        _measure,
    )
]
