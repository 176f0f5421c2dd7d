from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import claude_agent_sdk._internal.transcript_mirror_batcher as batcher
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    delete_session_via_store,
    fork_session_via_store,
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
    rename_session_via_store,
    tag_session_via_store,
)
from claude_agent_sdk.testing import run_session_store_conformance
from disks import in_place_of_os
from transcripts import (
    KEY,
    SESSION,
    Disk,
    as_stored,
    entries,
    entry,
    entry_uuid,
    fails,
    healthy,
    line,
    lines,
    numbers,
    write_transcript,
    writes_only,
)

import smartwriter.storage.encoding as encoding
import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading
from smartwriter.errors import JournalBusy, JournalError, UnsafeName
from smartwriter.sessions.copying import copy_session
from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage.interface import Durability, Storage

if TYPE_CHECKING:
    from claude_agent_sdk import SessionStore
    from claude_agent_sdk.types import SessionKey

pytestmark = pytest.mark.anyio

AGENT: SessionKey = {**KEY, "subpath": "subagents/agent-1"}
NESTED: SessionKey = {**KEY, "subpath": "subagents/workflows/run-7/agent-x"}
OTHER: SessionKey = {**KEY, "session_id": "22222222-2222-4333-8444-555555555555"}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The store is tied to no event loop, so each of its tests runs on both."""
    backend: str = request.param
    return backend


@pytest.fixture
def store(tmp_path: Path) -> FileSessionStore:
    return FileSessionStore(tmp_path / "store")


@pytest.fixture
def disk() -> Iterator[Disk]:
    """The disk under the store, to watch and to break."""
    disk = Disk()
    with in_place_of_os(disk):
        yield disk


# --- the SDK's contract -----------------------------------------------------------------------


@pytest.mark.parametrize("bound", [False, True], ids=["store", "bound"])
async def test_the_sdks_conformance_suite(
    new_storage: Callable[[], Storage], tmp_path: Path, bound: bool
) -> None:
    """The store, and a bound view of it, keep the whole contract that the SDK publishes, over any storage."""
    count = 0

    def make_store() -> SessionStore:
        nonlocal count
        count += 1
        store = FileSessionStore(tmp_path / "nothing", storage=new_storage())
        return ProjectsByBinding(store) if bound else store

    await run_session_store_conformance(make_store)
    assert count == 15 and not (tmp_path / "nothing").exists()


async def test_over_any_storage(storage: Storage, tmp_path: Path) -> None:
    """What the store promises beyond the SDK's contract, it promises whatever keeps the entries: each once,
    streams, subpaths, projects, copies, and that a deleted session begins anew."""
    store = FileSessionStore(tmp_path / "nothing", storage=storage)
    for key in (KEY, AGENT, NESTED):
        for _ in range(2):
            await store.append(key, as_stored(entries(0, 1, 2)))
        assert numbers([one async for one in store.entries(key)]) == [0, 1, 2]
    assert await store.load(OTHER) is None and await store.damage(KEY) == []
    assert await store.projects() == ["book"]
    assert await store.list_subkeys(KEY) == [AGENT["subpath"], NESTED["subpath"]]
    await anyio.to_thread.run_sync(copy_session, store, KEY, OTHER["session_id"], entry_uuid(1), "A copy")
    assert numbers(one for one in await store.load(OTHER) or [] if "uuid" in one) == [0, 1]
    for _ in range(2):
        summaries = {one["session_id"]: one["data"] for one in await store.list_session_summaries("book")}
        assert summaries.keys() == {SESSION, OTHER["session_id"]}
        assert summaries[OTHER["session_id"]]["custom_title"] == "A copy"
    await store.delete(KEY)
    assert await store.load(KEY) is await store.load(AGENT) is None
    assert await store.list_subkeys(KEY) == []
    await store.append(KEY, as_stored(entries(1)))
    assert numbers(await store.load(KEY)) == [1]
    assert {one["session_id"] for one in await store.list_sessions("book")} == summaries.keys()
    assert not (tmp_path / "nothing").exists()


class ProjectsByBinding:
    """Bound views, one for each key that the suite hands over: they must add up to a store."""

    def __init__(self, store: FileSessionStore) -> None:
        self._store = store

    def _view(self, project_key: str) -> Any:
        return self._store.bind(f"bound to {project_key}")

    async def append(self, key: SessionKey, entries: Any) -> None:
        await self._view(key["project_key"]).append({**key, "project_key": "ignored"}, entries)

    async def load(self, key: SessionKey) -> Any:
        return await self._view(key["project_key"]).load({**key, "project_key": "ignored"})

    async def list_sessions(self, project_key: str) -> Any:
        return await self._view(project_key).list_sessions("ignored")

    async def list_session_summaries(self, project_key: str) -> Any:
        return await self._view(project_key).list_session_summaries("ignored")

    async def delete(self, key: SessionKey) -> None:
        await self._view(key["project_key"]).delete({**key, "project_key": "ignored"})

    async def list_subkeys(self, key: Any) -> Any:
        return await self._view(key["project_key"]).list_subkeys({**key, "project_key": "ignored"})


def test_both_are_session_stores_for_the_sdk(store: FileSessionStore) -> None:
    """The SDK's options take the store and a bound view of it as they are."""
    assert ClaudeAgentOptions(session_store=store).session_store is store
    assert ClaudeAgentOptions(session_store=store.bind("essays")).session_store is not None


