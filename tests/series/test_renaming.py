from __future__ import annotations

import resource
from pathlib import Path

import pytest
from faces import converse, printed, refused

import smartwriter.files.durable as durable
import smartwriter.storage.journal as journal
from smartwriter.errors import AlreadyExists, CollectionNotFound, DraftBusy, Invalid, JournalBusy
from smartwriter.memory.collection import Collection
from smartwriter.memory.proposals import Proposals
from smartwriter.memory.versions import MemoryVersions
from smartwriter.open_draft import OpenDraft
from smartwriter.series.renaming import rename_collection
from smartwriter.tasks.values import MAIN, Task
from smartwriter.trials.what_if import what_if
from smartwriter.workspace import Workspace


@pytest.fixture
def task(workspace: Workspace) -> Task:
    """A task in a collection within another, with a conversation, a text, and a proposal."""
    workspace.new_collection("Rivers/Upstream")
    (workspace.root / "collections/Rivers/profile.md").write_text("The voice.")
    task = workspace.new_task("Source", "Rivers/Upstream")
    converse(workspace, task, "雾。")
    workspace.text(task, MAIN).write("Fog.", author="model", turn=1)
    proposals = Proposals(workspace.storage, workspace.collection("Rivers/Upstream"))
    proposals.propose("The ferry is green.", task=task.id, draft=MAIN, turn=1)
    return task


def whole(workspace: Workspace, task: Task) -> None:
    """Everything of the task is found under the new name."""
    now = workspace.tasks.find(task.id)
    assert now.collection == "Streams/Upstream" and now.project_key == task.project_key
    assert workspace.text(now, MAIN).read() == "Fog."
    assert OpenDraft(workspace, now, MAIN).transcript.has_entries()
    assert "The voice." in OpenDraft(workspace, now, MAIN).memory().render()
    collection = workspace.collection("Streams/Upstream")
    assert [one.text for one in Proposals(workspace.storage, collection).pending()] == ["The ferry is green."]


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
    OpenDraft(workspace, task, MAIN).memory()
    before = MemoryVersions(workspace.storage).log("Rivers/Upstream")
    for old, new in (("Rivers", "Streams"), ("Streams", "Waters"), ("Waters", "Streams")):
        rename_collection(workspace, old, new)
        log = MemoryVersions(workspace.storage).log(f"{new}/Upstream")
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


def test_a_folder_renamed_while_a_turn_wrote_comes_together_again(workspace: Workspace, task: Task) -> None:
    """The text that the turn put under the old name is a version, and the folder that it made goes away."""
    folder = workspace.root / "collections" / "Rivers"
    folder.rename(folder.with_name("Streams"))
    workspace.text(task, MAIN).write("Of the turn.", author="model", turn=2)
    assert folder.exists()
    rename_collection(workspace, "Rivers", "Streams")
    whole(workspace, task)
    assert not folder.exists() and list((workspace.hidden / "trash" / "collections").rglob("main.md"))
    texts = [one.text for one in workspace.text(task, MAIN).revisions()]
    assert texts == ["Fog.", "Of the turn."]


def test_two_collections_are_never_thrown_together(workspace: Workspace, task: Task) -> None:
    """One that has only drafts is not taken for a leftover of another that has none of its texts."""
    bare = workspace.root / "collections" / "Rivers"
    for path in [*bare.glob("*.md"), *(bare / "Upstream").glob("*.md")]:
        path.unlink()
    workspace.new_collection("Streams")
    with pytest.raises(AlreadyExists):
        rename_collection(workspace, "Rivers", "Streams")
    assert workspace.text(task, MAIN).path.read_text() == "Fog."


def test_a_crash_while_renaming_is_completed(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the program died before the tasks were told, the same command does the rest."""

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(workspace.tasks, "update_each", dies)
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
    with OpenDraft(workspace, task, MAIN).lease(), pytest.raises(DraftBusy):
        rename_collection(workspace, "Rivers", "Streams")
    assert workspace.text(task, MAIN).read() == "Fog."


def test_a_collection_is_not_renamed_under_a_fork(workspace: Workspace, task: Task) -> None:
    """A fork that is being made writes into the folder that it began with."""
    with workspace.fork_lease(task), pytest.raises(DraftBusy):
        rename_collection(workspace, "Rivers", "Streams")
    assert (workspace.root / "collections" / "Rivers").is_dir()


def test_a_collection_is_not_renamed_while_its_memory_changes(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who accepts a line at that moment is done before, or finds the folder gone; it is not made again."""
    move, moved = durable.move, list[Path]()

    def alone(source: Path, target: Path) -> None:
        if source.is_dir():
            key = workspace.collection("Rivers/Upstream").project_key
            proposed = workspace.hidden / "proposals" / f"{key}.jsonl"
            with pytest.raises(JournalBusy), journal.Journal(proposed, lock_timeout_s=0).locked():
                pass
            moved.append(source)
        move(source, target)

    monkeypatch.setattr(durable, "move", alone)
    rename_collection(workspace, "Rivers", "Streams")
    assert moved == [workspace.root / "collections" / "Rivers"]
    whole(workspace, task)


def test_proposals_for_both_names_are_kept(workspace: Workspace, task: Task) -> None:
    """Where something was proposed under the new name at an earlier time, nothing is hidden behind it."""
    earlier = Collection("Streams/Upstream", workspace.collection("Rivers/Upstream").path)
    Proposals(workspace.storage, earlier).propose("The ferry is red.", task=task.id, draft=MAIN, turn=1)
    for old, new in (("Rivers", "Streams"), ("Streams", "Rivers"), ("Rivers", "Streams")):
        rename_collection(workspace, old, new)
        pending = Proposals(workspace.storage, workspace.collection(f"{new}/Upstream")).pending()
        assert sorted(one.text for one in pending) == ["The ferry is green.", "The ferry is red."]
    workspace.new_collection("Rivers/Upstream")
    assert not Proposals(workspace.storage, workspace.collection("Rivers/Upstream")).all()


def test_a_what_if_goes_along(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """Another version of an outer collection's file is still the one that a draft's sessions get."""
    (workspace.collection("Rivers/Upstream").path / "profile.md").write_text("---\nextends: true\n---\nMine.")
    (tmp_path / "other.md").write_text("A bolder voice.")
    other = what_if(OpenDraft(workspace, task, MAIN), [f"Rivers/profile.md={tmp_path / 'other.md'}"])
    changed = task.drafts[MAIN].model_copy(update={"memory": other})
    workspace.tasks.update(task.id, lambda task: task.with_draft(changed))
    rename_collection(workspace, "Rivers", "Streams")
    now = workspace.tasks.find(task.id)
    assert "A bolder voice." in OpenDraft(workspace, now, MAIN).memory().render()


def test_all_of_a_long_series_is_renamed_at_once(workspace: Workspace, task: Task) -> None:
    """The tasks are told by one append, and more drafts than files may be open are no obstacle."""
    for number in range(60):
        workspace.new_task(f"Part {number}", "Rivers")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, limits[1]))
    try:
        _, tasks = rename_collection(workspace, "Rivers", "Streams")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(tasks) == 61
    assert {one.collection for one in workspace.tasks.all()} == {"Streams", "Streams/Upstream"}
