"""Where entries go that could not be stored in their transcript.

``spool/<when>-<n>.jsonl``: the key on the first line, then the entries. Each is stored and moved to
the trash when its transcript can be written again: by the next append, or at the next start.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from anyio.to_thread import run_sync

import smartwriter.journal as journal
from smartwriter.errors import JournalError, UnsafeName
from smartwriter.orphans import history_mark
from smartwriter.session_store import BoundSessionStore, FileSessionStore

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry

_NUMBER = itertools.count()


class Spool:
    """The folder of batches. Calls block."""

    def __init__(self, folder: Path, trash: Path) -> None:
        self._folder = folder
        self._trash = trash

    def put(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """:raises JournalError: not even here."""
        name = f"{time.time_ns():020d}-{next(_NUMBER):06d}-{secrets.token_hex(2)}.jsonl"
        head: dict[str, Any] = {"type": "spooled", "key": key}
        journal.Journal(self._folder / name).append([head, *entries])

    def waiting(self) -> int:
        """How many batches wait."""
        return len(list(self._folder.glob("*.jsonl")))

    def replay(self, store: FileSessionStore, session_id: str | None = None) -> int:
        """Store what waits, in order, of one session or of all; returns how many batches.

        :raises JournalError: when a transcript still cannot be written.
        """
        stored = 0
        for path in sorted(self._folder.glob("*.jsonl")) if self._folder.is_dir() else []:
            with contextlib.suppress(FileNotFoundError):  # another process has just stored it
                stored += self._replay(path, store, session_id)
        return stored

    def _replay(self, path: Path, store: FileSessionStore, session_id: str | None) -> bool:
        """Store one batch, unless it is of another session; whether it was."""
        lines = journal.read(path).entries
        key = lines[0].get("key") if lines and lines[0].get("type") == "spooled" else None
        if not _is_key(key, store) or (session_id and key["session_id"] != session_id):
            return False
        store.append_now(cast("SessionKey", key), cast("list[SessionStoreEntry]", lines[1:]))
        journal.move(path, self._trash / path.name)
        return True


def _is_key(key: Any, store: FileSessionStore) -> TypeGuard[dict[str, str]]:
    """Whether what a file says is the key of a transcript."""
    try:
        store.path(key)
    except (UnsafeName, KeyError, TypeError, AttributeError):
        return False
    return True


class SpooledStore(BoundSessionStore):
    """A bound store whose appends never fail for the SDK, which would drop the batch for good.

    What cannot be stored goes to the spool, and what cannot even go there stays in memory; both
    are stored, in order, as soon as it is possible, and until then nothing is stored past them.
    """

    def __init__(
        self,
        store: FileSessionStore,
        project_key: str,
        spool: Spool,
        not_saved: Callable[[str], None],
        workspace_id: str = "",
    ) -> None:
        """:param not_saved: is told, in words, of each batch that did not get to its place.
        :param workspace_id: marks the copies of histories that the SDK makes for the CLI.
        """
        super().__init__(store, project_key)
        self._workspace_id = workspace_id
        self._spool = spool
        self._not_saved = not_saved
        self._spooled: set[str] = set()  # sessions
        self._kept: list[tuple[SessionKey, list[SessionStoreEntry]]] = []

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        try:
            await self.settle(key["session_id"])
            await super().append(key, entries)
        except JournalError as error:
            await self._put_aside(self._bound(key), entries, str(error))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """As the store's, with a mark before it: whose this history is, once it lies in the CLI's folder."""
        entries = await super().load(key)
        if not entries or key.get("subpath"):
            return entries
        return [cast("SessionStoreEntry", history_mark(self._workspace_id)), *entries]

    async def settle(self, session_id: str) -> None:
        """Store what waits of a session. :raises JournalError: it still cannot be."""
        if session_id in self._spooled:
            await run_sync(self._spool.replay, self.store, session_id)
            self._spooled.discard(session_id)
        while self._kept:
            key, entries = self._kept[0]
            await self.store.append(key, entries)
            del self._kept[0]

    async def _put_aside(self, key: SessionKey, entries: list[SessionStoreEntry], why: str) -> None:
        try:
            if self._kept:
                raise JournalError(self.store.root, OSError(5, "earlier entries are only in memory"))
            await run_sync(self._spool.put, key, entries)
            self._spooled.add(key["session_id"])
            where = "it waits in the spool and is stored as soon as possible"
        except JournalError:
            self._kept.append((key, entries))
            where = "it is only in memory: do not close this program"
        self._not_saved(f"{why} {len(entries)} entries of the conversation are not in place; {where}.")
