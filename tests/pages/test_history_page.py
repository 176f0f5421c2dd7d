from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import Words
from histories import WHEN, written_task

from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.pages.history import export_history, history_markdown, history_page
from smartwriter.tasks.values import MAIN, Task
from smartwriter.text.differences.comparison import compare
from smartwriter.trials.history import History, Step, history_of
from smartwriter.workspace import Workspace

EVIL = "</style><script>alert(1)</script> <img src=x onerror=alert(1)> ![](http://127.0.0.1:9/x) & \ud83d"


def evil_history() -> History:
    return History(
        title=EVIL,
        facts=(EVIL,),
        warnings=(EVIL,),
        steps=(
            Step("turn", 1, WHEN, EVIL, facts=(EVIL,), prompt=EVIL, body=f"{EVIL}\n\n```\nopen"),
            Step("revision", 1, WHEN, EVIL, change=compare("", f"{EVIL}\n\n# B\n")),
            Step("revision", 2, WHEN, "Two", change=compare(f"{EVIL}\n\n# B\n", f"{EVIL} more\n\n# B\n")),
        ),
    )


@pytest.fixture
def written(workspace: Workspace) -> tuple[Workspace, Task]:
    return workspace, written_task(workspace)


def test_a_history_page_escapes_everything() -> None:
    """Whatever is in a prompt, an answer, a title or a text shows as the characters it is made of."""
    page = history_page(evil_history())
    found = Words(page)
    shown = "<script>alert(1)</script> <img src=x onerror=alert(1)> ![](http://127.0.0.1:9/x) & \ufffd"
    assert found.words.count(shown) == 11
    assert not found.tags() & {"script", "img", "a", "link", "iframe"}
    assert page.count("</style>") == 1
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]
    assert "default-src 'none'" in page


def test_a_history_in_markdown_is_inert() -> None:
    """In Markdown what was said stands behind fences, or with its marks escaped."""
    text = history_markdown(evil_history())
    outside = re.sub(r"(?ms)^(>? ?)(`{3,})\w*\n.*?^\1\2$", "", text)
    assert "alert" in outside and "open" not in outside
    assert not re.search(r"(?<!\\)[<&]|(?<!\\)!\[|(?<!\\)\]\(", outside)
    assert "> ````text" in text or "> ```text" in text


def test_long_texts_are_folded() -> None:
    """A long prompt can be unfolded, a short one stands there, and each paragraph finds its direction."""
    page = history_page(History("T", (Step("turn", 1, WHEN, "Turn 1", prompt="雾。" * 2000, body="a\n\nب"),)))
    assert page.count("<details>") == 1
    assert '<p class="said" dir="auto">a</p>\n<p class="said" dir="auto">ب</p>' in page
    assert "<blockquote><details>" in page


def test_an_empty_history(tmp_path: Path) -> None:
    """A draft of which nothing is recorded makes a page that says so."""
    export_history(History("T", ()), tmp_path / "h.html")
    assert "Nothing was written yet." in (tmp_path / "h.html").read_text()
    assert "Nothing was written yet." in history_markdown(History("T", ()))
    with pytest.raises(Invalid, match=r"must end in \.html or \.md"):
        export_history(History("T", ()), tmp_path / "h.docx")


def test_a_history_as_a_page(written: tuple[Workspace, Task], tmp_path: Path) -> None:
    """The page shows what a hand edit took and gave; what stayed is only counted."""
    workspace, task = written
    history = history_of(OpenDraft(workspace, task, MAIN))
    export_history(history, tmp_path / "h.html")
    page = (tmp_path / "h.html").read_text()
    assert "The <del>old</del><ins>red</ins> boat." in page
    assert "1 word gained, 1 lost" in page and "… 1 paragraph unchanged …" in page
    assert "2026-03-01 09:31 UTC" in page
    export_history(history, tmp_path / "h.md")
    text = (tmp_path / "h.md").read_text()
    assert "- The old boat.\n+ The red boat.\n" in text
    assert "> ```text\n> Prompt 1\n> ```" in text
