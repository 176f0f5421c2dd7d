"""What the forms of a word have in common."""

from __future__ import annotations

import unicodedata
from functools import cache

import snowballstemmer


@cache
def stem(word: str) -> str:
    """A word without its English endings, in lower case; a word of another language as it is."""
    folded = unicodedata.normalize("NFC", word).casefold().replace("’", "'")
    stemmed: str = _stemmer().stemWord(folded.removesuffix("'s").removesuffix("'"))
    return stemmed


@cache
def _stemmer() -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer("english")
