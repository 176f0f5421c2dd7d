"""The gate of what is exported: a syntax tree with nothing left in it that a document could act on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote

from smartwriter.export.document import About
from smartwriter.export.inlines import SPANS, Node, Ours, with_tags
from smartwriter.export.pictures import Pictures


def identifiers(value: Node) -> set[str]:
    """The names of places in a tree that links may go to."""
    match value:
        case {"t": "Header", "c": [_, [str(id), *_], *_]}:
            return {id}
        case list():
            return set().union(*map(identifiers, value))
        case {"c": content}:
            return identifiers(content)
    return set()


@dataclass(frozen=True)
class Cleaner:
    ending: str
    pictures: Pictures
    places: set[str]

    def cleaned(self, value: Node) -> Node:
        """A part of the tree with nothing left in it that a document could act on."""
        match value:
            case [str(id), [*_], [*_]]:  # attributes: nothing but the name that links go to
                return [id, [], []]
            case list():
                return [clean for item in with_tags(value, self.ending) for clean in self._items(item)]
            case {"t": "Link", "c": [attributes, words, target]}:
                return {"t": "Link", "c": [self.cleaned(attributes), self.cleaned(words), target]}
            case dict():
                return {key: self.cleaned(item) for key, item in value.items()}
        return value

    def _items(self, item: Node) -> list[Node]:
        """What an item of a list becomes: itself, mostly."""
        match item:
            case {"t": "RawBlock" | "RawInline", "c": [_, str(code)]} if _COMMENT.fullmatch(code):
                return []
            case {"t": "RawInline", "c": [str(), Ours()]}:
                return [item]
            case {"t": "RawInline", "c": [_, str(code)]}:
                return [{"t": "LineBreak"} if _BREAK.fullmatch(code) else {"t": "Str", "c": code}]
            case {"t": "RawBlock", "c": [_, str(code)]}:
                return [{"t": "CodeBlock", "c": [["", [], []], code.rstrip("\n")]}]
            case {"t": "Span", "c": [[_, [str(name)], []], words]} if name in SPANS:
                return [{"t": "Span", "c": [["", [name], []], self.cleaned(words)]}]
            case {"t": "Image", "c": [attributes, description, [str(url), str(title)]]}:
                return self._picture(attributes, description, url, title)
            case {"t": "Link", "c": [_, words, [str(url), _]]} if not self._leads_on(url):
                return list(self.cleaned(words))
        return [self.cleaned(item)]

    def _picture(self, attributes: Node, description: list[Node], url: str, title: str) -> list[Node]:
        """A picture of the workspace; of any other what it shows, leading to it: a page must fetch none."""
        if self.ending != ".txt" and (data := self.pictures.packed(url)) is not None:
            words = self.cleaned(description)
            return [{"t": "Image", "c": [["", [], []], words, [data, title]]}]
        words = description or [{"t": "Str", "c": title or url}]
        named = self._items({"t": "Link", "c": [attributes, words, [url, title]]})
        if description and not self._leads_on(url) and _PLAIN_LINK.match(url):
            named += [{"t": "Space"}, {"t": "Str", "c": f"({url})"}]
        return named

    def _leads_on(self, url: str) -> bool:
        """Whether a link is a plain one; in a book, whether it leads to the web or a place in it."""
        if url.startswith("#"):
            return self.ending == ".txt" or unquote(url[1:]) in self.places
        if self.ending == ".epub" and not _WEB_LINK.match(url):
            return False
        return _PLAIN_LINK.match(url) is not None


_COMMENT = re.compile(r"\s*(<!--.*?-->\s*)+", re.DOTALL)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
# To the web, to a place in the text, or to a file beside it: not to the machine's own paths and
# servers, and to no script.
_WEB_LINK = re.compile(r"(?i:https?://[^\s/]|mailto:[^\s@]+@)")
_PLAIN_LINK = re.compile(r"(?i:https?://|mailto:)|#|(?![/\\])[^:\\]*\Z")


def without_title(blocks: list[Node], about: About) -> tuple[list[Node], About]:
    """The blocks below the title, where the text opens with it: it must not stand there twice.

    A single first heading is the title, unless the front matter has another one.
    """
    if not blocks or _level(blocks[0]) != 1:
        return blocks, about
    heading = " ".join("".join(_strings(blocks[0])).split())
    only = sum(_level(block) == 1 for block in blocks) == 1
    if heading == about.title:
        return blocks[1:], about
    if only and heading and not about.titled:
        return blocks[1:], replace(about, title=heading)
    return blocks, about


def _level(block: Node) -> int | None:
    match block:
        case {"t": "Header", "c": [int(level), *_]}:
            return level
    return None


def directed(blocks: list[Node], base: str, ending: str) -> list[Node]:
    """The blocks, each that runs against its surroundings with a note of its own direction."""
    around = "ltr" if ending == ".epub" else base  # pandoc gives a book's pages no direction
    return [_with_direction(block, base, around, ending) for block in blocks]


def _with_direction(block: Node, base: str, around: str, ending: str) -> Node:
    direction = next(filter(None, map(_strong, _strings(block))), base)
    if direction == around:
        return block
    if _level(block) is not None and ending != ".docx":  # the contents find no heading in a box
        level, [id, _, _], words = block["c"]
        return {"t": "Header", "c": [level, [id, [], [["dir", direction]]], words]}
    return {"t": "Div", "c": [["", [], [["dir", direction]]], [block]]}


def _strong(text: str) -> str | None:
    """The direction of the first letter that has one."""
    for letter in text:
        kind = unicodedata.bidirectional(letter)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return None


def _strings(value: Node) -> Iterator[str]:
    """The words in a part of the tree, in their order."""
    match value:
        case list():
            for item in value:
                yield from _strings(item)
        case {"t": "Str", "c": str(text)} | {"t": "Code" | "CodeBlock", "c": [_, str(text)]}:
            yield text
        case {"t": "Space" | "SoftBreak" | "LineBreak"}:
            yield " "
        case {"t": "Note"}:
            return
        case {"c": content}:
            yield from _strings(content)
