"""The main job, end to end: the real CLI, the stand-in model, real processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from commands import command, environment, smartwriter, written
from turns import echo, make_fork, make_task, take_turn, take_turns, transcript

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.cli.interrupts import kill_tree
from smartwriter.errors import DraftBusy, SessionMissing
from smartwriter.events import parse
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Turn, TurnState
from smartwriter.workspace import Workspace


def test_three_tasks_in_parallel_keep_to_their_own_words(workspace: Workspace, claude: ClaudeAgent) -> None:
    """Three articles written at once share nothing: each transcript holds only its own words."""
    words = ["heron", "granite", "saffron"]
    tasks = [make_task(workspace, word) for word in words]
    jobs = [(task.id, f"Write about {task.title}, only {task.title}.") for task in tasks]
    turns, _ = take_turns(workspace, claude, jobs)
    assert [turn.state for turn in turns] == [TurnState.finished] * 3
    for task, word in zip(tasks, words, strict=True):
        content = transcript(workspace, task).read_text()
        text = workspace.text(task, "main").read()
        assert word in content and word in text
        assert not any(other in content + text for other in words if other != word)


def test_more_drafts_than_places_are_written_one_after_the_other(
    workspace: Workspace, claude: ClaudeAgent
) -> None:
    """No more drafts are written at once than allowed, and every prompt gets its turn."""
    tasks = [make_task(workspace, f"Task {number}") for number in range(5)]
    turns, events = take_turns(workspace, claude, [(task.id, "Go.") for task in tasks], parallel=2)
    assert [turn.state for turn in turns] == [TurnState.finished] * 5
    running = most = 0
    for event in events:
        running += {"turn_started": 1, "finished": -1}.get(event.kind, 0)
        most = max(most, running)
    assert most == 2


def test_prompts_for_one_draft_are_taken_in_order(workspace: Workspace, claude: ClaudeAgent) -> None:
    """Two prompts sent at once for one draft become turn 1 and turn 2, in one conversation."""
    task = make_task(workspace, "In order")
    taken, _ = take_turns(workspace, claude, [(task.id, "First this."), (task.id, "Then that.")])
    assert [turn.number for turn in taken] == [1, 2]
    turns = workspace.tasks.turns(task, "main")
    assert [turn.prompt for turn in turns] == ["First this.", "Then that."]


def _kill_mid_sentence(workspace: Path, model: OfflineModel, jobs: dict[str, str]) -> None:
    """Run several drafts and SIGKILL the process group once each has typed something."""
    arguments = [f"{task}={prompt}" for task, prompt in jobs.items()]
    typing: set[str] = set()
    with subprocess.Popen(
        command(workspace, "run", "--json", "--offline", *arguments),
        env=environment(model),
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = parse(line)
            if event.kind == "text_delta":
                typing.add(event.task)
            if typing == set(jobs):
                break
        kill_tree(process.pid)
    assert process.returncode == -signal.SIGKILL


def _half_spoken(request: Request) -> Reply:
    if request.prompt.endswith("half said."):
        return [Text("This sentence will never"), Wait(threading.Event()), Text(" end.")]
    return echo(request)


def test_killed_mid_sentence_and_resumed_by_task(workspace: Workspace) -> None:
    """After SIGKILL of everything mid-stream, a new process resumes each task with all its turns."""
    tasks = [make_task(workspace, title) for title in ("Herons", "渡口", "Saffron")]
    with OfflineModel(_half_spoken) as model:
        for task in tasks:
            written(workspace.root, task.id, f"Begin {task.title}.", model=model)
        jobs = {task.id: f"Leave {task.title} half said." for task in tasks}
        _kill_mid_sentence(workspace.root, model, jobs)
        for task in tasks:
            turn = written(workspace.root, task.title, f"Go on with {task.title}.", model=model)
            request = model.requests[-1]
            assert turn["number"] == 3 and turn["state"] == "finished"
            assert f"Begin {task.title}." in request.said
            assert f"You said: Begin {task.title}." in request.said
            assert f"Leave {task.title} half said." in request.said
            assert request.prompt.endswith(f"Go on with {task.title}.")
            others = [other.title for other in tasks if other is not task]
            assert not any(title in request.said for title in others)
            states = [turn.state.value for turn in workspace.tasks.turns(task, "main")]
            assert states == ["finished", "interrupted", "finished"]
            shown = smartwriter(workspace.root, "show", task.id).stdout.decode()
            assert f"[turn 1] Begin {task.title}." in shown and f"Leave {task.title} half said." in shown


def test_killed_in_its_very_first_turn(workspace: Workspace) -> None:
    """A task killed in its first turn goes on under the same task, with what had been stored."""
    task = make_task(workspace, "Herons")
    with OfflineModel(_half_spoken) as model:
        _kill_mid_sentence(workspace.root, model, {task.id: "Leave this half said."})
        turn = written(workspace.root, "Herons", "Now on.", model=model)
    assert turn["state"] == "finished" and turn["number"] == 2
    # Whether or not its entry had been stored: the prompt itself is never lost.
    assert "Leave this half said." in model.requests[-1].said


def test_resumes_in_a_moved_workspace_without_local_copies(workspace: Workspace, tmp_path: Path) -> None:
    """Moved to a path with Chinese, emoji and decomposed letters, with nothing left of the CLI's own
    files, tasks still resume with their whole past, also after a SIGKILL."""
    task = make_task(workspace, "Herons", "小说")
    with OfflineModel(_half_spoken) as model:
        written(workspace.root, "Herons", "The first turn.", model=model)
        _kill_mid_sentence(workspace.root, model, {task.id: "Leave this half said."})
        for leftover in (tmp_path / "tmp").iterdir():  # the CLI's homes, and its own transcripts
            shutil.rmtree(leftover)
        moved = tmp_path / "新 🪿 cafe\u0301"
        workspace.root.rename(moved)
        written(moved, "Herons", "The third turn.", model=model)
        assert "The first turn." in model.requests[-1].said
        assert "Leave this half said." in model.requests[-1].said
        written(moved, "Herons", "The fourth turn.", model=model)
        assert "The third turn." in model.requests[-1].said
    assert transcript(Workspace(moved), task).read_bytes().count(b"\n") > 8


def test_a_fork_leaves_its_origin_alone(workspace: Workspace) -> None:
    """A fork from turn 1 of 2 holds turn 1 and not turn 2, and changes no byte of its origin."""
    task = make_task(workspace, "Herons")
    with OfflineModel() as model:
        written(workspace.root, task.id, "Turn one: herons.", model=model)
        text = workspace.text(task, "main").read()
        written(workspace.root, task.id, "Turn two: granite.", model=model)
        origin = transcript(workspace, task)
        files = [path for path in workspace.root.rglob("*main*") if path.is_file()] + [origin]
        before = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        done = smartwriter(workspace.root, "fork", task.id, "--at", "1", "--name", "trial")
        assert done.returncode == 0, done.stderr.decode()
        assert workspace.text(task, "trial").read() == text
        turn = written(workspace.root, f"{task.id}@trial", "Turn two: saffron.", model=model)
        assert turn["number"] == 2
        said = model.requests[-1].said
        assert "Turn one: herons." in said and "granite" not in said
        assert before == {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        assert transcript(workspace, task, "trial") != origin


def test_a_fork_of_a_fork_and_of_a_draft_without_turns(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Any draft can be forked: a fork's fork shares the turns of both, an empty one shares none."""
    task = make_task(workspace, "Herons")
    empty = make_fork(workspace, task, "main")
    assert empty.origin is not None and empty.origin.turn == 0
    take_turn(workspace, claude, task.id, "First.")
    second = make_fork(workspace, task, "main")
    take_turn(workspace, claude, task.address(second.name), "Second.")
    third = make_fork(workspace, task, second.name)
    take_turn(workspace, claude, task.address(third.name), "Third.")
    assert all(word in model.requests[-1].said for word in ("First.", "Second.", "Third."))
    turns = workspace.tasks.turns(task, third.name)
    assert [(turn.number, turn.inherited) for turn in turns] == [(1, True), (2, True), (3, False)]


