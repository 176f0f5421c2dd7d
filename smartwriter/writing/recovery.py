"""After a crash: what the CLI still wrote when its host had died is taken in, and the writer is told.

The CLI outlives its host: it finishes the answer into its own copy of the transcript, which nobody
mirrors any more. Until it has ended, its draft is left alone; then what descends from the prompts that
were cut off is appended to ours. A folder is removed when all that it holds is kept.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import smartwriter.files.durable as durable
import smartwriter.sessions.orphans as orphans
import smartwriter.storage.reading as reading
from smartwriter.agent.tool_input import pieces_of
from smartwriter.errors import DraftBusy, JournalError, TaskNotFound
from smartwriter.events import TurnRecovered
from smartwriter.sessions.orphans import Cli, Folder
from smartwriter.sessions.transcript import answer_to, compacted_since, descendants, of_turn
from smartwriter.storage.identity import identity
from smartwriter.storage.lease import Lease
from smartwriter.storage.records import now
from smartwriter.storage.salvage import Entry
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.values import Draft, Task, Turn, TurnState
from smartwriter.turns.calls import DRAFT_TOOLS
from smartwriter.turns.live import LiveJournal
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry

_REMOVALS = 5
_UNANSWERED = (TurnState.running, TurnState.interrupted, TurnState.failed)


@dataclass(frozen=True)
class Recovered:
    """What became of a turn whose process died."""

    task: Task
    draft: str
    turn: Turn
    kept: tuple[int, ...] = ()
    """The versions beside the text that what it was writing into the draft has become."""

    def __str__(self) -> str:
        what = "compaction" if is_command(self.turn.prompt) else "answer"
        where = f"turn {self.turn.number} of {self.task.title} ({self.task.address(self.draft)})"
        versions = " and ".join(f"{self.task.address(self.draft)}:{number}" for number in self.kept)
        article = f" What it was writing into the draft is kept as {versions}." if versions else ""
        if self.turn.state is TurnState.recovered:
            return f"The {what} in {where} was finished after the program had died, and is saved.{article}"
        kept = f"; {len(self.turn.partial)} characters of the answer are kept" if self.turn.partial else ""
        return f"The {what} in {where} was cut off when the program died{kept}.{article} Just write on."

    def event(self) -> TurnRecovered:
        return TurnRecovered(task=self.task.id, draft=self.draft, detail=str(self), turn=self.turn)


def recover(
    workspace: Workspace, config_folders: Sequence[Path] = (), also: Iterable[tuple[Task, Draft]] = ()
) -> list[Recovered]:
    """Take in what dead processes left, and settle their turns. Blocking.

    Drafts that are being written now, by whomever, are left alone, also by the CLI of a program that died.

    :param config_folders: of the CLI, whose projects folders may hold first turns.
    :param also: drafts to look at beside those that left an unfinished live journal, or a folder.
    """
    with contextlib.suppress(JournalError):  # the disk may still be full; it stays in the spool
        workspace.spool.replay()
    found: dict[tuple[str, str], list[Recovered]] = {}
    for task, draft in [*_unfinished(workspace), *_with_folders(workspace), *also]:
        if (task.id, draft.name) in found:
            continue
        with contextlib.suppress(DraftBusy), workspace.lease(task, draft.name):
            found[task.id, draft.name] = recover_draft(workspace, task, draft, config_folders)
    remove_folders(workspace)
    return [recovered for several in found.values() for recovered in several]


def recover_draft(
    workspace: Workspace, task: Task, draft: Draft, config_folders: Sequence[Path] = ()
) -> list[Recovered]:
    """Take in what a dead process left of one draft, whose lease the caller holds. Blocking.

    Nothing happens as long as its CLI lives.
    """
    clis = orphans.living()
    if orphans.of_sessions(clis, identity(workspace.hidden).id, _sessions(draft)):
        return []
    taken_in = False
    for copy in _copies(workspace, task, draft, config_folders, clis):
        with contextlib.suppress(FileNotFoundError):  # another process has taken it in, and removes it
            taken_in |= _take_in(workspace, task, draft, copy)
    return _settle(workspace, task, draft, also_settled=taken_in)


def still_writing(workspace: Workspace, task: Task, draft: Draft) -> list[Cli]:
    """The CLI processes that write a draft, whose lease the caller holds: of programs that died. Blocking."""
    return orphans.of_sessions(orphans.living(), identity(workspace.hidden).id, _sessions(draft))


def orphaned(workspace: Workspace) -> list[Cli]:
    """The CLI processes that write drafts of a workspace whose programs died. Blocking."""
    mine = identity(workspace.hidden).id
    clis = [cli for cli in orphans.living() if mine and cli.workspace == mine]
    leases = _leases(workspace) if clis else {}
    return [cli for cli in clis if cli.session_id in leases and not leases[cli.session_id].is_held()]


def _unfinished(workspace: Workspace) -> Iterator[tuple[Task, Draft]]:
    """The drafts whose last turn, by their live journals, has no ending."""
    for path in workspace.places.live_journals():
        if LiveJournal.has_ended(path):
            continue
        with contextlib.suppress(TaskNotFound):
            task = workspace.tasks.find(path.parent.name)
            if draft := task.drafts.get(path.stem):
                yield task, draft


def _with_folders(workspace: Workspace) -> Iterator[tuple[Task, Draft]]:
    """The drafts of which a CLI has left something, though their turns may be settled."""
    mine = identity(workspace.hidden)
    known = (mine.id, *mine.copied_from, None)
    sessions = {id for folder in orphans.folders() if folder.workspace() in known for id in folder.sessions()}
    for task, draft in _drafts(workspace) if sessions else ():
        if draft.session_id in sessions:
            yield task, draft


def _drafts(workspace: Workspace) -> Iterator[tuple[Task, Draft]]:
    for task in workspace.tasks.all():
        for draft in task.drafts.values():
            yield task, draft


def _sessions(draft: Draft) -> tuple[str, ...]:
    return (draft.session_id, *draft.earlier_sessions)


# Taking in ----------------------------------------------------------------------------------------


def _copies(
    workspace: Workspace, task: Task, draft: Draft, config_folders: Iterable[Path], clis: Sequence[Cli]
) -> Iterator[Path]:
    """The CLI's own transcripts of a draft's session, where it does not write any more.

    A copy of a workspace reads what the CLI of the one that it was copied from has left, too; it only
    leaves it there.
    """
    mine = identity(workspace.hidden)
    for folder in orphans.folders():
        if folder.workspace() in (mine.id, *mine.copied_from, None) and not folder.is_used(clis):
            yield from folder.transcripts(draft.session_id)
    turns = workspace.tasks.turns(task, draft.name)
    if not turns or turns[-1].state not in _UNANSWERED:  # most of what is there stays there for ever
        return
    for config in filter(_is_trusted, config_folders):
        yield from orphans.transcripts_in(config, draft.session_id)


def _is_trusted(config: Path) -> bool:
    """Whether only this user writes into the CLI's own folder, which may be a link of theirs."""
    try:
        status = config.stat()
    except OSError:
        return False
    return os.name == "nt" or (status.st_uid == os.geteuid() and not status.st_mode & stat.S_IWOTH)


