"""What stands within the lines of a text that is exported: emphasis beside Chinese, Japanese and Korean
punctuation, line ends between characters, and the tags of HTML that prose needs.

Pure functions over a Markdown text and pandoc's syntax tree of it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

Node = Any
"""An element of pandoc's syntax tree, or a list of them: ``{"t": type, "c": content}``."""


class Ours(str):
    """Code of a format that we wrote ourselves: nothing of it comes from the text but escaped words."""


# Emphasis ---------------------------------------------------------------------------------------

_RUN = re.compile(r"(?<![\\*~])(?:\*{1,3}|~~)(?![*~])")
_LETTERS = range(0x2A700, 0x2B73A)  # Chinese characters that hardly any text has


def filler_for(text: str) -> str:
    """A letter that the text has not."""
    letters = set(text)
    return next(chr(point) for point in _LETTERS if chr(point) not in letters)


def with_fillers(text: str, filler: str) -> str:
    """A text in which marks of emphasis between punctuation and Chinese, Japanese or Korean work.

    Markdown takes such a mark for one only where a space or punctuation stands on its other side, which
    these scripts have not: ``**注意：**这里``. So a letter is put between, to be taken out once it is read.
    """

    def filled(found: re.Match[str]) -> str:
        before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
        if _is_punctuation(before) and _joins(before, after):
            return filler + found[0]
        if _is_punctuation(after) and _joins(after, before):
            return found[0] + filler
        return found[0]

    return _RUN.sub(filled, text)


def _joins(punctuation: str, letter: str) -> bool:
    return bool(_is_east_asian(letter) or (_is_east_asian(punctuation) and letter.isalnum()))


def _is_punctuation(character: str) -> bool:
    return character != "" and unicodedata.category(character)[0] in "PS"


_EAST_ASIAN = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fff\u3001-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f"
    "\uff01-\uffef\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc]")
_SHARED = frozenset("“”‘’…—·⋯")


def _is_east_asian(character: str) -> bool:
    return _EAST_ASIAN.match(character) is not None


# Line ends --------------------------------------------------------------------------------------


def with_line_ends(blocks: list[Node], *, verse: bool) -> list[Node]:
    """Blocks in which no space comes of a line end between two Chinese or Japanese characters.

    :param verse: every line end stays one.
    """
    leaves = list(_leaves(blocks))
    places = {id(node): n for n, node in enumerate(leaves) if _type(node) == "SoftBreak"}

    def follow(value: Node) -> Node:
        if isinstance(value, dict):
            return {key: follow(item) for key, item in value.items()}
        if not isinstance(value, list):
            return value
        made = []
        for item in value:
            if _type(item) == "SoftBreak" and verse:
                made.append({"t": "LineBreak"})
            elif _type(item) != "SoftBreak" or not _closes_up(leaves, places[id(item)]):
                made.append(follow(item))
        return made

    return list(follow(blocks))


def _closes_up(leaves: list[Node], place: int) -> bool:
    """Whether nothing stands between the lines that meet there: what is right beside the line end is Chinese
    or Japanese, or a mark that all scripts share and that stands by such a character."""
    before = _nearest(_said(leaf)[::-1] for leaf in reversed(leaves[max(0, place - _NEAR) : place]))
    after = _nearest(map(_said, leaves[place + 1 : place + 1 + _NEAR]))
    return all(map(_is_east_asian, (before, after))) and not any(map(_HANGUL.match, (before, after)))


def _nearest(texts: Iterable[str]) -> str:
    """The first character that belongs to a script; empty where none follows in the line."""
    for text in texts:
        for character in text or " ":
            if character not in _SHARED:
                return character
    return ""


_NEAR = 8


def _leaves(value: Node) -> Iterator[Node]:
    """What stands in a row in the lines of a tree; None between two blocks."""
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        if _type(value) in ("Str", "Space", "SoftBreak", "LineBreak", "Code", "RawInline"):
            yield value
        elif _type(value) in ("Para", "Plain", "Header", "Note"):
            yield {}
            yield from _leaves(value.get("c"))
            yield {}
        else:
            yield from _leaves(value.get("c"))


def _type(node: Node) -> str:
    return str(node.get("t", "")) if isinstance(node, dict) else ""


