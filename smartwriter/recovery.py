"""After a crash: what the CLI still wrote when its host had died is taken in, and the writer is told.

The CLI outlives its host: it finishes the answer into its own copy of the transcript, in a folder
``claude-resume-*`` that the SDK made for it (with a copy of the credentials), or on a first turn in
its own projects folder. Nobody mirrors that any more.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import psutil

import smartwriter.journal as journal
from smartwriter.damage import Entry
from smartwriter.errors import DraftBusy, JournalError, TaskNotFound
from smartwriter.live import LiveJournal
from smartwriter.names import session_name
from smartwriter.tasks import Draft, Task, Turn, TurnState, now
from smartwriter.transcript import answer_to
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry

OFFLINE_HOMES = "smartwriter-offline-"
"""How the temporary homes of ``--offline`` begin, in the folder for temporary files; then the pid."""


_REMOVALS = 5


@dataclass(frozen=True)
class Recovered:
    """What became of a turn whose process died."""

    task: Task
    draft: str
    turn: Turn

    def __str__(self) -> str:
        where = f"turn {self.turn.number} of {self.task.title} ({self.task.address(self.draft)})"
        if self.turn.state is TurnState.recovered:
            return f"The answer in {where} was finished after the program had died, and is saved."
        kept = f"; {len(self.turn.partial)} characters of the answer are kept" if self.turn.partial else ""
        return f"The answer in {where} was cut off when the program died{kept}. Just write on."


def recover(
    workspace: Workspace, config_folders: Sequence[Path] = (), also: Iterable[tuple[Task, Draft]] = ()
) -> list[Recovered]:
    """Take in what dead processes left, and settle their turns. Blocking.

    Drafts that are being written now, by whomever, are left alone.

    :param config_folders: of the CLI, whose projects folders may hold first turns.
    :param also: drafts to look at beside those that left an unfinished live journal.
    """
    with contextlib.suppress(JournalError):  # the disk may still be full; it stays in the spool
        workspace.spool.replay(workspace.store)
    orphans = [orphan for orphan in _orphans() if not _in_use(orphan)]
    found = []
    for task, draft in [*_unfinished(workspace), *also]:
        with contextlib.suppress(DraftBusy), workspace.lease(task, draft.name):
            for folder in [*_projects(orphans), *config_folders]:
                with contextlib.suppress(
                    FileNotFoundError
                ):  # another process has taken it in, and removes it
                    _take_in(workspace, task, draft, folder)
            found += _settle(workspace, task, draft)
    for orphan in orphans_of(workspace):
        # No history, but copies of what we have by now; it may hold a copy of credentials. Removed
        # until it is gone: half removed, nothing in it would tell any more that it is ours.
        for _ in range(_REMOVALS):
            shutil.rmtree(orphan, ignore_errors=True)
            if not orphan.exists():
                break
    return found


def _unfinished(workspace: Workspace) -> Iterator[tuple[Task, Draft]]:
    """The drafts whose last turn, by their live journals, has no ending."""
    for path in sorted((workspace.hidden / "live").glob("*/*.jsonl")):
        if LiveJournal.has_ended(path):
            continue
        with contextlib.suppress(TaskNotFound):
            task = workspace.tasks.find(path.parent.name)
            if draft := task.drafts.get(path.stem):
                yield task, draft


# The CLI's own copies -----------------------------------------------------------------------------


def _orphans() -> Iterator[Path]:
    folder = Path(tempfile.gettempdir())
    for pattern in ("claude-resume-*", f"{OFFLINE_HOMES}*"):
        yield from (path for path in folder.glob(pattern) if path.is_dir())


def _in_use(folder: Path) -> bool:
    """Whether a process that lives still works in a folder of this kind."""
    if folder.name.startswith(OFFLINE_HOMES):
        pid = folder.name.removeprefix(OFFLINE_HOMES).partition("-")[0]
        if pid.isdigit() and psutil.pid_exists(int(pid)):
            return True
    for process in psutil.process_iter(["name"]):
        with contextlib.suppress(psutil.Error):
            if "claude" in (process.info["name"] or "") and any(
                str(folder) in value
                for name, value in process.environ().items()
                if name in ("CLAUDE_CONFIG_DIR", "HOME")
            ):
                return True
    return False


def _projects(orphans: Iterable[Path]) -> Iterator[Path]:
    """The CLI's configuration folders among temporary ones."""
    for orphan in orphans:
        yield orphan
        yield orphan / ".claude"


