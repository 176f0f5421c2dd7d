"""Documents made from a text: ``.md`` and ``.json`` by us, the others by pandoc.

The text was written by a model and is not trusted. On its way it passes through three gates:

- pandoc runs with ``--sandbox``, so that neither an image nor an include makes it read a file or
  fetch anything, for a limited time and with limited memory;
- it reads the text as plain Markdown, and our :func:`_cleaned` sees every element before anything
  is written: raw code of any format becomes text, but for a few tags that prose needs, a picture is
  packed if it is one of the workspace's, else named, a link that is not a plain one becomes its words;
- of front matter only title, author, date and language are taken, as words: pandoc would also
  take the paths of stylesheets, covers and bibliographies from there.
"""

from __future__ import annotations

import html
import importlib
import io
import json
import re
import subprocess
import unicodedata
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

import smartwriter.files.output as output
from smartwriter.errors import Invalid
from smartwriter.export.inlines import SPANS, Ours, filler_for, with_fillers, with_line_ends, with_tags
from smartwriter.export.pictures import Pictures
from smartwriter.pages.page import page, printable
from smartwriter.storage.records import now
from smartwriter.text.language import direction_of, guessed_language
from smartwriter.text.words import front_matter

ENDINGS = (".md", ".html", ".docx", ".epub", ".txt", ".json")
CONVERSION_TIMEOUT_S = 60.0

_WRITERS = {".html": "html5", ".docx": "docx", ".epub": "epub3", ".txt": "plain"}
# What GitHub's Markdown adds to prose and no more: a price is not a formula, and ":100:" no emoji.
_READER = "gfm-emoji-tex_math_dollars-tex_math_gfm-yaml_metadata_block-autolink_bare_uris"
_MAX_MEMORY = "-M1500m"
_HEAP_EXHAUSTED = 251  # how a Haskell program ends that reached it

Node = Any
"""An element of pandoc's syntax tree, or a list of them: ``{"t": type, "c": content}``."""


@dataclass(frozen=True)
class Document:
    """A text to be exported."""

    title: str
    """Shown where neither front matter nor a single first heading gives another one."""
    text: str
    """Markdown; it may have YAML front matter."""
    language: str = ""
    """As in ``zh`` or ``pt-BR``; front matter wins over it, and empty means: guess."""
    identity: str = ""
    """What stays the same when it is exported again, so that a reader's shelf knows the book; empty:
    its title."""
    folder: Path | None = None
    """Where the text lies: pictures are looked for from there; None: none is taken along."""
    root: Path | None = None
    """The workspace: no picture outside of it is read."""
    verse: bool = False
    """Every line end stays one, as in a poem; else lines of one paragraph are joined."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else there is to know, in values that JSON has: only for ``.json``."""


def export(document: Document, path: Path) -> None:
    """Write a document in the format that the file's ending says, over an older one. Blocking.

    The file is replaced as a whole: where anything fails, an older one stands as it was.

    :raises Invalid: for another ending, a place that no file can be written to, a text that cannot
        be converted, or when pandoc is missing. :raises OSError: when the disk fails.
    """
    output.write(path, converted(document, output.checked_ending(path, ENDINGS)))


def converted(document: Document, ending: str) -> bytes:
    """The document in the format of an ending. Blocking. :raises Invalid:"""
    if ending == ".md":
        return document.text.encode("utf-8", "surrogatepass")
    about, body = _about(document)
    if ending == ".json":
        return _json({"title": about.title, "text": document.text, "extra": dict(document.extra)})
    tree, about = _tree(body, about, document, ending)
    return _written(tree, about, ending)


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
    except UnicodeEncodeError:  # a stray half of an emoji: JSON has an escape for it
        return (json.dumps(value, indent=2) + "\n").encode()


# What is known about a document --------------------------------------------------------------


@dataclass(frozen=True)
class _About:
    title: str
    authors: tuple[str, ...]
    date: str
    language: str
    identity: str
    titled: bool
    """Whether the front matter gives the title."""

    @property
    def direction(self) -> str:
        return direction_of(self.language)


