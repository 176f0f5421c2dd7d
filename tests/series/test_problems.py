from __future__ import annotations

import shutil

import pytest

from smartwriter.errors import Invalid
from smartwriter.series.problems import memory_problems
from smartwriter.workspace import Workspace


def test_what_is_wrong_with_a_memory_is_said_once_for_each_collection(workspace: Workspace) -> None:
    """Two tasks of one collection are told of a file that is left out in one sentence."""
    collection = workspace.new_collection("rivers")
    (collection.path / "memory.md").write_bytes(b"\xff")
    tasks = [workspace.new_task(title, "rivers") for title in ("Fog", "Ice")]
    assert list(memory_problems(workspace, tasks)) == [
        "rivers: memory.md is not UTF-8 text (byte 0) and was left out."
    ]


def test_a_folder_that_is_gone_is_said(workspace: Workspace) -> None:
    """What is written without its memory is written knowingly; a folder with another name is refused."""
    collection = workspace.new_collection("rivers")
    task = workspace.new_task("Fog", "rivers")
    workspace.text(task, "main").write("Text.", author="model", turn=1)
    moved = collection.path.rename(collection.path.with_name("lakes"))
    with pytest.raises(Invalid, match="collection rename rivers lakes"):
        list(memory_problems(workspace, [task]))
    shutil.rmtree(moved)
    (problem,) = memory_problems(workspace, [task])
    assert problem.startswith("rivers: its folder is gone")
