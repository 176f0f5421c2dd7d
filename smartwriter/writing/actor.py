"""Who writes one draft: takes its prompts one after the other, as long as there are any, and a while longer.

It holds the draft's lease and owns its CLI process from connect to disconnect, in one task.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from smartwriter.agent.conversation import Agent, AgentError
from smartwriter.errors import Invalid, JournalError, SmartWriterError
from smartwriter.events import Awaited, Event, Failed, Withdrawn
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.orphans import end
from smartwriter.system.config import Config
from smartwriter.tasks.values import Draft, Task
from smartwriter.turns.broadcast import Broadcast
from smartwriter.turns.sent import SentPrompt
from smartwriter.workspace import Workspace
from smartwriter.writing.orphans import remove_folders, still_writing
from smartwriter.writing.pool import Place, Pool
from smartwriter.writing.recovery import recover_draft
from smartwriter.writing.writer import DraftWriter

STOP_POLL_S = 0.25


@dataclass(frozen=True)
class House:
    """What all actors of an engine share."""

    workspace: Workspace
    agent: Agent
    config: Config
    pool: Pool
    publish: Callable[[Event], None]
    start_soon: Callable[[Callable[[], Coroutine[Any, Any, None]]], None]
    leaving: anyio.Event = field(default_factory=anyio.Event)
    """Set: nobody waits for more prompts."""


class Actor:
    """Takes a draft's prompts one after the other."""

    def __init__(self, house: House, task: Task, draft: Draft) -> None:
        self.task, self.draft = task.with_draft(draft), draft  # a fork may be newer than its task's value
        self.queue: deque[SentPrompt] = deque()
        self.current: SentPrompt | None = None
        self.writer: DraftWriter | None = None
        self.outbox = OpenDraft(house.workspace, task, draft.name).outbox()
        self.awaits = False
        """It waits for the CLI of a program that died; set to False, it ends that one."""
        self._house = house
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

    def is_wanted(self) -> bool:
        """Whether another process asks for the draft. Blocking."""
        return OpenDraft(self._house.workspace, self.task, self.draft.name).lease().is_wanted()

    def asked_to_stop(self) -> bool:
        """Whether ``smartwriter stop`` was called for the draft; each call of it counts once. Blocking."""
        try:
            return OpenDraft(self._house.workspace, self.task, self.draft.name).heed_stop()
        except OSError:  # the disk may be gone
            return False

    @property
    def is_busy(self) -> bool:
        """It takes a turn, or waits for what holds up the next one."""
        return self.current is not None or self.awaits

    async def stop(self) -> bool:
        """See ``Engine.stop``."""
        if self.awaits:
            self.awaits = False
            return True
        if self.current is None or self.writer is None:
            return False
        with contextlib.suppress(AgentError):  # its process is gone: so ends the turn, as stopped
            await self.writer.stop()
        return True

    async def withdraw(self, sent: SentPrompt) -> bool:
        """See ``Engine.withdraw``."""
        if sent not in self.queue:
            return False
        self.queue.remove(sent)
        await sent.settled_on_disk()
        with contextlib.suppress(JournalError):  # on a full disk it stays, and is offered again
            await run_sync(self.outbox.withdraw, sent.id)
        self._withdrawn(sent, "The prompt was withdrawn.")
        return True

    def put_off(self, sent: SentPrompt) -> None:
        """Leave a prompt that waits on disk, for whoever writes the draft next."""
        self.queue.remove(sent)
        self._withdrawn(sent, "The prompt still waits.", kept=True)

    def _withdrawn(self, sent: SentPrompt, why: str, *, kept: bool = False) -> None:
        event = Withdrawn(task=self.task.id, draft=self.draft.name, prompt=sent.prompt, kept=kept)
        self._house.publish(event)
        sent.settle(Invalid(why))

    async def keep(self, sent: SentPrompt) -> None:
        """Put a prompt on disk, or refuse it at once when another process writes the draft."""
        try:
            async with self._keeping:  # in order
                if not self._leases:
                    await run_sync(OpenDraft(self._house.workspace, self.task, self.draft.name).lease().check)
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
        pool = self._house.pool
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
            await run_sync(self.asked_to_stop)  # not this one
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
            self._withdrawn(sent, "The prompt was withdrawn.")
            return None
        return sent

    async def _rest(self, place: Place) -> None:
        """Wait for a prompt, as long as nothing speaks for closing the process."""
        house = self._house
        house.pool.rest(place)
        self._resting = place
        with anyio.move_on_after(house.config.idle_s):
            while not (self.queue or house.leaving.is_set() or place.wanted.is_set()):
                self._woken = anyio.Event()
                async with anyio.create_task_group() as group:
                    group.start_soon(_first, self._woken, group)
                    group.start_soon(_first, place.wanted, group)
        self._resting = None
        house.pool.work(place)

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
        self._house.publish(Failed(task=self.task.id, draft=self.draft.name, detail=str(error)))
        sent.settle(error)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """The draft's writer, under the draft's lease."""
        workspace = self._house.workspace
        await run_sync(lambda: self._new_writer().check())  # what is refused leaves no lock file
        lease = OpenDraft(workspace, self.task, self.draft.name).lease(gives_way=True)
        try:
            async with self._keeping:  # who looks now whether it is held would find it so
                self._leases = True
            await run_sync(lease.borrow)
            await self._await_orphans()
            # Read again under the lease: another process may have changed it until now.
            self.task = await run_sync(workspace.tasks.find, self.task.id)
            self.draft = workspace.tasks.draft(self.task, self.draft.name)
            writer = self.writer = await run_sync(self._new_writer)
            self._house.start_soon(self._broadcast.run)
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
        house, said = self._house, False
        workspace, task, draft = house.workspace, self.task, self.draft
        here = OpenDraft(workspace, task, draft.name)
        deadline = anyio.current_time() + house.config.silence_s
        self.awaits = True
        try:
            while clis := await run_sync(still_writing, here):
                if not self.queue:
                    raise Invalid("The prompt was withdrawn.")
                if not said:
                    house.publish(Awaited(task=task.id, draft=draft.name, detail=_awaited(task, draft)))
                    said = True
                if not self.awaits or anyio.current_time() > deadline:
                    await run_sync(end, clis)
                await anyio.sleep(STOP_POLL_S)
        finally:
            self.awaits = False
        for recovered in await run_sync(recover_draft, here, [house.agent.config_folder]):
            house.publish(recovered.event())
        await run_sync(remove_folders, workspace, {draft.session_id, *draft.earlier_sessions})

    def _new_writer(self) -> DraftWriter:
        house = self._house

        def publish(event: Event) -> None:
            self._broadcast.publish(event)

        writer = DraftWriter(
            house.workspace,
            house.agent,
            self.task,
            self.draft,
            publish,
            house.config,
        )
        self._broadcast = Broadcast(writer.live, house.publish)
        return writer


def _awaited(task: Task, draft: Draft) -> str:
    address = task.address(draft.name)
    return (
        f"The program that wrote {address} has died, and Claude still finishes its answer: it is waited for "
        f"(to end it: smartwriter stop {address})."
    )


async def _first(event: anyio.Event, group: TaskGroup) -> None:
    await event.wait()
    group.cancel_scope.cancel()
