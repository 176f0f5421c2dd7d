"""Emphasis, line ends and tags of HTML in exports."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest

from smartwriter.export.document import Document
from smartwriter.export.export import converted, export

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415478da63f8cfc00000030101"
    "00c9fe92ef0000000049454e44ae426082"
)


def html(text: str, *, verse: bool = False) -> str:
    """The body of a text exported as a page."""
    page = converted(Document("Untitled", text, verse=verse), ".html").decode()
    return page.partition("</header>\n")[2].partition("</article>")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**注意：**这里", "<strong>注意：</strong>这里"),
        ("他说**“走吧！”**然后", "他说<strong>“走吧！”</strong>然后"),
        ("**「重要」**です", "<strong>「重要」</strong>です"),
        ("*（略）*と*「二」*も", "<em>（略）</em>と<em>「二」</em>も"),
        ("**단어(word)**를", "<strong>단어(word)</strong>를"),
        ("这**[链接](https://a.org)**字", '这<strong><a href="https://a.org">链接</a></strong>字'),
        ("**一。**二**三。**四", "<strong>一。</strong>二<strong>三。</strong>四"),
        ("~~删除。~~这", "<del>删除。</del>这"),
        (r"\*\*注意：\*\*这里", "**注意：**这里"),
        ("`**注意：**这里`", "<code>**注意：**这里</code>"),
        ("a **bold**, and **“quoted”** one", "a <strong>bold</strong>, and <strong>“quoted”</strong> one"),
    ],
)
def test_emphasis_works_beside_any_punctuation(text: str, expected: str) -> None:
    """In scripts without spaces, marks of emphasis beside punctuation are marks, not asterisks."""
    assert html(text).strip() == f"<p>{expected}</p>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("여섯 시에\n떠났다.", "여섯 시에 떠났다."),
        ("清晨\n渡口", "清晨渡口"),
        ("他说\n“走”\n——然后…\n走了", "他说“走”——然后…走了"),
        ("ノート\n「を」", "ノート「を」"),
        ("**清晨**\n渡口", "<strong>清晨</strong>渡口"),
        ("hello\n世界", "hello 世界"),
        ("He said\n“go” —\nand went", "He said “go” — and went"),
    ],
)
def test_a_line_end_is_a_space_where_the_script_has_spaces(text: str, expected: str) -> None:
    """Lines of one paragraph are joined as their script joins words: Korean with a space, Chinese without."""
    assert html(text).strip() == f"<p>{expected}</p>"


def test_verse_keeps_its_line_ends() -> None:
    """With the option for verse, a line of a poem is a line in every format."""
    poem = "Fog on the water,\nno oar, no daughter.\n\n渡口\n无人"
    assert html(poem, verse=True).count("<br />") == 2
    assert "Fog on the water,\nno oar" in converted(Document("x", poem, verse=True), ".txt").decode()
    assert "Fog on the water, no oar" in converted(Document("x", poem), ".txt").decode()


def test_tags_that_prose_needs(tmp_path: Path) -> None:
    """Indices, keys, underlining and readings are what they are in each format; other tags stay words."""
    text = (
        'H<sub>2</sub>O, <u>so</u>, <kbd>Ctrl</kbd>, <ruby>漢<rt>かん</rt></ruby>, <b class="q">no</b> <sub>'
    )
    assert html(text).strip() == (
        "<p>H<sub>2</sub>O, <u>so</u>, <kbd>Ctrl</kbd>, "
        "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>, "
        "&lt;b class=&quot;q&quot;&gt;no&lt;/b&gt; &lt;sub&gt;</p>"
    ).replace("&quot;", '"')
    export(Document("x", text), tmp_path / "x.docx")
    word = zipfile.ZipFile(tmp_path / "x.docx").read("word/document.xml").decode()
    assert "w:ruby" in word and 'w:val="subscript"' in word and "w:u " in word and "&lt;u&gt;" not in word
    assert "漢（かん）" in converted(Document("x", text), ".txt").decode()


def test_a_reading_cannot_bring_code(tmp_path: Path) -> None:
    """What stands in a tag of ours is words, whatever it looks like."""
    text = "<ruby>a<script>x</script>&<rt>`<img src=x>`</rt></ruby>"
    assert "<script" not in html(text) and "<img" not in html(text)
    export(Document("x", text), tmp_path / "x.docx")


# Pictures and links -------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of drafts, with a picture in it, one outside, and a link to that one."""
    folder = tmp_path / "workspace" / "drafts"
    folder.mkdir(parents=True)
    (folder / "a map.png").write_bytes(PNG)
    (folder / "not.png").write_text("no picture")
    (tmp_path / "outside.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    return folder


@pytest.mark.parametrize("ending", [".html", ".docx", ".epub"])
def test_pictures_of_the_workspace_are_packed(folder: Path, ending: str) -> None:
    """A picture beside the text goes into the document; others, and none from outside, are named."""
    names = ["a%20map.png", "link.png", "../../outside.png", "gone.png", "not.png", "/etc/x.png"]
    text = " ".join(f"![picture {n}]({name})" for n, name in enumerate(names))
    document = Document("x", text, folder=folder, root=folder.parent)
    data = converted(document, ending)
    if ending == ".html":
        assert data.count(b"<img ") == data.count(b"data:image/png") == 1
        return
    path = folder / f"x{ending}"
    path.write_bytes(data)
    with zipfile.ZipFile(path) as packed:
        media = [name for name in packed.namelist() if re.search(r"media/", name)]
        page = "word/document.xml" if ending == ".docx" else "EPUB/text/ch001.xhtml"
        words = packed.read(page).decode()
    assert len(media) == 1 and all(f"picture {n}" in words for n in range(1, 6))


def test_a_book_has_no_link_that_leads_nowhere() -> None:
    """In a book, a link to a file beside the text, or to a place that is not there, is its words."""
    text = "# One\n\n[a](other.md) [b](#nowhere) [c](#two) [d](https://example.org)\n\n# Two\n\nx\n"
    data = converted(Document("x", text), ".epub")
    path = zipfile.ZipFile(io.BytesIO(data))
    page = "".join(path.read(name).decode() for name in path.namelist() if "/ch" in name)
    assert "other.md" not in page and "nowhere" not in page
    assert 'href="ch002.xhtml#two"' in page and 'href="https://example.org"' in page
