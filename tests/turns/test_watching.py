"""Following many drafts at once."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

import smartwriter.turns.watching as watching
from smartwriter.events import TextDelta
from smartwriter.turns.live import LiveJournal, LiveReader
from smartwriter.turns.watching import follow_all

pytestmark = pytest.mark.anyio


def _typed(live: LiveJournal, text: str) -> None:
    live.append([TextDelta(task="k7mq", draft="main", turn=1, text=text)])


async def _refused(folder: Path) -> AsyncGenerator[set[Path] | None, None]:
    yield None
    raise OSError(28, "inotify watch limit reached")


@pytest.mark.parametrize("told", [True, False], ids=["told", "refused"])
async def test_each_event_is_heard_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool) -> None:
    """What is typed in any draft is heard once and in order, also in a journal and a folder that come
    later, whether the system tells of changes or refuses to."""
    if not told:
        monkeypatch.setattr(watching, "_told", _refused)
    paths = [tmp_path / "live" / task / "main.jsonl" for task in ("one", "two")]
    heard = []
    with anyio.fail_after(30):
        events = follow_all(tmp_path / "live", {path: LiveReader(path, 0) for path in paths})
        async with anyio.create_task_group() as group:

            async def write() -> None:
                for path in paths:
                    live = await run_sync(LiveJournal, path)
                    await run_sync(live.begin)
                    for number in range(3):
                        await run_sync(_typed, live, f"{path.parent.name} {number}")
                        await anyio.sleep(0.02)

            group.start_soon(write)
            async for event in events:
                heard += [event.text] if isinstance(event, TextDelta) else []
                if len(heard) == 6:
                    break
        await events.aclose()
    assert sorted(heard) == [f"{task} {number}" for task in ("one", "two") for number in range(3)]
    assert [text for text in heard if "one" in text] == ["one 0", "one 1", "one 2"]


@pytest.mark.slow
async def test_three_hundred_idle_drafts_cost_next_to_nothing(tmp_path: Path) -> None:
    """Watching 300 drafts in which nothing happens costs a few percent of a processor at the very most."""
    paths = [tmp_path / "live" / f"t{number}" / "main.jsonl" for number in range(300)]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_bytes(b'{"type":"begin","timestamp":"2026","position":5}\n')
    with anyio.move_on_after(2.5):
        async for _ in follow_all(tmp_path / "live", {path: LiveReader(path, 0) for path in paths}):
            used_s = time.process_time()  # of the last of those that are told at once
    assert time.process_time() - used_s < 0.25