def _said(node: Node) -> str:
    return node["c"] if _type(node) == "Str" else ""


# Tags -------------------------------------------------------------------------------------------

_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z]+)\s*>")
_ELEMENTS = {
    "sub": "Subscript",
    "sup": "Superscript",
    "u": "Underline",
    "ins": "Underline",
    "b": "Strong",
    "strong": "Strong",
    "i": "Emph",
    "em": "Emph",
    "s": "Strikeout",
    "del": "Strikeout",
}
SPANS = {"kbd", "mark", "small"}


def with_tags(inlines: list[Node], ending: str) -> list[Node]:
    """A line in which tags that prose needs are elements: ``H<sub>2</sub>O``, ``<kbd>``, ``<ruby>``.

    One with attributes, or without its counterpart in the same line, stays as it is.
    """
    made: list[Node] = []
    at = 0
    while at < len(inlines):
        name = _tag(inlines[at])
        end = _end_of(inlines, at, name) if name in _ELEMENTS or name in SPANS or name == "ruby" else None
        if end is None:
            made.append(inlines[at])
            at += 1
            continue
        held = inlines[at + 1 : end]
        if name == "ruby":
            made += _ruby(held, ending)
        elif name in SPANS:
            made.append(_span(name, with_tags(held, ending), ending))
        else:
            made.append({"t": _ELEMENTS[name], "c": with_tags(held, ending)})
        at = end + 1
    return made


def _tag(node: Node) -> str:
    """The name of a tag without attributes: with its slash, of one that ends."""
    if _type(node) == "RawInline" and (found := _TAG.fullmatch(str(node["c"][1]))):
        return found["end"] + found["name"].lower()
    return ""


def _end_of(inlines: list[Node], start: int, name: str) -> int | None:
    depth = 0
    for at in range(start, len(inlines)):
        depth += {name: 1, f"/{name}": -1}.get(_tag(inlines[at]), 0)
        if depth == 0:
            return at
    return None


def _span(name: str, held: list[Node], ending: str) -> Node:
    if name == "kbd" and ending == ".docx":  # which knows no keys
        return {"t": "Code", "c": [["", [], []], _words(held)]}
    return {"t": "Span", "c": [["", [name], []], held]}


def _ruby(held: list[Node], ending: str) -> list[Node]:
    """Characters with their reading: above them where the format knows that, else behind them."""
    made: list[Node] = []
    base: list[Node] = []
    at = 0
    while at < len(held):
        name = _tag(held[at])
        if name in ("rt", "rp") and (end := _end_of(held, at, name)) is not None:
            if name == "rt":
                made += _read_as(_words(base), _words(held[at + 1 : end]), ending)
                base = []
            at = end + 1
            continue
        if name not in ("rb", "/rb"):
            base.append(held[at])
        at += 1
    return made + base


def _read_as(base: str, reading: str, ending: str) -> list[Node]:
    if ending in (".html", ".epub"):
        raw = f"<ruby>{html.escape(base)}<rp>(</rp><rt>{html.escape(reading)}</rt><rp>)</rp></ruby>"
        return [{"t": "RawInline", "c": ["html", Ours(raw)]}]
    if ending == ".docx":
        return [
            {"t": "RawInline", "c": ["openxml", Ours(_WORD_RUBY.format(*map(html.escape, (reading, base))))]}
        ]
    return [{"t": "Str", "c": f"{base}({reading})" if base.isascii() else f"{base}（{reading}）"}]


_WORD_RUBY = (
    '<w:r><w:ruby><w:rubyPr><w:rubyAlign w:val="distributeSpace"/><w:hps w:val="12"/>'
    '<w:hpsRaise w:val="22"/><w:hpsBaseText w:val="24"/><w:lid w:val="ja-JP"/></w:rubyPr>'
    "<w:rt><w:r><w:t>{}</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>{}</w:t></w:r></w:rubyBase>"
    "</w:ruby></w:r>"
)


def _words(inlines: list[Node]) -> str:
    return "".join(
        _said(node) or (" " if _type(node) in ("Space", "SoftBreak", "LineBreak") else _code(node))
        for node in _leaves(inlines)
    )


def _code(node: Node) -> str:
    return str(node["c"][1]) if _type(node) in ("Code", "RawInline") else ""
