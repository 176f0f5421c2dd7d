from __future__ import annotations

import contextlib
import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from smartwriter.cli.review import memory_command
from smartwriter.errors import CollectionNotFound, Invalid
from smartwriter.memory.collection import Collection
from smartwriter.memory.proposal import Proposal
from smartwriter.memory.proposals import Proposals
from smartwriter.memory.versions import MemoryVersions
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.workspace import Workspace


@pytest.fixture
def collection(workspace: Workspace) -> Collection:
    made = workspace.new_collection("rivers")
    for name in ("profile.md", "index.md"):
        (made.path / name).unlink()
    (made.path / "memory.md").write_text("# Memory\n\n- Nobody waved.\n")
    return made


@pytest.fixture
def proposals(workspace: Workspace, collection: Collection) -> Proposals:
    return Proposals(workspace.storage, collection)


@pytest.fixture
def task(workspace: Workspace, collection: Collection) -> Task:
    return task_with_turn(workspace, "Fog", "rivers", "Write of\nslack water.")


def task_with_turn(workspace: Workspace, title: str, collection: str, prompt: str) -> Task:
    """A task whose one turn had the collection's memory as it is now."""
    task = workspace.new_task(title, collection)
    memory = workspace.collection(collection).memory()
    MemoryVersions(workspace.storage).keep(memory)
    turn = Turn(
        number=1,
        uuid=task.id,
        session_id="s",
        prompt=prompt,
        state=TurnState.finished,
        memory=memory.hashes,
    )
    workspace.tasks.record(task, "main", [turn])
    return task


def propose(proposals: Proposals, task: Task, text: str) -> Proposal:
    return proposals.propose(text, task=task.id, draft="main", turn=1)


def run(workspace: Workspace, *arguments: str, stdin: str = "", fails: bool = False) -> Result:
    result = CliRunner(env={"SMARTWRITER_WORKSPACE": str(workspace.root)}).invoke(
        memory_command, arguments, input=stdin
    )
    assert (result.exit_code != 0) == fails, result.output
    return result


def shown(workspace: Workspace, *arguments: str) -> Any:
    return json.loads(run(workspace, *arguments, "--json").stdout)


def memory(collection: Collection) -> str:
    return (collection.path / "memory.md").read_text()


# Reviewing --------------------------------------------------------------------------------------


def test_nothing_to_review(workspace: Workspace, collection: Collection) -> None:
    """A collection without proposals says so, and nothing is made on disk."""
    assert run(workspace, "review", "rivers").output == "Nothing is proposed for the memory of rivers.\n"
    assert not (workspace.hidden / "proposals").exists()


def test_a_proposal_is_shown_with_its_origin(workspace: Workspace, proposals: Proposals, task: Task) -> None:
    """Each is shown with its file, its task, its draft, its turn and how that turn's prompt began."""
    made = propose(proposals, task, "Slack: an hour.")
    output = run(workspace, "review", "rivers", stdin="s\n").output
    assert output.startswith(
        f"[{made.id}] Slack: an hour.\n"
        f"  for memory.md, from Fog, turn 1 of {task.id}@main: “Write of slack water.”\n"
    )
    assert proposals.pending() == [made]


def test_accept_edit_reject_skip_quit(
    workspace: Workspace, collection: Collection, proposals: Proposals, task: Task
) -> None:
    """Each answer does what it says; what was skipped, and what comes after quitting, waits."""
    for text in ("One.", "Two apples.", "Three pears.", "Four plums.", "Five figs.", "Six."):
        propose(proposals, task, text)
    run(workspace, "review", "rivers", stdin="a\ne\nTwo ripe apples.\nr\ns\nx\nq\n")
    assert memory(collection) == "# Memory\n\n- Nobody waved.\n- One.\n- Two ripe apples.\n"
    assert [one.text for one in proposals.pending()] == ["Four plums.", "Five figs.", "Six."]


