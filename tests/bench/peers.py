"""What the store is measured against."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic_core import from_json

from smartwriter.storage.reading import collector_paused


class PlainStore:
    """What one writes first: open, append, close; with a sync.

    Its file work leaves the event loop as ``fs.promises`` does, but all of it in one go.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, key: Any) -> Path:
        return self._root.joinpath(key["project_key"], f"{key['session_id']}.jsonl")

    async def append(self, key: Any, entries: list[dict[str, Any]]) -> None:
        await anyio.to_thread.run_sync(self._append, self.path(key), entries)

    async def load(self, key: Any) -> list[dict[str, Any]]:
        return await anyio.to_thread.run_sync(self._load, self.path(key))

    def _append(self, path: Path, entries: list[dict[str, Any]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n"
        with path.open("a", encoding="utf-8") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    def _load(self, path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


class InlinePlainStore(PlainStore):
    """The same, blocking the event loop while it writes."""

    async def append(self, key: Any, entries: list[dict[str, Any]]) -> None:
        self._append(self.path(key), entries)


def bare_parse(path: Path) -> list[Any]:
    """The least that reading a transcript can cost."""
    with collector_paused():
        return [from_json(line) for line in path.read_bytes().split(b"\n") if line]


def sqlite_append(database: Path, session_id: str) -> Callable[[list[dict[str, Any]]], Awaitable[None]]:
    """``add_items`` of the OpenAI Agents SDK: WAL, and SQLite's default of a sync with each commit."""
    agents = importlib.import_module("agents")  # only in .venv-bench
    add_items: Callable[[list[dict[str, Any]]], Awaitable[None]]
    add_items = agents.SQLiteSession(session_id, database).add_items
    return add_items
