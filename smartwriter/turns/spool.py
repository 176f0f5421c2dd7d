"""Where the parts of a turn go that could not be written to their place.

``spool/<when>-<n>.jsonl``, or where the disk takes not even that, on another one: see ``parts`` and
``elsewhere``. Each is written to its place, in order, when that can be done again: by the turn itself, by
the next one, or at the next start.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from anyio.to_thread import run_sync

import smartwriter.files.durable as durable
import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading
from smartwriter.errors import JournalError, SmartWriterError
from smartwriter.sessions.compaction import without_places
from smartwriter.sessions.orphans import history_mark
from smartwriter.sessions.store import BoundSessionStore, FileSessionStore
from smartwriter.storage.places import Places
from smartwriter.storage.salvage import Entry
from smartwriter.turns.elsewhere import Elsewhere
from smartwriter.turns.parts import Part, part_of

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry

    from smartwriter.turns.keeper import Keeper

_NUMBER = itertools.count()


class Spool:
    """The parts of a workspace that wait. Calls block."""

    def __init__(self, hidden: Path, place: Callable[[Part], None], knows: Callable[[Part], bool]) -> None:
        """
        :param hidden: the ``.smartwriter`` folder.
        :param place: writes a part where it belongs.
        :param knows: whether it belongs anywhere here.
        """
        self.place = place
        self._places = Places(hidden)
        self._folder = self._places.spool
        self._elsewhere = Elsewhere(
            hidden, lambda head: (part := part_of([head])) is not None and knows(part)
        )

    def put(self, part: Part) -> Path:
        """Where it waits now. :raises JournalError: not even on another disk."""
        name = f"{time.time_ns():020d}-{next(_NUMBER):06d}-{secrets.token_hex(2)}.jsonl"
        try:
            journal.Journal(self._folder / name).append(part.lines())
        except JournalError:
            return self._elsewhere.put(name, part.lines())
        return self._folder / name

    def paths(self) -> list[Path]:
        """The files of all that waits, oldest first."""
        return sorted([*self._folder.glob("*.jsonl"), *self._elsewhere.paths()], key=lambda path: path.name)

    def waiting(self) -> int:
        """How many parts wait."""
        return len(self.paths())

    def replay(self, task: str = "", draft: str = "") -> int:
        """Write what waits to its place, in order, of one draft or of all; returns how many parts.

        :raises OSError: when a place still cannot be written.
        """
        stored = 0
        for path in self.paths():
            with contextlib.suppress(FileNotFoundError):  # another process has just stored it
                stored += self._replay(path, (task, draft) if task else None)
        return stored

    def _replay(self, path: Path, of: tuple[str, str] | None) -> bool:
        """Whether a part was written to its place."""
        part = part_of(reading.read(path).entries)
        if part is None or (of and (part.task, part.draft) != of):
            return False
        if part.kind != "text":  # of all others, twice is once
            return self._place(path, part)
        with journal.Journal(path).locked() as transaction:
            return transaction.size > 0 and self._place(path, part)

    def _place(self, path: Path, part: Part) -> bool:
        try:
            self.place(part)
        except SmartWriterError as error:
            if isinstance(error, OSError):
                raise
            return False  # it belongs nowhere here: the doctor tells of it
        if path.parent == self._folder:
            durable.move(path, self._places.trash("spool", path.stem, ".jsonl"))
        else:
            self._elsewhere.remove(path)
        return True


class SpooledStore(BoundSessionStore):
    """A bound store whose appends never fail for the SDK, which would drop the batch for good.

    What cannot be stored is kept, and stored in order as soon as it is possible; until then nothing is
    stored past it.
    """

    def __init__(
        self, store: FileSessionStore, project_key: str, keeper: Keeper, workspace_id: str = ""
    ) -> None:
        """:param workspace_id: marks the copies of histories that the SDK makes for the CLI."""
        super().__init__(store, project_key)
        self._keeper = keeper
        self._workspace_id = workspace_id

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        if entries:
            await self._keeper.write("transcript", entries, key=self._bound(key))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """As the store's, for the CLI: with a mark before it, whose this history is, once it lies in the
        CLI's folder, and without the folders that it was had in.
        """
        entries = await super().load(key)
        if not entries or key.get("subpath"):
            return entries
        neutral = await run_sync(without_places, cast("list[Entry]", entries))
        return cast("list[SessionStoreEntry]", [history_mark(self._workspace_id), *neutral])