def test_what_was_decided_before_the_terminal_went_is_kept(
    workspace: Workspace, collection: Collection, proposals: Proposals, task: Task
) -> None:
    """A review that breaks off keeps every decision up to then."""
    propose(proposals, task, "One.")
    propose(proposals, task, "Two apples.")
    run(workspace, "review", "rivers", stdin="a\n", fails=True)
    assert memory(collection).endswith("- One.\n")
    assert [one.text for one in proposals.pending()] == ["Two apples."]


def test_what_cannot_be_taken_ends_no_review(
    workspace: Workspace, collection: Collection, proposals: Proposals, task: Task
) -> None:
    """A line that is too long is refused in a sentence, waits, and the next one is asked for."""
    propose(proposals, task, "One.")
    propose(proposals, task, "Two apples.")
    result = run(workspace, "review", "rivers", stdin=f"e\n{'x' * 501}\na\n")
    assert "at most 500 characters; this one has 501. It still waits." in result.stderr
    assert [one.text for one in proposals.pending()] == ["One."]
    assert memory(collection).endswith("- Two apples.\n")


def test_contradictions_come_together(workspace: Workspace, proposals: Proposals, task: Task) -> None:
    """Lines of two tasks about the same term are shown side by side, before either is decided; so is
    what the memory says already."""
    other = task_with_turn(workspace, "Tide", "rivers", "Write of the tide.")
    first = propose(proposals, task, "Slack: an hour.")
    between = propose(proposals, task, "Dee answers.")
    second = propose(proposals, other, "“Slack” lasts two hours.")
    output = run(workspace, "review", "rivers", stdin="a\nr\ns\n").output
    head = output.partition("  a(ccept)")[0]
    assert head.startswith("These may contradict each other. They say something of the same term, “slack”.\n")
    assert f"[{first.id}]" in head and f"[{second.id}]" in head and f"[{between.id}]" not in head
    assert f"from Tide, turn 1 of {other.id}@main" in head
    assert "memory.md says (3): - Slack: an hour." in output
    assert proposals.pending() == [between]


def test_review_without_questions(
    workspace: Workspace, collection: Collection, proposals: Proposals, task: Task
) -> None:
    """Options decide by id; JSON has what was decided and what waits, with origins and conflicts."""
    yes, no = propose(proposals, task, "Yes."), propose(proposals, task, "No.")
    output = run(workspace, "review", "rivers", "--accept", yes.id, "--reject", no.id).output
    assert output == f"{yes.id} is in memory.md: Yes.\n{no.id} is rejected: No.\n"
    pair = [propose(proposals, task, text) for text in ("Slack: an hour.", "Slack: a day.")]
    found = shown(workspace, "review", "rivers")
    assert [(one["id"], one["task_title"], one["prompt"]) for one in found["pending"]] == [
        (one.id, "Fog", "Write of\nslack water.") for one in pair
    ]
    assert [one["proposals"] for one in found["conflicts"]] == [[one.id for one in pair]]
    assert [set(one) >= {"near", "replaces"} for one in found["pending"]] == [True] * len(found["pending"])
    assert isinstance(run(workspace, "review", "rivers", "--accept", no.id, fails=True).exception, Invalid)
    assert memory(collection) == "# Memory\n\n- Nobody waved.\n- Yes.\n"


def test_a_proposal_of_a_lost_task_can_be_reviewed(workspace: Workspace, proposals: Proposals) -> None:
    """Where task or turn are gone, a proposal is shown with what is known of it."""
    proposals.propose("Slack: an hour.", task="gone", draft="main", turn=7)
    output = run(workspace, "review", "rivers", stdin="q\n").output
    assert "  for memory.md, from turn 7 of gone@main\n" in output


def test_damage_is_said(workspace: Workspace, proposals: Proposals, task: Task) -> None:
    """A damaged file of proposals is named, and the rest is used."""
    propose(proposals, task, "Slack: an hour.")
    with (workspace.hidden / "proposals" / "rivers.jsonl").open("ab") as file:
        file.write(b"{torn\n")
    result = run(workspace, "review", "rivers", stdin="a\n")
    assert "The proposals' file is damaged at byte" in result.stderr
    assert proposals.pending() == []


