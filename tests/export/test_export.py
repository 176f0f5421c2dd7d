"""Texts as files for others."""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pypandoc  # type: ignore[import-untyped]
import pytest
from documents import PACKED, Words, raw, words

import smartwriter.export.pandoc as pandoc
import smartwriter.files.durable as durable
from smartwriter.errors import Invalid
from smartwriter.export.document import Document
from smartwriter.export.export import export

CONVERTED = (".html", ".docx", ".epub", ".txt")

MIXED = """\
# The Ferry 渡口

It cost $5, or *five* dollars; he’d say “no”.

清晨的渡口还没有
人，只有雾。

שלום עולם, דנה!

مرحبا بالعالم

Family: 👩‍👩‍👧‍👦 and 👍🏽, flag 🏳️‍🌈, cafe\u0301, ก็, \u1100\u1161\u11a8, \ufa19 and \u795e.
"""
EXPECTED = [
    "The Ferry 渡口",
    "It cost $5, or five dollars; he’d say “no”.",
    "清晨的渡口还没有人，只有雾。",
    "שלום עולם, דנה!",
    "مرحبا بالعالم",
    "Family: 👩‍👩‍👧‍👦 and 👍🏽, flag 🏳️‍🌈, cafe\u0301, ก็, \u1100\u1161\u11a8, \ufa19 and \u795e.",
]


def exported(tmp_path: Path, ending: str, text: str, **more: Any) -> Path:
    path = tmp_path / f"out{ending}"
    export(Document(**{"title": "A task", "text": text, **more}), path)
    assert [found.name for found in tmp_path.glob("*out*")] == [path.name]
    return path


# What is in a text -----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", CONVERTED)
def test_every_script_comes_through(tmp_path: Path, ending: str) -> None:
    """Chinese, English, right-to-left, joined emoji and combining marks are in every format."""
    found = words(exported(tmp_path, ending, MIXED))
    for line in EXPECTED:
        assert line in found


@pytest.mark.parametrize("text", [MIXED, "a\r\nb\r\n", "\ufeffx", "no line end", "", "\ud83d \0 \x1b"])
def test_markdown_is_the_text_as_it_is(tmp_path: Path, text: str) -> None:
    """Not a byte of a text changes in a .md file."""
    path = exported(tmp_path, ".md", text)
    assert path.read_bytes() == text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("text", ["---\ntitle: 雾\n---\n渡口\n", "half \ud83d"])
def test_json_has_everything(tmp_path: Path, text: str) -> None:
    """A .json file has the title, the whole text and what else was given, also with half an emoji."""
    path = exported(tmp_path, ".json", text, extra={"counts": {"words": 3}})
    found = json.loads(path.read_bytes())
    title = "雾" if "雾" in text else "A task"
    assert found == {"title": title, "text": text, "extra": {"counts": {"words": 3}}}


@pytest.mark.parametrize("ending", CONVERTED)
@pytest.mark.parametrize(
    "text", ["half \ud83d here\n", "nul \0 here\n", "bell \x07 here\n", "end \uffff here\n"]
)
def test_what_no_format_can_hold_is_replaced(tmp_path: Path, ending: str, text: str) -> None:
    """Half an emoji, NUL and control characters become U+FFFD, also in the title."""
    found = exported(tmp_path, ending, text, title=f"T{text.split()[1]}T")
    assert re.search("[a-z]+ \ufffd here", words(found))
    assert "T\ufffdT" in raw(found)


@pytest.mark.parametrize("ending", CONVERTED)
def test_any_line_ends(tmp_path: Path, ending: str) -> None:
    """CRLF and CR end lines and paragraphs as LF does, and a byte order mark is no character."""
    found = words(exported(tmp_path, ending, "\ufeff# Head\r\n\r\none\r\n\r\ntwo\r\rthree\r\n"))
    assert "\ufeff" not in found and "#" not in found
    assert re.search(r"one\s+two\s+three", found)


@pytest.mark.slow
def test_a_text_of_a_megabyte(tmp_path: Path) -> None:
    """The longest text that a draft can have is converted whole."""
    text = ("雾 and fog, *both* of them. " * 100 + "\n\n") * 340
    assert 900_000 < len(text.encode()) < 1 << 20
    assert words(exported(tmp_path, ".docx", text)).count("雾 and fog, both of them.") == 34_000