async def test_a_bound_store_keeps_one_project_together(store: FileSessionStore) -> None:
    """Whatever project key the SDK derives, a bound store uses its own, also for what it lists."""
    bound = store.bind("essays")
    for derived in ("-w-book", "-moved-book", "小说"):
        await bound.append({**KEY, "project_key": derived}, as_stored(entries(0, 1)))
    await bound.append({**AGENT, "project_key": "elsewhere"}, as_stored(entries(2)))
    assert numbers(await bound.load({**KEY, "project_key": "anything"})) == [0, 1]
    assert numbers(await store.load({**KEY, "project_key": "essays"})) == [0, 1]
    assert await store.projects() == ["essays"]
    assert [one["session_id"] for one in await bound.list_sessions("anything")] == [SESSION]
    assert [one["session_id"] for one in await bound.list_session_summaries("x")] == [SESSION]
    assert await bound.list_subkeys({"project_key": "x", "session_id": SESSION}) == ["subagents/agent-1"]
    await bound.delete({**KEY, "project_key": "whatever"})
    assert await bound.load(KEY) is None
    assert (bound.store, bound.project_key) == (store, "essays")
    with pytest.raises(UnsafeName):
        store.bind("")


# --- where things are -------------------------------------------------------------------------


def test_where_a_transcript_is(store: FileSessionStore) -> None:
    """The path of a key is the one that the README draws, plain names for whatever key."""
    sessions = store.root / "sessions"
    assert store.path(KEY) == sessions / "book" / f"{SESSION}.jsonl"
    assert store.path(NESTED) == sessions / "book" / SESSION / "subagents/workflows/run-7/agent-x.jsonl"
    odd: SessionKey = {"project_key": "../写", "session_id": ".jsonl", "subpath": "写"}
    path = store.path(odd)
    assert path.is_relative_to(sessions) and ".." not in path.parts
    assert str(path.relative_to(store.root)).isascii()


@pytest.mark.parametrize(
    "key",
    [
        {**KEY, "session_id": ""},
        {**KEY, "session_id": "."},
        {**KEY, "session_id": ".."},
        {**KEY, "session_id": "../../x"},
        {**KEY, "session_id": "CON"},
        {**KEY, "session_id": "a\0b"},
        {**KEY, "session_id": "x" * 300},
        {**KEY, "subpath": "/etc/passwd"},
        {**KEY, "subpath": "a/../../../b"},
        {**KEY, "subpath": "a//b"},
        {**KEY, "subpath": "a/"},
        {**KEY, "subpath": "C:\\x"},
        {**KEY, "subpath": "subagents/nul"},
        {**KEY, "project_key": ""},
    ],
)
async def test_unsafe_keys_are_refused(store: FileSessionStore, key: SessionKey) -> None:
    """A key that could name something outside is refused by every method, and nothing is touched."""
    with pytest.raises(UnsafeName):
        await store.append(key, as_stored(entries(0)))
    with pytest.raises(UnsafeName):
        await store.load(key)
    with pytest.raises(UnsafeName):
        await store.delete(key)
    assert not store.root.exists()


