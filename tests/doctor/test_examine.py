"""The doctor: finds what is wrong, changes nothing, repairs beside the old."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from transcripts import entry

import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
from smartwriter.cli.app import cli
from smartwriter.doctor.examine import examine
from smartwriter.doctor.finding import Finding
from smartwriter.errors import Invalid, JournalError
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.journal import Journal
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.text.passages import Edit
from smartwriter.workspace import Workspace

NO_PROCESS = 2**31 - 1
"""Beyond every system's process ids."""


def doctor(workspace: Workspace, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", "-w", str(workspace.root), *arguments])


def kinds(workspace: Workspace) -> list[str]:
    result = doctor(workspace, "--json")
    found = [finding["kind"] for finding in json.loads(result.stdout)]
    assert result.exit_code == (1 if found else 0)
    return found


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def task(workspace: Workspace) -> Task:
    """A task as it is after two turns and two revisions."""
    task = workspace.new_task("Herons")
    draft = task.drafts["main"]
    Journal(OpenDraft(workspace, task, draft.name).transcript.path).append([entry(n) for n in range(6)])
    turns = [
        Turn(
            number=number,
            uuid=entry(2 * number - 2)["uuid"],
            session_id=draft.session_id,
            prompt="Go on.",
            state=TurnState.finished,
        )
        for number in (1, 2)
    ]
    workspace.tasks.record(task, "main", turns)
    for turn in (1, 2):
        workspace.text(task, "main").write(f"Text {turn}", author="model", turn=turn)
    return task


def test_a_healthy_workspace_is_left_alone(workspace: Workspace, task: Task) -> None:
    """Nothing is found, the exit code is 0, and no byte changes, with --repair either."""
    before = snapshot(workspace.root)
    result = doctor(workspace)
    assert result.exit_code == 0 and "All is well: 1 task," in result.stdout
    assert doctor(workspace, "--repair").exit_code == 0
    assert snapshot(workspace.root) == before


def _tear(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"type":"us')


def _drop_third_line(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))


TRANSCRIPT: Callable[[Workspace, Task], Path] = lambda w, t: OpenDraft(w, t, "main").transcript.path  # noqa: E731
HIDDEN = {
    "tasks": "tasks.jsonl",
    "turns": "turns/{id}/main.jsonl",
    "revisions": "revisions/{id}/main.jsonl",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_damage_of_each_journal_is_found_and_repaired_beside(
    workspace: Workspace, task: Task, name: str
) -> None:
    """A torn line in any journal is named with offset and length; a repair keeps the old file."""
    path = workspace.hidden / HIDDEN[name].format(id=task.id)
    whole = path.read_bytes()
    _tear(path)
    result = doctor(workspace)
    assert result.exit_code == 1
    assert f"11 bytes at {len(whole)}" in result.stdout and str(path) in result.stdout
    assert doctor(workspace, "--repair").exit_code == 0
    assert path.read_bytes() == whole
    (kept,) = path.parent.glob("*.damaged-*")
    assert kept.read_bytes() == whole + b'{"type":"us'


def test_a_lost_entry_is_linked_past(workspace: Workspace, task: Task) -> None:
    """When the SDK's reader stops at a lost entry, that is found, and a repair links past it."""
    path = TRANSCRIPT(workspace, task)
    _drop_third_line(path)
    assert kinds(workspace) == ["turns", "reader"]  # the lost entry was the prompt of turn 2
    doctor(workspace, "--repair")
    assert kinds(workspace) == ["turns"]
    assert [line["uuid"] for line in reading.read(path).entries] == [
        entry(n)["uuid"] for n in (0, 1, 3, 4, 5)
    ]


def test_a_missing_transcript(workspace: Workspace, task: Task) -> None:
    """A draft with finished turns and no transcript is found; nothing is made up for it."""
    TRANSCRIPT(workspace, task).unlink()
    assert kinds(workspace) == ["session"]
    assert doctor(workspace, "--repair").exit_code == 1
    assert not TRANSCRIPT(workspace, task).exists()


def test_a_missing_transcript_of_recovered_turns(workspace: Workspace, task: Task) -> None:
    """So is one of a draft whose answers all came from the CLI after a crash."""
    turns = workspace.tasks.turns(task, "main")
    recovered = [turn.model_copy(update={"state": TurnState.recovered}) for turn in turns]
    workspace.tasks.record(task, "main", recovered)
    assert kinds(workspace) == []
    TRANSCRIPT(workspace, task).unlink()
    assert kinds(workspace) == ["session"]


def test_a_lost_text_is_written_again(workspace: Workspace, task: Task) -> None:
    """A draft whose file is gone gets it back from its last revision."""
    path = workspace.text(task, "main").path
    path.unlink()
    assert kinds(workspace) == ["text"]
    assert doctor(workspace, "--repair").exit_code == 0
    assert path.read_text() == "Text 2"


@pytest.mark.parametrize("content", [None, b"", b"{", b"null", b"\0" * 300])
def test_lost_tasks_are_entered_again(workspace: Workspace, task: Task, content: bytes | None) -> None:
    """With tasks.jsonl gone or ruined, a repair finds the tasks by their turns, and keeps the ruin."""
    path = workspace.hidden / "tasks.jsonl"
    path.unlink() if content is None else path.write_bytes(content)
    assert "lost-task" in kinds(workspace)
    doctor(workspace, "--repair")
    (found,) = workspace.tasks.all()
    assert found.id == task.id
    assert found.drafts["main"].session_id == task.drafts["main"].session_id
    assert workspace.text(found, "main").read() == "Text 2"
    if content and content not in (b"null",):
        assert any(content in file.read_bytes() for file in workspace.hidden.glob("tasks.jsonl*"))
    assert kinds(workspace) == []


def test_changed_revisions_and_lost_turns(workspace: Workspace, task: Task) -> None:
    """A revision whose text is not what was written, and a turn that is missing, are found."""
    revisions = workspace.hidden / HIDDEN["revisions"].format(id=task.id)
    revisions.write_bytes(revisions.read_bytes().replace(b'"Text 1"', b'"Text 9"'))
    turns = workspace.hidden / HIDDEN["turns"].format(id=task.id)
    turns.write_bytes(turns.read_bytes().splitlines(keepends=True)[1])
    assert kinds(workspace) == ["turns", "revisions"]


def test_what_processes_left(workspace: Workspace, task: Task) -> None:
    """A dead process's lease, half a document, a sync tool's copy, a spooled batch and a turn that
    was cut off are named; a lease that is held is not."""
    lock = workspace.hidden / "turns" / task.id / "main.lease"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text('{"pid": 1, "host": "elsewhere", "since": "2026-01-01T00:00:00"}')
    text = workspace.text(task, "main").path
    (text.parent / f".main.md.{NO_PROCESS}-0123abcd.tmp").write_text("half")
    text.with_name("main (conflicted copy 2026-01-01).md").write_text("other")
    (workspace.hidden / "spool").mkdir()
    (workspace.hidden / "spool" / "batch.jsonl").write_bytes(
        encoding.encode({"type": "spooled", "key": {"project_key": "unfiled", "session_id": "s"}})
    )
    turns = workspace.tasks.turns(task, "main")
    running = turns[1].model_copy(update={"state": TurnState.running})
    workspace.tasks.record(task, "main", [running])
    assert sorted(kinds(workspace)) == ["conflict", "cut-off", "lease", "leftover", "spool"]
    doctor(workspace, "--repair")
    assert kinds(workspace) == ["conflict"]
    workspace.tasks.record(task, "main", [running])
    assert kinds(workspace) == ["cut-off", "conflict"]
    with OpenDraft(workspace, task, "main").lease():
        assert kinds(workspace) == ["conflict"]


def test_what_is_somebody_elses_stays(workspace: Workspace, task: Task) -> None:
    """A writer's own file may be called anything, and what a process writes now it goes on writing."""
    text = workspace.text(task, "main").path
    others = [text.with_name(name) for name in (".notes.tmp", ".plan.of.2026-1.tmp")]
    others.append(text.with_name(f".main.md.{os.getpid()}-0123abcd.tmp"))
    for path in others:
        path.write_text("Mine.")
    assert kinds(workspace) == []
    doctor(workspace, "--repair")
    assert all(path.exists() for path in others)


def test_half_a_document_may_become_whole_meanwhile(workspace: Workspace, task: Task) -> None:
    """Where another process was faster, a repair has nothing left to do."""
    half = workspace.text(task, "main").path.with_name(f".main.md.{NO_PROCESS}-0123abcd.tmp")
    half.write_text("half")
    (finding,) = examine(workspace)
    half.unlink()
    assert finding.repair is not None
    finding.repair()


def test_a_task_that_began_meanwhile_is_not_entered_again(workspace: Workspace, task: Task) -> None:
    """What looked lost when the doctor came may be there by the time of the repair: it stays as it is."""
    tasks = workspace.hidden / "tasks.jsonl"
    whole = tasks.read_bytes()
    tasks.unlink()
    findings = [finding for finding in examine(workspace) if finding.kind == "lost-task"]
    tasks.write_bytes(whole)
    for finding in findings:
        assert finding.repair is not None
        finding.repair()
    assert len(findings) == 1 and workspace.tasks.find(task.id) == task


def test_an_edit_that_failed_leaves_nothing(workspace: Workspace) -> None:
    """Where nothing could be written, there is no file that looks as if something was lost."""
    text = workspace.text(workspace.new_task("Egrets"), "main")
    with pytest.raises(Invalid):
        text.edit([Edit("old", "new")], turn=1, base=0)
    assert kinds(workspace) == []


def test_an_empty_journal_is_put_away(workspace: Workspace, task: Task) -> None:
    """What a process left that died before its first line is moved to the trash; a line that came stays."""
    empty, begun = (workspace.hidden / "proposals" / f"{name}.jsonl" for name in ("empty", "begun"))
    empty.parent.mkdir()
    for path in (empty, begun):
        path.touch()
    findings = list(examine(workspace))
    assert [finding.kind for finding in findings] == ["empty", "empty"]
    Journal(begun).append([{"type": "x"}])
    for finding in findings:
        assert finding.repair is not None
        finding.repair()
    assert not empty.exists() and len(Journal(begun).read().entries) == 1
    assert kinds(workspace) == []


def test_a_version_that_is_not_in_place_yet(workspace: Workspace, task: Task) -> None:
    """Where a crash came between a revision and its file, the text is put in place."""
    text = workspace.text(task, "main")
    text.path.with_name(".main.md.next").write_text("Text 2")
    text.path.write_text("Text 1")
    assert kinds(workspace) == ["text"]
    with OpenDraft(workspace, task, "main").lease():
        assert kinds(workspace) == []
    doctor(workspace, "--repair")
    assert kinds(workspace) == [] and text.path.read_text() == "Text 2"
    assert [path.name for path in text.path.parent.iterdir()] == ["main.md"]


def test_a_version_of_a_memory_file_that_was_left(workspace: Workspace) -> None:
    """What a crash left beside a memory file is put away, once nobody can be about to use it."""
    folder = workspace.new_collection("Rivers").path
    left, mine = folder / ".memory.md.next", folder / ".plan.md.next"
    for path in (left, mine):
        path.write_text("- A line.\n")
    assert kinds(workspace) == []
    for path in (left, mine):
        os.utime(path, (0, 0))
    assert kinds(workspace) == ["leftover"]
    doctor(workspace, "--repair")
    assert kinds(workspace) == [] and mine.exists() and not left.exists()


def test_an_article_may_be_called_anything(workspace: Workspace) -> None:
    """An article whose title looks like a sync tool's copy is none."""
    task = workspace.new_task("Herons (2)")
    article = workspace.task_collection(task).path / "articles" / f"{task.folder}.md"
    article.parent.mkdir(parents=True)
    article.write_text("Herons.")
    assert kinds(workspace) == []
    article.with_name("Egrets (2).md").write_text("Another's.")
    assert kinds(workspace) == ["conflict"]


def test_the_earlier_sessions_of_a_draft_are_its_own(workspace: Workspace, task: Task) -> None:
    """A transcript that a draft went on from under another id is no stranger's."""
    draft = task.drafts["main"]
    earlier = draft.model_copy(update={"session_id": "11111111-2222-4333-8444-555555555555"})
    Journal(OpenDraft(workspace, task.with_draft(earlier), earlier.name).transcript.path).append([entry(0)])
    now = draft.model_copy(update={"earlier_sessions": (earlier.session_id,)})
    workspace.tasks.update(task.id, lambda task: task.with_draft(now))
    assert kinds(workspace) == []


def test_a_session_of_no_draft_is_only_named(workspace: Workspace, task: Task) -> None:
    """A transcript that no draft refers to is named and left where it is."""
    stray = TRANSCRIPT(workspace, task).with_name("11111111-2222-4333-8444-555555555555.jsonl")
    Journal(stray).append([entry(0)])
    assert kinds(workspace) == ["unknown-session"]
    doctor(workspace, "--repair")
    assert stray.exists()


@pytest.mark.parametrize("refuses", [False, True], ids=["changes nothing", "cannot"])
def test_a_repair_that_leaves_its_finding_is_a_failure(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    """All that was found is looked for again: a repair that has not helped is said to have failed; exit 1."""
    tries = []

    def repair() -> None:
        tries.append(1)
        if refuses:
            raise JournalError(workspace.hidden, OSError(28, "No space left on device"))

    def found(_: Workspace) -> list[Finding]:
        path = workspace.hidden
        return [Finding("x", path, f"has {len(tries)} things", "bad", "mend them", repair)]

    monkeypatch.setattr("smartwriter.cli.doctor.examine", found)
    result = doctor(workspace, "--repair")
    why = "No space left on device" if refuses else "it is found again after its repair"
    assert result.exit_code == 1 and len(tries) == 1
    assert f"Not repaired: {workspace.hidden} has 0 things" in result.stderr and why in result.stderr
    assert "Repaired" not in result.output
