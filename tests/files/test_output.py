"""Files that a command is told to write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import smartwriter

from smartwriter.cli.app import cli
from smartwriter.tasks.values import Task
from smartwriter.workspace import Workspace

COMMANDS = [
    ("export", "{task}", "-o"),
    ("export", "{task}", "--history", "-o"),
    ("compare", "{task}", "{other}", "--html"),
]


@pytest.fixture
def task(workspace: Workspace, tmp_path: Path) -> Task:
    workspace.new_collection("series")
    task = workspace.new_task("Herons", "series")
    workspace.text(task, "main").write("# Herons\n\nThey stand.\n", author="writer", turn=1)
    (tmp_path / "other.md").write_text("Another.\n")
    return task


def run(workspace: Workspace, task: Task, command: tuple[str, ...], *more: str) -> tuple[int, str]:
    other = str(workspace.root.parent / "other.md")
    words = [word.format(task=task.id, other=other) for word in command]
    done = CliRunner().invoke(cli, [words[0], "-w", str(workspace.root), *words[1:], *more])
    return done.exit_code, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=["export", "history", "compare"])
def test_no_slip_costs_what_a_workspace_keeps(
    workspace: Workspace, task: Task, command: tuple[str, ...]
) -> None:
    """No command that writes where it is told writes into the records, over a draft, an article or a memory
    file or where one would be taken for such, by whatever path, not even with --force."""
    kept = {path: path.read_bytes() for path in workspace.root.rglob("*") if path.is_file()}
    collection = workspace.root / "collections" / "series"
    link = workspace.root.parent / "link.html"
    link.symlink_to(workspace.hidden / "tasks.jsonl")
    for place in (
        workspace.hidden / "tasks.jsonl",
        workspace.hidden / "new.html",
        link,
        collection / "drafts" / task.folder / "main.md",
        collection / "memory.md",
        collection / "new.md",
        workspace.root / "CLAUDE.md",
    ):
        code, said = run(workspace, task, command, str(place), "--force")
        assert code == 1 and ("lies where the workspace keeps" in said or "must end in" in said), (
            place,
            said,
        )
    now = {path: path.read_bytes() for path in workspace.root.rglob("*") if path.is_file()}
    assert {path: now[path] for path in kept} == kept
    assert [path for path in now.keys() - kept.keys() if ".smartwriter" not in path.parts] == []


@pytest.mark.parametrize("command", COMMANDS, ids=["export", "history", "compare"])
def test_a_file_that_is_there(
    workspace: Workspace, task: Task, command: tuple[str, ...], tmp_path: Path
) -> None:
    """A file that is there is replaced only with --force, keeps its permissions, and a link stays one; no
    folder is made, and what is no file is refused."""
    there = tmp_path / "there.html"
    there.write_text("Precious.")
    there.chmod(0o600)
    link = tmp_path / "link.html"
    link.symlink_to(there)
    for place in (there, link):
        code, said = run(workspace, task, command, str(place))
        assert code == 1 and "is there already; to write over it, add --force." in said
    assert there.read_text() == "Precious."
    assert run(workspace, task, command, str(link), "--force")[0] == 0
    assert link.is_symlink() and "<html" in there.read_text() and there.stat().st_mode & 0o777 == 0o600
    code, said = run(workspace, task, command, str(tmp_path / "no" / "x.html"))
    assert code == 1 and "There is no folder" in said and not (tmp_path / "no").exists()
    os.mkfifo(tmp_path / "pipe.html")
    code, said = run(workspace, task, command, str(tmp_path / "pipe.html"), "--force")
    assert code == 1 and "is not a regular file" in said


@pytest.mark.parametrize("command", COMMANDS, ids=["export", "history", "compare"])
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_stream_is_named_by_a_hyphen(
    workspace: Workspace, task: Task, command: tuple[str, ...], name: str
) -> None:
    """Every command that is told to write to a standard stream says what does that instead, whatever stands
    behind it."""
    for more in ([], ["--force"]):
        code, said = run(workspace, task, command, name, *more)
        expected = f"Error: {name} is a stream, and no file; to print it, name - in its place.\n"
        assert (code, said) == (1, expected)


def test_a_hyphen_is_standard_output(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """For ``-`` a command prints what it would have written."""
    other = str(tmp_path / "other.md")
    assert smartwriter(workspace.root, "export", task.id, "-o", "-").stdout == b"# Herons\n\nThey stand.\n"
    assert smartwriter(workspace.root, "compare", task.id, other, "--html", "-").stdout.startswith(
        b"<!doctype html>"
    )
    assert not Path("-").exists()
