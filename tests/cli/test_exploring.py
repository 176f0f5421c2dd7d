"""The commands for trying things out: log, text, restore, rewind, take, blame, pick, blind, count."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from commands import smartwriter
from faces import converse, data, printed, refused, run

from smartwriter.agent.offline.server import OfflineModel
from smartwriter.memory.proposals import Proposals
from smartwriter.memory.versions import MemoryVersions
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.interface import Lease
from smartwriter.tasks.values import MAIN, Task, Turn, TurnState
from smartwriter.workspace import Workspace


@pytest.fixture
def task(workspace: Workspace) -> Task:
    """A task of three turns with a text each, one version by hand, and a fork at turn 1."""
    task = workspace.new_task("The ferry")
    converse(workspace, task, "Said one.", "Said two.", "Said three.")
    text = workspace.text(task, MAIN)
    text.write("Fog.\n", author="model", turn=1)
    text.write("Fog.\n\nRain fell.\n", author="model", turn=2)
    printed(workspace, "fork", "The ferry", "--at", "1", "--name", "trial")
    text.path.write_text("Fog.\n\nRain fell on us.\n")
    return workspace.tasks.find(task.id)


def words(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()


def test_log_draws_the_whole_history(workspace: Workspace, task: Task) -> None:
    """Each turn, version and fork is a line; a hand edit that nobody recorded yet is among them."""
    lines = [words(line) for line in printed(workspace, "log", task.id).splitlines()]
    assert lines[0] == f"The ferry {task.id}"
    assert lines[1] == "main (current)"
    assert sorted(lines[2:]) == sorted(
        [
            "│ turn 1 写 1",
            "│ turn 2 写 2",
            "│ turn 3 写 3",
            "│ :1 model +1 −0 words",
            "│ :2 model +2 −0 words",
            "│ :3 writer +2 −0 words",
            "├─ trial from main after turn 1",
            f"│ │ :1 fork, from {task.id}@main:1 +1 −0 words",
        ]
    )


def test_log_of_one_draft_leaves_the_others_out(workspace: Workspace, task: Task) -> None:
    """With a draft named, its own history and its forks are shown; as data, without the texts."""
    (branch,) = data(workspace, "log", f"{task.id}@trial")
    assert branch["draft"]["name"] == "trial"
    (item,) = branch["items"]
    assert (item["gained"], item["lost"], "text" in item["revision"]) == (1, 0, False)
    assert "main" not in printed(workspace, "log", f"{task.id}@trial").splitlines()[1].split("from")[0]


@pytest.mark.parametrize(("saved", "shown"), [(b"\xb6\xc9", None), (b"a\0b\n", "a\0b\n")])
def test_a_file_that_cannot_be_recorded_hides_no_history(
    workspace: Workspace, task: Task, saved: bytes, shown: str | None
) -> None:
    """The log is shown with a warning, and the text if it can be; a fork is refused and leaves nothing."""
    printed(workspace, "text", task.id)
    path = workspace.text(task, MAIN).path
    path.write_bytes(saved)
    done = run(workspace, "log", task.id)
    assert (done.exit_code, "Not recorded: " in done.stderr, str(path) in done.stderr) == (0, True, True)
    assert ":3 writer" in words(done.stdout)
    if shown is not None:
        assert run(workspace, "text", task.id).stdout == shown
    sessions = sorted(workspace.hidden.rglob("*.jsonl"))
    assert str(path) in refused(workspace, "fork", task.id)
    assert sorted(workspace.hidden.rglob("*.jsonl")) == sessions
    assert path.read_bytes() == saved


def test_what_is_missing_is_said(workspace: Workspace, model: OfflineModel) -> None:
    """A dropped draft, a file and a folder that are gone: each is told, with the way back."""
    workspace.new_collection("Rivers")
    task = workspace.new_task("The ferry", "Rivers")
    workspace.text(task, MAIN).write("Fog.\n", author="model", turn=1)
    printed(workspace, "fork", task.id, "--name", "trial")
    printed(workspace, "drop", f"{task.id}@trial")
    assert f"smartwriter restore {task.id}@trial" in refused(workspace, "text", f"{task.id}@trial")
    folder = workspace.root / "collections" / "Rivers"
    folder.rename(folder.with_name("Streams"))
    done = run(workspace, "text", task.id)
    assert (done.stdout, "main.md is missing" in done.stderr) == ("Fog.\n", True)
    told = smartwriter(workspace.root, "write", task.id, "Go on.", model=model).stderr.decode()
    assert "Streams has the texts of The ferry" in told
    for arguments in (["fork", task.id], ["restore", f"{task.id}:1"], ["rewind", task.id, "--to", "0"]):
        assert "smartwriter collection rename Rivers Streams" in refused(workspace, *arguments)
    assert not folder.exists()  # a second text would grow there, beside the one that the writer sees
    printed(workspace, "collection", "rename", "Rivers", "Streams")
    assert smartwriter(workspace.root, "write", task.id, "Go on.", model=model).returncode == 0


def test_text_shows_any_version(workspace: Workspace, task: Task) -> None:
    """A version is named by its number; without one the text as it is in the file."""
    assert printed(workspace, "text", f"{task.id}:1") == "Fog.\n"
    assert printed(workspace, "text", task.id) == "Fog.\n\nRain fell on us.\n"
    assert printed(workspace, "text", f"{task.id}:3") == "Fog.\n\nRain fell on us.\n"
    assert data(workspace, "text", f"{task.id}:2")["revision"] == 2
    assert (
        refused(workspace, "text", f"{task.id}:9") == f"{task.id}@main has no revision 9: it has 3 revisions."
    )


def test_text_is_shown_where_nothing_can_be_written(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hand edit that cannot be recorded, on a full disk say, does not keep the text from being read."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(OpenDraft, "take_hand_edit", full)
    assert printed(workspace, "text", task.id) == "Fog.\n\nRain fell on us.\n"


def test_restore_puts_a_version_back(workspace: Workspace, task: Task) -> None:
    """The old text is the last version, and the hand edit before it is one, too."""
    assert printed(workspace, "restore", f"{task.id}:1") == f"{task.id}@main:4 has the text of :1 again.\n"
    assert [one.text for one in workspace.text(task, MAIN).revisions()][2:] == [
        "Fog.\n\nRain fell on us.\n",
        "Fog.\n",
    ]
    assert refused(workspace, "restore", task.id).startswith("Say which version to put back")
    assert "has no revision 99" in refused(workspace, "restore", f"{task.id}:99")


def test_restore_takes_a_dropped_draft_up_again(workspace: Workspace, task: Task) -> None:
    """A dropped draft comes back with its text, hand edits of its last moment included."""
    trial = workspace.text(task, "trial")
    trial.path.write_text("By hand, then dropped.\n")
    printed(workspace, "drop", f"{task.id}@trial")
    assert not trial.path.exists()
    assert printed(workspace, "restore", f"{task.id}@trial") == f"{task.id}@trial is a draft again.\n"
    assert trial.path.read_text() == "By hand, then dropped.\n"
    assert workspace.tasks.resolve(f"{task.id}@trial")[1].name == "trial"


def test_a_draft_that_has_just_been_adopted_is_not_dropped(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another process adopts it at that moment, its text stays in its place."""
    lease = OpenDraft.lease

    def adopted(self: OpenDraft) -> Lease:
        self.workspace.tasks.adopt(self.task.id, self.name)
        return lease(self)

    monkeypatch.setattr(OpenDraft, "lease", adopted)
    result = run(workspace, "drop", f"{task.id}@trial")
    assert "is the current draft" in result.stderr
    assert workspace.text(task, "trial").path.exists()