async def test_ids_that_are_no_uuids_are_kept_apart(store: FileSessionStore) -> None:
    """Other plain ids, however tricky as file names, are stored, listed and loaded as themselves."""
    ids = ["sess", "a", "a.jsonl", "%2E", ".hidden", "a b", "写", "a~0123456789abcdef", "\ud800"]
    for number, session_id in enumerate(ids):
        await store.append({**KEY, "session_id": session_id}, as_stored(entries(number)))
        await store.append({**KEY, "session_id": session_id, "subpath": "a"}, as_stored(entries(99)))
    assert sorted(one["session_id"] for one in await store.list_sessions("book")) == sorted(ids)
    for number, session_id in enumerate(ids):
        assert numbers(await store.load({**KEY, "session_id": session_id})) == [number]
        assert await store.list_subkeys({"project_key": "book", "session_id": session_id}) == ["a"]


async def test_long_project_keys_are_stored_and_listed(store: FileSessionStore) -> None:
    """Keys of 300 characters that differ in the last one are two projects, and lead back to them."""
    keys = ["-home-writer" * 25 + ending for ending in "ab"]
    for number, key in enumerate(keys):
        await store.append({**KEY, "project_key": key}, as_stored(entries(number)))
    listed = await store.projects()
    assert len(listed) == 2
    found = []
    for key in listed:
        assert [one["session_id"] for one in await store.list_sessions(key)] == [SESSION]
        found += numbers(await store.load({**KEY, "project_key": key}))
    assert sorted(found) == [0, 1]
    assert [numbers(await store.load({**KEY, "project_key": key})) for key in keys] == [[0], [1]]


async def test_projects_are_listed(store: FileSessionStore) -> None:
    """Every project key that has sessions, sorted, as it was given; none before the first."""
    assert await store.projects() == []
    for key in ("b", "..", "写", "a/b", "CON"):
        await store.append({**KEY, "project_key": key}, as_stored(entries(0)))
    (store.root / "sessions" / "a file").write_bytes(b"")
    assert await store.projects() == sorted(["b", "..", "写", "a/b", "CON"])


# --- appending and loading --------------------------------------------------------------------


async def test_an_unknown_key_is_none_and_an_empty_file_is_not(store: FileSessionStore) -> None:
    """Nothing there, or another subpath only, is None; a transcript that was emptied is a list."""
    assert await store.load(KEY) is None
    await store.append(AGENT, as_stored(entries(0)))
    assert await store.load(KEY) is None
    assert await store.load({**KEY, "subpath": "subagents"}) is None
    write_transcript(store, b"")
    assert await store.load(KEY) == []


async def test_a_transcript_that_cannot_be_read_is_an_error(store: FileSessionStore) -> None:
    """What the system refuses to read is never taken for a session that does not exist."""
    store.path(KEY).mkdir(parents=True)
    with pytest.raises(OSError, match="is not a regular file"):
        await store.load(KEY)


async def test_an_empty_append_touches_nothing(store: FileSessionStore) -> None:
    """Appending no entries creates no file and no session."""
    await store.append(KEY, [])
    assert not store.root.exists()


async def test_the_same_uuid_is_stored_once(store: FileSessionStore) -> None:
    """An append that is repeated, in this process or the next, adds nothing."""
    await store.append(KEY, as_stored(entries(0, 1)))
    await store.append(KEY, as_stored(entries(1, 2)))
    await FileSessionStore(store.root).append(KEY, as_stored(entries(0, 1, 2, 3)))
    assert numbers(await store.load(KEY)) == [0, 1, 2, 3]
    assert store.path(KEY).read_bytes().count(b"\n") == 4


async def test_duplicates_from_elsewhere_are_loaded_once(store: FileSessionStore) -> None:
    """A file that another program wrote may repeat uuids: the first of each counts."""
    service = b'{"type":"mode"}\n'
    write_transcript(store, lines(0, 1) + service + line(1, "again") + lines(0, 2) + service)
    loaded = await store.load(KEY)
    assert loaded == [entry(0), entry(1), {"type": "mode"}, entry(2), {"type": "mode"}]
    assert [found async for found in store.entries(KEY)] == loaded


