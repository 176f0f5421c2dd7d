"""The writer of one draft: takes its turns, over a conversation that it opens when needed."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from anyio.to_thread import run_sync

from smartwriter.agent.conversation import Agent, AgentError, Conversation, Happening, SessionSettings
from smartwriter.agent.notes import FORGOTTEN, again
from smartwriter.agent.tools import Tool
from smartwriter.errors import JournalError, NotSavedYet
from smartwriter.events import (
    CutOffKept,
    DraftRevised,
    Event,
    NotKept,
    OfTurn,
    TurnStarted,
    UsageCounted,
    ending,
)
from smartwriter.sessions.orphans import cli_mark
from smartwriter.storage.records import now, to_line
from smartwriter.system.config import Config
from smartwriter.tasks.values import CutOff, Draft, Task, Turn, TurnState
from smartwriter.workspace import Workspace
from smartwriter.writing.answer import Answer
from smartwriter.writing.instruments import instruments
from smartwriter.writing.opening import Opening, Start


class DraftWriter:
    """Writes one draft, whose lease its owner holds. Not to be used by two tasks, but for ``stop``."""

    def __init__(
        self,
        workspace: Workspace,
        agent: Agent,
        task: Task,
        draft: Draft,
        publish: Callable[[Event], None],
        config: Config,
    ) -> None:
        """
        Blocking.

        :param config: how long the agent may say nothing before it is given up, and how long a turn waits
            for a disk that does not take it.
        """
        self._task, self._draft = task.id, draft.name
        self._address = task.address(draft.name)
        self._publish = publish
        self._agent = agent
        self._config = config
        self._of = instruments(workspace, task, draft, self._tell)
        self.live = self._of.live
        self._opening = Opening(workspace, task, draft, self._of)
        self._conversation: Conversation | None = None
        self._prompt = ""  # of the system, in that conversation
        self._hang_up = AsyncExitStack()
        self._number = 0  # of the turn being taken
        self._answer = Answer(0)  # to it
        self._said = ""  # to the model, with the notes before it
        self._has_text = False  # the draft
        self._new_session_id = ""
        self._stopping = False
        self._told = False  # what no disk takes

    def check(self) -> None:
        """Whether it could take a turn; see ``Opening.check``. Blocking."""
        self._opening.check()

    async def take_turn(self, prompt: str, id: str | None = None) -> Turn:
        """One prompt to its result; how it ended is in the turn.

        :param id: becomes the turn's uuid; None: one is chosen.

        :raises SmartWriterError, OSError: it could not start; nothing was recorded. So it is for a draft
            that another process finished or dropped meanwhile.
        """
        self._stopping = False
        await self._settle()
        start = await run_sync(self._opening.start, prompt, id or str(uuid.uuid4()))
        self._number = start.turn.number
        self._answer = Answer(self._number, start.earlier, self._address)
        self._said, self._has_text = start.said, start.has_text
        self._tell(TurnStarted(prompt=prompt))
        turn = await self._stored(await self._take(start))
        if turn.left_out:  # the process has its prompt in the conversation
            await self.hang_up()
        self._tell(UsageCounted(usage=turn.usage))
        self._tell(ending(turn, self._task, self._draft))
        return turn

    async def _take(self, start: Start) -> Turn:
        try:
            conversation = await self._connected(start)
            if self._stopping:  # asked for while it was being opened
                return start.turn.model_copy(update={"state": TurnState.stopped})
            silence_s = self._config.silence_s
            ended = await conversation.turn(start.said, start.turn.uuid, self._hear, silence_s)
        except AgentError as error:
            await self.hang_up()
            return self._answer.broken(start.turn, str(error), stopped=self._stopping)
        if not ended.alive:
            await self.hang_up()
        self._new_session_id = ended.session_id
        return self._answer.ended(start.turn, ended, stopped=self._stopping)

    async def stop(self) -> None:
        """Stop the turn that is being taken, if any; what was written of the answer stays."""
        self._stopping = True
        self._of.keeper.hurry()
        if self._conversation is not None:
            await self._conversation.interrupt()

    async def hang_up(self) -> None:
        """End the CLI process, if there is one."""
        self._conversation = None
        await self._hang_up.aclose()
        await self._of.keeper.settled(0)  # the last that the CLI handed over
        self._say_unkept()

    async def _settle(self) -> None:
        try:
            await self._of.keeper.settle()
            self._told = False
        except OSError as error:
            raise NotSavedYet(self._address, str(error)) from error

    async def _connected(self, start: Start) -> Conversation:
        """The live conversation, opened anew when the memory in its prompt has changed."""
        if self._conversation is None or start.system_prompt != self._prompt:
            await self.hang_up()
            settings = self._settings(start)
            self._conversation = await self._hang_up.enter_async_context(self._agent.converse(settings))
            self._prompt = start.system_prompt
        return self._conversation

    def _settings(self, start: Start) -> SessionSettings:
        session_id, tools = self._opening.draft.session_id, (self._of.tools, self._of.memory_tools)
        return SessionSettings(
            store=self._of.store,
            session_id=session_id,
            resume=start.resume,
            system_prompt=start.system_prompt,
            prompt_file=self.live.path.with_suffix(".prompt.md"),
            tools=[self._noticed(tool) for several in tools for tool in several.all()],
            after_compaction=self._after_compaction,
            env=cli_mark(self._of.workspace_id, session_id),
            all_kept=lambda: self._of.keeper.all_kept,
        )

    # During ----------------------------------------------------------------------------------

    def _hear(self, happening: Happening) -> None:
        if self._answer.hear(happening):
            self._tell(happening)

    def _noticed(self, tool: Tool) -> Tool:
        async def run(arguments: Mapping[str, Any]) -> str:
            self._answer.under_way = True  # at once: what is heard of it may come later
            return await tool.run(arguments)

        return dataclasses.replace(tool, run=run)

    def _after_compaction(self) -> str:
        """What the model needs again; it is called before the next tool can be."""
        self._of.tools.forget()
        told = [again(self._said)] if self._answer.under_way else []  # else it stands behind the summary
        if self._has_text:
            told.append(FORGOTTEN)
        return "\n\n".join(told)

    def _tell(self, event: Event) -> None:
        """Of this draft, and this turn, unless it names another."""
        of: dict[str, object] = {"task": self._task, "draft": self._draft}
        if isinstance(event, OfTurn):
            of["turn"] = event.turn or self._number
        event = event.model_copy(update=of)
        self._has_text = self._has_text or isinstance(event, DraftRevised)
        self._answer.told(event)
        self._publish(event)

    # After -----------------------------------------------------------------------------------

    async def _stored(self, turn: Turn) -> Turn:
        """A turn is finished when all of it is on a disk: in its place, or after a while on another one."""
        in_place = await self._of.keeper.settled(self._config.patience_s)
        turn = await self._recorded(self._unkept(turn))
        await self._of.keeper.settled(self._config.patience_s if in_place else 0)
        self._say_unkept()
        return self._unkept(turn)

    def _unkept(self, turn: Turn) -> Turn:
        """A turn of which some is in memory alone did not finish."""
        if self._of.keeper.all_kept or turn.state not in (TurnState.finished, TurnState.stopped):
            return turn
        why = f"{self._of.keeper.why} No other disk takes it either: what was printed is all that there is."
        return turn.model_copy(
            update={"state": TurnState.failed, "detail": why, "partial": self._answer.text}
        )

    def _say_unkept(self) -> None:
        """In full, once."""
        words = self._of.keeper.unkept_words()
        if words and not self._told:
            self._told = True
            self._tell(NotKept(text="\n\n".join(words)))

    async def _recorded(self, turn: Turn) -> Turn:
        if self._new_session_id:
            await self._go_on_under(self._new_session_id)
            self._new_session_id = ""
        await self._keep_cut_off(turn)
        turn = turn.model_copy(update={"ended_at": now(), "revision": self._of.tools.known})
        await self._of.keeper.write("turns", [to_line(turn)])
        return turn

    async def _keep_cut_off(self, turn: Turn) -> None:
        try:
            for kept in await run_sync(self._answer.calls.keep, self._of.text):
                size, whole = len(kept.text), kept.is_whole
                self._tell(CutOffKept(turn=turn.number, revision=kept.number, characters=size, whole=whole))
        except JournalError:
            for version in await run_sync(self._cut_off_versions):
                cut_off = [{"type": "text", "cut_off": version.model_dump()}]
                await self._of.keeper.write("text", cut_off, at={"turn": turn.number})

    def _cut_off_versions(self) -> list[CutOff]:
        try:
            return self._answer.calls.versions(self._of.text.revisions())
        except OSError:  # gone: what was typed is all that there is
            return self._answer.calls.versions([])

    async def _go_on_under(self, session_id: str) -> None:
        try:
            await run_sync(self._opening.change_session, session_id)
        except JournalError:
            await self._of.keeper.write("session", [{"type": "session", "session_id": session_id}])
            self._opening.draft = self._opening.draft.model_copy(update={"session_id": session_id})
