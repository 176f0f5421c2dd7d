from __future__ import annotations

import pytest

from smartwriter.text.language import direction_of, guessed_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("清晨的渡口 early in the morning.", "zh"),
        ("他说“ありがとう”，然后走进了清晨的大雾里，再也没有回头看一眼。", "zh"),
        ("朝の渡し場にはまだ誰もいない。", "ja"),
        ("아침의 나루터에는 아무도 없다", "ko"),
        ("مرحبا بالعالم", "ar"),
        ("שלום עולם", "he"),
        ("The word 雾 means fog.", "en"),
        ("Утро у переправы", "en"),
        ("12 — 👍🏽", "en"),
        ("", "en"),
    ],
)
def test_the_language_is_guessed(text: str, language: str) -> None:
    """The script that most of a text is in says its language."""
    assert guessed_language(text) == language
    assert direction_of(language) == ("rtl" if language in ("ar", "he") else "ltr")
