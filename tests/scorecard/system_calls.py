"""``kill -9`` before every system call that an operation makes, one after the other.

The operation runs in a forked process that is traced (``ptrace``, as ``strace`` does it), stopped
where it enters or leaves a system call, and killed at the n-th of these stops, for every n until
it comes to its end. After each kill the folder must be in one of the states that the operation
allows: for all but a fork, all old or all new, and every file that is not its own as it was. Then
the same operation, started again, must complete.

What the operations hand to other threads runs in their own one here, so that the order of calls
does not depend on luck. The verdict is by plain means (``oracle``); what the product reads must be the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import oracle
from figure import Figure, Outcome, Run, file_system
from oracle import Disk
from writers import Entry, entries, forget_folders, in_memory, start

import smartwriter.files.durable as durable
import smartwriter.storage.encoding as encoding
from smartwriter.errors import AlreadyExists
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.store import FileSessionStore
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.trials import forking as fork
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey

_QUICK_STEP = 9  # odd, as each call has two stops
_LONGEST = 10_000  # stops of any operation

Check = Callable[[Path], str]
Files = dict[str, bytes]


@dataclass(frozen=True)
class Operation:
    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path], None]
    changes: str
    """The files that it may change: a pattern of their paths."""
    makes: str
    """The files that it may make."""
    fault: Check
    """What is wrong after a kill; empty if nothing."""
    undone: Check
    """What is missing once it was started again and came to its end."""


def _measure(run: Run) -> Outcome:
    if not sys.platform.startswith("linux"):
        return Outcome("ptrace is used as on Linux only", None)
    anyio.run(_nothing)  # imports what an event loop needs, before anything is counted
    wrong: list[str] = []
    counts = []
    step = _QUICK_STEP if run.quick else 1
    random = run.random()
    with in_memory(run.folder) as folder:
        disk = file_system(folder)
        for operation in OPERATIONS:
            stops = 0
            for stops, faults in _kills(operation, folder, range(random.randint(1, step), _LONGEST, step)):
                wrong += [f"{operation.name}, stop {stops}: {fault}" for fault in faults]
            counts.append(f"{operation.name} {stops}")
    got = f"killed at {f'1 in {step}' if run.quick else 'each'} of the stops of {', '.join(counts)}"
    return Outcome(
        f"{got}: {f'{len(wrong)} invalid states, {wrong[0]}' if wrong else '0 invalid states'}",
        not wrong,
        disk,
    )


def _kills(operation: Operation, root: Path, stops: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    """Each stop, until the operation comes to its end; and what was wrong after the kill there."""
    template, folder = root / operation.name, root / "trial"
    forget_folders()
    operation.prepare(template)
    before = _files(template)
    for number in stops:
        shutil.copytree(template, folder)
        forget_folders()
        killed = _killed_at(number, partial(operation.run, folder))
        yield number, list(_faults(operation, folder, before, killed))
        shutil.rmtree(folder)
        if not killed:
            return


def _faults(operation: Operation, folder: Path, before: Files, killed: bool) -> Iterator[str]:
    if fault := operation.fault(folder):
        yield fault
    yield from _changed(operation, folder, before)
    if killed:
        start(lambda report: operation.run(folder)).wait()
    if undone := operation.undone(folder):
        yield f"started again: {undone}"
    yield from _changed(operation, folder, before)


def _changed(operation: Operation, folder: Path, before: Files) -> Iterator[str]:
    """The files that it has no business with, and changed all the same."""
    now = _files(folder)
    for name in sorted({*before, *now}):
        allowed = operation.changes if name in before else operation.makes
        if before.get(name) != now.get(name) and not re.fullmatch(allowed, name):
            yield f"{name} is not as it was"


def _files(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def _nothing() -> None:
    await anyio.to_thread.run_sync(int)


# --- tracing ----------------------------------------------------------------------------------


_TRACE_ME, _NEXT_STOP, _SET_OPTIONS = 0, 24, 0x4200
_MARK_CALLS, _DIE_WITH_US = 1, 0x100000
_AT_A_CALL = signal.SIGTRAP | 0x80
_libc = ctypes.CDLL(None, use_errno=True)


def _killed_at(number: int, work: Callable[[], None]) -> bool:
    """Run in another process until its n-th stop; False when it came to its end before.

    :raises OSError: where tracing is not allowed. :raises RuntimeError: when the work failed.
    """
    pid = os.fork()
    if not pid:
        status = 1
        with contextlib.suppress(BaseException):
            signal.alarm(60)
            trace_me()
            with one_thread():
                work()
            status = 0
        os._exit(status)
    try:
        os.waitpid(pid, 0)
        begin_tracing(pid)
        return _stops(pid, number)
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _stops(pid: int, number: int) -> bool:
    passed_on = 0
    while True:
        go_on(pid, passed_on)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            if status:
                raise RuntimeError(f"the operation ended with {os.waitstatus_to_exitcode(status)}")
            return False
        at_a_call = is_at_a_call(status)
        number -= at_a_call
        if number == 0:
            return True
        passed_on = 0 if at_a_call else os.WSTOPSIG(status)


def trace_me() -> None:
    """In the process that is to be traced; it goes on when its tracer lets it."""
    ptrace(_TRACE_ME, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)


def begin_tracing(pid: int) -> None:
    ptrace(_SET_OPTIONS, pid, _MARK_CALLS | _DIE_WITH_US)


def go_on(pid: int, passed_on: int) -> None:
    """Until it enters or leaves a system call, or ends. :param passed_on: a signal that it gets, or 0."""
    ptrace(_NEXT_STOP, pid, passed_on)


def is_at_a_call(status: int) -> bool:
    return os.WSTOPSIG(status) == _AT_A_CALL


def ptrace(request: int, pid: int, data: int) -> None:
    if _libc.ptrace(request, pid, None, ctypes.c_void_p(data)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace: {os.strerror(number)}")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Blocking work in place of threads; nothing is undone, the process ends after it."""

    async def here(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    setattr(anyio.to_thread, "run_sync", here)  # noqa: B010
    setattr(fork, "run_sync", here)  # noqa: B010
    yield


# --- a session's append and delete --------------------------------------------------------------


_KEY: SessionKey = {"project_key": "essays", "session_id": "session"}
_AGENT: SessionKey = {**_KEY, "subpath": "subagents/agent-1"}
_OTHER: SessionKey = {**_KEY, "session_id": "other"}
_OLD, _NEW, _AGENTS = (entries(Random(seed), [10, 300, 2_000, 40]) for seed in range(3))
_SESSION_FILE = ".smartwriter/sessions/essays/session.jsonl"


def _store(folder: Path) -> FileSessionStore:
    return FileSessionStore(folder / ".smartwriter")


def _append(folder: Path, key: SessionKey, batch: list[Any]) -> None:
    anyio.run(_store(folder).append, key, batch)


def _load(folder: Path, key: SessionKey) -> list[Entry] | None:
    """Of a session, and what the store makes of it; the plain way and the product's must agree."""
    name = "/".join(filter(None, [key["session_id"], key.get("subpath")]))
    path = folder / ".smartwriter" / "sessions" / key["project_key"] / f"{name}.jsonl"
    found = oracle.read(path).entries if path.exists() else None
    loaded: Any = anyio.run(_store(folder).load, key)
    if loaded != found:
        raise RuntimeError("the store loads something else than what stands there")
    return found


def _two_sessions(folder: Path) -> None:
    _append(folder, _OTHER, _OLD)
    _append(folder, _KEY, _OLD)
    _append(folder, _AGENT, _AGENTS)
    anyio.run(_store(folder).list_session_summaries, "essays")


def _torn_session(folder: Path) -> None:
    """Whose last append was killed in its second entry."""
    _two_sessions(folder)
    path = folder / _SESSION_FILE
    head = b"".join(map(encoding.encode, _NEW[:2]))
    path.write_bytes(path.read_bytes() + head[:-100])


def _append_fault(folder: Path, before: list[list[Entry] | None]) -> str:
    found = _load(folder, _KEY)
    torn = oracle.read(folder / _SESSION_FILE).torn
    if not all(oracle.begins_one_of(line, _NEW) for line in torn):
        return "an entry on a torn line"
    return "" if found in before else f"{len(found or [])} entries, neither the old nor the new"


def _append_undone(folder: Path, expected: list[Entry]) -> str:
    return _append_fault(folder, [expected])


def _delete(folder: Path) -> None:
    anyio.run(_store(folder).delete, _KEY)


def _delete_fault(folder: Path) -> str:
    """A part is where it was or in the trash, whole; and the listing tells what is there."""
    files = _files(folder)
    for part, key, held in (("session.jsonl", _KEY, _OLD), ("agent-1.jsonl", _AGENT, _AGENTS)):
        data = b"".join(map(encoding.encode, held))
        places = [name for name, found in files.items() if name.endswith(part) and found == data]
        if len(places) != 1:
            return f"{part} is {len(places)} times there"
        if _load(folder, key) not in (held, None):
            return f"{part} is neither old nor gone"
    return _listing_fault(folder)


def _listing_fault(folder: Path) -> str:
    listed = {item["session_id"] for item in anyio.run(_store(folder).list_sessions, "essays")}
    told = anyio.run(_store(folder).list_session_summaries, "essays")
    if listed != {item["session_id"] for item in told}:
        return "summaries are not of the sessions that there are"
    return "" if all(item["data"] for item in told) else "an empty summary"


def _delete_undone(folder: Path) -> str:
    if _load(folder, _KEY) is not None or anyio.run(_store(folder).list_subkeys, _KEY):
        return "something is left"
    return _listing_fault(folder)


# --- a workspace with one task of three turns ---------------------------------------------------


_TEXTS = ("# 渡口\n第一稿", "# 渡口\n第二稿", "# 渡口\n第三稿")
_EDIT, _LAST = "# 渡口\n手改", "# 渡口\n第四稿"


def _workspace(folder: Path) -> None:
    workspace = Workspace.create(folder)
    task = workspace.new_task("渡口")
    session: list[Entry] = []
    for number, text in enumerate(_TEXTS, 1):
        turn = entries(Random(number), [20, 400], session[-1]["uuid"] if session else None)
        for entry in turn:
            entry["sessionId"] = task.drafts["main"].session_id
        session += turn
        workspace.text(task, "main").write(text, author="model", turn=number)
        workspace.tasks.record(task, "main", [_turn(task, number, turn[0]["uuid"])])
    key: SessionKey = {"project_key": task.project_key, "session_id": task.drafts["main"].session_id}
    batch: list[Any] = session
    anyio.run(workspace.store.append, key, batch)
    workspace.new_task("another")


def _turn(task: Task, number: int, uuid: str) -> Turn:
    return Turn(
        number=number,
        uuid=uuid,
        session_id=task.drafts["main"].session_id,
        prompt="go on",
        state=TurnState.finished,
    )


def _task(folder: Path) -> tuple[Workspace, Task]:
    workspace = Workspace(folder)
    return workspace, workspace.tasks.find("渡口")


def _fork(folder: Path) -> None:
    workspace, task = _task(folder)
    with contextlib.suppress(AlreadyExists):  # it was all done but for the end of the process
        anyio.run(partial(fork.fork, OpenDraft(workspace, task, "main"), at=2, name="trial"))


def _fork_fault(folder: Path) -> str:
    """Not recorded, so that nothing shows it; or complete."""
    return _trial_fault(folder) if "trial" in _plain(folder)["drafts"] else ""


def _plain(folder: Path) -> Entry:
    """The task's line, as it stands on the disk. The product must find the same task."""
    (task,) = (task for task in Disk(folder).tasks() if task["title"] == "渡口")
    _, found = _task(folder)
    if set(found.drafts) != set(task["drafts"]):
        raise RuntimeError("the task list is read as something else than what stands there")
    return task


def _trial_fault(folder: Path) -> str:
    disk, task = Disk(folder), _plain(folder)
    if set(task["drafts"]) != {"main", "trial"}:
        return f"drafts are {', '.join(task['drafts'])}"
    turns = disk.turns(task, "trial")
    said = [entry["uuid"] for entry in disk.session(task, "trial") if entry["type"] == "user"]
    if [turn["uuid"] for turn in turns] != said or len(said) != 2:
        return "its turns are not in its session"
    if {turn["session_id"] for turn in turns} != {task["drafts"]["trial"]["session_id"]}:
        return "its turns are of another session"
    return "" if disk.text(task, "trial") == _TEXTS[1] else "its text is another"


def _title(folder: Path) -> str:
    """Of the first task; empty when the other one is not as it was."""
    task, other, *_ = Disk(folder).tasks()
    if [each.title for each in Workspace(folder).tasks.all()[:2]] != [task["title"], other["title"]]:
        return "other tasks than those that stand there"
    return str(task["title"]) if other["title"] == "another" and len(other["drafts"]) == 1 else ""


def _update(folder: Path) -> None:
    tasks = Workspace(folder).tasks
    tasks.update(tasks.all()[0].id, lambda task: task.model_copy(update={"title": "渡船"}))


def _update_fault(folder: Path, titles: tuple[str, ...]) -> str:
    return "" if _title(folder) in titles else "tasks are neither the old nor the new"


def _create(folder: Path) -> None:
    Workspace(folder).new_task("third")


def _create_fault(folder: Path, numbers: range) -> str:
    made = [task for task in Disk(folder).tasks()[2:] if task["title"] == "third"]
    return "" if len(made) in numbers and _title(folder) == "渡口" else f"{len(made)} new tasks"


# --- documents ----------------------------------------------------------------------------------


def _document(folder: Path) -> None:
    _save(folder, "旧" * 3_000)
    durable.write_document(folder / "other.md", "other")


def _save(folder: Path, text: str = "新" * 5_000) -> None:
    durable.write_document(folder / "document.md", text)


def _document_fault(folder: Path, texts: tuple[str, ...]) -> str:
    return "" if (folder / "document.md").read_text() in texts else "neither the old text nor the new"


def _hand_edited(folder: Path) -> None:
    _workspace(folder)
    workspace, task = _task(folder)
    workspace.text(task, "main").path.write_text(_EDIT)


def _write_text(folder: Path) -> None:
    workspace, task = _task(folder)
    workspace.text(task, "main").write(_LAST, author="model", turn=4)


def _text_fault(folder: Path) -> str:
    """No text is lost: the hand edit is in the file, or a revision, or both."""
    disk, task = Disk(folder), _plain(folder)
    revisions = [revision["text"] for revision in disk.revisions(task, "main")]
    if revisions not in ([*_TEXTS], [*_TEXTS, _EDIT], [*_TEXTS, _EDIT, _LAST]):
        return f"{len(revisions)} revisions"
    allowed = (_LAST,) if _LAST in revisions else (_EDIT,)
    workspace, found = _task(folder)
    read = workspace.text(found, "main").read()
    return "" if read == disk.text(task, "main") and read in allowed else "another text"


def _text_undone(folder: Path) -> str:
    disk, task = Disk(folder), _plain(folder)
    revisions = [revision["text"] for revision in disk.revisions(task, "main")]
    text = disk.place(task, "main").read_bytes().decode()
    kept = [*_TEXTS, _EDIT, _LAST]
    rest = set(revisions[len(kept) :])  # the last text again, where the first try had recorded it
    return "" if text == _LAST and revisions[: len(kept)] == kept and rest <= {_LAST} else "a text"


# ------------------------------------------------------------------------------------------------


_NOTHING = "(?!)"
_TEMPORARY = r"(.*/)?\.[^/]*\.tmp"
_HIDDEN = r"\.smartwriter/"
_DRAFTS = r"collections/unfiled/drafts/渡口/"
_NEXT = rf"{_DRAFTS}\.(main|trial)\.md\.next"
_TASKS = rf"{_HIDDEN}tasks\.jsonl"

OPERATIONS = [
    Operation(
        "append to a new session",
        lambda folder: _append(folder, _OTHER, _OLD),
        lambda folder: _append(folder, _KEY, _NEW),
        changes=_NOTHING,
        makes=re.escape(_SESSION_FILE),
        fault=lambda folder: _append_fault(folder, [None, [], _NEW]),
        undone=lambda folder: _append_undone(folder, _NEW),
    ),
    Operation(
        "append again to a torn one",
        _torn_session,
        lambda folder: _append(folder, _KEY, _NEW),
        changes=re.escape(_SESSION_FILE),
        makes=_NOTHING,
        fault=lambda folder: _append_fault(folder, [[*_OLD, _NEW[0]], [*_OLD, *_NEW]]),
        undone=lambda folder: _append_undone(folder, [*_OLD, *_NEW]),
    ),
    Operation(
        "delete",
        _two_sessions,
        _delete,
        changes=rf"{re.escape(_SESSION_FILE)}|{_HIDDEN}sessions/essays/session/.*|{_HIDDEN}cache/.*",
        makes=rf"{_HIDDEN}trash/.*",
        fault=_delete_fault,
        undone=_delete_undone,
    ),
    Operation(
        "fork",
        _workspace,
        _fork,
        changes=_TASKS,
        makes=rf"{_HIDDEN}(sessions|turns|revisions|locks|trash)/.*|{_DRAFTS}trial\.md|{_NEXT}|{_TEMPORARY}",
        fault=_fork_fault,
        undone=_trial_fault,
    ),
    Operation(
        "task update",
        _workspace,
        _update,
        changes=_TASKS,
        makes=_NOTHING,
        fault=lambda folder: _update_fault(folder, ("渡口", "渡船")),
        undone=lambda folder: _update_fault(folder, ("渡船",)),
    ),
    Operation(
        "task creation",
        _workspace,
        _create,
        changes=_TASKS,
        makes=_NOTHING,
        fault=lambda folder: _create_fault(folder, range(2)),
        undone=lambda folder: _create_fault(folder, range(1, 3)),
    ),
    Operation(
        "document save",
        _document,
        _save,
        changes=r"document\.md",
        makes=_TEMPORARY,
        fault=lambda folder: _document_fault(folder, ("旧" * 3_000, "新" * 5_000)),
        undone=lambda folder: _document_fault(folder, ("新" * 5_000,)),
    ),
    Operation(
        "draft text save",
        _hand_edited,
        _write_text,
        changes=rf"{_DRAFTS}main\.md|{_HIDDEN}revisions/.*/main\.jsonl",
        makes=f"{_NEXT}|{_TEMPORARY}",
        fault=_text_fault,
        undone=_text_undone,
    ),
]

FIGURES = [
    Figure(
        "kill at every system call of append, delete, fork, task update and document save",
        "every point leaves a valid state: old or new, all else untouched, and the next run completes",
        _measure,
    )
]