@pytest.mark.parametrize("ending", CONVERTED)
@pytest.mark.parametrize("text", ["", "\n\n", "---\n", "<!-- nothing -->"])
def test_a_text_without_words(tmp_path: Path, ending: str, text: str) -> None:
    """An empty text makes a file with the title."""
    path = exported(tmp_path, ending, text)
    assert "A task" in raw(path)


def test_what_is_nested_too_deep(tmp_path: Path) -> None:
    """A text that would keep the converter busy for minutes is refused at once, in a sentence."""
    for text in (">" * 20_000 + " x", "- " * 9_000 + "x"):
        with pytest.raises(Invalid, match="nested too deep"):
            exported(tmp_path, ".docx", text)
    deep = "\n".join("  " * level + "- x" for level in range(400))
    with pytest.raises(Invalid, match="nested too deep"):
        exported(tmp_path, ".docx", deep)
    assert list(tmp_path.glob("*out*")) == []


# Titles and front matter ------------------------------------------------------------------------


FRONT = """\
---
title: "雾: the *fog*"
author: [Ana, 李雷]
date: 2026-03-01
lang: pt_BR
css: /etc/passwd
header-includes: <script>alert(1)</script>
cover-image: /etc/passwd
---

Text.
"""


@pytest.mark.parametrize("ending", CONVERTED)
def test_front_matter_is_metadata(tmp_path: Path, ending: str) -> None:
    """Title, authors, date and language of the front matter win, as words; nothing else is taken."""
    path = exported(tmp_path, ending, FRONT, language="de")
    found = raw(path)
    for words_ in ("雾: the *fog*", "Ana", "李雷", "2026-03-01" if ending != ".docx" else ""):
        assert words_ in found
    assert "pt-BR" in found or ending == ".txt"
    for hidden in ("passwd", "alert", "A task", "root:", "lang: pt"):
        assert hidden not in found


def test_what_only_looks_like_front_matter_is_text(tmp_path: Path) -> None:
    """A rule across the page, and a block that is not YAML, stay in the text."""
    assert "one" in words(exported(tmp_path, ".txt", "---\n\none\n\n---\n\ntwo\n"))
    assert "a: [b" in words(exported(tmp_path, ".txt", "---\na: [b\n---\n\ntwo\n"))
    assert "just words" in words(exported(tmp_path, ".txt", "---\njust words\n---\n\ntwo\n"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# 渡口\n\nText.", "渡口\n\nText.\n"),
        ("# A task\n\n# Two\n", "A task\n\nTwo\n"),
        ("# One\n\n# Two\n", "A task\n\nOne\n\nTwo\n"),
        ("Text.", "A task\n\nText.\n"),
        ("---\ntitle: T\nauthor: A\n---\n# One\n", "T\n\nA\n\nOne\n"),
        ("---\ntitle: One\n---\n# One\n\nx", "One\n\nx\n"),
        ("---\ntitle: One\n---\n# *One*\n\nx", "One\n\nx\n"),
    ],
)
def test_the_title_stands_there_once(tmp_path: Path, text: str, expected: str) -> None:
    """A single first heading is the title; one that says the same as the title is not repeated."""
    assert exported(tmp_path, ".txt", text).read_text() == expected


def test_right_to_left_in_word(tmp_path: Path) -> None:
    """In a left-to-right .docx a right-to-left paragraph is marked as one, and the other way round."""
    w = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

    def marked(text: str) -> dict[str, bool]:
        with zipfile.ZipFile(exported(tmp_path, ".docx", text)) as packed:
            tree = ElementTree.fromstring(packed.read("word/document.xml"))
        paragraphs = ["".join(node.itertext()) for node in tree.iter(f"{w}p")]
        marks = [node.find(f"{w}pPr/{w}bidi") is not None for node in tree.iter(f"{w}p")]
        return dict(zip(paragraphs, marks, strict=True))

    english = marked("One.\n\n## שלום\n\nשלום 3 עולם\n\n- مرحبا\n\nTwo words and more.\n")
    assert english["One."] is english["Two words and more."] is False
    assert english["שלום"] is english["שלום 3 עולם"] is english["مرحبا"] is True
    arabic = marked("مرحبا بالعالم مرحبا\n\nOne.\n\n123\n")
    assert (arabic["مرحبا بالعالم مرحبا"], arabic["One."], arabic["123"]) == (True, False, True)


