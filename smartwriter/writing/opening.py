"""How a turn begins: all that it depends on is looked at, and that it starts is recorded."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from smartwriter.agent.prompt import system_prompt
from smartwriter.errors import SessionMissing
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.copying import copy_session
from smartwriter.sessions.transcript import resume_point
from smartwriter.storage.records import now
from smartwriter.tasks.revisions import text_of
from smartwriter.tasks.values import ANSWERED, Draft, Task, Turn, TurnState, check_open
from smartwriter.workspace import Workspace
from smartwriter.writing.briefing import Briefing
from smartwriter.writing.instruments import Instruments


@dataclass(frozen=True)
class Start:
    """All that a turn starts with."""

    turn: Turn
    earlier: Sequence[Turn]
    """Those before it, those that were cut off as they are recorded now."""
    said: str
    """The prompt as it is sent, with notes on what happened since the last turn."""
    system_prompt: str
    resume: bool
    has_text: bool
    """The draft."""


class Opening:
    """Begins the turns of one draft, whose lease its owner holds. Calls block."""

    def __init__(self, workspace: Workspace, task: Task, draft: Draft, of: Instruments) -> None:
        self.task, self.draft = task, draft
        """As they were when the last turn began."""
        self._workspace = workspace
        self._of = of

    def check(self) -> None:
        """Whether it could take a turn.

        :raises SessionMissing: :raises Invalid: when the article is finished, or its collection gone.
        """
        task = self._workspace.tasks.find(self.task.id)
        check_open(task, self.draft.name)
        self._workspace.check_folder(task)
        self._is_stored(self._workspace.tasks.turns(self.task, self.draft.name))

    def start(self, prompt: str, id: str) -> Start:
        """Look at everything that the turn depends on, and record that it starts."""
        tasks, draft = self._workspace.tasks, self.draft.name
        # As they are now: while this process was idle, or waited for the lease, another one may have
        # finished the task, and the writer may have renamed its collection's folder.
        self.task = tasks.find(self.task.id)
        self.draft = tasks.draft(self.task, draft)
        check_open(self.task, draft)
        self._workspace.check_folder(self.task)
        turns = tasks.turns(self.task, draft)
        resume = self._is_stored(turns) and self._leave_out(turns)
        memory = OpenDraft(self._workspace, self.task, self.draft.name).memory()
        number = turns[-1].number + 1 if turns else 1
        self._of.memory_tools.turn, self._of.memory_tools.memory = number, memory
        cut_off = {turn.number: self._cut_off(turn) for turn in turns if turn.state is TurnState.running}
        turns = [cut_off.get(turn.number, turn) for turn in turns]
        briefing = Briefing(self._workspace, self.task, self.draft, turns)
        said = briefing.prompt(prompt, self._of.tools, number, memory)
        if not resume:
            self._choose_session(turns)
        turn = Turn(
            number=number,
            uuid=id,
            session_id=self.draft.session_id,
            prompt=prompt,
            state=TurnState.running,
            memory=memory.hashes,
            revision=self._of.tools.known,
        )
        tasks.record(self.task, draft, [*cut_off.values()])
        self._of.live.begin()
        tasks.record(self.task, draft, [turn])  # last: refused before, there is no turn
        has_text = bool(text_of(self._of.text.newest()))
        return Start(turn, turns, said, system_prompt(self.task, memory), resume, has_text)

    def _cut_off(self, turn: Turn) -> Turn:
        """A turn that says it runs although we hold the lease: its process died."""
        partial = self._of.live.partial_text(turn.number)
        self._of.live.calls(turn.number).keep(self._of.text)
        return turn.model_copy(update={"state": TurnState.interrupted, "ended_at": now(), "partial": partial})

    def _leave_out(self, turns: list[Turn]) -> bool:
        """Go on without the last turns if they are to be left out; whether there is a session to resume.

        In another session, a copy up to where they begin: in this one the CLI may take up their end.
        """
        since = takewhile(lambda turn: turn.state not in ANSWERED, reversed(turns))
        if not any(turn.left_out for turn in since):
            return True
        here = OpenDraft(self._workspace, self.task, self.draft.name)
        shortened, last_entry = resume_point(here.transcript.read().entries, turns)
        if shortened and last_entry is not None:
            session_id = str(uuid.uuid4())
            copy_session(self._workspace.store, here.session, session_id, last_entry, self.task.title)
            self.change_session(session_id)
        return not shortened or last_entry is not None

    def _is_stored(self, turns: list[Turn]) -> bool:
        """Whether there is a session to resume. :raises SessionMissing: when there was one."""
        transcript = OpenDraft(self._workspace, self.task, self.draft.name).transcript
        if transcript.has_entries():
            return True
        if any(turn.state in ANSWERED for turn in turns):
            raise SessionMissing(self.task.address(self.draft.name), transcript.path)
        return False

    def _choose_session(self, turns: list[Turn]) -> None:
        """A first turn that died before anything was stored used up its session id: the CLI
        keeps a copy of its own under it and refuses to create it again."""
        if any(turn.session_id == self.draft.session_id for turn in turns):
            self.change_session(str(uuid.uuid4()))

    def change_session(self, session_id: str) -> None:
        """Let the draft go on under another session. :raises JournalError:"""
        earlier = (*self.draft.earlier_sessions, self.draft.session_id)
        change = {"session_id": session_id, "earlier_sessions": earlier}

        def changed(task: Task) -> Task:  # all else of the draft as it is now
            return task.with_draft(task.drafts[self.draft.name].model_copy(update=change))

        self.draft = self._workspace.tasks.update(self.task.id, changed).drafts[self.draft.name]
        self.task = self.task.with_draft(self.draft)
