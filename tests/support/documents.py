"""What a reader sees in a document that was made."""

from __future__ import annotations

import html.parser
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

PACKED = {".docx": "word/document.xml", ".epub": "EPUB/text/ch001.xhtml"}


class Words(html.parser.HTMLParser):
    """The text of a page, as a browser shows it, and its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words = ""
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}


def raw(path: Path) -> str:
    """What is in a file; of a packed one, in all its parts."""
    if path.suffix not in PACKED:
        return path.read_bytes().decode()
    with zipfile.ZipFile(path) as packed:
        assert packed.testzip() is None
        parts = {name: packed.read(name).decode() for name in packed.namelist()}
    for name, part in parts.items():
        if name.endswith(("ml", ".rels", ".opf", ".ncx")):
            ElementTree.fromstring(part.encode())  # a reader refuses what is not well-formed
    return "\n".join(parts.values())


def words(path: Path) -> str:
    """The text that a reader sees, paragraphs by lines."""
    if path.suffix == ".html":
        return Words(raw(path).partition("</style>")[2]).words
    if path.suffix not in PACKED:
        return raw(path)
    with zipfile.ZipFile(path) as packed:
        tree = ElementTree.fromstring(packed.read(PACKED[path.suffix]))
    paragraphs = [node for node in tree.iter() if re.search(r"}(p|h\d|pre|li|td)$", node.tag)]
    return "\n".join("".join(node.itertext()) for node in paragraphs)
