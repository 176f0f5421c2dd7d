"""Where what is proposed for a memory comes from: the task and the prompt of its turn."""

from __future__ import annotations

from dataclasses import dataclass

from smartwriter.memory.proposal import Proposal
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Origin:
    """Of a proposal. Both are empty where its task is lost."""

    title: str = ""
    """The task's."""
    prompt: str = ""
    """Whole, as the writer sent it."""


class Origins:
    """What there is to say of the turns that proposals were made in. Calls block."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._tasks = {task.id: task for task in workspace.tasks.all()}

    def of(self, proposal: Proposal) -> Origin:
        """A lost task is not an error."""
        task = self._tasks.get(proposal.task)
        if task is None:
            return Origin()
        turns = self._workspace.tasks.turns(task, proposal.draft) if proposal.draft in task.drafts else []
        prompts = [turn.prompt for turn in turns if turn.number == proposal.turn]
        return Origin(task.title, prompts[-1] if prompts else "")
