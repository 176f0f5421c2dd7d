from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from smartwriter.text.sections import entry, neutral, one_line, section

_PIECES = [
    "<",
    "＜",
    "/",
    "\\",
    " ",
    "\n",
    "\u200b",
    "memory-file",
    "Memory-File",
    "on-demand-file",
    ">",
    "雾",
]
_TEXTS = st.lists(st.sampled_from(_PIECES)).map("".join)
_A_TAG = re.compile(r"[<＜][\s/\u200b]*(memory|on-demand)-file", re.IGNORECASE)


@given(_TEXTS)
def test_no_text_holds_a_tag_of_ours(text: str) -> None:
    """Whatever a text is made of, nothing in it opens or closes a section."""
    assert not _A_TAG.search(neutral(text))
    assert (
        section(text, name="x").count("<memory-file") == section(text, name="x").count("</memory-file>") == 1
    )


@given(_TEXTS)
def test_what_was_done_to_a_text_can_be_undone(text: str) -> None:
    """Nothing is lost, and a text without our tags has the very same bytes."""
    tags = re.compile(r"([<＜])\\(?=[\s/\\\u200b]*(?:memory|on-demand)-file)", re.IGNORECASE)
    assert tags.sub(r"\1", neutral(text)) == text
    assert neutral(text.replace("-", "")) == text.replace("-", "")


@given(st.text())
def test_an_attribute_stays_in_its_quotes(text: str) -> None:
    """No name or title ends its line, its tag or its quotes, and an empty one is not there."""
    line = entry(name="x", title=text)
    assert len(line.splitlines()) == 1
    assert line.count('"') in (2, 4) and line.count("<") == line.count(">") == 1
    assert line.encode()


def test_a_line_keeps_its_blanks() -> None:
    """Blanks of any width are part of a title; line ends, controls and marks of direction are not."""
    assert one_line("渡口　一  two\u00a0three\n") == "渡口　一  two\u00a0three"
    assert one_line("a\r\n\tb\u2028c\u202ed\x1be\ud800") == "a b c d e"