_MAX_FRONT_MATTER = 20_000  # characters; more would be slow to read
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")


def _about(document: Document) -> tuple[_About, str]:
    """What is known, and the text without its front matter."""
    text = printable(document.text).removeprefix("\ufeff")
    end = front_matter(text)
    front = _fields("\n".join(text[:end].splitlines()[1:-1])) if end else {}
    body = text[end:] if front is not None else text
    front = front or {}
    languages = (*front.get("lang", ()), document.language, guessed_language(body or document.title))
    title = " ".join(front.get("title", ()))
    about = _About(
        title=title or " ".join(printable(document.title).split()) or "Untitled",
        authors=front.get("author", ()),
        date=" ".join(front.get("date", ())),
        language=next(word for word in languages if _LANGUAGE.fullmatch(word)).replace("_", "-"),
        identity=printable(document.identity or document.title),
        titled=bool(title),
    )
    return about, body


def _fields(text: str) -> dict[str, tuple[str, ...]] | None:
    """The words under each key of front matter, or None where it is none."""
    if len(text) > _MAX_FRONT_MATTER:
        return None
    try:
        # The base loader makes nothing but text: a date stays as it was written.
        value = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return {str(key): _words(entry) for key, entry in value.items()} if isinstance(value, dict) else None


def _words(value: object) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else [value]
    words = (" ".join(entry.split()) for entry in entries if isinstance(entry, str))
    return tuple(word for word in words if word)


# Pandoc --------------------------------------------------------------------------------------


def _pandoc(*arguments: str, stdin: bytes) -> bytes:
    """Run it without the right to read or fetch anything. :raises Invalid: when it fails."""
    command = [_pandoc_path(), "+RTS", _MAX_MEMORY, "-RTS", "--sandbox", *arguments, "-o", "-"]
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=CONVERSION_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Invalid(
            f"pandoc was stopped after {CONVERSION_TIMEOUT_S:.0f} s without a result; "
            "the text can still be exported as .md."
        ) from None
    except OSError as error:
        raise Invalid(f"pandoc could not be started: {error.strerror}.") from None
    if done.returncode == _HEAP_EXHAUSTED:
        raise Invalid("The text is too intricate to be converted in memory; it can be exported as .md.")
    if done.returncode:
        lines = printable(done.stderr.decode("utf-8", "replace")).split()
        why = " ".join(lines)[:300].rstrip(".") or f"it ended with {done.returncode}"
        raise Invalid(f"pandoc could not convert the text: {why}.")
    return done.stdout


def _pandoc_path() -> str:
    missing = "Only .md and .json can be exported without pandoc; get it with: scripts/install export"
    try:
        pypandoc = importlib.import_module("pypandoc")  # an optional extra, and slow to load
        return str(pypandoc.get_pandoc_path())
    except (ImportError, OSError):
        raise Invalid(missing) from None


# A few thousand levels of quotes or lists on one line keep pandoc busy for minutes.
_MAX_LEVELS = 100
_DEEP = re.compile(rf"^(?:[ \t]*(?:>|[-*+][ \t]|[0-9]{{1,9}}[.)][ \t])){{{_MAX_LEVELS + 1}}}", re.MULTILINE)
_TOO_DEEP = "The text has quotes or lists nested too deep to be converted; it can be exported as .md."


def _tree(text: str, about: _About, document: Document, ending: str) -> tuple[dict[str, Any], _About]:
    """The syntax tree of a text, cleaned, and what is known once its title was found in it."""
    _pandoc_path()  # where it is missing, that is the thing to say
    if _DEEP.search(text):
        raise Invalid(_TOO_DEEP)
    shields, filler = _shields(text), filler_for(text)
    pictures = Pictures(document.folder, document.root)
    try:
        given = with_fillers(text, filler).translate(shields).encode()
        read = _pandoc("-f", _READER, "-t", "json", stdin=given).decode().replace(filler, "")
        tree = json.loads(read.translate({shield: letter for letter, shield in shields.items()}))
        blocks = _Cleaner(ending, pictures, _identifiers(tree["blocks"])).cleaned(tree["blocks"])
        blocks, about = _without_title(with_line_ends(blocks, verse=document.verse), about)
    except RecursionError:
        raise Invalid(_TOO_DEEP) from None
    return {**tree, "blocks": blocks, "meta": _meta(about)}, about


