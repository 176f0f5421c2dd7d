"""Pandoc: the syntax tree that it reads from a text, and the formats that it writes."""

from __future__ import annotations

import importlib
import io
import json
import re
import subprocess
import unicodedata
import uuid
import zipfile
from typing import Any

from smartwriter.errors import Invalid
from smartwriter.export.cleaning import Cleaner, directed, identifiers, without_title
from smartwriter.export.document import About, Document
from smartwriter.export.inlines import Node, filler_for, with_fillers, with_line_ends
from smartwriter.export.pictures import Pictures
from smartwriter.pages.page import escaped, page, printable
from smartwriter.storage.records import now

CONVERSION_TIMEOUT_S = 60.0

_WRITERS = {".html": "html5", ".docx": "docx", ".epub": "epub3", ".txt": "plain"}
# What GitHub's Markdown adds to prose and no more: a price is not a formula, and ":100:" no emoji.
_READER = "gfm-emoji-tex_math_dollars-tex_math_gfm-yaml_metadata_block-autolink_bare_uris"
_MAX_MEMORY = "-M1500m"
_HEAP_EXHAUSTED = 251  # how a Haskell program ends that reached it


# Reading ----------------------------------------------------------------------------------------

# A few thousand levels of quotes or lists on one line keep pandoc busy for minutes.
_MAX_LEVELS = 100
_DEEP = re.compile(rf"^(?:[ \t]*(?:>|[-*+][ \t]|[0-9]{{1,9}}[.)][ \t])){{{_MAX_LEVELS + 1}}}", re.MULTILINE)
_TOO_DEEP = "The text has quotes or lists nested too deep to be converted; it can be exported as .md."


def tree_of(text: str, about: About, document: Document, ending: str) -> tuple[dict[str, Any], About]:
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
        blocks = Cleaner(ending, pictures, identifiers(tree["blocks"])).cleaned(tree["blocks"])
        blocks, about = without_title(with_line_ends(blocks, verse=document.verse), about)
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


# Writing ----------------------------------------------------------------------------------------


def written(tree: dict[str, Any], about: About, ending: str) -> bytes:
    """A tree in the format of an ending."""
    tree = {**tree, "blocks": directed(tree["blocks"], about.direction, ending)}
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


def _html_page(about: About, byline: str, body: str) -> str:
    below = f'<p class="about" dir="auto">{escaped(byline)}</p>\n' if byline else ""
    header = f'<header>\n<h1 dir="auto">{escaped(about.title)}</h1>\n{below}</header>\n'
    return page(about.title, about.language, f"<article>\n{header}{body}\n</article>")


def _meta(about: About) -> dict[str, Any]:
    # In the sandbox chance is always the same, and all books would be one.
    book = uuid.uuid5(uuid.NAMESPACE_URL, f"smartwriter:{about.identity}").urn
    values = {"title": about.title, "date": about.date, "lang": about.language, "dir": about.direction}
    values |= {"identifier": book, "page-progression-direction": about.direction}
    meta = {key: _meta_words(value) for key, value in values.items() if value}
    return meta | {"author": {"t": "MetaList", "c": [_meta_words(author) for author in about.authors]}}


def _meta_words(text: str) -> Node:
    return {"t": "MetaInlines", "c": [{"t": "Str", "c": text}]}


# Running ----------------------------------------------------------------------------------------


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