def _take_in(workspace: Workspace, task: Task, draft: Draft, folder: Path) -> None:
    """Append what the CLI's copies of a session in one folder have beyond our transcript."""
    for copy in folder.glob(f"projects/*/{session_name(draft.session_id)}.jsonl"):
        _append_new(workspace, task, draft, None, copy)
        subagents = copy.with_suffix("")
        for path in sorted(subagents.rglob("*.jsonl")) if subagents.is_dir() else []:
            subpath = path.relative_to(subagents).with_suffix("").as_posix()
            _append_new(workspace, task, draft, subpath, path)


def _append_new(workspace: Workspace, task: Task, draft: Draft, subpath: str | None, copy: Path) -> None:
    key: SessionKey = {"project_key": task.project_key, "session_id": draft.session_id}
    if subpath:
        key["subpath"] = subpath
    # Those without a uuid could not be told from ones that we have; they are service entries.
    entries: list[Entry] = [entry for entry in journal.read(copy).entries if "uuid" in entry]
    workspace.store.append_now(key, cast("list[SessionStoreEntry]", entries))


def orphans_of(workspace: Workspace) -> list[Path]:
    """The folders that hold nothing but sessions of ours that nobody is writing."""
    leases = {
        session_id: workspace.lease(task, draft.name)
        for task in workspace.tasks.all()
        for draft in task.drafts.values()
        for session_id in (draft.session_id, *draft.earlier_sessions)
    }
    found = []
    for orphan in _orphans():
        try:
            sessions = {path.stem for path in orphan.glob("**/projects/*/*.jsonl")}
        except FileNotFoundError:  # another process removes it, or a CLI writes there
            continue
        ours = sessions <= leases.keys() and not any(leases[id].is_held() for id in sessions)
        # A folder without a session may be another program's, but for the stand-in's homes.
        named = sessions or orphan.name.startswith(OFFLINE_HOMES)
        if ours and named and not _in_use(orphan):
            found.append(orphan)
    return found


# Turns ----------------------------------------------------------------------------------------


def _settle(workspace: Workspace, task: Task, draft: Draft) -> list[Recovered]:
    """Record how the turns of a dead process ended, and in the live journal that they did."""
    turns = [turn for turn in workspace.tasks.turns(task, draft.name) if turn.state is TurnState.running]
    live = LiveJournal(workspace.live_path(task, draft.name))
    entries = _entries(workspace, task, draft)
    settled = []
    text = workspace.text(task, draft.name)
    for turn in turns:
        live.calls(turn.number).keep(text)
        answer = answer_to(entries, turn.uuid)
        if answer is not None:
            end = {"state": TurnState.recovered, "partial": ""}
        else:
            end = {"state": TurnState.interrupted, "partial": live.partial_text(turn.number)}
        settled.append(turn.model_copy(update={**end, "ended_at": now()}))
    workspace.tasks.record(task, draft.name, settled)
    live.end(task.id, draft.name, settled)
    return [Recovered(task, draft.name, turn) for turn in settled]


def _entries(workspace: Workspace, task: Task, draft: Draft) -> list[Entry]:
    try:
        return workspace.transcript(task, draft).read().entries
    except FileNotFoundError:
        return []


def config_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where the CLI keeps its own things."""
    named = env.get("CLAUDE_CONFIG_DIR") or os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(named) if named else Path.home() / ".claude"
