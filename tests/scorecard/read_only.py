"""Read-only operations change nothing, however old the files and however late the hour.

A workspace with all that can lie in one (tasks, forks, turns, revisions, subagents, a deleted
session, damage in a transcript and in ``tasks.jsonl``, a text that is gone, leftovers of a crash)
gets mtimes of 0 and a clock that is 10 years ahead. Then every command and every method that only
reads is called, one after the other, and after each the sha256 and the mtime of every file, and the
mtime of every folder, are what they were. The first round leaves out the cache, which it makes; in
the second the cache is warm, and must not change either.

The clock is moved within this process; with the command ``faketime`` installed, each command line
is run under it as well.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest import mock

import anyio
import click
from claude_agent_sdk.types import SessionKey, SessionStoreEntry
from click.testing import CliRunner
from figure import Figure, Outcome, Run

from smartwriter.cli.app import cli
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.store import BoundSessionStore, FileSessionStore
from smartwriter.sessions.transcript import messages
from smartwriter.tasks.values import Draft, Origin, Task, Turn, TurnState
from smartwriter.workspace import Workspace

TASKS = 20
_AHEAD_S = 10 * 365.25 * 86400
_TIMEOUT_S = 60
_SERIES = "渡口"
_DELETED = str(uuid.UUID(int=7))

Operation = Callable[[], object]


# --- a workspace with everything in it ------------------------------------------------------


def build(root: Path, tasks: int) -> Workspace:
    workspace = Workspace.create(root)
    workspace.new_collection(_SERIES)
    for number in range(tasks):
        anyio.run(_add_task, workspace, workspace.new_task(f"第{number}篇 @ {number}", _SERIES))
    made = workspace.tasks.all()
    anyio.run(workspace.store.delete, _key(made[0], _DELETED))
    with OpenDraft(workspace, made[0], "main").transcript.path.open("ab") as file:
        file.write(b'\0\0\0\n{"type":"user","uuid":"torn')
    with (workspace.hidden / "tasks.jsonl").open("ab") as file:
        file.write(b'{"type":"task","id":"to')
    workspace.text(made[1 % tasks], "main").path.unlink()
    for leftover in ("live/x/main.jsonl", "locks/x/main.lock", "spool/x.jsonl", "trash/x.md", ".x.12-ab.tmp"):
        path = workspace.hidden / leftover
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    return workspace


def _key(task: Task, session_id: str, subpath: str | None = None) -> SessionKey:
    more = {"subpath": subpath} if subpath else {}
    return cast(SessionKey, {"project_key": task.project_key, "session_id": session_id, **more})


async def _add_task(workspace: Workspace, task: Task) -> None:
    fork = await anyio.to_thread.run_sync(_fork, workspace, task)
    entries = _conversation(task.drafts["main"].session_id)
    for key in (
        _key(task, task.drafts["main"].session_id),
        _key(task, task.drafts["main"].session_id, "subagents/agent-1"),
        _key(task, fork.session_id),
        _key(task, _DELETED),
    ):
        await workspace.store.append(key, cast("list[SessionStoreEntry]", entries))
    for draft in (task.drafts["main"], fork):
        await anyio.to_thread.run_sync(_add_turns, workspace, task, draft, entries)


def _fork(workspace: Workspace, task: Task) -> Draft:
    return workspace.tasks.add_draft(task.id, None, str(uuid.uuid4()), Origin(draft="main", turn=1))


def _add_turns(workspace: Workspace, task: Task, draft: Draft, entries: list[dict[str, Any]]) -> None:
    turns = [
        Turn(
            number=number,
            uuid=entry["uuid"],
            session_id=draft.session_id,
            prompt=f"Prompt {number}",
            state=TurnState.finished,
        )
        for number, entry in enumerate(entries[::2], start=1)
    ]
    workspace.tasks.record(task, draft.name, turns)
    for turn in turns:
        workspace.text(task, draft.name).write(f"Text {turn.number}\n", author="model", turn=turn.number)


def _conversation(session_id: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for number in range(10):
        role = "assistant" if number % 2 else "user"
        entries.append(
            {
                "type": role,
                "uuid": str(uuid.uuid4()),
                "parentUuid": entries[-1]["uuid"] if entries else None,
                "sessionId": session_id,
                "timestamp": f"2016-01-01T00:00:{number:02d}Z",
                "message": {"role": role, "content": f"写 {number}"},
            }
        )
    return entries


# --- all that only reads --------------------------------------------------------------------


def operations(workspace: Workspace) -> Iterator[tuple[str, Operation]]:
    tasks = workspace.tasks.all()
    yield from _listings(workspace)
    for task in tasks:
        yield from _of_task(workspace, task)
        for name in task.drafts:
            yield from _of_draft(workspace, task, name)
    for arguments in _commands(tasks):
        yield " ".join(arguments), partial(_run_command, workspace, arguments)
        if shutil.which("faketime"):
            yield f"faketime {arguments}", partial(_run_under_faketime, workspace, arguments)


def _listings(workspace: Workspace) -> Iterator[tuple[str, Operation]]:
    yield "TaskManager.all", workspace.tasks.all
    yield "TaskManager.damage", workspace.tasks.damage
    yield "Workspace.collections", workspace.collections
    yield "Collection.memory", workspace.collection(_SERIES).memory
    yield "store.projects", partial(anyio.run, workspace.store.projects)


def _of_task(workspace: Workspace, task: Task) -> Iterator[tuple[str, Operation]]:
    yield "TaskManager.find", partial(workspace.tasks.find, task.title)
    yield "TaskManager.resolve", partial(workspace.tasks.resolve, task.id)
    for store in (workspace.store, workspace.store.bind(task.project_key)):
        name = type(store).__name__
        for backend in ("asyncio", "trio"):
            yield f"{name} on {backend}", partial(anyio.run, _read_store, store, task, backend=backend)


async def _read_store(store: FileSessionStore | BoundSessionStore, task: Task) -> None:
    key = _key(task, task.drafts["main"].session_id)
    assert await store.load(key)
    assert await store.load(_key(task, "missing")) is None
    assert await store.list_sessions(task.project_key)
    assert await store.list_session_summaries(task.project_key)
    assert await store.list_subkeys({"project_key": key["project_key"], "session_id": key["session_id"]})
    if isinstance(store, FileSessionStore):
        assert [entry async for entry in store.entries(key)]
        await store.damage(key)


def _of_draft(workspace: Workspace, task: Task, name: str) -> Iterator[tuple[str, Operation]]:
    text = workspace.text(task, name)
    transcript = OpenDraft(workspace, task, name).transcript
    yield "TaskManager.turns", partial(workspace.tasks.turns, task, name)
    yield "DraftText.read", text.read
    yield "DraftText.at_turn", partial(text.at_turn, 1)
    yield "DraftText.revisions", text.revisions
    yield "Transcript.has", partial(transcript.has, "nobody")
    if transcript.path.exists():
        yield "Transcript.read", lambda: messages(transcript.read().entries)


def _commands(tasks: list[Task]) -> Iterator[list[str]]:
    plain = [["tasks"], ["collection", "list"], ["collection", "show", _SERIES]]
    for task in tasks:
        for address in map(task.address, task.drafts):
            plain += [["show", address], ["text", address]]
    if "doctor" in cli.list_commands(click.Context(cli)):
        plain.append(["doctor"])
    for arguments in plain:
        yield arguments
        yield [*arguments, "--json"]


def _run_command(workspace: Workspace, arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, _with_workspace(workspace, arguments), catch_exceptions=False)
    findings = arguments[0] == "doctor"  # whose exit code tells that it has found the damage
    if result.exit_code != findings:
        raise RuntimeError(f"exit code {result.exit_code}: {result.output}")


def _run_under_faketime(workspace: Workspace, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "smartwriter", *_with_workspace(workspace, arguments)]
    subprocess.run(["faketime", "+10y", *command], check=True, capture_output=True, timeout=_TIMEOUT_S)


def _with_workspace(workspace: Workspace, arguments: list[str]) -> list[str]:
    return [*arguments, "-w", str(workspace.root)]


# --- clocks and sums ------------------------------------------------------------------------


@contextmanager
def ten_years_ahead() -> Iterator[None]:
    """Every clock that tells the date, for all code in this process."""

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return datetime.datetime.fromtimestamp(time.time(), tz)

    now, now_ns, gmtime, localtime = time.time, time.time_ns, time.gmtime, time.localtime
    with ExitStack() as stack:
        patch = partial(mock.patch.object, time)
        stack.enter_context(patch("time", lambda: now() + _AHEAD_S))
        stack.enter_context(patch("time_ns", lambda: now_ns() + int(_AHEAD_S * 10**9)))
        stack.enter_context(patch("gmtime", lambda at=None: gmtime(time.time() if at is None else at)))
        stack.enter_context(patch("localtime", lambda at=None: localtime(time.time() if at is None else at)))
        for name, module in list(sys.modules.items()):
            if name.startswith("smartwriter") and getattr(module, "datetime", None) is datetime.datetime:
                stack.enter_context(mock.patch.object(module, "datetime", Later))
        yield


Snapshot = dict[str, tuple[str, int]]


def snapshot(workspace: Workspace, *, with_cache: bool) -> Snapshot:
    """The sha256 and mtime of each file and folder, by path."""
    cache = workspace.hidden / "cache"
    # In the cold round the cache is made, and that changes its folder's folder.
    left_out = set() if with_cache else {workspace.hidden, cache}
    found = {}
    for path in [workspace.root, *workspace.root.rglob("*")]:
        if path not in left_out and (with_cache or cache not in path.parents):
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
            found[str(path.relative_to(workspace.root))] = content, path.stat().st_mtime_ns
    return found


def make_old(root: Path) -> None:
    for path in [*root.rglob("*"), root]:
        os.utime(path, (0, 0))


# --- measuring ------------------------------------------------------------------------------


def _measure(run: Run) -> Outcome:
    workspace = build(run.folder / "workspace", run.scaled(TASKS))
    problems: list[str] = []
    count = files = 0
    with mock.patch.dict(os.environ, {"HOME": str(run.folder / "home")}), ten_years_ahead():
        for with_cache in (False, True):
            make_old(workspace.root)
            before = snapshot(workspace, with_cache=with_cache)
            files = len(before)
            for name, operation in operations(workspace):
                count += 1
                problems += _problems(name, operation)
                after = snapshot(workspace, with_cache=with_cache)
                problems += [f"{name} changed {path}" for path in sorted(_changed(before, after))]
                before = after
    if not (workspace.hidden / "cache").is_dir():
        problems.append("no cache was made: the second round was none")
    got = f"{count:,} operations on {files:,} files and folders: {len(problems)} changes or failures"
    return Outcome("\n                ".join([got, *problems[:5]]), not problems)


def _problems(name: str, operation: Operation) -> list[str]:
    try:
        operation()
    except Exception as error:  # one that does nothing would change nothing
        return [f"{name}: {type(error).__name__}: {error}"]
    return []


def _changed(before: Snapshot, after: Snapshot) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


FIGURES = [
    Figure(
        "sha256 and mtime of all files around every read-only operation",
        "equal and nothing deleted, with the clock 10 years ahead and all mtimes 0",
        _measure,
    )
]
