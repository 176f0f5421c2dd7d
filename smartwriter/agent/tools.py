"""What the model may do: read, write and edit the one draft that it is writing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from smartwriter.drafts import DraftText
from smartwriter.tasks import Revision


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    parameters: Mapping[str, str]
    """What each string parameter means, by name; all are required."""
    run: Callable[[Mapping[str, Any]], Awaitable[str]]
    """What the model is told. Raises ``SmartWriterError`` with what went wrong."""


class DraftTools:
    """The tools over one draft's text. ``turn`` is the one that revisions are written in."""

    def __init__(self, text: DraftText, on_revision: Callable[[Revision], None]) -> None:
        self.turn = 0
        self._text = text
        self._on_revision = on_revision

    def all(self) -> list[Tool]:
        return [
            Tool("read_draft", "The present text of the draft.", {}, self._read),
            Tool(
                "write_draft",
                "Replace the whole text of the draft. Use it for a first version or a rewrite.",
                {"text": "The new text, in Markdown."},
                self._write,
            ),
            Tool(
                "edit_draft",
                "Replace one passage of the draft, which must stand there exactly once.",
                {"old_text": "The passage as it stands now.", "new_text": "What it becomes."},
                self._edit,
            ),
        ]

    async def _read(self, _: Mapping[str, Any]) -> str:
        return await anyio.to_thread.run_sync(self._text.read) or "(The draft is empty.)"

    async def _write(self, arguments: Mapping[str, Any]) -> str:
        turn = self.turn
        return self._revised(
            await anyio.to_thread.run_sync(
                lambda: self._text.write(arguments["text"], author="model", turn=turn)
            )
        )

    async def _edit(self, arguments: Mapping[str, Any]) -> str:
        old, new, turn = arguments["old_text"], arguments["new_text"], self.turn
        return self._revised(await anyio.to_thread.run_sync(lambda: self._text.edit(old, new, turn=turn)))

    def _revised(self, revision: Revision) -> str:
        self._on_revision(revision)
        return f"Saved as revision {revision.number}, {len(revision.text)} characters."
