"""``FileSessionStore``: the transcripts of Agent SDK sessions as plain JSONL files.

::

    <root>/
      sessions/<projectKey>/<sessionId>.jsonl               one transcript entry a line
      sessions/<projectKey>/<sessionId>/<subpath>.jsonl     those of its subagents
      trash/<projectKey>/<sessionId>.<when>/…               what was deleted
      cache/summaries/<projectKey>.jsonl                    for listing; can be deleted

    {"type":"user","uuid":"5f0c…","parentUuid":null,"sessionId":"8a31…","message":{…}}

The contract is the SDK's: see ``claude_agent_sdk.SessionStore``. Beyond it, this store promises
that an entry is on the disk when ``append`` returns, and what ``smartwriter.storage.journal`` says.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
import smartwriter.system.children as forks
from smartwriter.files.names import original, project_name, session_name
from smartwriter.sessions.prefix import prefix
from smartwriter.sessions.summaries import Summaries
from smartwriter.storage.files import FileStorage
from smartwriter.storage.interface import Durability, Journal, Storage
from smartwriter.storage.journal import LOCK_TIMEOUT_S
from smartwriter.storage.places import Places
from smartwriter.storage.salvage import Damage, Entry
from smartwriter.system.threads import to_the_end

if TYPE_CHECKING:
    from claude_agent_sdk.types import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

_OPEN_JOURNALS = 256  # whose uuids are remembered
_STREAM_ENTRIES = 256  # handed over at a time


class FileSessionStore:
    """A Claude Agent SDK session store in a folder.

    Safe for any number of tasks, threads and processes at once, on asyncio and trio.
    """

    def __init__(
        self,
        root: str | Path = ".smartwriter",
        *,
        durability: Durability = "sync",
        lock_timeout_s: float = LOCK_TIMEOUT_S,
        storage: Storage | None = None,
    ) -> None:
        """
        :param root: the folder that holds everything; made when the first entry comes. Once it was
            there it is not made again: what was renamed or unmounted is an error that says so.
        :param durability: ``"sync"``: what ``append`` acknowledged survives a power cut.
            ``"os"``: it survives the death of the process, but a power cut may take the last
            seconds of it; two to three times as fast.
        :param lock_timeout_s: how long an append waits for another writer of the same session
            before it raises ``JournalBusy``. Keep it well under the SDK's 60 s.
        :param storage: what keeps everything; None: files in ``root``.
        """
        self.root = Path(root).absolute()
        self._storage = storage or FileStorage(self.root, lock_timeout_s=lock_timeout_s)
        self._places = Places(self.root)
        self._durability: Durability = durability
        self._journals: OrderedDict[tuple[str, ...], Journal] = OrderedDict()
        self.renew_locks()
        forks.renew_in_children(self)
        self._listings: dict[str, Summaries] = {}

    def renew_locks(self) -> None:
        self._journals_lock = threading.Lock()

    def bind(self, project_key: str) -> BoundSessionStore:
        """This store with one project key for everything, whatever key it is handed.

        The SDK derives its key from the working directory, which is lossy and changes when the
        folder moves. A bound store keeps a project's sessions together all the same.
        """
        return BoundSessionStore(self, project_key)

    def path(self, key: SessionKey | SessionListSubkeysKey) -> Path:
        """The file that the transcript of a key is, or would be.

        :raises UnsafeName: when a part of the key could not be a file name.
        """
        return self._places.journal(*_name(key))

    def journal(self, key: SessionKey | SessionListSubkeysKey) -> Journal:
        """The transcript of a key. :raises UnsafeName: as :meth:`path`."""
        return self._storage.journal(*_name(key), durability=self._durability, unique=True)

    # The SDK's contract ----------------------------------------------------------------------

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Store entries at the end, all or none, exactly once by ``uuid``.

        When it is cancelled, in whatever way, it raises once they are stored or never will be.

        :raises JournalError: they are not stored, and the call may be repeated. Never a
            ``TimeoutError``, which the SDK would not try again.
        :raises UnsafeName: see :meth:`path`.
        """
        if entries:
            await to_the_end(self.append_now, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Every whole entry, in order; None for a key that was never written.

        Damaged stretches are passed over: :meth:`damage` tells of them.

        :raises OSError: when the file is there but cannot be read.
        """
        return await to_the_end(self._load, self.journal(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, the latest first; not what a sync service put beside one.

        The time of each is that of its last entry which has a ``timestamp``, so that neither a copy that
        loses the times of files nor a clock that was ahead for a while changes the order; where none has,
        it is the file's. Of equal ones, the later file comes first, then the greater id.
        """
        return await to_the_end(self._current_times, project_key)

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What the SDK lists of each session; see ``claude_agent_sdk.fold_session_summary``.

        Times and order are those of :meth:`list_sessions`.
        """
        return await to_the_end(self._current_summaries, project_key)

    async def delete(self, key: SessionKey) -> None:
        """Move a session, or one of its subpaths, to the trash."""
        await to_the_end(self.delete_now, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of a session that have entries, sorted."""
        return await to_the_end(self.subkeys, key)

    # Beyond it -------------------------------------------------------------------------------

    async def entries(self, key: SessionKey) -> AsyncGenerator[SessionStoreEntry, None]:
        """As :meth:`load`, one entry after the other, in the memory of a few."""
        journal = self.journal(key)
        await to_the_end(self._storage.check)
        stream = _unique(journal.stream())
        while batch := await to_the_end(lambda: list(islice(stream, _STREAM_ENTRIES))):
            for entry in batch:
                yield cast("SessionStoreEntry", entry)

    async def damage(self, key: SessionKey) -> list[Damage]:
        """The stretches of a transcript that hold no whole entry.

        :raises FileNotFoundError: for a key that was never written.
        """
        return await to_the_end(self._damage, self.journal(key))

    async def projects(self) -> list[str]:
        """The project keys that have sessions, sorted.

        A key that was too long for a folder's name comes in its short form, which every method
        takes in its place.
        """
        return await to_the_end(self._projects)

    def append_now(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """As :meth:`append`, blocking."""
        if entries:
            self._journal(_name(key)).append(entries)
            self._storage.check()

    def subkeys(self, key: SessionKey | SessionListSubkeysKey) -> list[str]:
        """As :meth:`list_subkeys`, blocking."""
        self._storage.check()
        name = _name(key)
        found = (listed.name[len(name) :] for listed in self._storage.names(*name, deep=True))
        return sorted("/".join(map(original, parts)) for parts in found)

    def copy_now(self, key: SessionKey, session_id: str, last_entry: str, title: str) -> None:
        """Make a new session of the bytes of another one, up to and including an entry. Blocking.

        The entries keep their uuids, and the id of the session that they come from. Torn lines and zeros
        stay behind; what is damaged within a line reads there as it does here. It is there as a whole or
        not at all.

        :param last_entry: its uuid.
        :param title: by which the new session is listed.
        :raises KeyError: there is no such entry.
        """
        with reading.collector_paused():
            data, replacements = prefix(self.journal(key), last_entry)
        own: list[dict[str, Any]] = [{"type": "custom-title", "customTitle": title, "sessionId": session_id}]
        if replacements:  # of tool results too long to be sent: the CLI heeds only those of its own session
            own.append({"type": "content-replacement", "sessionId": session_id, "replacements": replacements})
        copy: SessionKey = {"project_key": key["project_key"], "session_id": session_id}
        self.journal(copy).begin(data + b"".join(map(encoding.encode, own)))

    # Blocking --------------------------------------------------------------------------------

    def _summaries(self, project_key: str) -> Summaries:
        name = project_name(project_key)
        return self._listings.setdefault(name, Summaries(self._storage, name))

    def _journal(self, name: tuple[str, ...]) -> Journal:
        """The same one each time: it remembers the uuids that it has."""
        with self._journals_lock:
            found = self._journals.pop(name, None) or self._storage.journal(
                *name, durability=self._durability, unique=True
            )
            self._journals[name] = found
            if len(self._journals) > _OPEN_JOURNALS:
                self._journals.popitem(last=False)
        return found

    def _current_times(self, project_key: str) -> list[SessionStoreListEntry]:
        self._storage.check()
        return self._summaries(project_key).times()

    def _current_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        self._storage.check()
        return self._summaries(project_key).current()

    def _load(self, journal: Journal) -> list[SessionStoreEntry] | None:
        self._storage.check()
        contents = journal.read()
        if contents.size == 0 and not journal.exists():
            return None
        return cast("list[SessionStoreEntry]", list(_unique(iter(contents.entries))))

    def _damage(self, journal: Journal) -> list[Damage]:
        contents = journal.read()
        if contents.size == 0 and not journal.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), journal.where)
        return contents.damage

    def delete_now(self, key: SessionKey) -> None:
        """As :meth:`delete`, blocking."""
        self._storage.check()
        main = not key.get("subpath")
        self._storage.put_away(*_name(key), deep=main)
        if main:
            self._summaries(key["project_key"]).forget(key["session_id"])

    def _projects(self) -> list[str]:
        self._storage.check()
        return sorted(map(original, self._storage.groups("sessions")))


