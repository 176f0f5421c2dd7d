"""The input of a tool as it arrives: JSON in pieces, of which every string is read as far as it has come."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

Path = tuple[str | int, ...]

_IN_STRING = re.compile(r'(?:[^"\\]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_BETWEEN = re.compile(r'[^"{}\[\],:]*')
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Piece:
    """What has come of one value, since the piece before."""

    path: Path
    """Keys and indexes that lead to the value."""
    text: str
    """Of a string, without escapes; empty where one begins. Of any other value, its JSON."""

    @property
    def field(self) -> str:
        """The key that the value has."""
        return str(self.path[-1])

    @property
    def edit(self) -> int:
        """In which of several edits it is, from 0."""
        return next((key for key in self.path if isinstance(key, int)), 0)


class ToolInput:
    """Reads one input, each character once: an article of any length takes no more than its length."""

    def __init__(self) -> None:
        self.whole = False
        """Its end has come."""
        self._path: list[str | int] = []  # of each open object, the present key; of each array, the index
        self._in_string = False
        self._key: list[str] | None = None  # as far as it was read; None: no key is being read
        self._key_next = False
        self._held = ""  # the beginning of an escape
        self._half = ""  # the first of a pair of surrogates

    def feed(self, piece: str) -> list[Piece]:
        """What the next piece of the JSON adds. What is no JSON adds nothing, or what can be made of it."""
        data, self._held = self._held + piece, ""
        found: list[Piece] = []
        at = 0
        while at < len(data):
            at = self._string(data, at, found) if self._in_string else self._between(data, at, found)
        return found

    def _string(self, data: str, at: int, found: list[Piece]) -> int:
        match = _IN_STRING.match(data, at)
        end = match.end() if match else at
        closed = data[end : end + 1] == '"'
        text = self._half + _unescaped(data[at:end])
        self._half = ""
        if not closed and "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        if _SURROGATE.search(text):  # pairs whose halves came one by one
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if self._key is not None:
            self._key.append(text)
        elif text:
            found.append(Piece(tuple(self._path), text))
        if closed:
            self._in_string = False
            if self._key is not None:
                self._path[-1], self._key = "".join(self._key), None
            return end + 1
        if len(data) - end < 6:  # or the escape is none, and is passed over
            self._held = data[end:]
            return len(data)
        return end + 1

    def _between(self, data: str, at: int, found: list[Piece]) -> int:
        match = _BETWEEN.match(data, at)
        end = match.end() if match else at
        if self._path and (scalar := data[at:end].strip()):
            found.append(Piece(tuple(self._path), scalar))
        if end < len(data):
            self._mark(data[end], found)
        return end + 1

    def _mark(self, mark: str, found: list[Piece]) -> None:
        if mark == '"':
            self._in_string = True
            self._key = [] if self._key_next else None
            if self._key is None:
                found.append(Piece(tuple(self._path), ""))
        elif mark in "{[":
            self._path.append("" if mark == "{" else 0)
            self._key_next = mark == "{"
        elif not self._path:
            return
        elif mark in "}]":
            self._path.pop()
            self._key_next, self.whole = False, not self._path
        elif mark == ":":
            self._key_next = False
        elif isinstance(here := self._path[-1], int):
            self._path[-1] = here + 1
        else:
            self._key_next = True


def pieces_of(value: object) -> list[Piece]:
    """All of an input that came as a whole."""
    return ToolInput().feed(json.dumps(value))


def _unescaped(raw: str) -> str:
    return str(json.loads(f'"{raw}"', strict=False)) if "\\" in raw else raw
