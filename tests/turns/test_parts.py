"""Parts of turns that wait: what a file says of them."""

from __future__ import annotations

from typing import Any

import pytest

from smartwriter.doctor.examine import examine
from smartwriter.storage.journal import Journal
from smartwriter.workspace import Workspace


@pytest.mark.parametrize(
    ("kind", "at", "entry"),
    [
        ("text", {"turn": "abc"}, {"text": "New."}),
        ("text", {"turn": [[1]]}, {"text": "New."}),
        ("text", {"turn": float("inf")}, {"text": "New."}),
        ("text", {"turn": 1, "base": {}}, {"text": "New."}),
        ("text", {"turn": 1}, {"edits": [["old"]]}),
        ("text", {"turn": 1}, {"edits": 7}),
        ("proposal", {"turn": "abc"}, {"line": "A fact."}),
        ("proposal", {"turn": 1}, {"line": ["A fact."]}),
        ("session", {}, {"session_id": "../outside"}),
        ("session", {}, {"session_id": None, "other": 1}),
    ],
)
def test_a_part_that_cannot_be_placed(
    workspace: Workspace, kind: str, at: dict[str, Any], entry: dict[str, Any]
) -> None:
    """A waiting part whose values are not what they should be is put nowhere and stays: nothing else waits
    for it, no task is changed by it, and the doctor tells of it, also with --repair."""
    task = workspace.new_task("Herons")
    head = {"type": "spooled", "kind": kind, "task": task.id, "draft": "main", "key": {}, "at": at}
    path = workspace.hidden / "spool" / "1.jsonl"
    Journal(path).append([head, entry])
    good = {**head, "kind": "text", "at": {"turn": 1}}
    Journal(path.with_name("2.jsonl")).append([good, {"text": "Good."}])
    for finding in examine(workspace):
        if finding.repair is not None:
            finding.repair()
    assert path.exists() and any(str(path) in str(finding) for finding in examine(workspace))
    assert workspace.tasks.find(task.id).drafts == task.drafts
    assert workspace.text(task, "main").read() == "Good."
