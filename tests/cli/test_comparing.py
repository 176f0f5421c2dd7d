from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from compared import AFTER, BEFORE
from rich.cells import cell_len
from rich.console import Console

from smartwriter.cli.comparing import compare_command, show
from smartwriter.pages.comparison import compared
from smartwriter.workspace import Workspace


def console(width: int, *, terminal: bool = False, colours: bool = False) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal,
        color_system="standard" if colours else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )


def shown(
    before: str,
    after: str,
    *,
    layout: str | None = None,
    all_: bool = False,
    width: int = 80,
    terminal: bool = False,
    colours: bool = False,
) -> str:
    to = console(width, terminal=terminal, colours=colours)
    show(compared(("a.md", before), ("b.md", after)), layout=layout, all_=all_, console=to)
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


def run(workspace: Workspace, *arguments: str) -> Result:
    return CliRunner().invoke(
        compare_command, ["-w", str(workspace.root), *arguments], catch_exceptions=False
    )


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The paths of two texts."""
    paths = tmp_path / "a.md", tmp_path / "b.md"
    for path, text in zip(paths, (BEFORE, AFTER), strict=True):
        path.write_text(text, "utf-8")
    return str(paths[0]), str(paths[1])


# In the terminal --------------------------------------------------------------------------------


def test_inline() -> None:
    """Without colours what was removed and added is marked; what is the same is one line."""
    assert shown(BEFORE, AFTER) == (
        """\
From a.md
to   b.md

… 1 paragraph the same …

Paragraph 2, moved from 6
The last one moves to the top of the page.

Paragraph 3, was 2
The ferry left [-early-]{+late+} that morning, and nobody saw it go.

Paragraph 4, was 3
渡口的雾[-很大-]{+散了+}，船没有来。

… 1 paragraph the same …

Paragraph 5, removed
[-This one goes away.-]

Paragraph 6, added
{+Something <b>new</b> & bold.+}

Paragraph 6 moved to 2

6 words added, 7 removed, 1 paragraph moved.
"""
    )


def test_side_by_side() -> None:
    """Both texts in columns of the same width, whatever the width of their characters."""
    lines = shown(BEFORE, AFTER, layout="side", width=60).splitlines()
    columns = {cell_len(line.partition("│")[0]) for line in lines if "│" in line}
    assert columns == {29}
    assert "渡口的雾[-很大-]，船没有来。 │ 渡口的雾{+散了+}，船没有来。" in [line.rstrip() for line in lines]
    assert [line.rstrip() for line in lines[2:5]] == [
        "… 1 paragraph the same …",
        "",
        "Paragraph 2, moved from 6",
    ]
    assert lines[-1] == "6 words added, 7 removed, 1 paragraph moved."


@pytest.mark.parametrize(
    ("width", "terminal", "columns"), [(100, True, True), (99, True, False), (200, False, False)]
)
def test_the_layout_follows_the_terminal(width: int, terminal: bool, columns: bool) -> None:
    """Two columns where a terminal has room for them; a file or another program gets one text."""
    assert ("│" in shown(BEFORE, AFTER, width=width, terminal=terminal)) is columns


def test_all_shows_what_is_the_same() -> None:
    """Nothing is folded."""
    text = shown(BEFORE, AFTER, all_=True)
    assert "the same …" not in text and "Paragraph 5, was 4\nThis one is the same.\n" in text


def test_colours_need_no_marks() -> None:
    """Where there are colours, they are used instead."""
    text = shown(BEFORE, AFTER, layout="inline", terminal=True, colours=True)
    assert "\x1b[32mlate\x1b[0m" in text and "31mearly\x1b[0m" in text
    assert "{+" not in text and "[-" not in text


def test_a_text_cannot_steer_the_terminal() -> None:
    """Control characters are shown as their pictures, and markup as what it is."""
    text = shown("one two three", "one \x1b[31m\x07 two [bold]three[/bold] :smile:", layout="inline")
    assert "\x1b" not in text and "\x07" not in text
    assert "one {+␛[31m␇ +}two {+[bold]+}three{+[/bold] :smile:+}" in text


def test_long_lines_of_a_file_are_not_wrapped() -> None:
    """What is piped has the lines of the text."""
    assert f"{{+{'word ' * 40}+}}" in shown("", "word " * 40, width=40)


def test_nothing_differs() -> None:
    """It is said in words, and what little there is to say of blank lines and line ends."""
    assert shown("a\n", "a\n") == "Nothing differs.\n"
    assert shown("a\n\nb", "a\n\n\nb\n") == "Nothing differs but blank lines.\n"
    assert shown("a\r\nb\r\n", "a\nb\n") == "Nothing differs. Their line ends differ.\n"


def test_line_ends_are_not_changes() -> None:
    """A text that came from Windows is compared by its words."""
    text = shown("one\r\ntwo\r\n", "one\nthree\n")
    assert "one\n[-two-]{+three+}\n" in text
    assert text.endswith("1 word added, 1 removed, 0 paragraphs moved. Their line ends differ.\n")


# The command ------------------------------------------------------------------------------------


def test_the_command(workspace: Workspace, files: tuple[str, str]) -> None:
    """Two files, or two drafts, are compared; the last line sums it up."""
    assert run(workspace, *files).output.endswith("\n6 words added, 7 removed, 1 paragraph moved.\n")
    assert "│" in run(workspace, *files, "--side-by-side").output
    task = workspace.new_task("Ferry", None)
    workspace.text(task, "main").write(AFTER, author="model", turn=1)
    done = run(workspace, task.id, files[1])
    assert (done.exit_code, done.output) == (0, "Nothing differs.\n")


def test_json(workspace: Workspace, files: tuple[str, str]) -> None:
    """For programs: the names of both texts, and the comparison as it is."""
    found = json.loads(run(workspace, *files, "--json").output)
    assert (found["before"], found["after"], found["line_ends"]) == (*files, False)
    assert (found["added_words"], found["removed_words"], found["moved"]) == (6, 7, 1)
    assert found["blocks"][1] == {
        "kind": "moved",
        "before": 6,
        "after": 2,
        "pieces": [{"kind": "same", "text": "The last one moves to the top of the page."}],
        "before_last": None,
        "after_last": None,
    }


def test_a_page_is_written(workspace: Workspace, files: tuple[str, str], tmp_path: Path) -> None:
    """And where it is, is said."""
    page = tmp_path / "page.html"
    done = run(workspace, *files, "--html", str(page))
    assert done.output == f"Wrote {page}.\n6 words added, 7 removed, 1 paragraph moved.\n"
    assert page.read_text("utf-8").startswith("<!doctype html>")
