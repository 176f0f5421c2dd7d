"""What a draft is written with, over all of its turns in one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smartwriter.agent.tools import DraftTools, MemoryTools
from smartwriter.errors import TextConflict
from smartwriter.events import Clashed, DraftRevised, Event, MemoryProposed, NotSaved, Saved
from smartwriter.memory.proposal import Proposal
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.values import Draft, Revision, Task
from smartwriter.turns.keeper import Keeper
from smartwriter.turns.live import LiveJournal
from smartwriter.turns.spool import SpooledStore
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Instruments:
    live: LiveJournal
    text: DraftText
    keeper: Keeper
    """Of all that the turns write."""
    tools: DraftTools
    memory_tools: MemoryTools
    store: SpooledStore
    workspace_id: str


def instruments(workspace: Workspace, task: Task, draft: Draft, tell: Callable[[Event], None]) -> Instruments:
    """Blocking. :param tell: hears of what is done with them, without task and draft."""
    text = workspace.text(task, draft.name)
    keeper = Keeper(
        workspace.spool,
        task.id,
        draft.name,
        lambda detail: tell(NotSaved(detail=detail)),
        lambda: tell(Saved()),
    )
    proposals = workspace.task_series(task).proposals
    workspace_id = workspace.identify().id
    return Instruments(
        live=LiveJournal(OpenDraft(workspace, task, draft.name).live_path),
        text=text,
        keeper=keeper,
        tools=DraftTools(text, lambda one: tell(_revised(one)), keeper, lambda one: _tell_clash(tell, one)),
        memory_tools=MemoryTools(proposals, task.id, draft.name, lambda one: tell(_proposed(one)), keeper),
        store=SpooledStore(workspace.store, task.project_key, keeper, workspace_id),
        workspace_id=workspace_id,
    )


def _revised(revision: Revision) -> Event:
    return DraftRevised(turn=revision.turn, revision=revision.number, characters=len(revision.text))


def _proposed(proposal: Proposal) -> Event:
    return MemoryProposed(proposal=proposal.id, text=proposal.text, file=proposal.file)


def _tell_clash(tell: Callable[[Event], None], conflict: TextConflict) -> None:
    if conflict.aside is not None:
        tell(Clashed(revision=conflict.current, aside=conflict.aside))