def test_rewind_makes_the_fork_current(workspace: Workspace, task: Task) -> None:
    """Going back is a fork that the task goes on with; the drafts before are as they were."""
    before = workspace.text(task, MAIN).revisions()
    said = printed(workspace, "rewind", task.id, "--to", "1", "--name", "again")
    assert said.startswith(f"{task.id}@again is the current draft now, at turn 1;")
    assert printed(workspace, "text", task.id) == "Fog.\n"
    assert [turn.number for turn in workspace.tasks.turns(task, "again")] == [1]
    assert workspace.text(task, MAIN).revisions() == before
    assert "has no turn 9" in refused(workspace, "rewind", task.id, "--to", "9")


def test_take_makes_an_answer_the_text(workspace: Workspace, task: Task) -> None:
    """The answer of the last turn, or of another, becomes the text, and the version before stays."""
    assert printed(workspace, "take", task.id, "--turn", "2") == (
        f"The answer of turn 2 is the text of {task.id}@main now (revision 4).\n"
    )
    assert printed(workspace, "text", task.id) == "Said two.\n"
    printed(workspace, "take", task.id)
    assert printed(workspace, "text", task.id) == "Said three.\n"
    assert "has no turn 8" in refused(workspace, "take", task.id, "--turn", "8")


def test_a_file_that_lies_where_a_fork_would_stays(workspace: Workspace, task: Task) -> None:
    """A file of the writer's own among the drafts is neither moved nor taken for the fork's text."""
    mine = workspace.text(task, "draft-3").path
    mine.write_text("Mine.")
    assert printed(workspace, "fork", task.id).startswith(f"{task.id}@draft-4 shares")
    assert "There is already a file" in refused(workspace, "fork", task.id, "--name", "draft-3")
    assert mine.read_text() == "Mine."


