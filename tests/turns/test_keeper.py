"""What a turn writes while its place takes nothing: kept, in order, and stored as soon as it can be."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from smartwriter.errors import JournalError
from smartwriter.tasks.values import Task
from smartwriter.turns.keeper import Keeper
from smartwriter.turns.parts import Part
from smartwriter.workspace import Workspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


@pytest.fixture
def place(workspace: Workspace, task: Task) -> Path:
    """Where the turns of a task are kept, with something in the way."""
    path = workspace.hidden / "turns" / task.id / "main.jsonl"
    path.mkdir(parents=True)
    return path


def turn(number: int) -> dict[str, object]:
    return {"number": number, "uuid": f"u{number}", "session_id": "s", "prompt": "Go.", "state": "finished"}


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_bytes().split(b"\n") if line]


async def test_nothing_is_stored_past_what_waits(workspace: Workspace, task: Task, place: Path) -> None:
    """What comes after something that was refused is stored behind it, however it is with its own place."""
    said: list[str] = []
    keeper = Keeper(workspace.spool, task.id, "main", said.append)
    assert not await keeper.write("turns", [turn(1)])
    assert not await keeper.write("turns", [turn(2)])
    assert (keeper.waits, keeper.all_kept) == (True, True) and "is not in its place" in said[0]
    await anyio.Path(place).rmdir()
    assert await keeper.write("turns", [turn(3)])
    assert await run_sync(numbers, place) == [1, 2, 3] and not keeper.waits
    assert await run_sync(workspace.spool.waiting) == 0


async def test_what_no_disk_takes_is_not_dropped(
    workspace: Workspace, task: Task, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused everywhere it stays in memory, is said to be, and is stored, once, when there is room."""

    def refused(part: Part) -> Path:
        raise JournalError(workspace.hidden, OSError(28, "No space left on device"))

    monkeypatch.setattr(workspace.spool, "put", refused)
    said: list[str] = []
    keeper = Keeper(workspace.spool, task.id, "main", said.append)
    for number in (1, 2):
        assert not await keeper.write("turns", [turn(number)])
    assert (keeper.waits, keeper.all_kept) == (True, False) and "do not close this program" in said[0]
    assert not await keeper.settled(0)
    await anyio.Path(place).rmdir()
    assert await keeper.settled(10) and keeper.all_kept
    assert await run_sync(numbers, place) == [1, 2]