class BoundSessionStore:
    """A :class:`FileSessionStore` that uses one project key for everything."""

    def __init__(self, store: FileSessionStore, project_key: str) -> None:
        project_name(project_key)  # raises where it could not be stored
        self.store = store
        self.project_key = project_key

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """See :meth:`FileSessionStore.append`."""
        await self.store.append(self._bound(key), entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """See :meth:`FileSessionStore.load`."""
        return await self.store.load(self._bound(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """See :meth:`FileSessionStore.list_sessions`: those of its own project."""
        return await self.store.list_sessions(self.project_key)

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """See :meth:`FileSessionStore.list_session_summaries`: those of its own project."""
        return await self.store.list_session_summaries(self.project_key)

    async def delete(self, key: SessionKey) -> None:
        """See :meth:`FileSessionStore.delete`."""
        await self.store.delete(self._bound(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """See :meth:`FileSessionStore.list_subkeys`."""
        return await self.store.list_subkeys({**key, "project_key": self.project_key})

    async def entries(self, key: SessionKey) -> AsyncGenerator[SessionStoreEntry, None]:
        """See :meth:`FileSessionStore.entries`."""
        async with contextlib.aclosing(self.store.entries(self._bound(key))) as entries:
            async for entry in entries:
                yield entry

    async def damage(self, key: SessionKey) -> list[Damage]:
        """See :meth:`FileSessionStore.damage`."""
        return await self.store.damage(self._bound(key))

    async def projects(self) -> list[str]:
        """Its own project key, if that has sessions."""
        own = original(project_name(self.project_key))
        return [key for key in await self.store.projects() if key == own]

    def append_now(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """See :meth:`FileSessionStore.append_now`."""
        self.store.append_now(self._bound(key), entries)

    def delete_now(self, key: SessionKey) -> None:
        """See :meth:`FileSessionStore.delete_now`."""
        self.store.delete_now(self._bound(key))

    def path(self, key: SessionKey | SessionListSubkeysKey) -> Path:
        """See :meth:`FileSessionStore.path`."""
        return self.store.path(self._bound(cast("SessionKey", key)))

    def journal(self, key: SessionKey | SessionListSubkeysKey) -> Journal:
        """See :meth:`FileSessionStore.journal`."""
        return self.store.journal(self._bound(cast("SessionKey", key)))

    def subkeys(self, key: SessionKey | SessionListSubkeysKey) -> list[str]:
        """See :meth:`FileSessionStore.subkeys`."""
        return self.store.subkeys(self._bound(cast("SessionKey", key)))

    def copy_now(self, key: SessionKey, session_id: str, last_entry: str, title: str) -> None:
        """See :meth:`FileSessionStore.copy_now`."""
        self.store.copy_now(self._bound(key), session_id, last_entry, title)

    def bind(self, project_key: str) -> BoundSessionStore:
        """See :meth:`FileSessionStore.bind`."""
        return self.store.bind(project_key)

    def _bound(self, key: SessionKey) -> SessionKey:
        return {**key, "project_key": self.project_key}


def _name(key: SessionKey | SessionListSubkeysKey) -> tuple[str, ...]:
    """By which a transcript is kept. :raises UnsafeName: a part of the key could not be a file name."""
    subpath = cast("dict[str, str]", key).get("subpath")
    parts = [key["session_id"], *(subpath.split("/") if subpath else [])]
    return "sessions", project_name(key["project_key"]), *map(session_name, parts)


def _unique(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Each uuid once, the first time: a file from elsewhere may have duplicates."""
    seen = set[int]()  # hashes, of 64 random bits: a quarter of the memory of the strings
    for entry in entries:
        uuid = entry.get("uuid")
        if isinstance(uuid, str) and uuid:
            mark = hash(uuid)
            if mark in seen:
                continue
            seen.add(mark)
        yield entry
