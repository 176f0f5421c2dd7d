"""Text that a terminal only shows.

What a model, a file or another person's workspace says may hold sequences that a terminal obeys: it sets
the clipboard, answers as if its user had typed, or shows one thing for another. Each begins with a
character of its own, so each such character is replaced by something to look at, and what followed it is
words again. Nothing is remembered from one piece of a text to the next: a sequence that comes in two is
as harmless as one that comes whole.
"""

from __future__ import annotations

import re

# Commands of one character (C0, C1); what turns the order of the text around it; what stands for nothing
# at all and can hide a message (tags); half a character.
_ACTING = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    "\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
_ANY = re.compile(f"[\r{_ACTING}]")
_ON_ONE_LINE = re.compile(f"[^\t\n\r\u2028\u2029{_ACTING}]*")
# One that ends a piece may belong to a line end whose other half comes with the next.
_RETURNS = re.compile(r"\r+(\n|\Z)|\r")


def harmless(text: str) -> str:
    """A text as a terminal may get it: lines, tabs, and nothing else that acts."""
    if not _ANY.search(text):
        return text
    text = _RETURNS.sub(lambda end: picture("\r") if end[1] is None else end[1], text)
    return _ANY.sub(lambda acting: picture(acting[0]), text)


def is_harmless_name(name: str) -> bool:
    """Whether a name can be shown as it is, on one line."""
    return _ON_ONE_LINE.fullmatch(name) is not None


def picture(acting: str) -> str:
    """What is shown for a character that would act."""
    if acting < " ":
        return chr(0x2400 + ord(acting))
    return "\u2421" if acting == "\x7f" else "\ufffd"
