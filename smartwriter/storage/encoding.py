"""An entry as a line of a journal, and back.

Text stays readable; only lone surrogates, U+0085, U+2028 and U+2029 are written as escapes
(so that no reader splits a line there), and infinity as ``1e999``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from smartwriter.storage.salvage import Entry


def encode(entry: Mapping[str, Any]) -> bytes:
    """The line of one entry, LF included.

    :raises ValueError: when the entry could not be read back: nested too deep, a circular
        reference, a number of thousands of digits.
    :raises TypeError: when it holds a value that JSON has no form for.
    """
    try:
        line = to_json(entry)
        _check_form(entry)
    except PydanticSerializationError:  # a lone surrogate, or nested beyond 255
        line = _encode_with_stdlib(entry)
    if b"\xe2\x80" in line or b"\xc2\x85" in line:
        line = _escape_line_separators(line)
    if b"Infinity" in line:
        line = _OUTSIDE_STRINGS.sub(lambda m: b"1e999" if m[0] == b"Infinity" else m[0], line)
    if len(line) > 2 * _LONG_DIGITS and _has_long_number(line) and decode(line) is None:
        raise ValueError("An entry holds a number that is too long to be stored.")
    return line + b"\n"


def _check_form(entry: object) -> None:
    """:raises TypeError: for what would come back as something else, though it can be written."""
    found = [entry]
    while found:
        value = found.pop()
        kind = type(value)
        if kind is str or kind is int or kind is bool or kind is float or value is None:
            continue
        if isinstance(value, Mapping):
            for name in value:
                if not isinstance(name, str):
                    raise TypeError(f"An entry has the key {name!r}, and JSON has only strings for keys.")
            found += value.values()
        elif isinstance(value, list | tuple):
            found += value
        elif not isinstance(value, str | int | float):
            raise TypeError(f"An entry holds a {kind.__name__}, for which JSON has no form.")


_LONG_DIGITS = 2150  # half of what Python reads: a longer number has a multiple in its first half
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % _LONG_DIGITS)


def _has_long_number(line: bytes) -> bool:
    return any(_LONG_NUMBER.match(line, at) for at in range(0, len(line), _LONG_DIGITS))


_OUTSIDE_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"|Infinity')
_SURROGATE = re.compile("[\ud800-\udfff]")


def _encode_with_stdlib(entry: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError("An entry is nested too deep to be stored.") from None
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text).encode()


def _escape_line_separators(line: bytes) -> bytes:
    # Safe on bytes: UTF-8 synchronises itself, and inside JSON these occur only in strings.
    return (
        line.replace(b"\xc2\x85", b"\\u0085")
        .replace(b"\xe2\x80\xa8", b"\\u2028")
        .replace(b"\xe2\x80\xa9", b"\\u2029")
    )


def decode(line: bytes) -> Entry | None:
    """The entry on an undamaged line, or None. Never raises."""
    try:
        value = from_json(line)
    except ValueError:  # damage, or what the fast parser refuses: surrogates, depth over 200
        try:
            value = json.loads(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return None
    return value if type(value) is dict else None


class Line:
    """An entry, serialised before any file is touched."""

    __slots__ = ("data", "uuid")

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.data = encode(entry)
        uuid = entry.get("uuid")
        self.uuid = encode_string(uuid) if isinstance(uuid, str) and uuid else None


def encode_string(text: str) -> bytes:
    """A string as it stands between its quotes in a journal."""
    return text.encode() if _PLAIN.fullmatch(text) else encode({"": text})[5:-3]


_PLAIN = re.compile(r"[\w-]+", re.ASCII)  # as every uuid is
