"""The writer of one draft: takes its turns, over a conversation that it opens when needed."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from anyio.to_thread import run_sync

from smartwriter.agent.conversation import (
    Agent,
    AgentError,
    BeganCall,
    Conversation,
    DroppedCall,
    Ended,
    Happening,
    Limited,
    NotStored,
    Retry,
    Said,
    SessionChanged,
    SessionSettings,
    Thought,
    ToolAnswer,
    Typed,
    Unsaid,
    UsedTool,
)
from smartwriter.agent.conversation import Compacted as Happened
from smartwriter.agent.endings import EMPTY, REFUSAL, is_too_large, left_out, sentence
from smartwriter.agent.notes import FORGOTTEN, again
from smartwriter.agent.prompt import system_prompt
from smartwriter.agent.tools import DraftTools, MemoryTools, Tool
from smartwriter.errors import JournalError, NotSavedYet, SessionMissing, TextConflict
from smartwriter.events import (
    ArticleDelta,
    CallBegun,
    CallDropped,
    Clashed,
    Compacted,
    CutOffKept,
    DraftRevised,
    Event,
    Failed,
    Finished,
    MemoryProposed,
    NotKept,
    NotSaved,
    RateLimited,
    Retrying,
    Saved,
    Stopped,
    TextDelta,
    TextDropped,
    ThinkingDelta,
    ToolAnswered,
    ToolUsed,
    TurnStarted,
    UsageCounted,
)
from smartwriter.memory.proposal import Proposal
from smartwriter.sessions.orphans import cli_mark
from smartwriter.sessions.transcript import resume_point
from smartwriter.storage.records import now, to_line
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.draft_text import text_of
from smartwriter.tasks.values import ANSWERED, CutOff, Draft, Revision, Task, Turn, TurnState, check_open
from smartwriter.trials.forking import copy_session
from smartwriter.turns.calls import DRAFT_TOOLS, Calls
from smartwriter.turns.keeper import Keeper
from smartwriter.turns.live import LiveJournal
from smartwriter.turns.spool import SpooledStore
from smartwriter.workspace import Workspace
from smartwriter.writing.briefing import Briefing


@dataclass(frozen=True)
class _Start:
    """All that a turn starts with."""

    turn: Turn
    said: str
    """The prompt as it is sent, with notes on what happened since the last turn."""
    system_prompt: str
    resume: bool
    has_text: bool
    """The draft."""


class DraftWriter:
    """Writes one draft, whose lease its owner holds. Not to be used by two tasks, but for ``stop``."""

    def __init__(
        self,
        workspace: Workspace,
        agent: Agent,
        task: Task,
        draft: Draft,
        publish: Callable[[Event], None],
        silence_s: float,
        patience_s: float = 30.0,
    ) -> None:
        """
        Blocking.

        :param silence_s: how long the CLI may say nothing before it is given up.
        :param patience_s: how long a turn waits for a disk that does not take it.
        """
        self.live = LiveJournal(workspace.live_path(task, draft.name))
        self._publish = publish
        self._workspace = workspace
        self._agent = agent
        self._task = task
        self._draft = draft
        self._silence_s = silence_s
        self._text = workspace.text(task, draft.name)
        self._patience_s = patience_s
        self._keeper = Keeper(workspace.spool, task.id, draft.name, self._on_not_saved, self._on_saved)
        self._tools = DraftTools(self._text, self._on_revision, self._keeper, self._on_conflict)
        proposals = workspace.task_series(task).proposals
        self._memory_tools = MemoryTools(proposals, task.id, draft.name, self._on_proposal)
        self._workspace_id = workspace.identify().id
        self._store = SpooledStore(workspace.store, task.project_key, self._keeper, self._workspace_id)
        self._conversation: Conversation | None = None
        self._prompt = ""
        self._hang_up = AsyncExitStack()
        self._number = 0  # of the turn being taken
        self._heard = ""  # of its answer
        self._calls = Calls(0)  # of it
        self._writing: set[str] = set()  # the calls among them that write into the draft
        self._used_tool = False  # in it
        self._turns: list[Turn] = []  # before it
        self._said = ""  # to the model, with the notes before it
        self._under_way = False  # the model has begun to answer
        self._retrying = False  # the API is asked again, and has not answered since
        self._compacted = False  # the conversation, in it
        self._has_text = False  # the draft
        self._new_session_id: str | None = None
        self._stopping = False
        self._told = False  # what no disk takes

    def check(self) -> None:
        """Whether it could take a turn. Blocking.

        :raises SessionMissing: :raises Invalid: when the article is finished, or its collection gone.
        """
        task = self._workspace.tasks.find(self._task.id)
        check_open(task, self._draft.name)
        self._workspace.check_folder(task)
        self._is_stored(self._workspace.tasks.turns(self._task, self._draft.name))

    async def take_turn(self, prompt: str, id: str | None = None) -> Turn:
        """One prompt to its result; how it ended is in the turn.

        :param id: becomes the turn's uuid; None: one is chosen.

        :raises SmartWriterError, OSError: it could not start; nothing was recorded. So it is for a draft
            that another process finished or dropped meanwhile.
        """
        self._stopping = False
        await self._settle()
        start = await run_sync(self._start, prompt, id or str(uuid.uuid4()))
        self._number, self._heard, self._used_tool = start.turn.number, "", False
        self._calls = Calls(self._number)
        self._writing = set()
        self._said, self._has_text = start.said, start.has_text
        self._under_way = self._retrying = self._compacted = False
        self._tell(TurnStarted, turn=self._number, prompt=prompt)
        turn = await self._stored(await self._take(start))
        if turn.left_out:  # the process has its prompt in the conversation
            await self.hang_up()
        self._tell(UsageCounted, turn=turn.number, usage=turn.usage)
        self._tell(_ENDINGS.get(turn.state, Failed), turn=turn, **_detail(turn))
        return turn

    async def _take(self, start: _Start) -> Turn:
        try:
            conversation = await self._connected(start)
            if self._stopping:  # asked for while it was being opened
                return start.turn.model_copy(update={"state": TurnState.stopped})
            ended = await conversation.turn(start.said, start.turn.uuid, self._hear, self._silence_s)
        except AgentError as error:
            await self.hang_up()
            return self._broken(start.turn, str(error))
        if not ended.alive:
            await self.hang_up()
        return self._ended(start.turn, ended)

    async def stop(self) -> None:
        """Stop the turn that is being taken, if any; what was written of the answer stays."""
        self._stopping = True
        self._keeper.hurry()
        if self._conversation is not None:
            await self._conversation.interrupt()

    async def hang_up(self) -> None:
        """End the CLI process, if there is one."""
        self._conversation = None
        await self._hang_up.aclose()
        await self._keeper.settled(0)  # the last that the CLI handed over
        self._say_unkept()

    # Before ----------------------------------------------------------------------------------

    async def _settle(self) -> None:
        try:
            await self._keeper.settle()
            self._told = False
        except OSError as error:
            raise NotSavedYet(self._task.address(self._draft.name), str(error)) from error

    def _start(self, prompt: str, id: str) -> _Start:
        """Look at everything that the turn depends on, and record that it starts."""
        tasks, draft = self._workspace.tasks, self._draft.name
        # As they are now: while this process was idle, or waited for the lease, another one may have
        # finished the task, and the writer may have renamed its collection's folder.
        self._task = tasks.find(self._task.id)
        self._draft = tasks.draft(self._task, draft)
        check_open(self._task, draft)
        self._workspace.check_folder(self._task)
        turns = tasks.turns(self._task, draft)
        resume = self._is_stored(turns) and self._leave_out(turns)
        memory = self._workspace.memory(self._task, self._draft)
        number = turns[-1].number + 1 if turns else 1
        self._turns = turns
        self._memory_tools.turn, self._memory_tools.memory = number, memory
        cut_off = {turn.number: self._cut_off(turn) for turn in turns if turn.state is TurnState.running}
        turns = [cut_off.get(turn.number, turn) for turn in turns]
        briefing = Briefing(self._workspace, self._task, self._draft, turns)
        said = briefing.prompt(prompt, self._tools, number, memory)
        if not resume:
            self._choose_session(turns)
        turn = Turn(
            number=number,
            uuid=id,
            session_id=self._draft.session_id,
            prompt=prompt,
            state=TurnState.running,
            memory=memory.hashes,
            revision=self._tools.known,
        )
        tasks.record(self._task, draft, [*cut_off.values()])
        self.live.begin()
        tasks.record(self._task, draft, [turn])  # last: refused before, there is no turn
        has_text = bool(text_of(self._text.revisions()))
        return _Start(turn, said, system_prompt(self._task, memory), resume, has_text)

    def _cut_off(self, turn: Turn) -> Turn:
        """A turn that says it runs although we hold the lease: its process died."""
        partial = self.live.partial_text(turn.number)
        self.live.calls(turn.number).keep(self._text)
        return turn.model_copy(update={"state": TurnState.interrupted, "ended_at": now(), "partial": partial})

    def _leave_out(self, turns: list[Turn]) -> bool:
        """Go on without the last turns if they are to be left out; whether there is a session to resume.

        In another session, a copy up to where they begin: in this one the CLI may take up their end.
        """
        since = takewhile(lambda turn: turn.state not in ANSWERED, reversed(turns))
        if not any(turn.left_out for turn in since):
            return True
        entries = self._workspace.transcript(self._task, self._draft).read().entries
        shortened, last_entry = resume_point(entries, turns)
        if shortened and last_entry is not None:
            session_id = str(uuid.uuid4())
            copy_session(self._workspace, self._task, self._draft, session_id, last_entry)
            self._change_session(session_id)
        return not shortened or last_entry is not None

    def _is_stored(self, turns: list[Turn]) -> bool:
        """Whether there is a session to resume. :raises SessionMissing: when there was one."""
        transcript = self._workspace.transcript(self._task, self._draft)
        if transcript.has_entries():
            return True
        if any(turn.state in ANSWERED for turn in turns):
            raise SessionMissing(self._task.address(self._draft.name), transcript.path)
        return False

    def _choose_session(self, turns: list[Turn]) -> None:
        """A first turn that died before anything was stored used up its session id: the CLI
        keeps a copy of its own under it and refuses to create it again."""
        if any(turn.session_id == self._draft.session_id for turn in turns):
            self._change_session(str(uuid.uuid4()))

    def _change_session(self, session_id: str) -> None:
        earlier = (*self._draft.earlier_sessions, self._draft.session_id)
        change = {"session_id": session_id, "earlier_sessions": earlier}

        def changed(task: Task) -> Task:  # all else of the draft as it is now
            return task.with_draft(task.drafts[self._draft.name].model_copy(update=change))

        self._draft = self._workspace.tasks.update(self._task.id, changed).drafts[self._draft.name]

    async def _connected(self, start: _Start) -> Conversation:
        """The live conversation, opened anew when the memory in its prompt has changed."""
        if self._conversation is None or start.system_prompt != self._prompt:
            await self.hang_up()
            settings = SessionSettings(
                store=self._store,
                session_id=self._draft.session_id,
                resume=start.resume,
                system_prompt=start.system_prompt,
                prompt_file=self.live.path.with_suffix(".prompt.md"),
                tools=[self._noticed(tool) for tool in (*self._tools.all(), *self._memory_tools.all())],
                after_compaction=self._after_compaction,
                env=cli_mark(self._workspace_id, self._draft.session_id),
                all_kept=lambda: self._keeper.all_kept,
            )
            self._conversation = await self._hang_up.enter_async_context(self._agent.converse(settings))
            self._prompt = start.system_prompt
        return self._conversation

    # During ----------------------------------------------------------------------------------

    def _hear(self, happening: Happening) -> None:
        answers = isinstance(happening, Said | Thought | BeganCall | UsedTool)
        self._under_way = self._under_way or answers
        self._retrying = isinstance(happening, Retry) or (self._retrying and not answers)
        match happening:
            case Said(text):
                self._heard += text
                self._tell(TextDelta, turn=self._number, text=text)
            case Unsaid(characters):
                self._heard = self._heard[: len(self._heard) - characters]
                self._tell(TextDropped, turn=self._number, characters=characters)
            case Thought(text):
                self._tell(ThinkingDelta, turn=self._number, text=text)
            case BeganCall(call, tool) if tool in DRAFT_TOOLS:
                self._writing.add(call)
                self._tell(CallBegun, turn=self._number, call=call, tool=tool)
            case Typed(call, piece) if call in self._writing and piece.path:
                edit = next((key for key in piece.path if isinstance(key, int)), 0)
                self._tell(
                    ArticleDelta,
                    turn=self._number,
                    call=call,
                    field=str(piece.path[-1]),
                    edit=edit,
                    text=piece.text,
                )
            case DroppedCall(call) if call in self._writing:
                self._writing.discard(call)
                self._tell(CallDropped, turn=self._number, call=call)
            case UsedTool(name, call, whole):
                self._used_tool = True
                self._tell(ToolUsed, turn=self._number, name=name, call=call, whole=whole)
            case ToolAnswer(text, failed, call):
                self._tell(ToolAnswered, turn=self._number, text=text, failed=failed, call=call)
            case Retry(attempt, of, wait_s, why):
                self._tell(Retrying, turn=self._number, attempt=attempt, of=of, wait_s=wait_s, why=why)
            case Limited(until):
                self._tell(RateLimited, turn=self._number, until=until)
            case NotStored(detail):
                self._on_not_saved(detail)
            case Happened(compaction):
                self._compacted = True
                self._tell(Compacted, turn=self._number, **dataclasses.asdict(compaction))
            case SessionChanged(session_id):
                self._new_session_id = session_id

    def _noticed(self, tool: Tool) -> Tool:
        async def run(arguments: Mapping[str, Any]) -> str:
            self._under_way = True  # at once: what is heard of it may come later
            return await tool.run(arguments)

        return dataclasses.replace(tool, run=run)

    def _after_compaction(self) -> str:
        """What the model needs again; it is called before the next tool can be."""
        self._tools.forget()
        told = [again(self._said)] if self._under_way else []  # else it stands behind the summary
        if self._has_text:
            told.append(FORGOTTEN)
        return "\n\n".join(told)

    def _on_revision(self, revision: Revision) -> None:
        self._has_text = True
        characters = len(revision.text)
        self._tell(DraftRevised, turn=revision.turn, revision=revision.number, characters=characters)

    def _on_conflict(self, conflict: TextConflict) -> None:
        if conflict.aside is not None:
            self._tell(Clashed, turn=self._number, revision=conflict.current, aside=conflict.aside)

    def _on_proposal(self, proposal: Proposal) -> None:
        self._tell(
            MemoryProposed,
            turn=self._number,
            proposal=proposal.id,
            text=proposal.text,
            file=proposal.file,
        )

    def _on_not_saved(self, detail: str) -> None:
        self._tell(NotSaved, turn=self._number, detail=detail)

    def _on_saved(self) -> None:
        self._tell(Saved, turn=self._number)

    def _tell(self, kind: type[Event], **fields: Any) -> None:
        event = kind(task=self._task.id, draft=self._draft.name, **fields)
        self._calls.take(event)
        self._publish(event)

    # After -----------------------------------------------------------------------------------

    def _ended(self, turn: Turn, ended: Ended) -> Turn:
        told = {"stop_reason": ended.stop_reason, "detail": sentence(ended.stop_reason)}
        turn = turn.model_copy(update={"usage": ended.usage, "model": ended.model, **told})
        if ended.error or ended.stop_reason == EMPTY or self._stopping:
            return self._broken(turn, turn.detail or ended.error)
        return turn.model_copy(update={"state": TurnState.finished})

    def _broken(self, turn: Turn, why: str) -> Turn:
        """A turn without its whole answer: what was heard of it is kept."""
        turn = turn.model_copy(update={"state": TurnState.failed, "detail": why, "partial": self._heard})
        if self._stopping:
            turn = turn.model_copy(update={"state": TurnState.stopped, "detail": "", "stop_reason": ""})
        if is_command(turn.prompt):  # which nobody said: if nothing came of it, it was not
            return turn.model_copy(update={"left_out": not self._compacted})
        if self._stopping:
            if not self._retrying or self._got_answer():
                return turn
            # Who stops that, and asks again, does not ask twice.
            return turn.model_copy(update={"left_out": True, "detail": left_out(_NO_ANSWER)})
        if self._got_answer() and turn.stop_reason != REFUSAL:
            return turn
        # After a refused one the next ones would be refused as well.
        return turn.model_copy(update={"left_out": True, "detail": left_out(why) + self._cause(turn, why)})

    def _got_answer(self) -> bool:
        """Whether the model has said or done anything in the turn."""
        return bool(self._heard.strip() or self._writing) or self._used_tool

    def _cause(self, turn: Turn, why: str) -> str:
        """Of a request that was too large: the turn that made it so."""
        earlier = [one for one in self._turns if not one.left_out]
        largest = max([turn, *earlier], key=lambda one: len(one.prompt))
        if not is_too_large(why):
            return ""
        if largest is turn:
            return f" It has {len(turn.prompt):,} characters; send it in parts."
        return (
            f" The largest part of the conversation is the prompt of turn {largest.number}, with "
            f"{len(largest.prompt):,} characters; to go back before it: smartwriter rewind "
            f"{self._task.address(self._draft.name)} --to {largest.number - 1}"
        )

    async def _stored(self, turn: Turn) -> Turn:
        """A turn is finished when all of it is on a disk: in its place, or after a while on another one."""
        in_place = await self._keeper.settled(self._patience_s)
        turn = await self._recorded(self._unkept(turn))
        await self._keeper.settled(self._patience_s if in_place else 0)
        self._say_unkept()
        return self._unkept(turn)

    def _unkept(self, turn: Turn) -> Turn:
        """A turn of which some is in memory alone did not finish."""
        if self._keeper.all_kept or turn.state not in (TurnState.finished, TurnState.stopped):
            return turn
        why = f"{self._keeper.why} No other disk takes it either: what was printed is all that there is."
        return turn.model_copy(update={"state": TurnState.failed, "detail": why, "partial": self._heard})

    def _say_unkept(self) -> None:
        """In full, once."""
        words = self._keeper.unkept_words()
        if words and not self._told:
            self._told = True
            self._tell(NotKept, turn=self._number, text="\n\n".join(words))

    async def _recorded(self, turn: Turn) -> Turn:
        if self._new_session_id is not None:
            await self._go_on_under(self._new_session_id)
            self._new_session_id = None
        await self._keep_cut_off(turn)
        turn = turn.model_copy(update={"ended_at": now(), "revision": self._tools.known})
        await self._keeper.write("turns", [to_line(turn)])
        return turn

    async def _keep_cut_off(self, turn: Turn) -> None:
        try:
            for kept in await run_sync(self._calls.keep, self._text):
                self._tell(CutOffKept, turn=turn.number, revision=kept.number, characters=len(kept.text))
        except JournalError:
            for version in await run_sync(self._cut_off_versions):
                cut_off = [{"type": "text", "cut_off": version.model_dump()}]
                await self._keeper.write("text", cut_off, at={"turn": turn.number})

    def _cut_off_versions(self) -> list[CutOff]:
        try:
            return self._calls.versions(self._text.revisions())
        except OSError:  # gone: what was typed is all that there is
            return self._calls.versions([])

    async def _go_on_under(self, session_id: str) -> None:
        try:
            await run_sync(self._change_session, session_id)
        except JournalError:
            await self._keeper.write("session", [{"type": "session", "session_id": session_id}])
            self._draft = self._draft.model_copy(update={"session_id": session_id})


_NO_ANSWER = "The API had not answered"
_ENDINGS: dict[TurnState, type[Event]] = {TurnState.finished: Finished, TurnState.stopped: Stopped}


def _detail(turn: Turn) -> dict[str, str]:
    return {"detail": turn.detail} if turn.state is TurnState.failed else {}
