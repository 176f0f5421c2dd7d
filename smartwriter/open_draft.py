"""A draft at hand: all that belongs to one draft of a task, as one value."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import smartwriter.storage.reading as reading
from smartwriter.errors import DraftNotFound, JournalError, SessionMissing
from smartwriter.memory.snapshot import Memory
from smartwriter.sessions.transcript import Transcript
from smartwriter.storage.interface import Lease
from smartwriter.tasks.draft_text import DraftText, HandEdit
from smartwriter.tasks.values import ANSWERED, Draft, Source, Task, Turn, TurnState
from smartwriter.turns.outbox import Outbox
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey

    from smartwriter.turns.live import LiveJournal


@dataclass(frozen=True)
class OpenDraft:
    """One draft of a task as it was found; :meth:`now` finds it again. Calls block."""

    workspace: Workspace
    task: Task
    name: str
    """The task need not have such a draft yet, or any more."""

    @classmethod
    def at(cls, workspace: Workspace, address: str) -> OpenDraft:
        """What ``TASK[@DRAFT]`` means. :raises TaskNotFound, DraftNotFound, Invalid:"""
        task, draft = workspace.tasks.resolve(address)
        return cls(workspace, task, draft.name)

    @classmethod
    def dropped(cls, workspace: Workspace, address: str) -> OpenDraft | None:
        """The draft that ``TASK@DRAFT`` means, if it was put away; None for all else."""
        try:
            workspace.tasks.resolve(address)
        except DraftNotFound as error:
            task, name = workspace.tasks.find(error.task), error.draft
            if name in task.drafts and task.drafts[name].dropped:
                return cls(workspace, task, name)
        except LookupError:  # whoever looks it up next says so
            pass
        return None

    def now(self) -> OpenDraft:
        """The same draft in its task as that is by now. :raises TaskNotFound, DraftNotFound:"""
        tasks = self.workspace.tasks
        task = tasks.find(self.task.id)
        return OpenDraft(self.workspace, task, tasks.draft(task, self.name).name)

    def sibling(self, name: str) -> OpenDraft:
        """Another draft of the same task."""
        return OpenDraft(self.workspace, self.task, name)

    @property
    def draft(self) -> Draft:
        return self.task.drafts[self.name]

    @property
    def address(self) -> str:
        return self.task.address(self.name)

    def source(self, revision: int) -> Source:
        """Where a text comes from that is taken from here."""
        return Source(task=self.task.id, draft=self.name, revision=revision)

    # Put away, and taken up again ------------------------------------------------------------

    def drop(self) -> None:
        """Put it away; its text goes to the trash.

        :raises Invalid: for the current draft, or one that others go on from. :raises DraftBusy:
        """
        tasks = self.workspace.tasks
        tasks.without(self.task, self.name)  # where it may not be dropped, nothing is locked
        with self.lease():  # not under a process that is writing it
            # As it is now: it may have been adopted, or its folder moved.
            now = OpenDraft(self.workspace, tasks.find(self.task.id), self.name)
            tasks.without(now.task, now.name)
            now.take_hand_edit()
            # The file first: where it cannot be moved, the draft is not dropped; after a crash in
            # between, its next turn writes it again.
            now.text.put_away()
            tasks.drop(now.task.id, now.name)

    def take_up(self) -> None:
        """Make it a draft again, with its text, after it was put away."""
        self.workspace.tasks.take_up(self.task.id, self.name)
        self.take_hand_edit(restore=True)

    # The text --------------------------------------------------------------------------------

    @cached_property
    def text(self) -> DraftText:
        return self.workspace.text(self.task, self.name)

    def take_hand_edit(self, *, restore: bool = False) -> HandEdit:
        """Record what the writer changed in the file, between turns or while one runs."""
        return self.text.take_hand_edit(self.next_turn(), restore=restore)

    # Turns -----------------------------------------------------------------------------------

    def turns(self) -> list[Turn]:
        """As they are recorded, oldest first."""
        return self.workspace.tasks.turns(self.task, self.name)

    def turns_now(self) -> list[Turn]:
        """The turns, oldest first; one whose process is dead is cut off, with what was heard.

        Every command sees it from the moment that the process died. Nothing is settled here: the next turn
        does that, or whoever takes in what the CLI still wrote. But what had been typed into the draft is a
        version of it at once, so that it can be shown, taken and told.
        """
        turns = self.turns()
        if not _runs(turns) or self.lease().is_held():
            return turns
        # In this order: the one that ran when we first looked may have come to its end in between.
        return [self._cut_off(turn) if _runs([turn]) else turn for turn in self.turns()]

    def _cut_off(self, turn: Turn) -> Turn:
        live = self.live()
        with contextlib.suppress(JournalError, OSError):  # the disk may take nothing now: it stays there
            live.calls(turn.number).keep(self.text)
        end = {"state": TurnState.interrupted, "partial": live.partial_text(turn.number)}
        return turn.model_copy(update=end)

    def next_turn(self) -> int:
        """The number of the turn that runs, or of the next one."""
        turns = self.turns()
        if not turns:
            return 1
        return turns[-1].number + (turns[-1].state is not TurnState.running)

    # The conversation ------------------------------------------------------------------------

    @property
    def session(self) -> SessionKey:
        return {"project_key": self.task.project_key, "session_id": self.draft.session_id}

    @property
    def transcript(self) -> Transcript:
        return Transcript(self.workspace.store.journal(self.session))

    def conversation(self, turns: Sequence[Turn]) -> reading.Contents:
        """What the transcript holds; nothing before the first turn.

        :raises SessionMissing: when one of the turns has its answer, but no entry is there to be read.
        """
        transcript = self.transcript
        contents = transcript.read()
        if not contents.entries and any(turn.state in ANSWERED for turn in turns):
            raise SessionMissing(self.address, transcript.path)
        return contents

    def memory(self) -> Memory:
        """What the next session gets of the collection's memory, as it is now.

        Every version is kept, so that each turn's can be read later. A what-if draft gets its own
        version of a file, as long as the collection has that file.
        :raises Invalid: when config.toml is wrong, or a draft's own version is missing or damaged.
        :raises OSError: a version could not be kept.
        """
        memory, versions = self.workspace.task_series(self.task).memory(), self.workspace.versions
        versions.keep(memory)
        for name, what_if in self.draft.memory.items():
            if name in memory.hashes:
                memory = memory.replaced(name, versions.needed(what_if.sha256, name))
        return memory

    # While it is written ---------------------------------------------------------------------

    def lease(self, *, gives_way: bool = False) -> Lease:
        """:param gives_way: who holds it lets it go when it is idle and another process asks for it."""

        def is_idle() -> bool:
            from smartwriter.turns.live import LiveJournal

            return LiveJournal.has_ended(self.live_path)

        name = ("turns", self.task.id, self.name)
        return self.workspace.storage.lease(*name, address=self.address, is_idle=is_idle, gives_way=gives_way)

    def live(self) -> LiveJournal:
        """The events of the last turn."""
        from smartwriter.turns.live import LiveJournal  # most commands hear none

        return LiveJournal(self.live_path)

    @property
    def live_path(self) -> Path:
        return self.workspace.places.live(self.task.id, self.name)

    def ask_to_stop(self) -> None:
        """Of the process that writes it. :raises JournalError, OSError: it could not be asked."""
        self.workspace.storage.ask("stop", self.task.id, self.name)

    def heed_stop(self) -> bool:
        """Whether that was asked; each time counts once. For the process that writes it."""
        return self.workspace.storage.heed("stop", self.task.id, self.name)

    def outbox(self) -> Outbox:
        """The prompts that wait for their turn."""

        def begun() -> set[str]:
            return {turn.uuid for turn in self.turns()}

        return Outbox(self.workspace.storage, self.task.id, self.name, begun)


def prompts_waiting(workspace: Workspace, task: Task) -> int:
    """How many prompts wait in a task's drafts."""
    if next(workspace.storage.names("outbox", task.id), None) is None:
        return 0
    drafts = (OpenDraft(workspace, task, name) for name in task.live_drafts)
    return sum(len(draft.outbox().waiting()) for draft in drafts)


def _runs(turns: Sequence[Turn]) -> bool:
    return bool(turns) and turns[-1].state is TurnState.running
