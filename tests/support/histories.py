"""A task whose draft has a history."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import smartwriter.storage.journal as journal
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import MAIN, Task, Turn, TurnState, Usage
from smartwriter.workspace import Workspace

WHEN = datetime(2026, 3, 1, 9, 30, tzinfo=timezone.utc)


def a_turn(task: Task, number: int, **more: Any) -> Turn:
    fields = {
        "number": number,
        "uuid": f"u{number}",
        "session_id": task.drafts[MAIN].session_id,
        "prompt": f"Prompt {number}",
        "state": TurnState.finished,
        "started_at": WHEN + timedelta(minutes=number),
    }
    return Turn.model_validate(fields | more)


def said(number: int, answer: str, tool: str = "") -> list[dict[str, Any]]:
    """The entries of a turn; each goes back to the one before."""
    parent = f"a{number - 1}" if number > 1 else None
    content: list[dict[str, Any]] = [{"type": "text", "text": answer}]
    if tool:
        content.append({"type": "tool_use", "id": "t", "name": tool, "input": {}})
    return [
        {"type": "user", "uuid": f"u{number}", "parentUuid": parent, "message": {"content": "as sent"}},
        {
            "type": "assistant",
            "uuid": f"a{number}",
            "parentUuid": f"u{number}",
            "message": {"content": content},
        },
    ]


def written_task(workspace: Workspace) -> Task:
    """A task with two turns, a hand edit between them, and one turn that was stopped."""
    task = workspace.new_task("渡口")
    usage = Usage(input_tokens=1200, output_tokens=34, cost_usd=0.02, duration_ms=5000)
    turns = [
        a_turn(task, 1, usage=usage, model="m-1", memory={"profile.md": "0"}),
        a_turn(task, 2),
        a_turn(task, 3, state=TurnState.stopped, detail="Stopped.", partial="Half an ans"),
    ]
    workspace.tasks.record(task, MAIN, turns)
    entries = [*said(1, "第一段写好了。", "mcp__draft__write_draft"), *said(2, "Second answer.")]
    journal.Journal(OpenDraft(workspace, task, MAIN).transcript.path).append(entries)
    text = workspace.text(task, MAIN)
    text.write("雾很大。\n\nThe old boat.\n", author="model", turn=1)
    text.path.write_text("雾很大。\n\nThe red boat.\n")
    text.take_hand_edit(2)
    text.write("雾很大。\n\nThe red boat.\n\nA new end.\n", author="model", turn=2)
    return task
