"""What a process leaves that dies in a turn."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transcripts import entry

import smartwriter.storage.journal as journal
from smartwriter.events import TextDelta, TurnStarted
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.turns.live import LiveJournal
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    pass


def crashed(workspace: Workspace, task: Task, stored: int = 0) -> Turn:
    """A first turn whose process died after it had typed something; so many entries were stored."""
    draft = task.drafts["main"]
    turn = Turn(
        number=1,
        uuid=entry(0)["uuid"],
        session_id=draft.session_id,
        prompt="Go.",
        state=TurnState.running,
    )
    workspace.tasks.record(task, "main", [turn])
    live = LiveJournal(OpenDraft(workspace, task, "main").live_path)
    live.begin()
    live.append(
        [
            TurnStarted(task=task.id, draft="main", turn=1, prompt="Go."),
            TextDelta(task=task.id, draft="main", turn=1, text="Half a sen"),
        ]
    )
    if stored:
        journal.Journal(OpenDraft(workspace, task, draft.name).transcript.path).append(answered(stored))
    return turn


def answered(entries: int, reason: str | None = "end_turn") -> list[dict[str, Any]]:
    found = [entry(n) for n in range(entries)]
    for item in found:
        if item["type"] == "assistant":
            item["message"]["stop_reason"] = reason
    return found


def orphan(task: Task, entries: list[dict[str, Any]], project: str = "-w-book") -> Path:
    """What the SDK leaves in the folder for temporary files when its process is killed."""
    folder = Path(tempfile.mkdtemp(prefix="claude-resume-"))
    transcript = folder / "projects" / project / f"{task.drafts['main'].session_id}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("".join(json.dumps(item) + "\n" for item in entries))
    (folder / ".credentials.json").write_text("{}")
    return folder


def turn_of(workspace: Workspace, task: Task) -> Turn:
    (turn,) = workspace.tasks.turns(task, "main")
    return turn
