"""A text to be exported, and what is known about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smartwriter.errors import Invalid
from smartwriter.memory.front_matter import parse
from smartwriter.pages.page import printable
from smartwriter.text.language import direction_of, guessed_language


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


@dataclass(frozen=True)
class About:
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


_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")


def about(document: Document) -> tuple[About, str]:
    """What is known, and the text without its front matter."""
    text = printable(document.text).removeprefix("\ufeff")
    front, body = _parsed(text)
    languages = (*front.get("lang", ()), document.language, guessed_language(body or document.title))
    title = " ".join(front.get("title", ()))
    known = About(
        title=title or " ".join(printable(document.title).split()) or "Untitled",
        authors=front.get("author", ()),
        date=" ".join(front.get("date", ())),
        language=next(word for word in languages if _LANGUAGE.fullmatch(word)).replace("_", "-"),
        identity=printable(document.identity or document.title),
        titled=bool(title),
    )
    return known, body


def _parsed(text: str) -> tuple[dict[str, tuple[str, ...]], str]:
    """The words under each key of front matter, and the text below; what is none stays in the text."""
    try:
        fields, body = parse(text)
    except Invalid:
        return {}, text
    return {str(key): _words(entry) for key, entry in fields.items()}, body if fields else text


def _words(value: object) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else [value]
    words = (" ".join(entry.split()) for entry in entries if isinstance(entry, str))
    return tuple(word for word in words if word)