_PRIVATE = range(0xF0000, 0xFFFFE)


def _shields(text: str) -> dict[int, int]:
    """Stand-ins for the characters that pandoc's reader would compose or unify.

    It brings all text into the form NFC, in which names lose their own variants of Chinese characters.
    """
    if unicodedata.is_normalized("NFC", text):
        return {}
    letters = set(text)
    free = (point for point in _PRIVATE if chr(point) not in letters)
    return {ord(letter): next(free) for letter in sorted(letters) if _may_change(letter)}


def _may_change(letter: str) -> bool:
    is_part = unicodedata.category(letter).startswith("M") or "\u1160" <= letter <= "\u11ff"
    return is_part or not unicodedata.is_normalized("NFC", letter)


def _written(tree: dict[str, Any], about: _About, ending: str) -> bytes:
    tree = {**tree, "blocks": _directed(tree["blocks"], about.direction, ending)}
    options = ["-f", "json", "-t", _WRITERS[ending], "--wrap=none"]
    if ending in (".docx", ".epub"):
        return _dated(_pandoc(*options, "--standalone", stdin=json.dumps(tree).encode()))
    data = _pandoc(*options, stdin=json.dumps(tree).encode())
    byline = " · ".join(filter(None, [*about.authors, about.date]))
    if ending == ".html":
        return _html_page(about, byline, data.decode()).encode()
    return "\n\n".join(filter(None, [about.title, byline, data.decode()])).encode()


_NO_TIME = re.compile(
    rb'(<(?:dcterms:created|dcterms:modified|meta property="dcterms:modified"|dc:date)[^>]*>)'
    rb"1970-01-01T00:00:00Z(?=<)"
)


def _dated(data: bytes) -> bytes:
    """A zipped document with the time of today: in the sandbox pandoc has no clock."""
    today = now().strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.infolist():  # in the same order: an epub begins with its type
            content = old.read(member)
            if member.filename in ("docProps/core.xml", "EPUB/content.opf"):
                content = _NO_TIME.sub(lambda found: found[1] + today, content)
            new.writestr(member, content)
    return target.getvalue()


def _html_page(about: _About, byline: str, body: str) -> str:
    below = f'<p class="about" dir="auto">{html.escape(byline)}</p>\n' if byline else ""
    header = f'<header>\n<h1 dir="auto">{html.escape(about.title)}</h1>\n{below}</header>\n'
    return page(about.title, about.language, f"<article>\n{header}{body}\n</article>")


def _meta(about: _About) -> dict[str, Any]:
    # In the sandbox chance is always the same, and all books would be one.
    book = uuid.uuid5(uuid.NAMESPACE_URL, f"smartwriter:{about.identity}").urn
    values = {"title": about.title, "date": about.date, "lang": about.language, "dir": about.direction}
    values |= {"identifier": book, "page-progression-direction": about.direction}
    meta = {key: _meta_words(value) for key, value in values.items() if value}
    return meta | {"author": {"t": "MetaList", "c": [_meta_words(author) for author in about.authors]}}


def _meta_words(text: str) -> Node:
    return {"t": "MetaInlines", "c": [{"t": "Str", "c": text}]}


# Cleaning ------------------------------------------------------------------------------------


def _identifiers(value: Node) -> set[str]:
    """The names of places in a tree that links may go to."""
    match value:
        case {"t": "Header", "c": [_, [str(id), *_], *_]}:
            return {id}
        case list():
            return set().union(*map(_identifiers, value))
        case {"c": content}:
            return _identifiers(content)
    return set()


@dataclass(frozen=True)
class _Cleaner:
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


def _without_title(blocks: list[Node], about: _About) -> tuple[list[Node], _About]:
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


def _directed(blocks: list[Node], base: str, ending: str) -> list[Node]:
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