async def test_damage_is_passed_over_and_told(store: FileSessionStore) -> None:
    """A damaged transcript loads without its damage, which can be asked for."""
    assert await store.load(KEY) is None
    with pytest.raises(FileNotFoundError):
        await store.damage(KEY)
    write_transcript(store, lines(0, 1) + b"\0" * 9 + b"\n" + line(2) + line(3)[:20])
    assert numbers(await store.load(KEY)) == [0, 1, 2]
    assert await store.damage(KEY) == [(len(lines(0, 1)), 9), (len(lines(0, 1)) + 10 + len(line(2)), 20)]


async def test_entries_come_one_after_the_other(store: FileSessionStore) -> None:
    """Streaming gives what loading gives, also over many batches, and can be left early."""
    count = 1000
    write_transcript(store, lines(*range(count)))
    assert [found async for found in store.entries(KEY)] == await store.load(KEY)
    assert [found async for found in store.entries(OTHER)] == []
    stream = store.entries(KEY)
    assert numbers([await anext(stream), await anext(stream)]) == [0, 1]
    await stream.aclose()


async def test_reading_changes_nothing(store: FileSessionStore) -> None:
    """Loading, streaming and listing leave bytes and times of a damaged transcript as they are."""
    path = write_transcript(store, healthy() + line(6)[:50])
    os.utime(path, ns=(1_600_000_000_000_000_000, 1_600_000_000_000_000_000))
    before = path.stat()
    await store.load(KEY)
    await store.damage(KEY)
    await store.list_sessions("book")
    await store.list_session_summaries("book")
    await store.list_subkeys({"project_key": "book", "session_id": SESSION})
    await store.projects()
    assert [found async for found in store.entries(KEY)]
    after = path.stat()
    assert (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns)
    assert path.read_bytes() == healthy() + line(6)[:50]


async def test_a_deep_entry_survives(store: FileSessionStore) -> None:
    """An entry nested 900 deep is stored and loaded in the store's own threads."""
    deep: dict[str, Any] = {"type": "x", "v": 1}
    for _ in range(900):
        deep = {"type": "x", "v": deep}
    await store.append(KEY, as_stored([deep]))
    assert await store.load(KEY) == [deep]
    assert [found async for found in store.entries(KEY)] == [deep]


# --- when the disk fails ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        fails(OSError(errno.ENOSPC, "No space left on device")),
        writes_only(300, OSError(errno.ENOSPC, "No space left on device")),
        writes_only(300),
    ],
    ids=["refused", "half written", "short"],
)
async def test_a_failed_append_can_be_tried_again(store: FileSessionStore, disk: Disk, act: Any) -> None:
    """As the SDK does it: tried again after an error, every entry is there once and the error was told."""
    await store.append(KEY, as_stored(entries(0)))
    disk.then("write", act)
    with pytest.raises(JournalError):
        await store.append(KEY, as_stored(entries(1, 2, 3, 4, 5)))
    assert numbers(await store.load(KEY)) == [0]
    await store.append(KEY, as_stored(entries(1, 2, 3, 4, 5)))
    assert numbers(await store.load(KEY)) == [0, 1, 2, 3, 4, 5]
    assert store.path(KEY).read_bytes().count(b"\n") == 6


