"""Prompts that wait for their turn, on disk from the moment they were sent until it has begun.

``outbox/<task>/<draft>.jsonl``, one line per change::

    {"type":"waiting","id":"5f0c…","timestamp":"2026-…","prompt":"写第二段"}
    {"type":"taken","id":"5f0c…"}          its turn is about to begin
    {"type":"withdrawn","id":"5f0c…"}      nobody wants it any more

A prompt's id becomes the uuid of its turn. So the record of the turn alone decides whether it still
waits: killed before that is written, it does; killed after, it does not. When nothing waits there is
no file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container
from dataclasses import dataclass

from smartwriter.errors import Invalid
from smartwriter.storage.interface import Overtaken, Storage
from smartwriter.storage.records import now
from smartwriter.storage.salvage import Entry


@dataclass(frozen=True)
class Waiting:
    """A prompt that waits."""

    id: str
    prompt: str
    since: str
    """When it was sent, in ISO form."""


class Outbox:
    """The prompts of one draft. Calls block."""

    def __init__(self, storage: Storage, task: str, draft: str, begun: Callable[[], Container[str]]) -> None:
        """:param begun: the uuids of the draft's turns."""
        self._storage = storage
        self._name = ("outbox", task, draft)
        self._begun = begun
        self._journal = storage.journal(*self._name)

    def waiting(self) -> list[Waiting]:
        """In the order in which they were sent."""
        entries = self._entries()
        if not entries:
            return []
        begun = self._begun()
        gone = {entry.get("id") for entry in entries if entry.get("type") == "withdrawn"}
        found: dict[str, Waiting] = {}
        for entry in entries:
            match entry:
                case {"type": "waiting", "id": str(id), "prompt": str(prompt)}:
                    if id not in gone and id not in begun and id not in found:
                        found[id] = Waiting(id, prompt, str(entry.get("timestamp") or ""))
        return list(found.values())

    def put(self, id: str, prompt: str) -> None:
        """Keep a prompt; one that is there already stays where it stands. :raises JournalError:"""
        with self._journal.locked() as transaction:
            if all(waiting.id != id for waiting in self.waiting()):
                line = {"type": "waiting", "id": id, "timestamp": now().isoformat(), "prompt": prompt}
                transaction.append([line])

    def take(self, id: str) -> bool:
        """For who holds the draft's lease and begins the turn. False: it does not wait any more."""
        if not self._entries():
            return False
        with self._journal.locked() as transaction:
            if all(waiting.id != id for waiting in self.waiting()):
                return False
            transaction.append([{"type": "taken", "id": id}])
        return True

    def withdraw(self, id: str, *, held: bool = False) -> Waiting | None:
        """Take a prompt back; None when it does not wait any more.

        :param held: by somebody else, who may have taken it.
        :raises Invalid: they have.
        """
        if not self._entries():
            return None
        with self._journal.locked() as transaction:
            found = next((waiting for waiting in self.waiting() if waiting.id == id), None)
            if found is not None:
                if held and any(e.get("type") == "taken" and e.get("id") == id for e in self._entries()):
                    raise Invalid("The turn of this prompt is just beginning; it can be stopped.")
                transaction.append([{"type": "withdrawn", "id": id}])
        self.tidy()
        return found

    def tidy(self) -> None:
        """Remove the file when nothing in it waits."""
        contents = self._journal.read()
        if contents.size and not contents.damage and not self.waiting():
            with contextlib.suppress(Overtaken):  # something waits again
                self._storage.discard(*self._name, at=contents.size)

    def _entries(self) -> list[Entry]:
        return self._journal.read().entries