def _take_in(workspace: Workspace, task: Task, draft: Draft, copy: Path) -> bool:
    """Append what the CLI's copy of a session says after the prompts that were cut off; whether anything."""
    key: SessionKey = {"project_key": task.project_key, "session_id": draft.session_id}
    have = _uuids(workspace.store.path(key))
    prompts = _open_prompts(workspace.tasks.turns(task, draft.name), have)
    entries = list(descendants(reading.read(copy).entries, prompts))
    new = [entry for entry in entries if entry["uuid"] not in have]
    workspace.store.append_now(key, cast("list[SessionStoreEntry]", new))
    for path, subpath in _subagents(copy):
        if subpath.rpartition("/")[2].removeprefix("agent-") in str(entries):
            of_agent = [entry for entry in reading.read(path).entries if "uuid" in entry]
            workspace.store.append_now({**key, "subpath": subpath}, cast("list[SessionStoreEntry]", of_agent))
    return bool(new)


def _open_prompts(turns: Sequence[Turn], have: Collection[str]) -> set[str]:
    """The prompts after which something may be missing: the last that is stored, and those after it.

    What was said after an earlier one would turn the conversation back to there.
    """
    prompts = set()
    for turn in reversed(turns):
        prompts.add(turn.uuid)
        if turn.uuid in have:
            break
    return prompts


def _subagents(copy: Path) -> list[tuple[Path, str]]:
    """The transcripts of a session's subagents, with their subpaths."""
    folder = copy.with_suffix("")
    paths = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else []
    return [(path, path.relative_to(folder).with_suffix("").as_posix()) for path in paths]


def _uuids(transcript: Path) -> set[str]:
    try:
        return {entry["uuid"] for _, entry in reading.stream(transcript) if "uuid" in entry}
    except FileNotFoundError:
        return set()


# Removing -----------------------------------------------------------------------------------------


def remove_folders(workspace: Workspace, held: Collection[str] = ()) -> None:
    """Remove the folders of dead CLIs, each once all that it holds is kept. Blocking.

    :param held: sessions of drafts whose leases the caller holds.
    """
    for folder in orphans_of(workspace, held):
        with contextlib.suppress(DraftBusy, OSError), contextlib.ExitStack() as stack:
            leases = _leases(workspace)
            for lease in {leases[session_id] for session_id in folder.sessions().difference(held)}:
                stack.enter_context(lease)
            if not folder.is_used(orphans.living()):  # none can begin to now
                _keep_the_rest(workspace, folder)
                _remove(folder.path)


