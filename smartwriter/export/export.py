"""Documents made from a text: ``.md`` and ``.json`` by us, the others by pandoc.

The text was written by a model and is not trusted. On its way it passes through three gates:

- pandoc runs with ``--sandbox``, so that neither an image nor an include makes it read a file or
  fetch anything, for a limited time and with limited memory;
- it reads the text as plain Markdown, and our ``Cleaner`` sees every element before anything
  is written: raw code of any format becomes text, but for a few tags that prose needs, a picture is
  packed if it is one of the workspace's, else named, a link that is not a plain one becomes its words;
- of front matter only title, author, date and language are taken, as words: pandoc would also
  take the paths of stylesheets, covers and bibliographies from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import smartwriter.files.output as output
from smartwriter.export.document import Document, about
from smartwriter.export.pandoc import tree_of, written

ENDINGS = (".md", ".html", ".docx", ".epub", ".txt", ".json")


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
    known, body = about(document)
    if ending == ".json":
        return _json({"title": known.title, "text": document.text, "extra": dict(document.extra)})
    tree, known = tree_of(body, known, document, ending)
    return written(tree, known, ending)


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
    except UnicodeEncodeError:  # a stray half of an emoji: JSON has an escape for it
        return (json.dumps(value, indent=2) + "\n").encode()
