from __future__ import annotations

from smartwriter.text.wording import counted, shortened


def test_a_number_agrees_with_its_noun() -> None:
    """One is one, all else are many, and thousands can be told apart."""
    assert [counted(number, "word") for number in (0, 1, 2, 12_000)] == [
        "0 words",
        "1 word",
        "2 words",
        "12,000 words",
    ]


def test_a_text_is_cut_to_a_line() -> None:
    """It stays as it is where it fits, counts its mark of omission, and has no line ends."""
    assert shortened("one\n two", 7) == "one two"
    assert shortened("one\n twos", 7) == "one tw…"
