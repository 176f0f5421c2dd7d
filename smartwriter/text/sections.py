"""Sections: how texts of the writer's stand in a prompt, each in an element that it cannot close.

::

    <memory-file name="profile.md" from="rivers">
    …
    </memory-file>

    <on-demand-file name="people.md" title="The people" description="Who appears."/>

What looks like one of these tags within a text gets a backslash behind its bracket, always the same
way: whatever a file says, it says it inside its own section.
"""

from __future__ import annotations

import re

# With all that a reader may overlook: spaces, invisible characters, capitals, a full-width bracket.
_TAG = re.compile(
    r"[<＜](?=[\s/\\／\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*(?:memory-file|on-demand-file))", re.IGNORECASE
)
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def section(text: str, **attributes: str) -> str:
    """A memory file's text with all of it inside, without its blank edges."""
    return f"<memory-file{_attributes(attributes)}>\n{neutral(text.strip())}\n</memory-file>"


def entry(**attributes: str) -> str:
    """A line that names a memory file whose text is read on demand."""
    return f"<on-demand-file{_attributes(attributes)}/>"


def neutral(text: str) -> str:
    """A text that holds none of our tags."""
    return _TAG.sub(lambda found: f"{found[0]}\\", text)


def one_line(text: str) -> str:
    """A text without line ends, other control characters and invisible marks of direction."""
    return _UNSEEN.sub(" ", text).strip()


_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


def _attributes(attributes: dict[str, str]) -> str:
    found = {name: one_line(value).translate(_ESCAPES) for name, value in attributes.items()}
    return "".join(f' {name.rstrip("_")}="{value}"' for name, value in found.items() if value)