def test_right_to_left_on_pages(tmp_path: Path) -> None:
    """A page in Arabic says so, a book also says where its pages turn, and each paragraph its direction."""
    text = "## مرحبا\n\nمرحبا بالعالم مرحبا\n\nOne.\n"
    page = Words(exported(tmp_path, ".html", text).read_text())
    assert ("html", {"lang": "ar", "dir": "rtl"}) in page.elements
    assert ("div", {"dir": "ltr"}) in page.elements
    (tmp_path / "out.html").unlink()
    book = raw(exported(tmp_path, ".epub", text))
    assert '<spine toc="ncx" page-progression-direction="rtl">' in book
    assert re.search(r'<h2 dir="rtl"[^>]*>مرحبا</h2>', book)
    assert re.search(r'<div dir="rtl">\s*<p>مرحبا بالعالم مرحبا</p>', book)


# Hostile texts ---------------------------------------------------------------------------------


SECRET = "the contents of a file nearby"
HOSTILE = """\
# Plain

![](/etc/passwd) ![](file:///etc/passwd) ![seen](http://127.0.0.1:9/x.png) ![](secret.txt)
![](//127.0.0.1/x) [a](javascript:alert(1)) [b](file:///etc/passwd) [c](\\\\server\\share)
[d](<java\tscript:alert(1)>) [e](data:text/html,x) <javascript:alert(1)> [fine](https://example.org/a)

<script>alert(1)</script>

<img src=x onerror=alert(1)> text <b onclick="alert(1)">bold</b> <!-- a note to myself --> after

<iframe src="file:///etc/passwd"></iframe>

<!-- a comment -->

```{=openxml}
<w:p><w:r><w:instrText>INCLUDETEXT "/etc/passwd"</w:instrText></w:r></w:p>
```

`<w:br/>`{=openxml} `<i>`{=html}

```{=html}
<script>alert(2)</script>
```

{{#include secret.txt}} {{< include secret.txt >}} !include secret.txt \\input{secret.txt}

.. include:: secret.txt

```{.python include="secret.txt" onclick="alert(1)" style="background:url(http://127.0.0.1:9)"}
```

## Head {#x onclick="alert(1)" style="background:url(http://127.0.0.1:9)"}

::: {style="background:url(http://127.0.0.1:9)"}
box
:::

[span]{onclick="alert(1)"} \\(\\include{secret.txt}\\) $$\\input{/etc/passwd}$$
"""


@pytest.mark.parametrize("ending", CONVERTED)
def test_a_hostile_text_is_only_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """Images, links, raw code, attributes and includes read no file, fetch nothing and run nothing."""
    (tmp_path / "secret.txt").write_text(SECRET)
    monkeypatch.chdir(tmp_path)
    path = exported(tmp_path, ending, HOSTILE)
    found = raw(path)
    assert SECRET not in found and "root:" not in found
    assert "alert(1)" in words(path) and "INCLUDETEXT" in words(path) and "seen" in words(path)
    assert "note to myself" not in found and "a comment" not in found
    if ending == ".docx":
        assert "<w:instrText>" not in found and "<w:drawing>" not in found
    for target in re.findall(r'(?:href|Target|src)="([^"]*)"', found if ending != ".txt" else ""):
        assert re.match(r"https://example|http://127.0.0.1:9/x.png$|[\w./-]*(#[\w-]+)?$", target), target
    if ending == ".html":
        assert not Words(found).tags() & {"script", "img", "iframe", "b", "i", "link", "object"}
    if ending == ".epub":
        assert "<script" not in found and "<img" not in found and "<iframe" not in found
    assert not re.search(r"<[a-z][^<>]*\s(on\w+|style|src)=", found.partition("</style>")[2])
    if ending in PACKED:
        with zipfile.ZipFile(path) as packed:
            assert not [name for name in packed.namelist() if "media" in name or "passwd" in name]


def test_pages_load_nothing(tmp_path: Path) -> None:
    """A page has its style inside, and says to the browser that nothing may be loaded or run."""
    page = exported(tmp_path, ".html", MIXED).read_text()
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\';' in page
    assert "url(" not in page and "@import" not in page


