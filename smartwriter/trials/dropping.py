"""Drafts that are put away, and taken up again."""

from __future__ import annotations

from smartwriter.errors import DraftNotFound
from smartwriter.open_draft import OpenDraft
from smartwriter.workspace import Workspace


def drop(draft: OpenDraft) -> None:
    """Put a draft away; its text goes to the trash. Blocking.

    :raises Invalid: for the current draft, or one that others go on from. :raises DraftBusy:
    """
    tasks = draft.workspace.tasks
    tasks.without(draft.task, draft.name)  # where it may not be dropped, nothing is locked
    with draft.lease():  # not under a process that is writing it
        # As it is now: it may have been adopted, or its folder moved.
        now = OpenDraft(draft.workspace, tasks.find(draft.task.id), draft.name)
        tasks.without(now.task, now.name)
        now.take_hand_edit()
        # The file first: where it cannot be moved, the draft is not dropped; after a crash in
        # between, its next turn writes it again.
        now.text.put_away()
        tasks.drop(now.task.id, now.name)


def dropped(workspace: Workspace, address: str) -> OpenDraft | None:
    """The draft that ``TASK@DRAFT`` means, if it was put away; None for all else."""
    try:
        workspace.tasks.resolve(address)
    except DraftNotFound as error:
        task, name = workspace.tasks.find(error.task), error.draft
        if name in task.drafts and task.drafts[name].dropped:
            return OpenDraft(workspace, task, name)
    except LookupError:  # whoever looks it up next says so
        pass
    return None


def take_up(draft: OpenDraft) -> None:
    """Make a draft that was put away one again, with its text. Blocking."""
    draft.workspace.tasks.take_up(draft.task.id, draft.name)
    draft.take_hand_edit(restore=True)