async def test_a_session_that_could_not_be_begun_is_not_there(store: FileSessionStore, disk: Disk) -> None:
    """After a failed first append the session is unknown, not empty."""
    disk.then("write", writes_only(9, OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(JournalError):
        await store.append(KEY, as_stored(entries(0)))
    assert await store.load(KEY) is None
    assert await store.list_sessions("book") == []


async def test_one_bad_entry_refuses_its_batch(store: FileSessionStore) -> None:
    """A batch of which one entry has no JSON form is refused as a whole, before the file is touched."""
    await store.append(KEY, as_stored([entry(0, "half \ud83d")]))
    bad = [entry(1), entry(2, bad=object()), entry(3)]
    with pytest.raises(TypeError):
        await store.append(KEY, as_stored(bad))
    assert await store.load(KEY) == [entry(0, "half \ud83d")]


@pytest.mark.parametrize(("durability", "syncs"), [("sync", 2), ("os", 0)])
async def test_durability(tmp_path: Path, disk: Disk, durability: Durability, syncs: int) -> None:
    """With "sync" each append is synced when it returns, with "os" none is."""
    store = FileSessionStore(tmp_path / "store", durability=durability)
    await store.append(KEY, as_stored(entries(0)))
    await store.append(KEY, as_stored(entries(1)))
    assert len(disk.names("fdatasync")) == syncs
    assert bool(disk.names("fsync")) == bool(syncs)


# --- many at once -----------------------------------------------------------------------------


async def test_appends_of_many_tasks_at_once(store: FileSessionStore) -> None:
    """Thirty-two appends at once, to one session and to one each, store exactly what was given."""
    async with anyio.create_task_group() as group:
        for number in range(32):
            group.start_soon(store.append, KEY, as_stored(entries(2 * number, 2 * number + 1)))
            own: SessionKey = {**KEY, "session_id": f"s{number}"}
            group.start_soon(store.append, own, as_stored(entries(number)))
    found = numbers(await store.load(KEY))
    assert sorted(found) == list(range(64))
    assert all(second == first + 1 for first, second in zip(found[::2], found[1::2], strict=True))
    for number in range(32):
        assert numbers(await store.load({**KEY, "session_id": f"s{number}"})) == [number]


async def test_more_sessions_than_are_remembered(
    store: FileSessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many sessions a process writes is not limited, and each still stores a uuid once."""
    monkeypatch.setattr("smartwriter.sessions.store._OPEN_JOURNALS", 3)
    for _ in range(2):
        for number in range(8):
            await store.append({**KEY, "session_id": f"s{number}"}, as_stored(entries(0, 1)))
    assert len(store._journals) == 3
    for number in range(8):
        assert numbers(await store.load({**KEY, "session_id": f"s{number}"})) == [0, 1]


async def test_a_busy_session_is_reported(tmp_path: Path) -> None:
    """What another writer kept waiting for too long raises, an append as the SDK will try again, a
    delete with the session in place."""
    store = FileSessionStore(tmp_path / "store", lock_timeout_s=0.02)
    await store.append(KEY, as_stored(entries(0)))
    held = journal.Journal(store.path(KEY)).locked()
    await anyio.to_thread.run_sync(held.__enter__)
    with pytest.raises(JournalBusy) as caught:
        await store.append(KEY, as_stored(entries(1)))
    assert caught.value.waited_s == 0.02
    assert not isinstance(caught.value, TimeoutError)
    with pytest.raises(JournalBusy):
        await store.delete(KEY)
    held.__exit__(None, None, None)
    assert numbers(await store.load(KEY)) == [0]


async def test_a_lock_is_waited_for_within_the_sdks_patience(tmp_path: Path) -> None:
    """All tries of the SDK for one batch end before its time-out, which it would not try again."""
    tries = batcher.MIRROR_APPEND_MAX_ATTEMPTS
    pauses_s = sum(batcher.MIRROR_APPEND_BACKOFF_S[: tries - 1])
    assert tries * journal.LOCK_TIMEOUT_S + pauses_s < batcher.SEND_TIMEOUT_SECONDS

    faster = 50
    store = FileSessionStore(tmp_path / "store", lock_timeout_s=journal.LOCK_TIMEOUT_S / faster)
    await store.append(KEY, as_stored(entries(0)))
    errors = list[str]()

    async def on_error(key: SessionKey | None, error: str) -> None:
        errors.append(error)

    mirror = batcher.TranscriptMirrorBatcher(
        store, str(tmp_path), on_error, send_timeout=batcher.SEND_TIMEOUT_SECONDS / faster
    )
    path = tmp_path / KEY["project_key"] / f"{KEY['session_id']}.jsonl"
    mirror.enqueue(str(path), as_stored(entries(1)))
    held = journal.Journal(store.path(KEY)).locked()
    await anyio.to_thread.run_sync(held.__enter__)
    await mirror.flush()
    held.__exit__(None, None, None)
    assert len(errors) == 1 and "another writer has held it" in errors[0]
    assert numbers(await store.load(KEY)) == [0]


async def test_a_cancelled_append_never_lands_late(tmp_path: Path, disk: Disk) -> None:
    """Cancelling waits for the write that is under way: afterwards it is stored, or it never will be."""
    store = FileSessionStore(tmp_path / "store")
    writing, go_on = threading.Event(), threading.Event()

    def write_slowly(real: Callable[..., int], *arguments: Any) -> int:
        writing.set()
        go_on.wait(10)
        return real(*arguments)

    disk.then("write", write_slowly)
    async with anyio.create_task_group() as group:
        group.start_soon(store.append, KEY, as_stored(entries(0)))
        await anyio.to_thread.run_sync(writing.wait, 10)
        group.cancel_scope.cancel()
        go_on.set()
    assert store.path(KEY).read_bytes() == encoding.encode(entry(0))


# --- listing ----------------------------------------------------------------------------------


async def test_sessions_are_listed_with_their_last_entrys_time(store: FileSessionStore) -> None:
    """Sessions come with the time of their own transcript's last entry in milliseconds, whatever that of its
    file and of subagents; with the file's where no entry says when."""
    await store.append(KEY, as_stored(entries(0)))
    await store.append(AGENT, as_stored(entries(1)))
    os.utime(store.path(KEY), ns=(1, 1_700_000_000_123_456_789))
    await store.append(NESTED, as_stored(entries(2)))
    assert await store.list_sessions("book") == [{"session_id": SESSION, "mtime": 1_767_225_600_000}]
    await store.append(OTHER, as_stored([{"type": "custom-title", "customTitle": "No time"}]))
    os.utime(store.path(OTHER), ns=(1, 1_700_000_000_123_456_789))
    times = [summary["mtime"] for summary in await store.list_session_summaries("book")]
    assert times == [1_767_225_600_000, 1_700_000_000_123]


async def test_subpaths_are_listed_as_they_were_given(store: FileSessionStore) -> None:
    """Subpaths of every depth and spelling come back, sorted, without those of other sessions."""
    subpaths = ["a", "a/b", "a/b.jsonl", "subagents/agent-1", "写/.x", "w/%2E"]
    for subpath in subpaths:
        await store.append({**KEY, "subpath": subpath}, as_stored(entries(0)))
    await store.append({**OTHER, "subpath": "c"}, as_stored(entries(0)))
    listed = await store.list_subkeys({"project_key": "book", "session_id": SESSION})
    assert sorted(listed) == sorted(subpaths)
    for subpath in listed:
        assert numbers(await store.load({**KEY, "subpath": subpath})) == [0]


async def test_the_sdk_lists_from_summaries(store: FileSessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own listing takes every summary for up to date, and loads no transcript."""
    directory = "/w/book"
    key: SessionKey = {**KEY, "project_key": project_key_for_directory(directory)}
    for number in range(5):
        session: SessionKey = {**key, "session_id": f"{number}{SESSION[1:]}"}
        await store.append(session, as_stored([entry(0, f"prompt {number}")]))
        await store.append({**session, "subpath": "subagents/agent-1"}, as_stored(entries(1)))
    monkeypatch.setattr(store, "load", None)
    listed = await list_sessions_from_store(store, directory=directory)
    assert sorted(str(one.first_prompt) for one in listed) == [f"prompt {number}" for number in range(5)]


async def test_the_sdks_helpers_work_on_it(store: FileSessionStore) -> None:
    """Rename, tag, fork, read and delete through the SDK's own functions."""
    directory = "/w/book"
    key: SessionKey = {**KEY, "project_key": project_key_for_directory(directory)}
    await store.append(key, as_stored(entries(0, 1, 2, 3)))
    await rename_session_via_store(store, SESSION, "渡口", directory=directory)
    await tag_session_via_store(store, SESSION, "draft", directory=directory)
    [info] = await list_sessions_from_store(store, directory=directory)
    assert (info.custom_title, info.tag) == ("渡口", "draft")
    messages = await get_session_messages_from_store(store, SESSION, directory=directory)
    assert [message.uuid for message in messages] == [entry_uuid(n) for n in range(4)]
    before = store.path(key).read_bytes()
    fork = await fork_session_via_store(store, SESSION, up_to_message_id=entry_uuid(1), directory=directory)
    forked = await get_session_messages_from_store(store, fork.session_id, directory=directory)
    assert len(forked) == 2
    assert store.path(key).read_bytes() == before
    await delete_session_via_store(store, SESSION, directory=directory)
    assert [one.session_id for one in await list_sessions_from_store(store, directory=directory)] == [
        fork.session_id
    ]


# --- deleting ---------------------------------------------------------------------------------


def trashed(store: FileSessionStore) -> dict[str, bytes]:
    """What is in the trash: names below the folder of each deletion, and bytes."""
    folder = store.root / "trash"
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {"/".join(path.relative_to(folder).parts[2:]): path.read_bytes() for path in files}


async def test_deleting_moves_to_the_trash(store: FileSessionStore) -> None:
    """A deleted session and its subpaths are gone from every list and whole in the trash."""
    await store.append(KEY, as_stored(entries(0, 1)))
    await store.append(AGENT, as_stored(entries(2)))
    await store.append(OTHER, as_stored(entries(3)))
    main, agent = store.path(KEY).read_bytes(), store.path(AGENT).read_bytes()
    await store.list_session_summaries("book")
    await store.delete(KEY)
    assert await store.load(KEY) is await store.load(AGENT) is None
    assert [one["session_id"] for one in await store.list_sessions("book")] == [OTHER["session_id"]]
    assert await store.list_subkeys({"project_key": "book", "session_id": SESSION}) == []
    assert trashed(store) == {f"{SESSION}.jsonl": main, f"{SESSION}/subagents/agent-1.jsonl": agent}
    [deletion] = (store.root / "trash" / "book").iterdir()
    assert deletion.name.startswith(f"{SESSION}.20")


async def test_deleting_a_subpath_leaves_the_rest(store: FileSessionStore) -> None:
    """One subagent's transcript goes to the trash; the session and its other subagents stay."""
    for key in (KEY, AGENT, NESTED):
        await store.append(key, as_stored(entries(0)))
    await store.delete(AGENT)
    assert await store.load(AGENT) is None
    assert await store.list_subkeys({"project_key": "book", "session_id": SESSION}) == [NESTED["subpath"]]
    assert numbers(await store.load(KEY)) == [0]
    assert list(trashed(store)) == ["agent-1.jsonl"]


async def test_deleting_what_is_not_there_is_no_error(store: FileSessionStore) -> None:
    """Deleting an unknown session or subpath does nothing, not even make a folder."""
    await store.delete(KEY)
    await store.delete(AGENT)
    assert not store.root.exists()


async def test_a_trash_on_another_disk(store: FileSessionStore, other_disk: Path) -> None:
    """Where the trash is a link to another disk, what is deleted goes there all the same, subpaths too."""
    write_transcript(store, healthy())
    await store.append(AGENT, as_stored(entries(7)))
    (store.root / "trash").symlink_to(other_disk)
    await store.delete(KEY)
    assert await store.load(KEY) is None and await store.list_subkeys(KEY) == []
    found = {path.name async for path in anyio.Path(other_disk).rglob("*.jsonl")}
    assert found == {f"{SESSION}.jsonl", "agent-1.jsonl"}


async def test_a_deleted_id_can_be_used_anew(store: FileSessionStore) -> None:
    """After each delete the id starts from nothing: entries, uuids, subpaths and summary."""
    for title in ("one", "two", "six"):
        await store.append(KEY, as_stored([entry(0, title), entry(1)]))
        await store.append(AGENT, as_stored(entries(0)))
        assert await store.load(KEY) == [entry(0, title), entry(1)]
        [summary] = await store.list_session_summaries("book")
        assert summary["data"]["first_prompt"] == title
        await store.delete(KEY)
        assert await store.list_session_summaries("book") == []
    assert len(list((store.root / "trash" / "book").iterdir())) == 3
    assert await store.projects() == ["book"]


async def test_the_name_of_a_session_used_anew_is_durable(store: FileSessionStore, disk: Disk) -> None:
    """A session that is begun again under a deleted id gets its folder synced like the first."""
    await store.append(KEY, as_stored(entries(0)))
    await store.delete(KEY)
    disk.calls.clear()
    await store.append(KEY, as_stored(entries(0)))
    assert "book" in disk.names("fsync")


async def test_deleting_and_appending_at_once(store: FileSessionStore) -> None:
    """Each entry that was appended while others deleted is in the session or in the trash, once."""
    async with anyio.create_task_group() as group:
        for number in range(24):
            group.start_soon(store.append, KEY, as_stored(entries(number)))
            if number % 4 == 0:
                group.start_soon(partial(FileSessionStore(store.root).delete, KEY))
    found = numbers(await store.load(KEY) or [])
    for deleted in await anyio.to_thread.run_sync(lambda: list((store.root / "trash").rglob("*.jsonl"))):
        found += numbers((await anyio.to_thread.run_sync(reading.read, deleted)).entries)
    assert sorted(found) == list(range(24))


# Copying ----------------------------------------------------------------------------------------

COPY = "22222222-3333-4444-8555-666666666666"
COPY_KEY: SessionKey = {"project_key": "book", "session_id": COPY}


async def test_a_copy_has_the_same_bytes(store: FileSessionStore) -> None:
    """A session's copy begins with its very bytes up to an entry, is listed under its own title, and goes on
    by itself: an entry that the one has by now, the other still takes."""
    path = write_transcript(store, healthy())
    await anyio.to_thread.run_sync(store.copy_now, KEY, COPY, entry_uuid(3), "Herons (trial)")
    copied = store.path(COPY_KEY).read_bytes()
    assert (
        copied.startswith(lines(0, 1, 2, 3)) and copied.count(b"\n") == 5 and path.read_bytes() == healthy()
    )
    await store.append(COPY_KEY, as_stored(entries(3, 4)))
    assert numbers(one for one in await store.load(COPY_KEY) or [] if "uuid" in one) == [0, 1, 2, 3, 4]
    summaries = {one["session_id"]: one["data"] for one in await store.list_session_summaries("book")}
    assert summaries[COPY]["custom_title"] == "Herons (trial)" and "custom_title" not in summaries[SESSION]


@pytest.mark.parametrize(
    ("damaged", "clean"),
    [(line(1)[:40] + bytes(9) + line(1)[49:], True), (line(1)[:60] + line(2), False)],
    ids=["zeros", "glued"],
)
async def test_a_copy_of_a_damaged_session_reads_as_it_does(
    store: FileSessionStore, damaged: bytes, clean: bool
) -> None:
    """What can be read of a session can be read of its copy, whatever became of a line in it."""
    write_transcript(store, line(0) + damaged + lines(3, 4))
    await anyio.to_thread.run_sync(store.copy_now, KEY, COPY, entry_uuid(4), "Copy")
    there, here = [
        numbers(one for one in await store.load(key) or [] if "uuid" in one) for key in (COPY_KEY, KEY)
    ]
    assert there == here and here[-1] == 4
    assert (not await store.damage(COPY_KEY)) is clean


async def test_a_copy_leaves_damage_behind(store: FileSessionStore) -> None:
    """What is no whole entry is not copied, and what replaced a long result counts in the copy too; where
    there is no such entry, nothing is made."""
    replaced = {"type": "content-replacement", "sessionId": SESSION, "replacements": [{"id": "t-1"}]}
    write_transcript(store, line(0) + b'{"torn\n' + json.dumps(replaced).encode() + b"\n" + lines(1, 2))
    await anyio.to_thread.run_sync(store.copy_now, KEY, COPY, entry_uuid(1), "Copy")
    assert not await store.damage(COPY_KEY)
    loaded: list[Any] = list(await store.load(COPY_KEY) or [])
    assert [one for one in loaded if one.get("sessionId") == COPY and "replacements" in one] == [
        {**replaced, "sessionId": COPY}
    ]
    with pytest.raises(KeyError):
        await anyio.to_thread.run_sync(
            store.copy_now, KEY, "33333333-3333-4444-8555-666666666666", "nothing", "Copy"
        )
    assert len(await store.list_sessions("book")) == 2
