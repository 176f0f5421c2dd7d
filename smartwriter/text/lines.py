"""One line of Markdown that stays one, whatever it says.

What a model proposes is put into files of the writer's. There it must not open a heading, a comment or
a tag, nor pass for one of the marks that SmartWriter itself reads.
"""

from __future__ import annotations

import re

from smartwriter.text.sections import one_line

# An address in angle brackets is a link, and stays one.
_TAG = re.compile(r"<(?=[!?/A-Za-z])(?![A-Za-z][A-Za-z0-9+.-]*://)")
_BULLETS = re.compile(r"(?:[-*+•]\s+)+")
_BLOCK = re.compile(
    r"#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|(?:[-_*=]\s?){3,}$|`{3,}|~{3,}|\||\[(?=[^\]]+\]:)", re.ASCII
)
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)", re.ASCII)


def inline(text: str) -> str:
    """A text as one line without tags and comments, to stand behind something else."""
    return _TAG.sub(r"<\\", " ".join(one_line(text).split()))


def item(text: str) -> str:
    """A text as what stands behind the ``- `` of a list item; empty when nothing is left of it.

    A bullet of its own is dropped; any other mark of a block gets a backslash.
    """
    line = _BULLETS.sub("", inline(text), count=1) if _BULLETS.match(inline(text)) else inline(text)
    if _BLOCK.match(line):
        return f"\\{line}"
    return _NUMBER.sub(r"\1\\\2", line, count=1) if _NUMBER.match(line) else line