def test_blame_names_turn_author_and_memory(workspace: Workspace, task: Task) -> None:
    """Each paragraph has who wrote it first and who changed it; the model's, the memory it had."""
    first = workspace.tasks.turns(task, MAIN)[0]
    workspace.tasks.record(task, MAIN, [first.model_copy(update={"memory": {"profile.md": "ab" * 32}})])
    one, two = data(workspace, "blame", task.id)
    assert (
        one["origin"]
        == one["changed"]
        == {
            "task": task.id,
            "draft": "main",
            "revision": 1,
            "author": "model",
            "turn": 1,
        }
    )
    assert one["memory"] == {"profile.md": "ab" * 32}
    assert (two["origin"]["revision"], two["changed"]["revision"], two["changed"]["author"]) == (
        2,
        3,
        "writer",
    )
    shown = printed(workspace, "blame", task.id)
    assert "profile.md abababab" in shown and f"changed by writer, turn 4, {task.id}@main:3" in shown
    empty = workspace.new_task("Empty")
    assert refused(workspace, "blame", "Empty") == f"{empty.id}@main has no text yet."


def test_blame_names_a_memory_as_its_log_does(workspace: Workspace) -> None:
    """What a turn knew is named by the number that ``memory log`` lists it with."""
    collection = workspace.new_collection("rivers")
    task = workspace.new_task("Low water", "rivers")
    memory = workspace.collection("rivers").memory()
    versions = MemoryVersions(workspace.storage)
    versions.keep(memory)
    (collection.path / "memory.md").write_text("- A fact.\n")
    newer = workspace.collection("rivers").memory()
    versions.keep(newer)
    turn = Turn(number=1, uuid="u", session_id="s", prompt="p", state=TurnState.finished, memory=newer.hashes)
    workspace.tasks.record(task, MAIN, [turn])
    workspace.text(task, MAIN).write("Fog.\n", author="model", turn=1)
    assert "with version 2 of the memory" in printed(workspace, "blame", task.id)
    assert data(workspace, "blame", task.id)[0]["memory_version"] == 2


def test_an_empty_text_takes_no_time(workspace: Workspace) -> None:
    """Where there is nothing to read, reading takes no minute."""
    task = workspace.new_task("Nothing yet")
    assert "0 min to read" in printed(workspace, "count", task.id)


def test_pick_asks_for_each_that_differs(workspace: Workspace, task: Task) -> None:
    """Without numbers each differing paragraph is shown, and those taken are placed; none is no change."""
    workspace.text(task, "trial").path.write_text("Fog.\n\nA heron stood.\n\nSilence.\n")
    result = run(workspace, "pick", f"{task.id}@trial", task.id, stdin=b"y\nn\n")
    assert result.exit_code == 0, result.output
    assert "A heron stood." in result.stdout and "Fog." not in result.stdout
    assert printed(workspace, "text", task.id) == "Fog.\n\nA heron stood.\n\nRain fell on us.\n"
    none = run(workspace, "pick", f"{task.id}@trial", task.id, stdin=b"n\n")
    assert none.exit_code == 1 and "Nothing was picked" in none.stderr
    out = refused(workspace, "pick", f"{task.id}@trial", task.id, "-p", "9")
    assert out == f"{task.id}@trial:2 has no paragraph 9: it has 3 paragraphs."


def test_pick_into_a_busy_draft_is_refused(workspace: Workspace, task: Task) -> None:
    """A draft that is being written takes no paragraphs, and says who writes it."""
    workspace.text(task, "trial").write("New words.\n", author="model", turn=2)
    with OpenDraft(workspace, task, MAIN).lease():
        result = run(workspace, "pick", f"{task.id}@trial", task.id, "-p", "1")
    assert result.exit_code == 1 and f"{task.id}@main is being written by" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.fixture(params=["1", "2"])
