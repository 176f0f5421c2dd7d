"""A session copied up to an entry, with the subagents that it tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry

    from smartwriter.sessions.store import FileSessionStore


def copy_session(
    store: FileSessionStore, key: SessionKey, session_id: str, last_entry: str, title: str
) -> None:
    """Make a new session of another one, up to and including an entry. Blocking."""
    store.copy_now(key, session_id, last_entry, title)
    subpaths = store.subkeys(key)
    if subpaths:
        _copy_subagents(store, key, session_id, subpaths)


def _copy_subagents(store: FileSessionStore, key: SessionKey, session_id: str, subpaths: list[str]) -> None:
    """Copy the transcripts of those subagents that the fork's own, or theirs, tells of."""
    fork_key: SessionKey = {"project_key": key["project_key"], "session_id": session_id}
    told = _bytes(store, fork_key)
    waiting = dict.fromkeys(subpaths)
    while found := [path for path in waiting if _agent_id(path).encode() in told]:
        for subpath in found:
            del waiting[subpath]
            origin: SessionKey = {**key, "subpath": subpath}
            target: SessionKey = {**fork_key, "subpath": subpath}
            entries = store.journal(origin).read().entries
            store.append_now(target, cast("list[SessionStoreEntry]", entries))
            told += _bytes(store, target)


def _bytes(store: FileSessionStore, key: SessionKey) -> bytes:
    with store.journal(key).opened() as file:
        return file.read()


def _agent_id(subpath: str) -> str:
    return subpath.rpartition("/")[2].removeprefix("agent-")
