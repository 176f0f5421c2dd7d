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
import uuid
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync

from smartwriter.agent.conversation import Agent, AgentError
from smartwriter.errors import Invalid, JournalError, SmartWriterError
from smartwriter.events import Awaited, Event, Failed, Queued, Withdrawn
from smartwriter.sessions.orphans import Cli, end, is_alive
from smartwriter.system.config import Config
from smartwriter.tasks.values import Draft, Task, Turn
from smartwriter.workspace import Workspace
from smartwriter.writing.broadcast import Broadcast, follow
from smartwriter.writing.pool import Place, Pool
from smartwriter.writing.recovery import (
    orphaned,
    recover,
    recover_draft,
    remove_folders,
    still_writing,
)
from smartwriter.writing.writer import DraftWriter

_STOP_POLL_S = 0.25
_ORPHAN_POLL_S = 1.0
_ORPHAN_SEARCH_S = 15.0  # another program may die beside this one
_LISTENER_EVENTS = 10_000  # that a listener may lag behind before it is dropped


class Engine:
    """Writes the drafts of one workspace. Use it as a context; leaving it waits for all turns."""

    def __init__(self, workspace: Workspace, agent: Agent, config: Config | None = None) -> None:
        """:param config: None: the defaults."""
        self.workspace = workspace
        self.agent = agent
        self.config = config or Config()
        self.pool = Pool(self.config.parallel)
        self.leaving = anyio.Event()
        self.orphans: list[Cli] = []
        """The CLIs of programs that died beside this one, or before it, and still write."""
        self._actors: dict[tuple[str, str], _Actor] = {}
        self._listeners: set[MemoryObjectSendStream[Event]] = set()
        self._heeding = anyio.CancelScope()
        self._looking = anyio.CancelScope()
        self._stack = AsyncExitStack()
        self._group: TaskGroup

    async def __aenter__(self) -> Engine:
        self._group = await self._stack.enter_async_context(anyio.create_task_group())
        self._group.start_soon(self._heed_other_processes)
        self._group.start_soon(self._look_after_orphans)
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

    def send(
        self, task: Task, draft: Draft, prompt: str, id: str | None = None, *, earlier: bool = False
    ) -> SentPrompt:
        """Queue a prompt for a draft and return at once; see :meth:`SentPrompt.kept` and ``outcome``.

        :param id: a UUID, of the turn that it becomes; None: one is chosen. The same again, while it
            waits or is written, is the same prompt.
        :param earlier: it waited on disk already: stopping everything leaves it there.
        :raises Invalid: for an empty one.
        """
        if not prompt.strip():
            raise Invalid("The prompt is empty.")
        address = (task.id, draft.name)
        actor = self._actors.get(address)
        if actor is not None and id is not None and (there := actor.find(id)):
            return there
        sent = SentPrompt(prompt, id or str(uuid.uuid4()), earlier)
        self.publish(Queued(task=task.id, draft=draft.name, prompt=prompt))
        if actor is None:
            actor = self._actors[address] = _Actor(self, task, draft)
            self._group.start_soon(self._act, address, actor, name=task.address(draft.name))
        actor.queue.append(sent)
        self._group.start_soon(actor.keep, sent)
        return sent

    async def send_waiting(self, task: Task, draft: Draft) -> list[SentPrompt]:
        """Send what waits on disk since an earlier process, in its order.

        :raises DraftBusy: what waits there is another process's.
        """
        actor = self._actors.get((task.id, draft.name))
        if actor is None:
            await run_sync(self.workspace.lease(task, draft.name).check)
        waiting = await run_sync(self.workspace.outbox(task, draft.name).waiting)
        return [self.send(task, draft, one.prompt, one.id, earlier=True) for one in waiting]

    async def withdraw(self, task: Task, draft: Draft, sent: SentPrompt) -> bool:
        """Take back a prompt that still waits; False when its turn has started."""
        actor = self._actors.get((task.id, draft.name))
        if actor is None or sent not in actor.queue:
            return False
        actor.queue.remove(sent)
        await sent.settled_on_disk()
        with contextlib.suppress(JournalError):  # on a full disk it stays, and is offered again
            await run_sync(actor.outbox.withdraw, sent.id)
        self._withdrawn(actor, sent, "The prompt was withdrawn.")
        return True

    def _withdrawn(self, actor: _Actor, sent: SentPrompt, why: str, *, kept: bool = False) -> None:
        self.publish(Withdrawn(task=actor.task.id, draft=actor.draft.name, prompt=sent.prompt, kept=kept))
        sent.settle(Invalid(why))

    @asynccontextmanager
    async def borrow(self, task: Task, draft: Draft) -> AsyncIterator[None]:
        """Hold a draft's lease for something other than a turn; a process that is idle gives it up.

        :raises DraftBusy: a turn runs, here or elsewhere.
        """
        lease = self.workspace.lease(task, draft.name)
        await run_sync(lease.borrow)
        try:
            yield
        finally:
            lease.release()

    async def stop(self, task: Task, draft: Draft) -> bool:
        """Stop a draft's turn, keeping what was written; False when none runs here.

        While the turn waits for the CLI of a program that died, it is that one which is ended.
        """
        actor = self._actors.get((task.id, draft.name))
        if actor is not None and actor.awaits:
            actor.awaits = False
            return True
        if actor is None or actor.current is None or actor.writer is None:
            return False
        with contextlib.suppress(AgentError):  # its process is gone: so ends the turn, as stopped
            await actor.writer.stop()
        return True

    async def stop_all(self, *, keep: bool = False) -> None:
        """Stop every turn and take back what waits.

        :param keep: what waits stays on disk instead, for the next time; what waited before this
            process came does so in any case.
        """
        async with anyio.create_task_group() as group:  # none waits for another's process
            for actor in list(self._actors.values()):
                for sent in [*actor.queue]:
                    if keep or sent.earlier:
                        actor.queue.remove(sent)
                        self._withdrawn(actor, sent, "The prompt still waits.", kept=True)
                    else:
                        group.start_soon(self.withdraw, actor.task, actor.draft, sent)
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
        """Stop the turns that ``smartwriter stop`` was called for, and give way where that is asked for."""
        with self._heeding:
            while True:
                idle = [actor for actor in self._actors.values() if actor.is_idle]
                for actor in await run_sync(_wanted, self.workspace, idle):
                    actor.give_way()
                writing = [actor for actor in self._actors.values() if actor.current or actor.awaits]
                for actor in await run_sync(_asked_to_stop, self.workspace, writing):
                    await self.stop(actor.task, actor.draft)
                await anyio.sleep(_STOP_POLL_S)

    async def _look_after_orphans(self) -> None:
        """Take in the answers that CLIs still write whose programs died, each when it has ended."""
        with self._looking:
            while True:
                if not await run_sync(_all_live, self.orphans):
                    await self._recover()
                self.orphans = await run_sync(orphaned, self.workspace)
                await anyio.sleep(_ORPHAN_POLL_S if self.orphans else _ORPHAN_SEARCH_S)

    async def _recover(self) -> None:
        try:
            found = await run_sync(recover, self.workspace, [self.agent.config_folder])
        except (SmartWriterError, OSError):  # the next turn of the draft tries again, and says why not
            return
        for recovered in found:
            self.publish(recovered.event())

    def _leave(self) -> None:
        if self.leaving.is_set() and not self._actors:
            self._heeding.cancel()
            self._looking.cancel()

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

    def __init__(self, prompt: str, id: str, earlier: bool = False) -> None:
        self.prompt = prompt
        self.id = id
        """The uuid of the turn that it becomes."""
        self.earlier = earlier
        self._settled = anyio.Event()
        self._looked_at = anyio.Event()
        self._outcome: Turn | Exception

    async def kept(self) -> None:
        """Wait until it is on disk. :raises SmartWriterError, OSError: it was refused."""
        await self._looked_at.wait()
        if self._settled.is_set() and isinstance(self._outcome, Exception):
            raise self._outcome

    async def settled_on_disk(self) -> None:
        """Wait until it is on disk, or refused."""
        await self._looked_at.wait()

    def looked_at(self) -> None:
        self._looked_at.set()

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
        self.outbox = engine.workspace.outbox(task, draft.name)
        self.awaits = False
        """It waits for the CLI of a program that died; set to False, it ends that one."""
        self._engine = engine
        self._woken = anyio.Event()
        self._keeping = anyio.Lock()
        self._leases = False  # or is about to
        self._resting: Place | None = None

    def wake(self) -> None:
        self._woken.set()

    def find(self, id: str) -> SentPrompt | None:
        """The prompt of this id, if it waits or is being written."""
        on_their_way = [*([self.current] if self.current else []), *self.queue]
        return next((sent for sent in on_their_way if sent.id == id), None)

    @property
    def is_idle(self) -> bool:
        return self._resting is not None

    def give_way(self) -> None:
        """Let the process go, and the lease with it, if there is nothing to do."""
        if self._resting is not None:
            self._resting.wanted.set()

    async def keep(self, sent: SentPrompt) -> None:
        """Put a prompt on disk, or refuse it at once when another process writes the draft."""
        try:
            async with self._keeping:  # in order
                if not self._leases:
                    await run_sync(self._engine.workspace.lease(self.task, self.draft.name).check)
                await run_sync(self.outbox.put, sent.id, sent.prompt)
        except (SmartWriterError, OSError) as error:
            if sent in self.queue:
                self.queue.remove(sent)
                self._tell_refused(sent, error)
        finally:
            sent.looked_at()
            self.wake()

    async def run(self) -> None:
        while self.queue:  # again when a prompt came while the writer was being closed
            await self.queue[0].settled_on_disk()
            if not self.queue:
                return
            try:
                await self._write()
            except (SmartWriterError, AgentError, OSError) as error:
                await self._refuse(error)

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
            if (sent := await self._next()) is None:
                continue
            self.current = sent
            try:
                turn = await self.writer.take_turn(sent.prompt, sent.id)
                await self._broadcast.flush()
            except (SmartWriterError, AgentError, OSError):
                self.queue.appendleft(sent)
                raise
            finally:
                self.current = None
            with contextlib.suppress(JournalError):
                await run_sync(self.outbox.tidy)
            sent.settle(turn)

    async def _next(self) -> SentPrompt | None:
        """The prompt whose turn is to begin; None when it was withdrawn meanwhile, here or elsewhere."""
        if not self.queue:
            return None
        sent = self.queue[0]
        await sent.settled_on_disk()
        waits = await run_sync(self.outbox.take, sent.id)
        if not self.queue or self.queue[0] is not sent:
            return None
        self.queue.popleft()
        if not waits:
            self._engine._withdrawn(self, sent, "The prompt was withdrawn.")
            return None
        return sent

    async def _rest(self, place: Place) -> None:
        """Wait for a prompt, as long as nothing speaks for closing the process."""
        engine = self._engine
        engine.pool.rest(place)
        self._resting = place
        with anyio.move_on_after(engine.config.idle_s):
            while not (self.queue or engine.leaving.is_set() or place.wanted.is_set()):
                self._woken = anyio.Event()
                async with anyio.create_task_group() as group:
                    group.start_soon(_first, self._woken, group)
                    group.start_soon(_first, place.wanted, group)
        self._resting = None
        engine.pool.work(place)

    async def _refuse(self, error: Exception) -> None:
        """Nothing was even started: each prompt that waits is told, and waits no more."""
        refused, self.queue = [*self.queue], deque()
        for sent in refused:
            await sent.settled_on_disk()
            if not sent.earlier:
                with contextlib.suppress(SmartWriterError, OSError):
                    await run_sync(self.outbox.withdraw, sent.id)
            self._tell_refused(sent, error)

    def _tell_refused(self, sent: SentPrompt, error: Exception) -> None:
        self._engine.publish(Failed(task=self.task.id, draft=self.draft.name, detail=str(error)))
        sent.settle(error)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """The draft's writer, under the draft's lease."""
        workspace = self._engine.workspace
        await run_sync(lambda: self._new_writer().check())  # what is refused leaves no lock file
        lease = workspace.lease(self.task, self.draft.name, gives_way=True)
        try:
            async with self._keeping:  # who looks now whether it is held would find it so
                self._leases = True
            await run_sync(lease.borrow)
            await self._await_orphans()
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
            self._leases = False

    async def _await_orphans(self) -> None:
        """Until no CLI writes the draft any more whose program died: two would write past each other.

        What it wrote is taken in then. :raises Invalid: there is nothing to wait for any more.
        """
        engine, said = self._engine, False
        workspace, task, draft = engine.workspace, self.task, self.draft
        deadline = anyio.current_time() + engine.config.silence_s
        self.awaits = True
        try:
            while clis := await run_sync(still_writing, workspace, task, draft):
                if not self.queue:
                    raise Invalid("The prompt was withdrawn.")
                if not said:
                    engine.publish(Awaited(task=task.id, draft=draft.name, detail=_awaited(task, draft)))
                    said = True
                if not self.awaits or anyio.current_time() > deadline:
                    await run_sync(end, clis)
                await anyio.sleep(_STOP_POLL_S)
        finally:
            self.awaits = False
        for recovered in await run_sync(recover_draft, workspace, task, draft, [engine.agent.config_folder]):
            engine.publish(recovered.event())
        await run_sync(remove_folders, workspace, {draft.session_id, *draft.earlier_sessions})

    def _new_writer(self) -> DraftWriter:
        engine = self._engine

        def publish(event: Event) -> None:
            self._broadcast.publish(event)

        writer = DraftWriter(
            engine.workspace,
            engine.agent,
            self.task,
            self.draft,
            publish,
            engine.config,
        )
        self._broadcast = Broadcast(writer.live, engine.publish)
        return writer


def _asked_to_stop(workspace: Workspace, actors: list[_Actor]) -> list[_Actor]:
    asked = []
    for actor in actors:
        path = workspace.stop_path(actor.task, actor.draft.name)
        with contextlib.suppress(OSError):  # the disk may be gone
            path.unlink()
            asked.append(actor)
    return asked


def _wanted(workspace: Workspace, actors: list[_Actor]) -> list[_Actor]:
    return [actor for actor in actors if workspace.wanted_path(actor.task, actor.draft.name).exists()]


def _all_live(clis: list[Cli]) -> bool:
    return all(map(is_alive, clis))


def _awaited(task: Task, draft: Draft) -> str:
    address = task.address(draft.name)
    return (
        f"The program that wrote {address} has died, and Claude still finishes its answer: it is waited for "
        f"(to end it: smartwriter stop {address})."
    )


async def _first(event: anyio.Event, group: TaskGroup) -> None:
    await event.wait()
    group.cancel_scope.cancel()