def test_an_unknown_collection_is_named(workspace: Workspace) -> None:
    """Each command refuses a collection that is not there."""
    for arguments in (["review", "seas"], ["lines", "seas"], ["forget", "seas", "1"]):
        assert isinstance(run(workspace, *arguments, fails=True).exception, CollectionNotFound)


# Lines ------------------------------------------------------------------------------------------


def test_lines_say_where_they_come_from(
    workspace: Workspace, collection: Collection, proposals: Proposals, task: Task
) -> None:
    """Lines are listed by file and number; those that were proposed name their draft and turn."""
    proposals.accept(propose(proposals, task, "Slack: an hour.").id)
    (collection.path / "people.md").write_text("Ruth.\n")
    assert run(workspace, "lines", "rivers").output == (
        "memory.md\n"
        "   1  # Memory\n"
        "   2  - Nobody waved.\n"
        f"   3  - Slack: an hour.  (from turn 1 of {task.id}@main)\n"
        "people.md\n"
        "   4  Ruth.\n"
    )
    found = shown(workspace, "lines", "rivers")
    assert found[2]["proposal"]["task"] == task.id and found[3]["proposal"] is None


def test_forget_says_which_drafts_had_it(workspace: Workspace, collection: Collection, task: Task) -> None:
    """The line goes, and the drafts whose turns were told it are named, also in collections within."""
    inner = workspace.new_collection("rivers/delta")
    (inner.path / "memory.md").write_text("---\nextends: true\n---\nOnly here.\n")
    below = task_with_turn(workspace, "Delta", "rivers/delta", "Write.")
    workspace.new_collection("riverside")
    (workspace.collection("riverside").path / "memory.md").write_text("- Nobody waved.\n")
    task_with_turn(workspace, "Elsewhere", "riverside", "Write.")
    output = run(workspace, "forget", "rivers", "2").output
    assert output == (
        f"Removed from memory.md: - Nobody waved.\nDrafts that had it: {task.id}@main, {below.id}@main.\n"
    )
    assert memory(collection) == "# Memory\n\n"
    later = task_with_turn(workspace, "Later", "rivers", "Write.")
    found = shown(workspace, "forget", "rivers", "Nobody waved.")  # again: nothing more goes
    assert found["drafts"] == [f"{task.id}@main", f"{below.id}@main"] and later.id not in str(found)


def test_forget_says_where_nobody_knows(workspace: Workspace, collection: Collection, task: Task) -> None:
    """Where the versions that a draft had were not kept, that is said instead of "none"."""
    for version in (workspace.hidden / "memory").glob("*.md"):
        version.unlink()
    output = run(workspace, "forget", "rivers", "- Nobody waved.").output
    assert output.splitlines()[1:] == [
        "No draft is known to have had it.",
        f"Drafts whose memory of that time was not kept: {task.id}@main.",
    ]


def test_forget_refuses_what_is_not_there(workspace: Workspace, collection: Collection, task: Task) -> None:
    """An unknown line is refused in a sentence that says where the lines are listed."""
    before = Path(collection.path / "memory.md").read_bytes()
    result = run(workspace, "forget", "rivers", "9", fails=True)
    assert "see them with: smartwriter memory lines rivers" in str(result.exception)
    assert Path(collection.path / "memory.md").read_bytes() == before


def test_a_line_is_edited_from_what_it_is(
    workspace: Workspace, proposals: Proposals, task: Task, collection: Collection
) -> None:
    """On a terminal, editing a proposal begins with the line as it is: nobody types it again."""
    propose(proposals, task, "The ferry is gren.")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["SMARTWRITER_WORKSPACE"] = str(workspace.root)
        os.execv(sys.executable, [sys.executable, "-m", "smartwriter", "memory", "review", "rivers"])
    heard = b""
    for wanted, typed in ((b"q(uit)", b"e\n"), (b"gren.", b"\x7f\x7fen.\n")):
        while wanted not in heard:
            heard += os.read(terminal, 4096)
        heard = b""
        os.write(terminal, typed)
    with contextlib.suppress(OSError):  # the other side has closed it
        while os.read(terminal, 4096):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (collection.path / "memory.md").read_text().endswith("- The ferry is green.\n")