# Where it is written ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.pdf", "out", ".md", "out.doc"])
def test_an_unknown_ending(tmp_path: Path, name: str) -> None:
    """An ending that means no format is refused with those that do."""
    with pytest.raises(Invalid, match=r"\.md, \.html, \.docx, \.epub, \.txt or \.json"):
        export(Document("T", "x"), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_place_where_no_file_can_be(tmp_path: Path) -> None:
    """A folder, and a file in a folder that is not there, are refused in a sentence."""
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(Invalid, match=r"folder\.md is a folder; name a file\.$"):
        export(Document("T", "x"), tmp_path / "folder.md")
    with pytest.raises(Invalid, match=r"There is no folder .*missing to write out\.md in\.$"):
        export(Document("T", "x"), tmp_path / "missing" / "out.md")
    assert not (tmp_path / "missing").exists()


def test_a_disk_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file cannot be written, the error names it and not a temporary one."""

    def refuse(error: OSError) -> Callable[..., None]:
        def write(*_: object) -> None:
            raise error

        return write

    monkeypatch.setattr(durable, "write_document", refuse(PermissionError(13, "Permission denied", "x.tmp")))
    with pytest.raises(Invalid, match=r"out\.md cannot be written: its folder does not allow it\.$"):
        export(Document("T", "x"), tmp_path / "out.md")
    monkeypatch.setattr(durable, "write_document", refuse(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match=r"No space left on device: '.*out\.md'$"):
        export(Document("T", "x"), tmp_path / "out.md")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    """A folder that may not be written in is named in a sentence."""
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(Invalid, match="its folder does not allow it"):
        export(Document("T", "x"), tmp_path / "locked" / "out.md")


def test_an_older_file_is_replaced(tmp_path: Path) -> None:
    """An export to a file that is there already replaces it as a whole."""
    for text in ("old and longer text\n", "new\n"):
        assert exported(tmp_path, ".md", text).read_text() == text


@pytest.mark.parametrize("missing", ["module", "program"])
def test_without_a_converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Without pypandoc or pandoc it says what to install, writes nothing, and .md still works."""
    pypandoc.clean_pandocpath_cache()
    monkeypatch.setenv("PYPANDOC_PANDOC", str(tmp_path / "nowhere"))
    if missing == "module":
        monkeypatch.setitem(sys.modules, "pypandoc", None)
    for ending in CONVERTED:
        (tmp_path / f"out{ending}").write_text("old")
        with pytest.raises(Invalid, match=r"get it with: scripts/install export$"):
            export(Document("T", "x"), tmp_path / f"out{ending}")
        assert (tmp_path / f"out{ending}").read_text() == "old"
        (tmp_path / f"out{ending}").unlink()
    assert exported(tmp_path, ".md", "x").read_text() == "x"
    pypandoc.clean_pandocpath_cache()


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("echo 'No such thing.' >&2; echo half; exit 3", r"could not convert the text: No such thing\.$"),
        ("exit 251", r"too intricate to be converted in memory"),
        ("kill -9 $$", r"could not convert the text: it ended with -9\.$"),
        ("exec sleep 60", r"stopped after 0 s without a result"),
        (None, r"could not be started: Permission denied\.$"),
    ],
)
def test_a_failed_conversion_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str | None, says: str
) -> None:
    """A converter that fails, dies, hangs or does not start leaves the file and no other one."""
    program = tmp_path / "pandoc"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755 if does else 0o644)
    monkeypatch.setattr(pypandoc, "get_pandoc_path", lambda: str(program))
    monkeypatch.setattr(pandoc, "CONVERSION_TIMEOUT_S", 0.3)
    (tmp_path / "out.docx").write_bytes(b"old")
    with pytest.raises(Invalid, match=says):
        export(Document("T", "x"), tmp_path / "out.docx")
    assert [(path.name, path.read_bytes()) for path in tmp_path.glob("*out*")] == [("out.docx", b"old")]


def test_books_have_an_identity_and_a_time(tmp_path: Path) -> None:
    """Another article is another book, the same one is the same again, and none is of 1970."""

    def identifier(path: Path) -> str:
        found = re.search(r"<dc:identifier[^>]*>(urn:uuid:[0-9a-f-]{36})<", raw(path))
        assert found is not None and "1970" not in raw(path)
        return found[1]

    one = identifier(exported(tmp_path, ".epub", "x", identity="a@main"))
    assert identifier(exported(tmp_path, ".epub", "x, revised", identity="a@main")) == one
    assert identifier(exported(tmp_path, ".epub", "x", identity="b@main")) != one
    with zipfile.ZipFile(tmp_path / "out.epub") as book:
        first = book.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
    (tmp_path / "out.epub").unlink()
    assert "1970" not in raw(exported(tmp_path, ".docx", "x"))
