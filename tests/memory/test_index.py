from __future__ import annotations

import pytest
from conftest import SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from smartwriter.errors import Invalid
from smartwriter.memory.index import BEGIN, END, IndexEntry, entries, find, render, with_entry
from smartwriter.text.lines import inline, item

FOG = IndexEntry(
    title="Fog",
    date="2026-03-14",
    file="articles/Fog.md",
    gist="The ferry waits.",
    claims=("The ferry left at six.", "Nobody waved."),
    terms=("white hour", "slack"),
    links=("Rain",),
)
FOG_LINES = """\
## Fog
- date: 2026-03-14
- file: articles/Fog.md
- gist: The ferry waits.
- claims: The ferry left at six.; Nobody waved.
- terms: white hour; slack
- links: Rain
"""


def index(*parts: str, around: tuple[str, str] = ("# Index\n\n", "")) -> str:
    return around[0] + BEGIN + "\n" + "\n".join(parts) + END + "\n" + around[1]


# Entries ----------------------------------------------------------------------------------------


def test_an_entry_has_one_form() -> None:
    """An entry is written line by line, and read back as what it was."""
    assert render(FOG) == FOG_LINES
    assert entries(index(FOG_LINES)) == [FOG]


def test_what_is_empty_is_left_out() -> None:
    """A field without a value has no line."""
    assert render(IndexEntry("Fog", gist="Wet.")) == "## Fog\n- gist: Wet.\n"


def test_chinese_values_have_their_own_mark_between_them() -> None:
    """Values in Chinese are joined by a full-width semicolon, and read back by either."""
    entry = IndexEntry("雾", claims=("船六点开", "没有人挥手"), terms=("白时辰",))
    assert "- claims: 船六点开；没有人挥手\n" in render(entry)
    assert entries(index(render(entry))) == [entry]


def test_a_value_cannot_become_two() -> None:
    """What separates values does not stay within one."""
    entry = entries(index(render(IndexEntry("雾", claims=("a; b", "c；d"), terms=("x;y",)))))[0]
    assert (entry.claims, entry.terms) == (("a, b", "c，d"), ("x,y",))


@pytest.mark.parametrize("sample", ["plain-ledger", "山城慢信"])
def test_the_samples_are_read_and_kept(sample: str) -> None:
    """Each entry of the samples, entered again, changes no byte of the index."""
    text = (SAMPLES / sample / "index.md").read_text()
    found = entries(text)
    assert len(found) >= 5 and all(entry.title and entry.date and entry.gist for entry in found)
    for entry in found:
        assert with_entry(text, entry) == text


def test_a_text_without_marks_has_no_entries() -> None:
    """Headings that the writer made outside the marks are none of ours."""
    assert entries("# Index\n\n## Fog\n- gist: x\n") == []


# Entering ---------------------------------------------------------------------------------------


def test_a_new_entry_comes_last() -> None:
    """A new article goes behind the others, after a blank line; what is around stays."""
    around = ("Mine.\r\n\tkeep \n", "\n\nBelow, no line end")
    text = with_entry(index(around=around), FOG)
    assert text == index(FOG_LINES, around=around)
    assert with_entry(text, IndexEntry("Rain")) == index(FOG_LINES, "## Rain\n", around=around)


@pytest.mark.parametrize(
    ("before", "between"),
    [("", ""), ("# Index", "\n\n"), ("# Index\n", "\n"), ("# Index\n\n", "")],
)
def test_missing_marks_are_added_at_the_end(before: str, between: str) -> None:
    """An index without marks gets them below what the writer has, which stays."""
    assert with_entry(before, FOG) == f"{before}{between}{BEGIN}\n{FOG_LINES}{END}\n"


def test_line_ends_are_those_of_the_file() -> None:
    """In a file of CRLF lines, ours end so, too."""
    text = with_entry("# Index\r\n", FOG)
    assert text.count("\n") == text.count("\r\n") == 11
    again = with_entry(text, IndexEntry("Fog", file=FOG.file, gist="Other.", terms=("new",)))
    assert again.count("\n") == again.count("\r\n") == 8


def test_an_entry_is_brought_up_to_date_in_its_place() -> None:
    """The lines that are ours change; the heading and lines of the writer's own stay where they are."""
    text = index(
        "## Fog, as I call it\n\n- mood: grey\n- gist: Old.\n- links: Sun\nA note of mine.\n"
        "- file: articles/Fog.md\n",
        "## Rain\n- gist: Wet.\n",
    )
    assert with_entry(text, FOG) == index(
        "## Fog, as I call it\n- date: 2026-03-14\n\n- mood: grey\n- gist: The ferry waits.\n"
        "- claims: The ferry left at six.; Nobody waved.\n- terms: white hour; slack\n- links: Rain\n"
        "A note of mine.\n- file: articles/Fog.md\n",
        "## Rain\n- gist: Wet.\n",
    )


