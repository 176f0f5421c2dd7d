"""Commands called within this process: what they print, and how they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from smartwriter.cli.app import cli
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.journal import Journal
from smartwriter.tasks.values import MAIN, Task, Turn, TurnState
from smartwriter.workspace import Workspace


def turn(task: Task, number: int, state: TurnState = TurnState.finished) -> Turn:
    session = task.drafts[MAIN].session_id
    return Turn(number=number, uuid=uuid(number), session_id=session, prompt=f"写 {number}", state=state)


def uuid(number: int, role: str = "user") -> str:
    """Of a turn's prompt or answer."""
    return f"{number:08x}-0000-4000-{8000 + (role == 'assistant')}-000000000000"


def converse(workspace: Workspace, task: Task, *answers: str) -> None:
    """Record a conversation as the CLI and the engine would: a turn for each answer, all of them finished."""
    entries: list[dict[str, Any]] = []
    session = task.drafts[MAIN].session_id
    for number, answer in enumerate(answers, 1):
        for role, text in (("user", f"写 {number}"), ("assistant", answer)):
            entries.append(
                {
                    "type": role,
                    "uuid": uuid(number, role),
                    "parentUuid": entries[-1]["uuid"] if entries else None,
                    "sessionId": session,
                    "timestamp": f"2026-01-01T00:00:{len(entries):02}Z",
                    "message": {"role": role, "content": [{"type": "text", "text": text}]},
                }
            )
    Journal(OpenDraft(workspace, task, MAIN).transcript.path).append(entries)
    workspace.tasks.record(task, MAIN, [turn(task, number) for number in range(1, len(answers) + 1)])


def run(workspace: Workspace | Path, *arguments: str, stdin: bytes = b"") -> Result:
    root = workspace.root if isinstance(workspace, Workspace) else workspace
    return CliRunner(env={"SMARTWRITER_WORKSPACE": str(root)}).invoke(cli, arguments, input=stdin)


def printed(workspace: Workspace, *arguments: str) -> str:
    """What a command that works prints."""
    result = run(workspace, *arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def data(workspace: Workspace, *arguments: str) -> Any:
    return json.loads(printed(workspace, *arguments, "--json"))


def snapshot(root: Path) -> dict[str, bytes | None]:
    """Every path under a folder, with the bytes of files.

    But for what is asked of a lease's holder, and where a prompt waited while it was looked at.
    """
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
        if "locks" not in path.parts and not (path.is_dir() and "outbox" in path.parts)
    }


def refused(workspace: Workspace | Path, *arguments: str, stdin: bytes = b"") -> str:
    """The one sentence of a command that fails without changing anything."""
    root = workspace.root if isinstance(workspace, Workspace) else workspace
    before = snapshot(root.parent)
    result = run(workspace, *arguments, stdin=stdin)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert snapshot(root.parent) == before
    assert result.stdout == ""
    return sentence(result.exit_code, result.stderr)


def sentence(exit_code: int, stderr: str) -> str:
    assert exit_code == 1, stderr
    assert stderr.startswith("Error: ") and stderr.count("\n") == 1 and stderr.endswith("\n"), stderr
    return stderr.removeprefix("Error: ").rstrip("\n")
