"""The engine: many drafts written at once, each by an actor of its own.

::

    send(prompt) ─► the draft's actor ─► a conversation with the CLI
                         │                       │ transcript
      events() ◄─── live journal                 ▼ session store

An actor lives while its draft has prompts, and a while longer. It holds the draft's lease and owns
its CLI process from connect to disconnect, in one task. Nobody who listens can hold it up.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync

from smartwriter.agent.conversation import Agent
from smartwriter.errors import DraftBusy, Invalid, SmartWriterError
from smartwriter.events import Event, Queued
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.orphans import Cli, is_alive
from smartwriter.system.config import Config
from smartwriter.tasks.values import Draft, Task
from smartwriter.turns.broadcast import follow
from smartwriter.turns.sent import SentPrompt
from smartwriter.workspace import Workspace
from smartwriter.writing.actor import STOP_POLL_S, Actor, House
from smartwriter.writing.orphans import orphaned
from smartwriter.writing.pool import Pool
from smartwriter.writing.recovery import recover

_ORPHAN_POLL_S = 1.0
_ORPHAN_SEARCH_S = 15.0  # another program may die beside this one
_LISTENER_EVENTS = 10_000  # that a listener may lag behind before it is dropped


Job = tuple[Task, Draft, str]
"""A draft, and a prompt for it."""


@dataclass(frozen=True)
class Earlier:
    """What waited before some jobs came."""

    found: list[tuple[str, list[SentPrompt]]]
    """By the draft's address, in order."""
    left: list[Job]
    """The jobs that did not wait among it."""

    @property
    def sent(self) -> list[SentPrompt]:
        return [one for _, several in self.found for one in several]


class Engine:
    """Writes the drafts of one workspace. Use it as a context; leaving it waits for all turns."""

    def __init__(self, workspace: Workspace, agent: Agent, config: Config | None = None) -> None:
        """:param config: None: the defaults."""
        self.workspace = workspace
        config = config or Config()
        pool = Pool(config.parallel)
        self._house = House(workspace, agent, config, pool, self.publish, self._start_soon)
        self.orphans: list[Cli] = []
        """The CLIs of programs that died beside this one, or before it, and still write."""
        self._actors: dict[tuple[str, str], Actor] = {}
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
        self._house.leaving.set()
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
            actor = self._actors[address] = Actor(self._house, task, draft)
            self._group.start_soon(self._act, address, actor, name=task.address(draft.name))
        actor.queue.append(sent)
        self._group.start_soon(actor.keep, sent)
        return sent

    async def send_all(self, jobs: Sequence[Job]) -> list[SentPrompt]:
        """Send prompts to drafts.

        Variants of one draft have one past: of these the first is sent alone up to its first word, so that
        the rest find that past in the prompt cache.
        """
        if not jobs:
            return []
        first, *rest = jobs
        sent = [self.send(*first)]
        if rest and all(task.id == first[0].id and prompt == first[2] for task, _, prompt in rest):
            async with self.events() as events:
                async for event in events:
                    if event.kind not in ("queued", "turn_started"):
                        break
        return sent + [self.send(*job) for job in rest]

    async def send_earlier(self, jobs: Sequence[Job]) -> Earlier:
        """Send what waits in the drafts of these jobs, each draft's once.

        A prompt that waits already, word for word, is not sent twice: who starts a killed command again
        means the same one. What waits in a draft that another process writes is that one's.
        """
        found: list[tuple[str, list[SentPrompt]]] = []
        left = list(jobs)
        for task, draft in {(task.id, draft.name): (task, draft) for task, draft, _ in jobs}.values():
            try:
                earlier = await self.send_waiting(task, draft)
            except DraftBusy:  # the job itself will be refused
                continue
            found.append((task.address(draft.name), earlier))
            for one in earlier:
                wanted = (task.id, draft.name, one.prompt)
                if same := [job for job in left if (job[0].id, job[1].name, job[2]) == wanted]:
                    left.remove(same[0])
        return Earlier(found, left)

    async def send_waiting(self, task: Task, draft: Draft) -> list[SentPrompt]:
        """Send what waits on disk since an earlier process, in its order.

        :raises DraftBusy: what waits there is another process's.
        """
        actor = self._actors.get((task.id, draft.name))
        if actor is None:
            await run_sync(OpenDraft(self.workspace, task, draft.name).lease().check)
        waiting = await run_sync(OpenDraft(self.workspace, task, draft.name).outbox().waiting)
        return [self.send(task, draft, one.prompt, one.id, earlier=True) for one in waiting]

    async def withdraw(self, task: Task, draft: Draft, sent: SentPrompt) -> bool:
        """Take back a prompt that still waits; False when its turn has started."""
        actor = self._actors.get((task.id, draft.name))
        return actor is not None and await actor.withdraw(sent)

    @asynccontextmanager
    async def borrow(self, task: Task, draft: Draft) -> AsyncIterator[None]:
        """Hold a draft's lease for something other than a turn; a process that is idle gives it up.

        :raises DraftBusy: a turn runs, here or elsewhere.
        """
        lease = OpenDraft(self.workspace, task, draft.name).lease()
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
        return actor is not None and await actor.stop()

    async def stop_all(self, *, keep: bool = False) -> None:
        """Stop every turn and take back what waits.

        :param keep: what waits stays on disk instead, for the next time; what waited before this
            process came does so in any case.
        """
        async with anyio.create_task_group() as group:  # none waits for another's process
            for actor in list(self._actors.values()):
                for sent in [*actor.queue]:
                    if keep or sent.earlier:
                        actor.put_off(sent)
                    else:
                        group.start_soon(actor.withdraw, sent)
                group.start_soon(actor.stop)

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
        return follow(OpenDraft(self.workspace, task, draft.name).live_path, after)

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
                for actor in await run_sync(_those, Actor.is_wanted, idle):
                    actor.give_way()
                busy = [actor for actor in self._actors.values() if actor.is_busy]
                for actor in await run_sync(_those, Actor.asked_to_stop, busy):
                    await actor.stop()
                await anyio.sleep(STOP_POLL_S)

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
            found = await run_sync(recover, self.workspace, [self._house.agent.config_folder])
        except (SmartWriterError, OSError):  # the next turn of the draft tries again, and says why not
            return
        for recovered in found:
            self.publish(recovered.event())

    def _leave(self) -> None:
        if self._house.leaving.is_set() and not self._actors:
            self._heeding.cancel()
            self._looking.cancel()

    def _start_soon(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._group.start_soon(run)

    async def _act(self, address: tuple[str, str], actor: Actor) -> None:
        try:
            await actor.run()
        finally:
            del self._actors[address]
            self._leave()


def _those(wanted: Callable[[Actor], bool], actors: list[Actor]) -> list[Actor]:
    return [actor for actor in actors if wanted(actor)]


def _all_live(clis: list[Cli]) -> bool:
    return all(map(is_alive, clis))
