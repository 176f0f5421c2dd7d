"""The engine: many drafts written at once, each by an actor of its own.

::

    send(prompt) ─► the draft's actor ─► a conversation with the CLI
                         │                       │ transcript
      events() ◄─────────┘                       ▼ session store

An actor lives while its draft has prompts. It holds the draft's lease and owns its CLI process
from connect to disconnect, in one task. Nobody who listens to events can hold it up.
"""

from __future__ import annotations

import math
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync

from smartwriter.agent.claude import (
    AgentError,
    ClaudeAgent,
    Conversation,
    Ended,
    Happening,
    NotStored,
    Said,
    SessionSettings,
    UsedTool,
)
from smartwriter.agent.prompt import system_prompt
from smartwriter.agent.tools import DraftTools
from smartwriter.errors import Invalid, SessionMissing, SmartWriterError
from smartwriter.events import (
    DraftRevised,
    Event,
    Failed,
    Finished,
    NotSaved,
    Queued,
    TextDelta,
    ToolUsed,
    TurnStarted,
)
from smartwriter.tasks import Draft, Revision, Task, Turn, TurnState, now
from smartwriter.workspace import Workspace

DEFAULT_PARALLEL = 4
_HAND_EDIT_NOTE = "[The author has edited the draft by hand: read it again before you change it.]"
_LOST_PROMPT_NOTE = "[The connection broke before you got this prompt of the author:]"


class Engine:
    """Writes the drafts of one workspace. Use it as a context; leaving it waits for all turns."""

    def __init__(self, workspace: Workspace, agent: ClaudeAgent, *, parallel: int = DEFAULT_PARALLEL) -> None:
        """:param parallel: how many CLI processes live at once, of about 170 MB each."""
        self._workspace = workspace
        self._agent = agent
        self._places = anyio.CapacityLimiter(parallel)
        self._queues: dict[tuple[str, str], deque[SentPrompt]] = {}
        self._listeners: set[MemoryObjectSendStream[Event]] = set()
        self._stack = AsyncExitStack()
        self._actors: TaskGroup

    async def __aenter__(self) -> Engine:
        self._actors = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._stack.__aexit__(kind, error, trace)
        except BaseException as raised:
            # The caller's own error comes out as it is, not as a group of one.
            if error is not None and getattr(raised, "exceptions", ()) == (error,):
                return False
            raise
        finally:
            for listener in self._listeners:
                listener.close()

    def send(self, task: Task, draft: Draft, prompt: str) -> SentPrompt:
        """Queue a prompt for a draft and return at once. :raises Invalid: for an empty one."""
        if not prompt.strip():
            raise Invalid("The prompt is empty.")
        sent = SentPrompt(prompt)
        self._publish(Queued(task=task.id, draft=draft.name, prompt=prompt))
        address = (task.id, draft.name)
        if address in self._queues:
            self._queues[address].append(sent)
        else:
            self._queues[address] = deque([sent])
            self._actors.start_soon(self._act, task, draft, name=task.address(draft.name))
        return sent

    @asynccontextmanager
    async def events(self) -> AsyncIterator[MemoryObjectReceiveStream[Event]]:
        """Everything that happens from now on: each prompt ends in a Finished or a Failed."""
        send, receive = anyio.create_memory_object_stream[Event](math.inf)
        self._listeners.add(send)
        try:
            with receive:
                yield receive
        finally:
            self._listeners.discard(send)
            send.close()

    def _publish(self, event: Event) -> None:
        for listener in self._listeners:
            listener.send_nowait(event)

    async def _act(self, task: Task, draft: Draft) -> None:
        """A draft's actor: takes its prompts one after the other, until there are none."""
        address = (task.id, draft.name)
        queue = self._queues[address]
        try:
            while queue:  # again when a prompt came while the writer was being closed
                async with self._places, self._writer(task, draft) as writer:
                    while queue:
                        turn = await writer.take_turn(queue[0].prompt)
                        queue.popleft().settle(turn)
        except (SmartWriterError, OSError) as error:
            for sent in queue:
                self._publish(Failed(task=task.id, draft=draft.name, detail=str(error)))
                sent.settle(error)
        finally:
            del self._queues[address]

    @asynccontextmanager
    async def _writer(self, task: Task, draft: Draft) -> AsyncIterator[_DraftWriter]:
        await run_sync(lambda: self._draft_writer(task, draft).check())  # what is refused leaves no lock file
        lease = self._workspace.lease(task, draft.name)
        await run_sync(lease.acquire)
        try:
            # Read again under the lease: another process may have changed it until now.
            task = await run_sync(self._workspace.tasks.find, task.id)
            writer = await run_sync(self._draft_writer, task, self._workspace.tasks.draft(task, draft.name))
            try:
                yield writer
            finally:
                await writer.hang_up()
        finally:
            lease.release()

    def _draft_writer(self, task: Task, draft: Draft) -> _DraftWriter:
        return _DraftWriter(self._workspace, self._agent, task, draft, self._publish)


