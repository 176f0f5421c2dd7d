"""After a crash: what the CLI still wrote when its host had died is taken in, and the writer is told.

The CLI outlives its host: it finishes the answer into its own copy of the transcript, which nobody
mirrors any more. Until it has ended, its draft is left alone; then what descends from the prompts that
were cut off is appended to ours. A folder is removed when all that it holds is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import smartwriter.sessions.orphans as orphans
from smartwriter.agent.tool_input import pieces_of
from smartwriter.errors import DraftBusy, JournalError, TaskNotFound
from smartwriter.events import TurnRecovered
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.transcript import answer_to, compacted_since, of_turn
from smartwriter.storage.identity import identity
from smartwriter.storage.records import now
from smartwriter.storage.salvage import Entry
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.values import Task, Turn, TurnState, why_closed
from smartwriter.text.wording import counted
from smartwriter.turns.calls import DRAFT_TOOLS
from smartwriter.turns.live import LiveJournal
from smartwriter.workspace import Workspace
from smartwriter.writing.orphans import drafts_of, remove_folders, sessions_of
from smartwriter.writing.taking_in import UNANSWERED, copies, take_in


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
        size = len(self.turn.partial)
        verb = "is" if size == 1 else "are"
        kept = f"; {counted(size, 'character')} of the answer {verb} kept" if size else ""
        then = why_closed(self.task, self.draft) or "Just write on."
        return f"The {what} in {where} was cut off when the program died{kept}.{article} {then}"

    def event(self) -> TurnRecovered:
        return TurnRecovered(task=self.task.id, draft=self.draft, detail=str(self), turn=self.turn)


def recover(
    workspace: Workspace, config_folders: Sequence[Path] = (), also: Iterable[OpenDraft] = ()
) -> list[Recovered]:
    """Take in what dead processes left, and settle their turns. Blocking.

    Drafts that are being written now, by whomever, are left alone, also by the CLI of a program that died.

    :param config_folders: of the CLI, whose projects folders may hold first turns.
    :param also: drafts to look at beside those that left an unfinished live journal, or a folder.
    """
    with contextlib.suppress(JournalError):  # the disk may still be full; it stays in the spool
        workspace.spool.replay()
    found: dict[tuple[str, str], list[Recovered]] = {}
    for draft in [*_unfinished(workspace), *_with_folders(workspace), *also]:
        if (draft.task.id, draft.name) in found:
            continue
        with contextlib.suppress(DraftBusy), draft.lease():
            found[draft.task.id, draft.name] = recover_draft(draft, config_folders)
    remove_folders(workspace)
    return [recovered for several in found.values() for recovered in several]


def recover_draft(draft: OpenDraft, config_folders: Sequence[Path] = ()) -> list[Recovered]:
    """Take in what a dead process left of one draft, whose lease the caller holds. Blocking.

    Nothing happens as long as its CLI lives.
    """
    clis = orphans.living()
    if orphans.of_sessions(clis, identity(draft.workspace.hidden).id, sessions_of(draft)):
        return []
    taken_in = False
    for copy in copies(draft, config_folders, clis):
        with contextlib.suppress(FileNotFoundError):  # another process has taken it in, and removes it
            taken_in |= take_in(draft, copy)
    return _settle(draft, also_settled=taken_in)


def _unfinished(workspace: Workspace) -> Iterator[OpenDraft]:
    """The drafts whose last turn, by their live journals, has no ending."""
    for path in workspace.places.live_journals():
        if LiveJournal.has_ended(path):
            continue
        with contextlib.suppress(TaskNotFound):
            task = workspace.tasks.find(path.parent.name)
            if path.stem in task.drafts:
                yield OpenDraft(workspace, task, path.stem)


def _with_folders(workspace: Workspace) -> Iterator[OpenDraft]:
    """The drafts of which a CLI has left something, though their turns may be settled."""
    mine = identity(workspace.hidden)
    known = (mine.id, *mine.copied_from, None)
    sessions = {id for folder in orphans.folders() if folder.workspace() in known for id in folder.sessions()}
    for draft in drafts_of(workspace) if sessions else ():
        if draft.draft.session_id in sessions:
            yield draft


def _settle(draft: OpenDraft, *, also_settled: bool) -> list[Recovered]:
    """Record how the turns of a dead process ended, and in the live journal that they did.

    :param also_settled: something was taken in: turns that were given up may have their answers by now.
    """
    task, turns = draft.task, draft.turns()
    open = [turn for turn in turns if turn.state in (UNANSWERED if also_settled else (TurnState.running,))]
    if not open:
        return []
    live, entries = draft.live(), _entries(draft)
    settled: list[tuple[Turn, tuple[int, ...]]] = []
    for turn in open:
        calls = live.calls(turn.number)
        later = {other.uuid for other in turns if other.number > turn.number}
        for id, tool, fields in _unanswered_calls(entries, turn.uuid, later):
            calls.finish(id, tool, fields)
        kept = tuple(revision.number for revision in calls.keep(draft.text))
        end = _end_of(turn, entries, later, live)
        if end is not None or kept:
            new = {"ended_at": now(), **(end or {})}
            settled.append((turn.model_copy(update=new), kept))
    if settled:
        ended = [turn for turn, _ in settled]
        draft.workspace.tasks.record(task, draft.name, ended)
        live.end(task.id, draft.name, ended)
    return [Recovered(task, draft.name, turn, kept) for turn, kept in settled]


def _end_of(
    turn: Turn, entries: Sequence[Entry], later: Collection[str], live: LiveJournal
) -> dict[str, object] | None:
    """What is known now of how a turn ended; None: nothing new.

    :param later: the prompts after it.
    """
    if _has_its_end(entries, turn, later):
        return {"state": TurnState.recovered, "partial": "", "detail": "", "left_out": False}
    if turn.state is TurnState.running:
        return {"state": TurnState.interrupted, "partial": live.partial_text(turn.number)}
    return None


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


def _entries(draft: OpenDraft) -> list[Entry]:
    return draft.transcript.read().entries
