from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from compared import AFTER, BEFORE

from smartwriter.pages.comparison import compared, comparison_page


class _Page(HTMLParser):
    """Checks that tags are closed in order, and collects what is in <ins> and <del>."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in {"ins", "del"}:
            self.found.append((self.open[-1], data))


def test_the_page() -> None:
    """Escaped, well formed, in need of nothing else, for light and dark, with every change in it."""
    text = comparison_page(compared(("<a>", BEFORE), ("b", AFTER)))
    page = _Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert page.found == [
        ("del", "early"),
        ("ins", "late"),
        ("del", "很大"),
        ("ins", "散了"),
        ("del", "This one goes away."),
        ("ins", "Something <b>new</b> & bold."),
    ]
    assert "<title>&lt;a&gt; → b</title>" in text and "<b>" not in text
    assert "Paragraph 2, moved from 6" in text and "Paragraph 6 moved to 2" in text
    assert 'dir="auto"' in text and "prefers-color-scheme: dark" in text
    assert "<script" not in text and not re.search(r"https?:|url\(", text)
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\';' in text


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("渡口的雾很大，船没有来。", "zh"),
        ("渡し船は来なかった。", "ja"),
        ("배가 오지 않았다.", "ko"),
        ("הספינה לא באה", "he"),
        ("لم تأت العبارة", "ar"),
        ("The ferry did not come.", ""),
        ("", ""),
    ],
)
def test_the_page_names_its_script(text: str, language: str) -> None:
    """Han looks different in Chinese and in Japanese, and a browser must know which it is."""
    assert f'<article lang="{language}">' in comparison_page(compared(("a", ""), ("b", text)))


def test_a_page_shows_what_it_cannot_hold() -> None:
    """A control character stands there by its picture, so two texts that differ in one look different."""
    text = comparison_page(compared(("a", "one \x07"), ("b", "one \x1b\x7f")))
    assert "<del>␇</del>" in text and "<ins>␛␡</ins>" in text


def test_a_stray_half_of_an_emoji_can_be_written() -> None:
    """It is replaced: no page can hold it."""
    comparison_page(compared(("a", "x"), ("b", "x \ud83d"))).encode()