class SentPrompt:
    """A prompt on its way."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self._settled = anyio.Event()
        self._outcome: Turn | Exception

    async def outcome(self) -> Turn:
        """The turn, once it has ended. :raises SmartWriterError, OSError: it could not start."""
        await self._settled.wait()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def settle(self, outcome: Turn | Exception) -> None:
        self._outcome = outcome
        self._settled.set()


class _DraftWriter:
    """Takes the turns of one draft, over a conversation that it opens when needed."""

    def __init__(
        self,
        workspace: Workspace,
        agent: ClaudeAgent,
        task: Task,
        draft: Draft,
        publish: Callable[[Event], None],
    ) -> None:
        self._publish = publish
        self._workspace = workspace
        self._agent = agent
        self._task = task
        self._draft = draft
        self._text = workspace.text(task, draft.name)
        self._tools = DraftTools(self._text, self._on_revision)
        self._conversation: Conversation | None = None
        self._prompt = ""
        self._hang_up = AsyncExitStack()

    def check(self) -> None:
        """Whether it could take a turn. Blocking. :raises SessionMissing:"""
        self._is_stored(self._workspace.tasks.turns(self._task, self._draft.name))

    async def take_turn(self, prompt: str) -> Turn:
        """One prompt to its result; how it ended is in the turn.

        :raises SmartWriterError, OSError: it could not start; nothing was recorded.
        """
        tasks = self._workspace.tasks
        turns = await run_sync(tasks.turns, self._task, self._draft.name)
        resume = await run_sync(self._is_stored, turns)
        collection = await run_sync(self._workspace.task_collection, self._task)
        memory = await run_sync(collection.memory)
        number = turns[-1].number + 1 if turns else 1
        edited = await run_sync(self._text.take_hand_edit, number)
        cut_off = _cut_off(turns)
        lost = [turn.prompt for turn in cut_off if not await run_sync(self._is_in_transcript, turn)]
        if not resume:
            await self._choose_session(turns)
        turn = Turn(
            number=number,
            uuid=str(uuid.uuid4()),
            session_id=self._draft.session_id,
            prompt=prompt,
            state=TurnState.running,
            memory=memory.hashes,
        )
        self._tools.turn = number
        await run_sync(tasks.record, self._task, self._draft.name, [*cut_off, turn])
        self._tell(TurnStarted, turn=number, prompt=prompt)
        try:
            conversation = await self._connected(system_prompt(self._task, memory), resume)
            notes = [f"{_LOST_PROMPT_NOTE}\n\n{prompt}" for prompt in lost] + [_HAND_EDIT_NOTE] * bool(edited)
            async for happening in conversation.turn("\n\n".join([*notes, prompt]), turn.uuid):
                turn = self._follow(turn, happening)
        except AgentError as error:
            turn = turn.model_copy(update={"state": TurnState.failed, "detail": str(error)})
            await self.hang_up()
        turn = turn.model_copy(update={"ended_at": now()})
        await run_sync(tasks.record, self._task, self._draft.name, [turn])
        self._tell(Finished, turn=turn)
        return turn

    def _follow(self, turn: Turn, happening: Happening) -> Turn:
        match happening:
            case Said(text):
                self._tell(TextDelta, turn=turn.number, text=text)
            case UsedTool(name):
                self._tell(ToolUsed, turn=turn.number, name=name)
            case NotStored(detail):
                self._tell(NotSaved, turn=turn.number, detail=detail)
            case Ended(error, usage, model):
                state = TurnState.failed if error else TurnState.finished
                return turn.model_copy(
                    update={"state": state, "detail": error, "usage": usage, "model": model}
                )
        return turn

    async def _connected(self, prompt: str, resume: bool) -> Conversation:
        """The live conversation, opened anew when the memory in its prompt has changed."""
        if self._conversation is None or prompt != self._prompt:
            await self.hang_up()
            settings = SessionSettings(
                store=self._workspace.store.bind(self._task.project_key),
                session_id=self._draft.session_id,
                resume=resume,
                system_prompt=prompt,
                prompt_file=self._workspace.hidden / "live" / self._task.id / f"{self._draft.name}.prompt.md",
                tools=self._tools.all(),
                cwd=self._workspace.root,
            )
            self._conversation = await self._hang_up.enter_async_context(self._agent.converse(settings))
            self._prompt = prompt
        return self._conversation

    async def hang_up(self) -> None:
        self._conversation = None
        await self._hang_up.aclose()

    def _is_stored(self, turns: list[Turn]) -> bool:
        """Whether there is a session to resume. :raises SessionMissing: when there was one."""
        transcript = self._workspace.transcript(self._task, self._draft)
        if transcript.has_entries():
            return True
        if any(turn.state is TurnState.finished for turn in turns):
            raise SessionMissing(self._task.address(self._draft.name), transcript.path)
        return False

    def _is_in_transcript(self, turn: Turn) -> bool:
        return self._workspace.transcript(self._task, self._draft).has(turn.uuid)

    async def _choose_session(self, turns: list[Turn]) -> None:
        """A first turn that died before anything was stored used up its session id: the CLI
        keeps a copy of its own under it and refuses to create it again."""
        if any(turn.session_id == self._draft.session_id for turn in turns):
            self._draft = self._draft.model_copy(update={"session_id": str(uuid.uuid4())})
            draft = self._draft
            await run_sync(self._workspace.tasks.update, self._task.id, lambda task: task.with_draft(draft))

    def _on_revision(self, revision: Revision) -> None:
        self._tell(DraftRevised, turn=revision.turn, revision=revision.number, characters=len(revision.text))

    def _tell(self, kind: type[Event], **fields: Any) -> None:
        self._publish(kind(task=self._task.id, draft=self._draft.name, **fields))


def _cut_off(turns: list[Turn]) -> list[Turn]:
    """Turns that say they run although we hold the lease: their process died."""
    return [
        turn.model_copy(update={"state": TurnState.interrupted, "ended_at": now()})
        for turn in turns
        if turn.state is TurnState.running
    ]