def answer(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def test_blind_records_what_was_chosen(workspace: Workspace, task: Task, answer: str) -> None:
    """The two texts are shown without their names, and the choice is kept in the task with its reason."""
    result = run(workspace, "blind", task.id, f"{task.id}@trial", stdin=f"{answer}\nquieter\n".encode())
    assert result.exit_code == 0, result.output
    shown = result.stdout.partition("Which is better")[0]
    assert task.id not in shown and "trial" not in shown
    first = "Rain" in shown.partition("──── 2")[0]
    (choice,) = workspace.tasks.find(task.id).choices
    main, trial = f"{task.id}@main:3", f"{task.id}@trial:1"
    wanted = (main, trial) if (answer == "1") == first else (trial, main)
    assert (choice.chosen, choice.other, choice.why) == (*wanted, "quieter")
    assert f"You chose {choice.chosen}, over {choice.other}." in result.stdout


def test_a_choice_once_made_is_kept(workspace: Workspace, task: Task) -> None:
    """Who leaves at the question for the reason has chosen all the same."""
    run(workspace, "blind", task.id, f"{task.id}@trial", stdin=b"1\n")
    (choice,) = workspace.tasks.find(task.id).choices
    assert choice.why == ""


def test_what_made_a_text_better_can_be_proposed_for_the_memory(workspace: Workspace) -> None:
    """The reason of a blind choice waits for review like any proposal, if the writer wants it to."""
    collection = workspace.new_collection("rivers")
    task = workspace.new_task("Fog", "rivers")
    for text in ("One.\n", "Two.\n"):
        workspace.text(task, MAIN).write(text, author="model", turn=1)
    result = run(workspace, "blind", f"{task.id}:1", f"{task.id}:2", stdin=b"1\nShort sentences win.\ny\n")
    assert result.exit_code == 0, result.output
    (proposal,) = Proposals(workspace.storage, collection).pending()
    assert (proposal.text, proposal.task, proposal.draft) == ("Short sentences win.", task.id, MAIN)
    assert "Short sentences" not in collection.memory().render()


def test_blind_needs_two_texts(workspace: Workspace, task: Task) -> None:
    """The same text twice is nothing to choose from, and neither is none; no choice is no record."""
    assert "are the same text" in refused(workspace, "blind", f"{task.id}:1", f"{task.id}@trial")
    workspace.new_task("Empty")
    assert "has no text yet" in refused(workspace, "blind", f"{task.id}:1", "Empty")
    run(workspace, "blind", task.id, f"{task.id}@trial", stdin=b"neither\n")
    assert workspace.tasks.find(task.id).choices == ()


def test_count_and_target(workspace: Workspace, task: Task) -> None:
    """Words are counted against a target; a collection counts its current drafts, never trials."""
    workspace.new_collection("rivers")
    printed(workspace, "new", "渡口", "-c", "rivers", "--target", "10")
    other = workspace.tasks.find("渡口")
    workspace.text(other, MAIN).write("# 渡口\n\n雾 rolls in。\n", author="model", turn=1)
    printed(workspace, "fork", "渡口", "--name", "trial")
    assert data(workspace, "count", "渡口")["words"] == 5
    assert printed(workspace, "count", "渡口").startswith(f"{other.id}@main: 5 of 10 words, ")
    assert data(workspace, "count", "-c", "rivers") == {
        **data(workspace, "count", "渡口"),
        "target": None,
    }
    assert f"{other.id}  渡口  (rivers)  [main, 2 drafts]  5 of 10 words (50 %)" in printed(
        workspace, "tasks"
    )
    assert refused(workspace, "count") == "Name a task, or a collection with -c."


def test_fork_of_a_version_says_so(workspace: Workspace, task: Task) -> None:
    """A fork can start from any version of the text, and says what it shares."""
    assert printed(workspace, "fork", f"{task.id}:2", "--name", "two") == (
        f"{task.id}@two shares {task.id}@main up to turn 2, with the text of :2.\n"
    )
    assert printed(workspace, "text", f"{task.id}@two") == "Fog.\n\nRain fell.\n"
    assert workspace.tasks.turns(task, "two")[-1].state is TurnState.finished
    assert "has no revision 9" in refused(workspace, "fork", f"{task.id}:9")
