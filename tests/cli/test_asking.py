"""Asking for a prompt, on a real terminal."""

from __future__ import annotations

import pytest
from commands import command, environment
from terminal import terminal

from smartwriter.agent.offline.server import OfflineModel
from smartwriter.workspace import Workspace

_PAGE = ["The first line 渡口.", "touch pwned", "", "  and the last."]


@pytest.mark.parametrize(
    "keys",
    ["\x1b[200~" + "\r\n".join(_PAGE) + "\x1b[201~", "\r".join(_PAGE)],
    ids=["marked by the terminal", "as keys"],
)
def test_a_pasted_page_is_one_prompt(workspace: Workspace, model: OfflineModel, keys: str) -> None:
    """All lines of what is pasted at ``Prompt>`` are sent, as they are, and none is left for the shell."""
    task = workspace.new_task("Herons")
    writing = command(workspace.root, "write", task.id, "--offline")
    with terminal(writing, environment(model)) as window:
        window.wait_for("Prompt>")
        window.type(keys)
        window.wait_for("and the last.")
        assert workspace.tasks.turns(task, "main") == []
        window.type("\r")
        assert window.end() == 0, window.screen
    (turn,) = workspace.tasks.turns(task, "main")
    assert turn.prompt == "\n".join(_PAGE)
