"""The engine: many drafts written at once, each by an actor of its own.

::

    send(prompt) ─► the draft's actor ─► a conversation with the CLI
                         │                       │ transcript
      events() ◄─── live journal                 ▼ session store

An actor lives while its draft has prompts, and a while longer. It holds the draft's lease and owns
its CLI process from connect to disconnect, in one task. Nobody who listens can hold it up.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync

from smartwriter.agent.claude import AgentError, ClaudeAgent
from smartwriter.broadcast import Broadcast, follow
from smartwriter.config import Config
from smartwriter.errors import Invalid, SmartWriterError
from smartwriter.events import Event, Failed, Queued, Withdrawn
from smartwriter.pool import Place, Pool
from smartwriter.tasks import Draft, Task, Turn
from smartwriter.workspace import Workspace
from smartwriter.writer import DraftWriter

_STOP_POLL_S = 0.25
_LISTENER_EVENTS = 10_000  # that a listener may lag behind before it is dropped


class Engine:
    """Writes the drafts of one workspace. Use it as a context; leaving it waits for all turns."""

    def __init__(self, workspace: Workspace, agent: ClaudeAgent, config: Config | None = None) -> None:
        """:param config: None: the defaults."""
        self.workspace = workspace
        self.agent = agent
        self.config = config or Config()
        self.pool = Pool(self.config.parallel)
        self.leaving = anyio.Event()
        self._actors: dict[tuple[str, str], _Actor] = {}
        self._listeners: set[MemoryObjectSendStream[Event]] = set()
        self._heeding = anyio.CancelScope()
        self._stack = AsyncExitStack()
        self._group: TaskGroup

    async def __aenter__(self) -> Engine:
        self._group = await self._stack.enter_async_context(anyio.create_task_group())
        self._group.start_soon(self._heed_other_processes)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.leaving.set()
        for actor in self._actors.values():
            actor.wake()
        self._leave()
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

    # Commands ------------------------------------------------------------------------------------

    def send(self, task: Task, draft: Draft, prompt: str) -> SentPrompt:
        """Queue a prompt for a draft and return at once. :raises Invalid: for an empty one."""
        if not prompt.strip():
            raise Invalid("The prompt is empty.")
        sent = SentPrompt(prompt)
        self.publish(Queued(task=task.id, draft=draft.name, prompt=prompt))
        address = (task.id, draft.name)
        actor = self._actors.get(address)
        if actor is None:
            actor = self._actors[address] = _Actor(self, task, draft)
            self._group.start_soon(self._act, address, actor, name=task.address(draft.name))
        actor.queue.append(sent)
        actor.wake()
        return sent

    def withdraw(self, task: Task, draft: Draft, sent: SentPrompt) -> bool:
        """Take back a prompt that still waits; False when its turn has started."""
        actor = self._actors.get((task.id, draft.name))
        if actor is None or sent not in actor.queue:
            return False
        actor.queue.remove(sent)
        self.publish(Withdrawn(task=task.id, draft=draft.name, prompt=sent.prompt))
        sent.settle(Invalid("The prompt was withdrawn."))
        return True

    async def stop(self, task: Task, draft: Draft) -> bool:
        """Stop a draft's turn, keeping what was written; False when none runs here."""
        actor = self._actors.get((task.id, draft.name))
        if actor is None or actor.current is None or actor.writer is None:
            return False
        with contextlib.suppress(AgentError):  # its process is gone: so ends the turn, as stopped
            await actor.writer.stop()
        return True

    async def stop_all(self) -> None:
        """Stop every turn and take back what waits."""
        async with anyio.create_task_group() as group:  # none waits for another's process
            for actor in list(self._actors.values()):
                for sent in [*actor.queue]:
                    self.withdraw(actor.task, actor.draft, sent)
                group.start_soon(self.stop, actor.task, actor.draft)

    # Events ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def events(self) -> AsyncIterator[MemoryObjectReceiveStream[Event]]:
        """All that happens from now on: each prompt ends in an ``Ending`` or a ``Withdrawn``.

        Who stops reading is dropped: the stream ends, and :meth:`follow` takes up from a position.
        """
        send, receive = anyio.create_memory_object_stream[Event](_LISTENER_EVENTS)
        self._listeners.add(send)
        try:
            with receive:
                yield receive
        finally:
            self._listeners.discard(send)
            send.close()

    def follow(self, task: Task, draft: Draft, after: int) -> AsyncGenerator[Event, None]:
        """A draft's events after a position, from disk first; see ``broadcast.follow``."""
        return follow(self.workspace.live_path(task, draft.name), after)

    def publish(self, event: Event) -> None:
        """Tell all who listen."""
        for listener in list(self._listeners):
            try:
                listener.send_nowait(event)
            except (anyio.WouldBlock, anyio.BrokenResourceError):
                self._listeners.discard(listener)
                listener.close()

    async def _heed_other_processes(self) -> None:
        """Stop the turns that ``smartwriter stop`` was called for."""
        with self._heeding:
            while True:
                writing = [actor for actor in self._actors.values() if actor.current is not None]
                for actor in await run_sync(_asked_to_stop, self.workspace, writing):
                    await self.stop(actor.task, actor.draft)
                await anyio.sleep(_STOP_POLL_S)

    def _leave(self) -> None:
        if self.leaving.is_set() and not self._actors:
            self._heeding.cancel()

    def start_soon(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._group.start_soon(function)

    async def _act(self, address: tuple[str, str], actor: _Actor) -> None:
        try:
            await actor.run()
        finally:
            del self._actors[address]
            self._leave()


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


class _Actor:
    """Takes a draft's prompts one after the other."""

    def __init__(self, engine: Engine, task: Task, draft: Draft) -> None:
        self.task, self.draft = task, draft
        self.queue: deque[SentPrompt] = deque()
        self.current: SentPrompt | None = None
        self.writer: DraftWriter | None = None
        self._engine = engine
        self._woken = anyio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        while self.queue:  # again when a prompt came while the writer was being closed
            try:
                await self._write()
            except (SmartWriterError, AgentError, OSError) as error:
                self._refuse(error)

    async def _write(self) -> None:
        pool = self._engine.pool
        place = await pool.take()
        try:
            async with self._writing():
                while self.queue:
                    await self._take_turns()
                    await self._rest(place)
        finally:
            pool.give_back(place)

    async def _take_turns(self) -> None:
        assert self.writer is not None
        while self.queue:
            await run_sync(_asked_to_stop, self._engine.workspace, [self])  # not this one
            if not self.queue:  # withdrawn meanwhile
                return
            sent = self.current = self.queue.popleft()
            try:
                turn = await self.writer.take_turn(sent.prompt)
                await self._broadcast.flush()
            except (SmartWriterError, AgentError, OSError):
                self.queue.appendleft(sent)
                raise
            finally:
                self.current = None
            sent.settle(turn)

    async def _rest(self, place: Place) -> None:
        """Wait for a prompt, as long as nothing speaks for closing the process."""
        engine = self._engine
        engine.pool.rest(place)
        with anyio.move_on_after(engine.config.idle_s):
            while not (self.queue or engine.leaving.is_set() or place.wanted.is_set()):
                self._woken = anyio.Event()
                async with anyio.create_task_group() as group:
                    group.start_soon(_first, self._woken, group)
                    group.start_soon(_first, place.wanted, group)
        engine.pool.work(place)

    def _refuse(self, error: Exception) -> None:
        """Nothing was even started: each prompt that waits is told."""
        while self.queue:
            self._engine.publish(Failed(task=self.task.id, draft=self.draft.name, detail=str(error)))
            self.queue.popleft().settle(error)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """The draft's writer, under the draft's lease."""
        workspace = self._engine.workspace
        await run_sync(lambda: self._new_writer().check())  # what is refused leaves no lock file
        lease = workspace.lease(self.task, self.draft.name)
        await run_sync(lease.acquire)
        try:
            # Read again under the lease: another process may have changed it until now.
            self.task = await run_sync(workspace.tasks.find, self.task.id)
            self.draft = workspace.tasks.draft(self.task, self.draft.name)
            writer = self.writer = await run_sync(self._new_writer)
            self._engine.start_soon(self._broadcast.run)
            try:
                yield
            finally:
                self.writer = None
                await writer.hang_up()
                await self._broadcast.close()
        finally:
            lease.release()

    def _new_writer(self) -> DraftWriter:
        engine = self._engine

        def publish(event: Event) -> None:
            self._broadcast.publish(event)

        writer = DraftWriter(
            engine.workspace, engine.agent, self.task, self.draft, publish, engine.config.silence_s
        )
        self._broadcast = Broadcast(writer.live, engine.publish)
        return writer


def _asked_to_stop(workspace: Workspace, actors: list[_Actor]) -> list[_Actor]:
    asked = []
    for actor in actors:
        path = workspace.stop_path(actor.task, actor.draft.name)
        if path.exists():
            path.unlink(missing_ok=True)
            asked.append(actor)
    return asked


async def _first(event: anyio.Event, group: TaskGroup) -> None:
    await event.wait()
    group.cancel_scope.cancel()
