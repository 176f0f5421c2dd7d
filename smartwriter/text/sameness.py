"""When two texts are the same, although they are written otherwise."""

from __future__ import annotations

import unicodedata
from functools import lru_cache


def normal(name: str) -> str:
    """Names are the same when they look the same: file systems differ in how they store them."""
    return unicodedata.normalize("NFC", name)


@lru_cache(maxsize=1 << 16)  # thousands of titles, for each name that is typed
def folded(name: str) -> str:
    """The same for names that a writer takes for the same when typing one: in any case, with blank edges."""
    return normal(name).strip().casefold()


def same_words(text: str) -> str:
    """The same for texts that say the same words, in any case and however spaced."""
    return " ".join(normal(text).casefold().split())
