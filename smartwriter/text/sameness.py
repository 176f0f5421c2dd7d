"""When two texts are the same, although they are written otherwise."""

from __future__ import annotations

import unicodedata


def normal(name: str) -> str:
    """Names are the same when they look the same: file systems differ in how they store them."""
    return unicodedata.normalize("NFC", name)
