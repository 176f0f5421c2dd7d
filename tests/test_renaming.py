from __future__ import annotations

import pytest
from test_cli import converse, printed, refused

from smartwriter.errors import AlreadyExists, CollectionNotFound, DraftBusy, Invalid
from smartwriter.memory_versions import MemoryVersions
from smartwriter.proposals import Proposals
from smartwriter.renaming import rename_collection
from smartwriter.tasks import MAIN, Task
from smartwriter.workspace import Workspace


@pytest.fixture
def task(workspace: Workspace) -> Task:
    """A task in a collection within another, with a conversation, a text, and a proposal."""
    workspace.new_collection("Rivers/Upstream")
    (workspace.root / "collections/Rivers/profile.md").write_text("The voice.")
    task = workspace.new_task("Source", "Rivers/Upstream")
    converse(workspace, task, "雾。")
    workspace.text(task, MAIN).write("Fog.", author="model", turn=1)
    proposals = Proposals(workspace.hidden, workspace.collection("Rivers/Upstream"))
    proposals.propose("The ferry is green.", task=task.id, draft=MAIN, turn=1)
    return task


def whole(workspace: Workspace, task: Task) -> None:
    """Everything of the task is found under the new name."""
    now = workspace.tasks.find(task.id)
    assert now.collection == "Streams/Upstream" and now.project_key == task.project_key
    assert workspace.text(now, MAIN).read() == "Fog."
    assert workspace.transcript(now, now.drafts[MAIN]).has_entries()
    assert "The voice." in workspace.memory(now, now.drafts[MAIN]).render()
    collection = workspace.collection("Streams/Upstream")
    assert [one.text for one in Proposals(workspace.hidden, collection).pending()] == ["The ferry is green."]


def test_a_renamed_collection_keeps_its_tasks(workspace: Workspace, task: Task) -> None:
    """Texts, sessions, memory and what waits for review are found under the new name; others stay."""
    other = workspace.new_task("Riverside", None)
    collection, tasks = rename_collection(workspace, "Rivers", "Streams")
    assert (collection.name, [one.id for one in tasks]) == ("Streams", [task.id])
    whole(workspace, task)
    assert workspace.tasks.find(other.id).collection == other.collection
    assert not (workspace.root / "collections" / "Rivers").exists()


def test_the_log_of_its_memory_goes_along(workspace: Workspace, task: Task) -> None:
    """Which versions its turns had can be read under the new name, also after renaming once more."""
    workspace.memory(task, task.drafts[MAIN])
    before = MemoryVersions(workspace.hidden).log("Rivers/Upstream")
    for old, new in (("Rivers", "Streams"), ("Streams", "Waters"), ("Waters", "Streams")):
        rename_collection(workspace, old, new)
        log = MemoryVersions(workspace.hidden).log(f"{new}/Upstream")
        assert len(log) == 1
        assert (log[0].files, log[0].timestamp) == (before[0].files, before[0].timestamp)


def test_a_folder_that_was_renamed_by_hand_is_taken_as_it_is(workspace: Workspace, task: Task) -> None:
    """A writer who renamed the folder in a file manager says so afterwards."""
    folder = workspace.root / "collections" / "Rivers"
    folder.rename(folder.with_name("Streams"))
    assert printed(workspace, "collection", "rename", "Rivers", "Streams") == (
        "Rivers is Streams now, for 1 task as well.\n"
    )
    whole(workspace, task)


def test_a_crash_while_renaming_is_completed(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the program died before the tasks were told, the same command does the rest."""

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(workspace.tasks, "update", dies)
        rename_collection(workspace, "Rivers", "Streams")
    rename_collection(workspace, "Rivers", "Streams")
    whole(workspace, task)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("Seas", "Lakes", CollectionNotFound),
        ("Rivers", "Lakes", AlreadyExists),
        ("Rivers", "", Invalid),
        ("Rivers", "..", Invalid),
        ("Rivers", "Lakes/Rivers", Invalid),
        ("Rivers", "drafts", Invalid),
        ("Rivers", ".hidden", Invalid),
        ("Rivers", "a:b", Invalid),
    ],
)
def test_what_cannot_be_renamed_stays(
    workspace: Workspace, task: Task, old: str, new: str, error: type[Exception]
) -> None:
    """A name that is taken, missing, elsewhere or unusable changes nothing."""
    workspace.new_collection("Lakes")
    with pytest.raises(error):
        rename_collection(workspace, old, new)
    refused(workspace, "collection", "rename", old, new)
    assert workspace.tasks.find(task.id) == task


def test_a_collection_is_not_renamed_under_a_writer(workspace: Workspace, task: Task) -> None:
    """While one of its drafts is being written, its folder stays where it is."""
    with workspace.lease(task, MAIN), pytest.raises(DraftBusy):
        rename_collection(workspace, "Rivers", "Streams")
    assert workspace.text(task, MAIN).read() == "Fog."
