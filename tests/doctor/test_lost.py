"""The doctor brings back what the task list lost, and clears what a fork left that was cut off."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import anyio
import pytest
from dying import killed_before
from transcripts import entry

import smartwriter.storage.journal as journal
from smartwriter.doctor.examine import examine
from smartwriter.open_draft import OpenDraft
from smartwriter.series.finishing import finish_task, reopen
from smartwriter.tasks.values import Task, Turn, TurnState, why_closed
from smartwriter.trials.forking import fork
from smartwriter.workspace import Workspace

TITLES = [("渡口", None), ("The last ferry", "rivers"), ("Fog", None)]


def written(workspace: Workspace, title: str, collection: str | None = None) -> Task:
    """A task after two turns, each with a version of its text."""
    task = workspace.new_task(title, collection)
    draft = task.drafts["main"]
    entries = [entry(n, sessionId=draft.session_id) for n in range(4)]
    journal.Journal(OpenDraft(workspace, task, draft.name).transcript.path).append(entries)
    for number in (1, 2):
        turn = Turn(
            number=number,
            uuid=entry(2 * number - 2)["uuid"],
            session_id=draft.session_id,
            prompt=f"Go on, {title}.",
            state=TurnState.finished,
            revision=number,
        )
        workspace.tasks.record(task, "main", [turn])
        text = f"# {title}\n\nOne stands still in the water.\n\nText {number}.\n"
        workspace.text(task, "main").write(text, author="model", turn=number)
    return task


def forked(workspace: Workspace, id: str, at: int | None = None) -> None:
    task = workspace.tasks.find(id)

    async def run() -> None:
        await fork(OpenDraft(workspace, task, "main"), at=at)

    anyio.run(run)


def repaired(workspace: Workspace) -> list[str]:
    """What is still found after the repairs that ``doctor --repair`` makes."""
    for _ in range(3):
        for finding in examine(workspace):
            if finding.repair is not None:
                finding.repair()
    return [f"{finding.kind}: {finding.path}" for finding in examine(workspace)]


@pytest.mark.parametrize("at", [None, 0], ids=["latest", "nothing shared"])
def test_a_fork_that_was_cut_off_leaves_nothing(tmp_path: Path, at: int | None) -> None:
    """Killed at any of the things that it does to the disk, a fork leaves nothing that a repair does not
    clear; the draft that it was forked from is as it was, and can be forked again."""
    origin = Workspace.create(tmp_path / "origin")
    task = written(origin, "Herons")
    kept = origin.hidden / "revisions" / task.id / "main.jsonl"
    step = 0
    while True:
        root = Path(shutil.copytree(origin.root, tmp_path / f"{step}"))
        workspace = Workspace(root)
        if not killed_before(step, partial(forked, workspace, task.id, at)):
            break
        assert repaired(workspace) == [], step
        assert workspace.text(task, "main").read() == origin.text(task, "main").read()
        assert (workspace.hidden / "revisions" / task.id / "main.jsonl").read_bytes() == kept.read_bytes()
        drafts = set(workspace.tasks.find(task.id).drafts)
        texts = {path.stem for path in workspace.text(task, "main").path.parent.iterdir()}
        sessions = list((workspace.hidden / "sessions").glob("*/*.jsonl"))
        assert texts <= drafts and len(sessions) <= len(drafts), step
        shutil.rmtree(root)
        step += 1
    assert step > 5


def test_a_fork_begun_anew_has_nothing_of_the_one_that_was_cut_off(tmp_path: Path) -> None:
    """Killed anywhere and made again, without any repair, a fork has its turns and versions once."""
    origin = Workspace.create(tmp_path / "origin")
    task = written(origin, "Herons")

    def made(workspace: Workspace) -> list[object]:
        forked(workspace, task.id)
        turns = [turn.uuid for turn in workspace.tasks.turns(task, "draft-2")]
        versions = [(one.number, one.text) for one in workspace.text(task, "draft-2").revisions()]
        return [turns, versions, workspace.text(task, "draft-2").path.read_text()]

    expected = made(Workspace(Path(shutil.copytree(origin.root, tmp_path / "whole"))))
    step, died = 0, True
    while died:
        workspace = Workspace(Path(shutil.copytree(origin.root, tmp_path / f"{step}")))
        died = killed_before(step, partial(forked, workspace, task.id))
        if "draft-2" not in workspace.tasks.find(task.id).drafts:
            assert made(workspace) == expected, step
        shutil.rmtree(workspace.root)
        step += 1
    assert step > 5


def test_a_lost_task_list_comes_back(workspace: Workspace) -> None:
    """Titles, collections, folders and drafts are as they were, each task with its own texts, also where they
    were edited by hand; what was dropped stays so."""
    workspace.new_collection("rivers")
    tasks = [
        written(workspace, "渡口"),
        written(workspace, "The last ferry", "rivers"),
        written(workspace, "Fog"),
    ]
    forked(workspace, tasks[1].id, at=1)
    forked(workspace, tasks[1].id)
    workspace.text(tasks[1], "draft-3").put_away()
    workspace.tasks.drop(tasks[1].id, "draft-3")
    by_hand = workspace.text(tasks[2], "main")
    by_hand.path.write_text(by_hand.path.read_text() + "\nBy hand.\n")
    before = {task.id: task for task in workspace.tasks.all()}
    (workspace.hidden / "tasks.jsonl").unlink()
    assert repaired(workspace) == []
    for task in workspace.tasks.all():
        was = before.pop(task.id)
        assert (task.title, task.collection, task.folder) == (was.title, was.collection, was.folder)
        assert task.project_key == was.project_key and task.current == was.current
        as_they_were = {
            name: (draft.session_id, draft.dropped, draft.origin and (draft.origin.draft, draft.origin.turn))
            for name, draft in was.drafts.items()
        }
        assert as_they_were == {
            name: (draft.session_id, draft.dropped, draft.origin and (draft.origin.draft, draft.origin.turn))
            for name, draft in task.drafts.items()
        }
    assert before == {}
    assert workspace.text(tasks[2], "main").read().endswith("By hand.\n")


def test_a_lost_task_is_finished_as_it_was(workspace: Workspace) -> None:
    """Whether a lost task takes turns is as it was: finished with the draft and version that its article is,
    opened again where its draft went on since, not finished where its article is another's or none."""
    workspace.new_collection("rivers")
    done, went_on, forked_off, foreign, never = (
        written(workspace, title, "rivers") for title in ("Fog", "Ice", "Rain", "Snow", "Dew")
    )
    forked(workspace, forked_off.id)
    workspace.text(forked_off, "draft-2").write("# Rain\n\nAnother.\n", author="model", turn=3)
    workspace.tasks.update(forked_off.id, lambda task: task.model_copy(update={"current": "draft-2"}))
    for task in (done, went_on, forked_off):
        finish_task(workspace, workspace.tasks.find(task.id), None, None)
    reopen(workspace, workspace.tasks.find(went_on.id))
    workspace.text(went_on, "main").write("# Ice\n\nMore.\n", author="model", turn=3)
    articles = workspace.collection("rivers").path / "articles"
    (articles / f"{foreign.folder}.md").write_text("Somebody else's.\n")
    before = {task.id: task for task in workspace.tasks.all()}
    (workspace.hidden / "tasks.jsonl").unlink()
    assert repaired(workspace) == []
    for id, was in before.items():
        now = workspace.tasks.find(id)
        fields = {"draft", "revision", "article", "state"}
        assert (now.finished and now.finished.model_dump(include=fields)) == (
            was.finished and was.finished.model_dump(include=fields)
        ), was.title
        assert now.current == was.current and why_closed(now, now.current) == why_closed(was, was.current)
    assert workspace.tasks.find(never.id).finished is None


def test_a_lost_draft_comes_back(workspace: Workspace) -> None:
    """A draft that only the list has lost, with turns or texts of its own, is no leftover of a fork."""
    task = written(workspace, "Herons")
    whole = (workspace.hidden / "tasks.jsonl").read_bytes()
    forked(workspace, task.id)
    was = workspace.tasks.find(task.id).drafts["draft-2"]
    workspace.text(task, "draft-2").write("Its own.\n", author="model", turn=3)
    (workspace.hidden / "tasks.jsonl").write_bytes(whole)
    assert "lost-draft" in [finding.kind for finding in examine(workspace)]
    assert repaired(workspace) == []
    draft = workspace.tasks.find(task.id).drafts["draft-2"]
    assert draft.session_id == was.session_id and draft.origin is not None
    assert workspace.text(task, "draft-2").read() == "Its own.\n"