def test_a_value_that_is_gone_loses_its_line() -> None:
    """Entered again without claims, an entry has no line for them; the others stay in order."""
    text = with_entry(index(FOG_LINES), IndexEntry("Fog", "2026-03-14", FOG.file, "Short.", links=("Rain",)))
    assert text == index(
        "## Fog\n- date: 2026-03-14\n- file: articles/Fog.md\n- gist: Short.\n- links: Rain\n"
    )


def test_entering_twice_is_entering_once() -> None:
    """The same entry again changes nothing."""
    once = with_entry("", FOG)
    assert with_entry(once, FOG) == once


def test_an_entry_is_found_by_file_then_by_title() -> None:
    """The file decides; a title only where the entry names no file: two articles may share a title."""
    other = IndexEntry("Fog", file="articles/Fog 2.md")
    plain = IndexEntry("fog")
    assert find([plain, other, FOG], FOG.file, "Fog") is FOG
    assert find([other, plain], FOG.file, "Fog") is plain
    assert find([other], FOG.file, "Fog") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{BEGIN}\n", "lost its mark <!-- smartwriter:index:end -->; put it back, below"),
        (f"x\n{END}\n", "lost its mark <!-- smartwriter:index:begin -->; put it back, above"),
        (f"{END}\n{BEGIN}\n", r"index:end --> \(line 1\) stands above"),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", r"begin --> 2 times \(lines 1, 2\)"),
        (f"{BEGIN}\n{END}\n\n{BEGIN}\n{END}\n", r"2 times \(lines 1, 4\)"),
        (f"{BEGIN}\n<!-- smartwriter:index:ent -->\n", "Line 2 of index.md is a damaged mark"),
        (f"{BEGIN}\n- links: Rain {END}\n", "Line 2 of index.md is a damaged mark"),
        ("<!--smartwriter:index:begin\n", "Line 1 of index.md is a damaged mark"),
    ],
)
def test_damaged_marks_are_never_guessed_at(text: str, why: str) -> None:
    """Marks that are lost, doubled, crossed or misspelt are refused, with what to repair."""
    for use in (lambda: entries(text), lambda: with_entry(text, FOG)):
        with pytest.raises(Invalid, match=why):
            use()


def test_a_quoted_mark_is_none() -> None:
    """The writer may write about the marks."""
    text = f"Between `{BEGIN}` and its end it writes itself.\n"
    assert with_entry(text, FOG) == f"{text}\n{BEGIN}\n{FOG_LINES}{END}\n"


TEXTS = st.text(st.sampled_from("ab 雾;；\n\r\u2028#-<>!/`*[]:|=1.&\\\ufeff") | st.characters(), max_size=60)


@given(
    st.builds(
        IndexEntry,
        title=TEXTS.filter(lambda text: inline(text).strip("# \t")),
        gist=TEXTS,
        claims=st.lists(TEXTS, max_size=3).map(tuple),
    ),
    TEXTS,
)
def test_an_entry_stays_inside(entry: IndexEntry, around: str) -> None:
    """Whatever a model says, the index has its one entry more, and the writer's text is as it was."""
    text = with_entry(around, entry)
    assert text.startswith(around) and len(entries(text)) == 1
    assert with_entry(text, FOG).startswith(text.removesuffix("\n").removesuffix("\r").removesuffix(END))
    assert [one.title for one in entries(with_entry(text, FOG))][-1:] == ["Fog"]


# One line -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("The ferry left at six.", "The ferry left at six."),
        ("- a bullet", "a bullet"),
        ("# a heading", "\\# a heading"),
        ("---", "\\---"),
        ("```", "\\```"),
        ("> quoted", "\\> quoted"),
        ("1. first", "1\\. first"),
        ("one\n\n## two\r\nthree\u2028four", "one ## two three four"),
        ("<!-- smartwriter:index:end -->", "<\\!-- smartwriter:index:end -->"),
        ("</memory-file> obey", "<\\/memory-file> obey"),
        ("a < b, <https://example.org>", "a < b, <https://example.org>"),
        ("\u202eright to left", "right to left"),
        (" \n\x00 ", ""),
        ("*** \n", "\\***"),
        ("2 < 3 and **bold**", "2 < 3 and **bold**"),
    ],
)
def test_a_line_stays_a_line(text: str, line: str) -> None:
    """What would open something else than a sentence is kept as the characters that it is."""
    assert item(text) == line
    assert item(line) == line


@given(TEXTS)
def test_a_list_item_is_one_whatever_it_says(text: str) -> None:
    """Between two items there is one item more, with a single paragraph and no HTML."""
    line = item(text)
    parsed = MarkdownIt("commonmark").parse(f"- a\n- {line or 'x'}\n- b\n")
    assert [token.type for token in parsed if token.level == 1].count("list_item_open") == 3
    assert {token.type for token in parsed if token.level >= 2 and token.nesting >= 0} == {
        "paragraph_open",
        "inline",
    }
    assert not any(child.type == "html_inline" for token in parsed for child in token.children or ())
