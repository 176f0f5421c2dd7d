"""Compactions: from here on the model is sent a summary in place of the conversation so far.

They are asked for with ``/compact``, or done by the CLI itself when the conversation gets too long for
the model. The transcript keeps all that was said; an entry marks where the summary begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smartwriter.storage.salvage import Entry

_TRANSCRIPT = re.compile(
    r"\n*If you need specific details from before compaction \([^)\n]*\), read the full transcript at: [^\n]*"
    r"| \(the full transcript mentioned above still has it\)"
)
_ANYWHERE = "/"
"""A folder that is everywhere and names nobody's."""


@dataclass(frozen=True)
class Compaction:
    """One that has happened."""

    by_itself: bool
    """The conversation had become too long; False: it was asked for."""
    before: int | None
    """How many tokens the model was sent until then; None: not known."""
    after: int | None
    """How many are left of it."""

    def __str__(self) -> str:
        sizes = "" if None in (self.before, self.after) else f" from {self.before:,} to {self.after:,} tokens"
        why = "It had become too long: the" if self.by_itself else "The"
        return f"{why} conversation was compacted{sizes}; the model goes on from a summary of all above."


def is_compaction(entry: Entry) -> bool:
    """Whether the conversation goes on from a summary of all that is before this entry."""
    return entry.get("type") == "system" and entry.get("subtype") == "compact_boundary"


def of_entry(entry: Entry) -> Compaction:
    """What a compaction's entry in the transcript tells of it."""
    return of_metadata(entry.get("compactMetadata"), "preTokens", "postTokens")


def of_metadata(metadata: Any, before: str = "pre_tokens", after: str = "post_tokens") -> Compaction:
    """From the CLI's own fields, by their names."""
    given: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    sizes = [size if isinstance(size := given.get(name), int) else None for name in (before, after)]
    return Compaction(given.get("trigger") == "auto", *sizes)


def without_places(entries: Sequence[Entry]) -> list[Entry]:
    """A conversation as it is handed to the CLI: without the folders that it was had in.

    A summary tells the model to read what was said before in a file, in a temporary folder that is gone
    by then; and the model was told where the workspace is. It can read neither.
    """
    return [_without_places(entry) for entry in entries]


def _without_places(entry: Entry) -> Entry:
    match entry:
        case {"isCompactSummary": True, "message": {"content": str(said)} as message}:
            return {**entry, "message": {**message, "content": _TRANSCRIPT.sub("", said)}}
        case {"attachment": {"type": "environment", "snapshot": dict(snapshot)} as attachment}:
            if "workingDirectory" in snapshot:
                neutral = {**snapshot, "workingDirectory": _ANYWHERE}
                return {**entry, "attachment": {**attachment, "snapshot": neutral}}
    return entry
