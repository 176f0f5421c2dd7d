from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import pytest
from click.testing import CliRunner, Result

from smartwriter.cli.app import cli
from smartwriter.workspace import Workspace


@pytest.fixture
def series(workspace: Workspace) -> Workspace:
    """A workspace with a book in a series: files of every kind."""
    path = workspace.root / "collections" / "series" / "book"
    path.mkdir(parents=True)
    (path.parent / "profile.md").write_text("---\nmax_words: 2\n---\n雾里的渡口")
    (path.parent / "memory.md").write_text("replaced")
    (path / "memory.md").write_text("m" * 400)
    (path / "[bold]people.md").write_text("---\ninclude: on-demand\norder: 5\n---\n# The people")
    (path / "old.md").write_text("---\ninclude: never\n---\no")
    (path / "link.md").symlink_to("/etc/passwd")
    for one in (path.parent, *path.parent.rglob("*")):
        os.utime(one, (1, 1), follow_symlinks=False)
    return workspace


def run(workspace: Workspace, *arguments: str) -> Result:
    command, *rest = arguments
    result = CliRunner().invoke(cli, ["collection", command, "-w", str(workspace.root), *rest])
    assert result.exit_code == 0, result.output
    return result


def test_a_check_shows_what_a_session_gets(series: Workspace) -> None:
    """Each file with where it comes from, its size and its share; what is left out and why; the rule."""
    result = run(series, "check", "series/book")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["profile.md", "series", "whole", "10", "5", "5", "0.0%"] in rows
    assert ["memory.md", "series/book", "whole", "20", "1", "100", "0.5%"] in rows
    assert ["[bold]people.md", "series/book", "listed", "5", "2", "3", "-"] in rows
    assert "of 20,000 tokens" in result.stdout and "four bytes of other text" in result.stdout
    assert [line for line in result.stdout.splitlines() if line.startswith("Left out: ")] == [
        "Left out: series/book/link.md links out of the workspace.",
        "Left out: series/book/old.md says include: never.",
        "Left out: series/memory.md is replaced by that of series/book.",
    ]
    assert result.stderr.splitlines() == [
        "link.md links out of the workspace and was left out.",
        "profile.md has 5 words, more than its max_words of 2; it is used whole.",
    ]


def test_a_check_as_json(series: Workspace) -> None:
    """Programs get the same, with hashes and paths."""
    checked: dict[str, Any] = json.loads(run(series, "check", "series/book", "--json").stdout)
    assert checked["name"] == "series/book"
    assert [file["name"] for file in checked["files"]] == ["profile.md", "memory.md"]
    assert [file["name"] for file in checked["on_demand"]] == ["[bold]people.md"]
    assert checked["files"][1] == {
        "name": "memory.md",
        "title": "memory",
        "description": "",
        "from": "series/book",
        "path": str(series.root / "collections/series/book/memory.md"),
        "order": 20.0,
        "words": 1,
        "max_words": None,
        "tokens": 100,
        "share": 0.005,
        "sha256": hashlib.sha256(b"m" * 400).hexdigest(),
    }
    assert [file["why"] for file in checked["left_out"]] == [
        "links out of the workspace",
        "says include: never",
        "is replaced by that of series/book",
    ]
    assert (checked["budget_tokens"], len(checked["problems"])) == (20_000, 2)
    assert 105 < checked["used_tokens"] < 150


def test_the_budget_is_the_workspaces(series: Workspace) -> None:
    """config.toml sets it; what is over it is said, with what to do."""
    (series.hidden / "config.toml").write_text("memory_tokens = 50\n")
    result = run(series, "check", "series/book")
    assert "of 50 tokens" in result.stdout
    assert "more than its budget of 50: shorten the largest, memory.md (100)," in result.stderr
    (series.hidden / "config.toml").write_text("memory_tokens = 0\n")
    assert "of 0 tokens" in run(series, "check", "series/book").stdout
    assert json.loads(run(series, "check", "series/book", "--json").stdout)["files"][0]["share"] is None


def test_showing_has_the_files_on_demand_too(series: Workspace) -> None:
    """The prompt's part is printed as it is; as JSON, with the texts that can be read."""
    assert run(series, "show", "series/book").stdout == (
        series.collection("series/book").memory().render() + "\n"
    )
    shown = json.loads(run(series, "show", "series/book", "--json").stdout)
    assert [file["text"] for file in shown["files"]] == ["雾里的渡口", "m" * 400, "# The people"]


def test_a_nested_collection_is_made_and_listed(series: Workspace) -> None:
    """A path makes a collection in another, and says which files wait to be filled in."""
    made = run(series, "new", "series/second").stdout
    assert made == (
        f"Made {series.root / 'collections/series/second'}; fill in its memory.md and index.md.\n"
    )
    series.new_task("渡口", "series/second")
    assert run(series, "list").stdout.splitlines() == [
        "series  (0 tasks)",
        "series/book  (0 tasks)",
        "series/second  (1 task)",
    ]