def test_edited_memory_reaches_the_next_turn(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A memory file edited between two turns: the next request has its new text, not the old."""
    task = make_task(workspace, "Herons", "Rivers")
    memory = workspace.root / "collections" / "Rivers" / "memory.md"
    memory.write_text("The old ferryman is called Anselm.")
    first = take_turn(workspace, claude, task.id, "First.")
    assert "Anselm" in model.requests[-1].system
    assert '<memory-file name="memory.md">' in model.requests[-1].system
    memory.write_text("The old ferryman is called Balthasar.")
    second = take_turn(workspace, claude, task.id, "Second.")
    assert "Balthasar" in model.requests[-1].system
    assert "Anselm" not in str(model.requests[-1].body)
    assert first.memory["memory.md"] != second.memory["memory.md"]


def test_a_memory_of_half_a_megabyte_fits(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """The system prompt is bounded by the model, not by the length of an argument, and no copy of
    it is left behind."""
    task = make_task(workspace, "Herons", "Rivers")
    memory = workspace.root / "collections" / "Rivers" / "memory.md"
    memory.write_text("Anselm the ferryman. " * 25_000 + "The end of it.")
    assert take_turn(workspace, claude, task.id, "First.").state is TurnState.finished
    assert "The end of it." in model.requests[-1].system
    assert "Claude Code" not in model.requests[-1].system
    assert list(workspace.hidden.rglob("*.prompt.md")) == []


def test_memory_edited_while_prompts_wait(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Even for a prompt that was already queued, the memory is what it is when its turn starts."""
    task = make_task(workspace, "Herons", "Rivers")
    memory = workspace.root / "collections" / "Rivers" / "memory.md"
    memory.write_text("Anselm")

    def edit_while_answering(request: Request) -> Reply:
        memory.write_text("Balthasar")
        return echo(request)

    model.script = edit_while_answering
    turns, _ = take_turns(workspace, claude, [(task.id, "First."), (task.id, "Second.")])
    assert [turn.number for turn in turns] == [1, 2]
    assert ["Anselm" in request.system for request in model.requests] == [True, False]
    assert "You said: First." in model.requests[-1].said


def test_the_model_writes_only_its_own_draft(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """The tools write, read and edit the draft, each change is a revision of its turn, and what
    cannot be done is answered to the model in words."""

    def script(request: Request) -> Reply:
        steps: list[Reply] = [
            [ToolUse("write_draft", {"text": "One heron. One gull."})],
            [ToolUse("edit_draft", {"edits": [{"old_text": "One", "new_text": "Two"}]})],
            [ToolUse("edit_draft", {"edits": [{"old_text": "One gull", "new_text": "Two gulls"}]})],
            [ToolUse("read_draft", {})],
            [Text("Done.")],
        ]
        return steps[len(request.tool_results)]

    task = make_task(workspace, "Herons")
    model.script = script
    (turn,), events = take_turns(workspace, claude, [(task.id, "Birds.")])
    assert turn.state is TurnState.finished
    results = model.requests[-1].tool_results
    assert sorted(model.requests[0].tools) == [
        f"mcp__draft__{name}" for name in ("append_draft", "edit_draft", "read_draft", "write_draft")
    ]
    assert "stands 2 times" in results[1]
    assert results[3] == "One heron. Two gulls."
    assert workspace.text(task, "main").read() == "One heron. Two gulls."
    assert len([event for event in events if event.kind == "draft_revised"]) == 2
    recorded = workspace.text(task, "main").revisions()
    assert [(revision.author, revision.turn) for revision in recorded] == [("model", 1), ("model", 1)]


def test_a_hand_edit_is_kept_and_told(workspace: Workspace, claude: ClaudeAgent, model: OfflineModel) -> None:
    """What the writer changed in the file becomes a revision, and the model is told to read it."""
    task = make_task(workspace, "Herons")
    take_turn(workspace, claude, task.id, "First.")
    text = workspace.text(task, "main")
    text.path.write_text("My own words.")
    turn = take_turn(workspace, claude, task.id, "Second.")
    authors = [(revision.author, revision.turn) for revision in text.revisions()]
    assert authors == [("model", 1), ("writer", 2), ("model", 2)]
    assert "edited the draft by hand" in model.requests[-1].prompt
    assert turn.prompt == "Second."


def test_a_draft_that_is_being_written_refuses_a_second_process(
    workspace: Workspace, claude: ClaudeAgent
) -> None:
    """While another process holds a draft's lease, writing it is refused and nothing is recorded."""
    task = make_task(workspace, "Herons")
    with OpenDraft(workspace, task, "main").lease(), pytest.raises(DraftBusy, match=f"fork {task.id}@main"):
        take_turn(workspace, claude, task.id, "First.")
    assert workspace.tasks.turns(task, "main") == []


def test_a_missing_transcript_is_never_a_fresh_session(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """When a recorded session is gone from the disk, writing says so and starts nothing."""
    task = make_task(workspace, "Herons")
    take_turn(workspace, claude, task.id, "First.")
    path = transcript(workspace, task)
    path.rename(path.with_suffix(".away"))
    asked = len(model.requests)
    with pytest.raises(SessionMissing, match="nothing was changed"):
        take_turn(workspace, claude, task.id, "Second.")
    path.with_suffix(".away").rename(path)
    assert len(model.requests) == asked
    assert take_turn(workspace, claude, task.id, "Second.").state is TurnState.finished


def test_a_first_turn_that_left_nothing_behind_gets_a_new_session(
    workspace: Workspace, claude: ClaudeAgent
) -> None:
    """A session id that a dead process may have used up is replaced, in the task, before it starts."""
    task = make_task(workspace, "Herons")
    session_id = task.drafts["main"].session_id
    dead = Turn(number=1, uuid="x", session_id=session_id, prompt="First.", state=TurnState.running)
    workspace.tasks.record(task, "main", [dead])
    turn = take_turn(workspace, claude, task.id, "Again.")
    assert turn.state is TurnState.finished and turn.session_id != session_id
    task = workspace.tasks.find(task.id)
    assert task.drafts["main"].session_id == turn.session_id


def test_a_prompt_that_was_never_stored_is_handed_on(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """The prompt of a turn whose process died before it was mirrored goes out with the next one, once,
    also when that turn was settled as interrupted in between."""
    model.script = lambda request: [Text("Fine.")]
    task = make_task(workspace, "Herons")
    first = take_turn(workspace, claude, task.id, "First.")
    for number, state in ((2, TurnState.interrupted), (3, TurnState.running)):
        dead = Turn(
            number=number,
            uuid=f"u{number}",
            session_id=first.session_id,
            prompt=f"Lost {number}.",
            state=state,
        )
        workspace.tasks.record(task, "main", [dead])
    take_turn(workspace, claude, task.id, "Fourth.")
    assert all(f"Lost {number}." in model.requests[-1].said for number in (2, 3))
    take_turn(workspace, claude, task.id, "Fifth.")
    assert model.requests[-1].said.count("Lost 2.") == 1


def test_a_prompt_cannot_make_the_cli_read_files(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, tmp_path: Path
) -> None:
    """A pasted "@/any/path" and a leading slash go to the model as they are, and nothing is read."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the-secret-itself")
    task = make_task(workspace, "Herons")
    prompt = f"/cost see @{secret}"
    take_turn(workspace, claude, task.id, prompt)
    assert model.requests[-1].prompt == prompt
    assert "the-secret-itself" not in str(model.requests[-1].body)


def test_without_a_login_a_live_command_says_how_to_log_in(workspace: Workspace) -> None:
    """Without login and key the sentence says how to get one, and that --offline exists."""
    task = make_task(workspace, "Herons")
    with OfflineModel() as nobody:
        done = subprocess.run(
            command(workspace.root, "write", task.id, "Hello."),
            env=dict(os.environ) | {"ANTHROPIC_BASE_URL": nobody.url},  # never the real one
            capture_output=True,
            timeout=60,
        )
    error = done.stderr.decode()
    assert done.returncode == 1
    assert "log in" in error and "--offline" in error and "Traceback" not in error
    assert error.count("\n") == 1
