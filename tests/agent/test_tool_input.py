"""A tool's input as it arrives."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from typing import Any

import pytest

from smartwriter.agent.tool_input import Path, ToolInput, pieces_of

_HARD = [
    "渡口",
    "😀 a",
    'say "no"',
    "a\\b",
    "\\u0041",
    "\u2028\x00\x1f",
    "\ud83d",
    "\ude00 \ud83d",
    "}{][,:",
    "é\n\n",
]


def _strings(value: Any, path: Path = ()) -> dict[Path, str]:
    if isinstance(value, str):
        return {path: value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: dict[Path, str] = {}
    for key, inner in items:
        found |= _strings(inner, (*path, key))
    return found


def _fed(data: str, sizes: random.Random | None) -> tuple[dict[Path, str], bool]:
    reader, heard, at = ToolInput(), defaultdict[Path, str](str), 0
    while at < len(data):
        size = sizes.randint(1, 9) if sizes else 1
        for piece in reader.feed(data[at : at + size]):
            heard[piece.path] += piece.text
        at += size
    return heard, reader.whole


@pytest.mark.parametrize("ascii_", [True, False])
def test_every_string_is_heard_wherever_the_pieces_break(ascii_: bool) -> None:
    """However an input is cut into pieces, its strings come out as any JSON reader finds them, escapes,
    pairs of surrogates and keys included."""
    seeds = random.Random(7)
    for _ in range(400):
        text = "".join(seeds.choice(_HARD) for _ in range(seeds.randint(0, 6)))
        edits = [{"old_text": seeds.choice(_HARD), "new_text": text} for _ in range(seeds.randint(0, 3))]
        value = {"text": text, "edits": edits, 'a "key"\n': [[], {}, "x"]}
        data = json.dumps(value, ensure_ascii=ascii_, indent=seeds.choice([None, 1]))
        heard, whole = _fed(data, seeds)
        assert dict(heard) == _strings(json.loads(data)) and whole


def test_half_an_input_is_the_beginning_of_what_it_becomes() -> None:
    """Of an input that breaks off anywhere, what is heard is a beginning, to the last whole character."""
    text = 'Fog 😀 at the "ferry".\n\nNobody\u2028crossed.'
    data = json.dumps({"text": text})
    for end in range(len(data)):
        heard, whole = _fed(data[:end], None)
        said = heard.get(("text",), "")
        assert text.startswith(said) and not whole
        assert len(data[:end]) - 10 - len(json.dumps(said)) + 2 <= 12  # at most half a pair is waited for


def test_other_values_are_heard_as_their_json() -> None:
    """Numbers and the like are heard too, as they are written."""
    heard, _ = _fed('{"version": 12, "deep": {"on": true}, "text": "a"}', None)
    assert heard[("version",)] == "12" and heard[("deep", "on")] == "true" and heard[("text",)] == "a"
    assert pieces_of({"text": "a"})[-1].text == "a"


def test_what_is_no_json_ends_nothing() -> None:
    """Broken JSON is read past: it raises nothing, and what comes of its strings is heard."""
    seeds = random.Random(8)
    for _ in range(500):
        _fed("".join(seeds.choice('{}[]",:\\u1a😀\ud83d ') for _ in range(40)), seeds)


@pytest.mark.slow
def test_a_long_article_is_read_in_its_length() -> None:
    """Four times the article, in four times the pieces, takes about four times as long."""

    def taken_s(characters: int) -> float:
        data = json.dumps({"text": "Fog lay on it. 渡口\n" * (characters // 17)})
        reader = ToolInput()
        began = time.process_time()
        for at in range(0, len(data), 8):
            reader.feed(data[at : at + 8])
        return time.process_time() - began

    taken_s(10_000)
    quarter = min(taken_s(200_000) for _ in range(3))
    assert taken_s(800_000) < 12 * quarter
