from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from documents import words
from histories import written_task

from smartwriter.cli.exporting import export_command
from smartwriter.errors import SmartWriterError
from smartwriter.tasks.values import MAIN, Task
from smartwriter.workspace import Workspace


@pytest.fixture
def written(workspace: Workspace) -> tuple[Workspace, Task]:
    return workspace, written_task(workspace)


def run(workspace: Workspace, *arguments: str) -> Result:
    return CliRunner().invoke(export_command, ["-w", str(workspace.root), *arguments])


def refused(workspace: Workspace, *arguments: str) -> str:
    result = run(workspace, *arguments)
    assert isinstance(result.exception, SmartWriterError), result.output
    return str(result.exception)


def test_the_command(written: tuple[Workspace, Task], tmp_path: Path) -> None:
    """It prints Markdown, or writes the file that it is told, of any revision."""
    workspace, task = written
    assert run(workspace, task.id).output == "雾很大。\n\nThe red boat.\n\nA new end.\n"
    assert run(workspace, f"{task.id}:1").output == "雾很大。\n\nThe old boat.\n"
    done = run(workspace, f"{task.id}@main:2", "-o", str(tmp_path / "a.json"))
    assert done.output == f"Wrote {tmp_path / 'a.json'}.\n"
    found = json.loads((tmp_path / "a.json").read_bytes())
    assert found["title"] == "渡口" and found["text"] == "雾很大。\n\nThe red boat.\n"
    assert found["extra"]["label"] == f"{task.id}@main:2"
    assert found["extra"]["counts"]["words"] == 6
    assert run(workspace, task.id, "-o", str(tmp_path / "a.docx")).exit_code == 0
    assert "A new end." in words(tmp_path / "a.docx")


def test_the_command_writes_over_nothing_unasked(written: tuple[Workspace, Task], tmp_path: Path) -> None:
    """A file that is there stays unless --force is said, and the workspace's own records always do."""
    workspace, task = written
    path = tmp_path / "mine.md"
    path.write_text("mine")
    assert refused(workspace, task.id, "-o", str(path)) == (
        f"{path} is there already; to write over it, add --force."
    )
    assert path.read_text() == "mine"
    assert run(workspace, task.id, "-o", str(path), "--force").exit_code == 0
    assert "A new end." in path.read_text()
    inside = workspace.hidden / "x.json"
    assert "keeps its records" in refused(workspace, task.id, "-o", str(inside), "--force")
    assert not inside.exists()


def test_the_command_for_a_history(written: tuple[Workspace, Task], tmp_path: Path) -> None:
    """--history prints the history as Markdown or writes it, with an edit that was just made by hand."""
    workspace, task = written
    workspace.text(task, MAIN).path.write_text("By hand.\n")
    assert "+ By hand." in run(workspace, task.id, "--history").output
    assert run(workspace, task.id, "--history", "-o", str(tmp_path / "h.html")).exit_code == 0
    assert "By hand." in (tmp_path / "h.html").read_text()
    assert "must end in .html or .md" in refused(
        workspace, task.id, "--history", "-o", str(tmp_path / "h.txt")
    )
    assert "whole draft; leave out the :1." in refused(workspace, f"{task.id}:1", "--history")
