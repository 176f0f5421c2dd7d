from __future__ import annotations

from smartwriter.open_draft import OpenDraft
from smartwriter.workspace import Workspace


def test_each_text_that_is_put_away_keeps_its_own_place(workspace: Workspace) -> None:
    """Put away twice with the same value at hand, nothing in the trash is replaced."""
    text = OpenDraft(workspace, workspace.new_task("The ferry"), "main").text
    for words in ("First.\n", "Second.\n"):
        text.write(words, author="model", turn=1)
        text.put_away()
    trashed = sorted((workspace.hidden / "trash" / "drafts").iterdir())
    assert [path.read_text() for path in trashed] == ["First.\n", "Second.\n"]
