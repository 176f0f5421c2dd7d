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
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import smartwriter.files.durable as durable
import smartwriter.storage.encoding as encoding
import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading
import smartwriter.system.children as forks
import smartwriter.system.roots as roots
from smartwriter.files.names import original, project_name, session_name
from smartwriter.sessions.prefix import prefix
from smartwriter.sessions.summaries import Summaries
from smartwriter.storage.interface import Durability
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
        lock_timeout_s: float = journal.LOCK_TIMEOUT_S,
    ) -> None:
        """
        :param root: the folder that holds everything; made when the first entry comes. Once it was
            there it is not made again: what was renamed or unmounted is an error that says so.
        :param durability: ``"sync"``: what ``append`` acknowledged survives a power cut.
            ``"os"``: it survives the death of the process, but a power cut may take the last
            seconds of it; two to three times as fast.
        :param lock_timeout_s: how long an append waits for another writer of the same session
            before it raises ``JournalBusy``. Keep it well under the SDK's 60 s.
        """
        self.root = Path(root).absolute()
        self._places = Places(self.root)
        self._durability = durability
        self._lock_timeout_s = lock_timeout_s
        self._journals: OrderedDict[Path, journal.Journal] = OrderedDict()
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
        """Where the transcript of a key is, or would be.

        :raises UnsafeName: when a part of the key could not be a file name.
        """
        folder = self._project(key["project_key"])
        subpath = cast("dict[str, str]", key).get("subpath")
        parts = [key["session_id"], *(subpath.split("/") if subpath else [])]
        *folders, name = map(session_name, parts)
        return folder.joinpath(*folders, f"{name}.jsonl")

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
        return await to_the_end(self._load, self.path(key))

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
        path = self.path(key)
        if not await to_the_end(self._has, path):
            return
        stream = _unique(entry for _, entry in reading.stream(path))
        while batch := await to_the_end(lambda: list(islice(stream, _STREAM_ENTRIES))):
            for entry in batch:
                yield cast("SessionStoreEntry", entry)

    async def damage(self, key: SessionKey) -> list[Damage]:
        """The stretches of a transcript that hold no whole entry."""
        return (await to_the_end(reading.read, self.path(key))).damage

    async def projects(self) -> list[str]:
        """The project keys that have sessions, sorted.

        A key that was too long for a folder's name comes in its short form, which every method
        takes in its place.
        """
        return await to_the_end(self._projects)

    def append_now(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """As :meth:`append`, blocking."""
        if entries:
            self._journal(self.path(key)).append(entries)
            roots.check_or_hold(self.root)

    def subkeys(self, key: SessionKey | SessionListSubkeysKey) -> list[str]:
        """As :meth:`list_subkeys`, blocking."""
        return self._list_subkeys(self.path(key).with_suffix(""))

    def copy_now(self, key: SessionKey, session_id: str, last_entry: str, title: str) -> None:
        """Make a new session of the bytes of another one, up to and including an entry. Blocking.

        The entries keep their uuids, and the id of the session that they come from; damage stays behind.
        It is there as a whole or not at all.

        :param last_entry: its uuid.
        :param title: by which the new session is listed.
        :raises FileNotFoundError: :raises KeyError: there is no such entry.
        """
        with reading.collector_paused():
            data, replacements = prefix(self.path(key), last_entry)
        own: list[dict[str, Any]] = [{"type": "custom-title", "customTitle": title, "sessionId": session_id}]
        if replacements:  # of tool results too long to be sent: the CLI heeds only those of its own session
            own.append({"type": "content-replacement", "sessionId": session_id, "replacements": replacements})
        copy: SessionKey = {"project_key": key["project_key"], "session_id": session_id}
        durable.write_document(self.path(copy), data + b"".join(map(encoding.encode, own)))

    # Blocking --------------------------------------------------------------------------------

    def _project(self, project_key: str) -> Path:
        return self._places.sessions / project_name(project_key)

    def _summaries(self, project_key: str) -> Summaries:
        name = project_name(project_key)
        cache = self._places.summaries(name)
        return self._listings.setdefault(name, Summaries(cache, self._project(project_key)))

    def _journal(self, path: Path) -> journal.Journal:
        with self._journals_lock:
            found = self._journals.pop(path, None) or journal.Journal(
                path, durability=self._durability, unique=True, lock_timeout_s=self._lock_timeout_s
            )
            self._journals[path] = found
            if len(self._journals) > _OPEN_JOURNALS:
                self._journals.popitem(last=False)
        return found

    def _current_times(self, project_key: str) -> list[SessionStoreListEntry]:
        roots.check_or_hold(self.root)
        return self._summaries(project_key).times()

    def _current_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        roots.check_or_hold(self.root)
        return self._summaries(project_key).current()

    def _has(self, path: Path) -> bool:
        roots.check_or_hold(self.root)
        return path.exists()

    def _load(self, path: Path) -> list[SessionStoreEntry] | None:
        roots.check_or_hold(self.root)
        try:
            contents = reading.read(path)
        except FileNotFoundError:
            return None
        return cast("list[SessionStoreEntry]", list(_unique(iter(contents.entries))))

    def delete_now(self, key: SessionKey) -> None:
        """As :meth:`delete`, blocking."""
        roots.check_or_hold(self.root)
        path = self.path(key)
        main = not key.get("subpath")
        trash = self._trash(key)
        if path.exists():
            with self._journal(path).locked():  # an append comes before it, or starts anew
                durable.move(path, trash / path.name)
        if main and path.with_suffix("").is_dir():
            durable.move(path.with_suffix(""), trash / path.stem)
        if main:
            self._summaries(key["project_key"]).forget(key["session_id"])

    def _trash(self, key: SessionKey) -> Path:
        project, session = project_name(key["project_key"]), session_name(key["session_id"])
        return self._places.trash(project, session)

    def _list_subkeys(self, folder: Path) -> list[str]:
        roots.check_or_hold(self.root)
        if not folder.is_dir():
            return []
        return [
            "/".join(map(original, file.relative_to(folder).with_suffix("").parts))
            for file in sorted(folder.rglob("*.jsonl"))
            if file.is_file() and not file.name.startswith(".")
        ]

    def _projects(self) -> list[str]:
        roots.check_or_hold(self.root)
        folder = self._places.sessions
        if not folder.is_dir():
            return []
        return sorted(original(item.name) for item in folder.iterdir() if item.is_dir())


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
