"""A child of ``fork()``, a store that has all, and what is no session."""

from __future__ import annotations

import datetime
import inspect
import os
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from claude_agent_sdk.types import SessionKey

import smartwriter
import smartwriter.errors as errors
from smartwriter.errors import DraftBusy, JournalError
from smartwriter.sessions.store import BoundSessionStore, FileSessionStore
from smartwriter.storage.journal import Journal
from smartwriter.storage.lease import Lease
from smartwriter.storage.reading import read

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(work: Callable[[], bool]) -> Callable[[], bool]:
    """Do something in a forked child; returns how to wait for whether it went well."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_child_does_not_hold_the_lock(tmp_path: Path) -> None:
    """A lock that is held when its process forks is the parent's alone: given up there, it is free, though
    the child lives on; and the child can neither write under it nor give it up."""
    journal, lease = Journal(tmp_path / "j.jsonl", lock_timeout_s=2), Lease(tmp_path / "l.lock", "k@main")
    gate_out, gate_in = os.pipe()

    def child() -> bool:
        os.close(gate_in)
        with pytest.raises(JournalError):
            transaction.append([{"from": "child"}])
        lease.release()
        held = Lease(tmp_path / "l.lock", "k@main").is_held()
        os.read(gate_out, 1)
        return held

    lease.acquire()
    with journal.locked() as transaction:
        ended = in_child(child)
        transaction.append([{"from": "parent"}])
    Journal(tmp_path / "j.jsonl", lock_timeout_s=2).append([{"from": "another"}])
    with pytest.raises(DraftBusy):
        Lease(tmp_path / "l.lock", "k@main").acquire()
    lease.release()
    Lease(tmp_path / "l.lock", "k@main").acquire()
    os.close(gate_in)
    os.close(gate_out)
    ended()
    assert [entry["from"] for entry in read(journal.path).entries] == ["parent", "another"]


def test_a_child_has_its_own_thread_locks(tmp_path: Path) -> None:
    """What another thread holds while a process forks does not stop the child from writing ever after."""
    store = FileSessionStore(tmp_path / "store", lock_timeout_s=5)
    journal = Journal(tmp_path / "j.jsonl", lock_timeout_s=5)
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with journal._thread_lock, store._journals_lock:
            held.set()
            go_on.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def child() -> bool:
        journal.append([{"a": 1}])
        store.append_now({"project_key": "p", "session_id": "s"}, [{"type": "user"}])
        return True

    ended = in_child(child)
    assert ended()
    go_on.set()
    thread.join()


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2026, 1, 1),
        uuid.uuid4(),
        b"bytes",
        {1, 2},
        Path("x"),
        1j,
        {1: "a number for a key"},
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_has_no_form_for(tmp_path: Path, value: object) -> None:
    """What would not come back as it was is refused, wherever it is nested, and nothing is written."""
    with pytest.raises(TypeError, match=r"JSON|serializable"):
        Journal(tmp_path / "j.jsonl").append([{"fine": [1.5, None, ("a",)]}, {"nested": [{"deep": value}]}])
    assert not (tmp_path / "j.jsonl").exists()


@pytest.mark.anyio
async def test_copies_of_sync_services_are_no_sessions(tmp_path: Path) -> None:
    """A session is named by its file as the store names it; what Syncthing, Dropbox, Google Drive, OneDrive
    or a person put beside it is neither listed nor summarised."""
    store = FileSessionStore(tmp_path)
    session = str(uuid.uuid4())
    for name in (session, "a.b", "会话"):
        await store.append({"project_key": "p", "session_id": name}, [{"type": "user", "uuid": "u"}])
    for copy in (
        f"{session}.sync-conflict-20261130-120000-ABCDEFG.jsonl",
        "a.b.sync-conflict-20261130-120000-ABCDEFG.jsonl",
        f"{session} (conflicted copy 2026-11-30).jsonl",
        f"{session} (Ann's conflicted copy 2026-11-30).jsonl",
        f"{session} (1).jsonl",
        f"{session}-DESKTOP-1AB.jsonl",
        f"{session} - Copy.jsonl",
        f"{session} 2.jsonl",
        f"{session}_冲突.jsonl",
    ):
        path = store.path({"project_key": "p", "session_id": session})
        path.with_name(copy).write_bytes(path.read_bytes())
    listed = {item["session_id"] for item in await store.list_sessions("p")}
    assert listed == {session, "a.b", "会话"}
    assert {item["session_id"] for item in await store.list_session_summaries("p")} == listed


@pytest.mark.anyio
async def test_a_bound_store_has_all_that_the_store_has(tmp_path: Path) -> None:
    """Whatever the store can do, a bound one can do for its own project; every method says what it does."""
    public = {name for name in dir(FileSessionStore) if not name.startswith("_")} - {"renew_locks"}
    assert public <= {name for name in dir(BoundSessionStore) if not name.startswith("_")}
    for kind in (FileSessionStore, BoundSessionStore):
        assert [name for name in public if not inspect.getdoc(getattr(kind, name))] == []
    store = FileSessionStore(tmp_path)
    bound = store.bind("mine")
    await bound.append({"project_key": "any", "session_id": "s"}, [{"type": "user", "uuid": "u"}])
    key: SessionKey = {"project_key": "other", "session_id": "s"}
    assert [entry async for entry in bound.entries(key)] == [{"type": "user", "uuid": "u"}]
    assert await bound.projects() == ["mine"] == await store.projects()


def test_errors_are_public() -> None:
    """Every error that can be caught can be imported from the package."""
    classes = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind)}
    family = {name for name, kind in classes.items() if issubclass(kind, errors.SmartWriterError)}
    assert family <= set(smartwriter.__all__)
    assert all(getattr(smartwriter, name) is getattr(errors, name) for name in family)
