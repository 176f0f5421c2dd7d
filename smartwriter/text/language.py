"""The language that a text is in, as far as its script tells, and where its lines begin."""

from __future__ import annotations

import re

# A Chinese character counts as much as a word of the other scripts.
_SCRIPTS = {
    "han": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
    "kana": re.compile("[\u3041-\u30ff\uff66-\uff9d]"),
    "ko": re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7af]+"),
    "ar": re.compile("[\u0620-\u065f\u066e-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc]+"),
    "he": re.compile("[\u0590-\u05ff\ufb1d-\ufb4f]+"),
    "": re.compile("[A-Za-z\u00c0-\u024f\u0370-\u052f]+"),
}
_RIGHT_TO_LEFT = frozenset({"ar", "he", "fa", "ur", "yi", "ps", "sd", "ug", "dv", "ckb"})


def language_of_script(text: str) -> str:
    """``zh``, ``ja``, ``ko``, ``ar`` or ``he``; empty for a text whose script many languages share."""
    count = {name: sum(1 for _ in letters.finditer(text)) for name, letters in _SCRIPTS.items()}
    kana, han = count.pop("kana"), count.pop("han")
    # Japanese prose is about half kana; a Chinese text may quote some.
    count["ja" if kana * 5 > kana + han else "zh"] = kana + han
    most = max(count, key=lambda name: count[name])
    return most if count[most] else ""


def guessed_language(text: str) -> str:
    """As :func:`language_of_script`; ``en`` for all that is in no such script."""
    return language_of_script(text) or "en"


def direction_of(language: str) -> str:
    """``rtl`` or ``ltr``."""
    return "rtl" if language.lower().split("-")[0] in _RIGHT_TO_LEFT else "ltr"