def orphans_of(workspace: Workspace, held: Collection[str] = ()) -> list[Folder]:
    """The folders that hold nothing but sessions of ours that nobody is writing.

    :param held: as for :func:`remove_folders`.
    """
    leases, mine, clis = _leases(workspace), identity(workspace.hidden).id, orphans.living()
    found = []
    for folder in orphans.folders():
        sessions = folder.sessions()
        ours = sessions <= leases.keys() and not any(leases[id].is_held() for id in sessions.difference(held))
        mark = folder.workspace()
        # One without a session may be another program's, but for the stand-in's homes.
        named = sessions or folder.is_home
        if ours and named and mark in (mine, None) and not folder.is_used(clis):
            found.append(folder)
    return found


def _leases(workspace: Workspace) -> dict[str, Lease]:
    """The lease of each session's draft."""
    found = {}
    for task, draft in _drafts(workspace):
        lease = workspace.lease(task, draft.name)
        found.update(dict.fromkeys(_sessions(draft), lease))
    return found


def _keep_the_rest(workspace: Workspace, folder: Folder) -> None:
    """Put away transcripts that have more than ours: what was said where the draft has gone on since.

    :raises OSError: they could not be; then the folder has to stay.
    """
    ours = {
        session_id: workspace.store.path({"project_key": task.project_key, "session_id": session_id})
        for task, draft in _drafts(workspace)
        for session_id in _sessions(draft)
    }
    for transcript in folder.transcripts():
        if not _uuids(transcript) <= _uuids(ours[transcript.stem]):
            durable.move(transcript, workspace.places.trash("orphans", transcript.stem, ".jsonl"))


def _remove(path: Path) -> None:
    # Until it is gone: half removed, nothing in it would tell any more that it is ours.
    for _ in range(_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            break


# Turns ----------------------------------------------------------------------------------------


def _settle(workspace: Workspace, task: Task, draft: Draft, *, also_settled: bool) -> list[Recovered]:
    """Record how the turns of a dead process ended, and in the live journal that they did.

    :param also_settled: something was taken in: turns that were given up may have their answers by now.
    """
    turns = workspace.tasks.turns(task, draft.name)
    open = [turn for turn in turns if turn.state in (_UNANSWERED if also_settled else (TurnState.running,))]
    if not open:
        return []
    live = LiveJournal(workspace.live_path(task, draft.name))
    entries = _entries(workspace, task, draft)
    settled: list[tuple[Turn, tuple[int, ...]]] = []
    text = workspace.text(task, draft.name)
    for turn in open:
        calls = live.calls(turn.number)
        later = {other.uuid for other in turns if other.number > turn.number}
        for id, tool, fields in _unanswered_calls(entries, turn.uuid, later):
            calls.finish(id, tool, fields)
        kept = tuple(revision.number for revision in calls.keep(text))
        if _has_its_end(entries, turn, later):
            end: dict[str, object] = {
                "state": TurnState.recovered,
                "partial": "",
                "detail": "",
                "left_out": False,
            }
        elif turn.state is TurnState.running:
            end = {"state": TurnState.interrupted, "partial": live.partial_text(turn.number)}
        elif kept:
            end = {}
        else:
            continue
        settled.append((turn.model_copy(update={"ended_at": now(), **end}), kept))
    if settled:
        ended = [turn for turn, _ in settled]
        workspace.tasks.record(task, draft.name, ended)
        live.end(task.id, draft.name, ended)
    return [Recovered(task, draft.name, turn, kept) for turn, kept in settled]


def _has_its_end(entries: Sequence[Entry], turn: Turn, later: Collection[str]) -> bool:
    if is_command(turn.prompt):
        return compacted_since(entries, turn.uuid, later)
    return answer_to(entries, turn.uuid, later) is not None


def _unanswered_calls(
    entries: Iterable[Entry], prompt: str, later: Collection[str]
) -> list[tuple[str, str, dict[tuple[int, str], str]]]:
    """What a turn wanted to do to the draft and was never done: id, tool and input of each call.

    The CLI of a dead program has nobody to run its tools; it tells the model that they failed.
    """
    calls: dict[str, tuple[str, str, dict[tuple[int, str], str]]] = {}
    for entry in of_turn(entries, prompt, later):
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            match block:
                case {"type": "tool_use", "id": str(id), "name": str(name), "input": dict(input)}:
                    tool = name.rpartition("__")[2]
                    if tool in DRAFT_TOOLS:
                        calls[id] = (id, tool, _fields(input))
                case {"type": "tool_result", "tool_use_id": str(id)} if not block.get("is_error"):
                    calls.pop(id, None)
    return list(calls.values())


def _fields(input: object) -> dict[tuple[int, str], str]:
    """The texts in a tool's input, by the number of the edit that they are of, and name."""
    found: dict[tuple[int, str], str] = {}
    for piece in pieces_of(input):
        if piece.path:
            place = (piece.edit, piece.field)
            found[place] = found.get(place, "") + piece.text
    return found


def _entries(workspace: Workspace, task: Task, draft: Draft) -> list[Entry]:
    try:
        return workspace.transcript(task, draft).read().entries
    except FileNotFoundError:
        return []
