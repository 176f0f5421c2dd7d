"""A conversation that was compacted, by command or by the CLI itself, is still the same conversation."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time

import anyio
import pytest
from anyio.to_thread import run_sync
from commands import command, environment, smartwriter, written
from compacted import LONG, Origin, early, says
from turns import take_turn, take_turns

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.compacting import INSTRUCTIONS
from smartwriter.agent.notes import FORGOTTEN
from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse, Wait, asks_for_summary
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.doctor.examine import examine
from smartwriter.events import Compacted
from smartwriter.open_draft import OpenDraft
from smartwriter.pages.history import history_markdown
from smartwriter.sessions.speakers import prompts
from smartwriter.sessions.transcript import messages
from smartwriter.tasks.values import Turn, TurnState
from smartwriter.trials.history import history_of
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine


@pytest.mark.parametrize(
    "asked",
    [["First.", "Second.", "/compact", "Third.", "/compact", "Fourth."], ["First.", "Tools.", "Third."]],
    ids=["by command", "by itself, in a turn"],
)
def test_a_fork_is_sent_what_its_origin_was_sent(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, asked: list[str]
) -> None:
    """Forked or rewound at any turn, before or after a compaction, the model is sent what it was sent
    in the origin, message for message; the origin is as it was, and nothing is found by the doctor."""
    model.script = says
    by_itself = "/compact" not in asked
    origin = Origin(workspace, early(claude) if by_itself else claude, model, asked)
    assert origin.compactions() == (1 if by_itself else 2)
    transcript = OpenDraft(workspace, origin.task, "main").transcript.path
    before = transcript.read_bytes()
    assert origin.differing() == []
    assert transcript.read_bytes() == before
    assert not list(examine(workspace))


def test_a_compaction_is_said(workspace: Workspace, model: OfflineModel) -> None:
    """Who compacts a conversation reads from how many tokens to how many, sees in it where that was, with
    all that was said above it, and nothing of the CLI's own as anybody's words."""
    model.script = says
    task = workspace.new_task("Ferry")
    for prompt in ("First.", "Second."):
        written(workspace.root, task.id, prompt, model=model)
    done = smartwriter(workspace.root, "write", task.id, "/compact keep the names", model=model)
    assert done.returncode == 0, done.stderr
    assert re.search(rb"was compacted from [\d,]+ to [\d,]+ tokens", done.stderr)
    shown = smartwriter(workspace.root, "show", task.id).stdout.decode()
    places = [
        shown.index(part) for part in ("First.", "Second.", "[turn 3] /compact keep the names", "── The")
    ]
    assert places == sorted(places)
    assert "<command-" not in shown and "<local-" not in shown and "being continued" not in shown
    page = history_markdown(history_of(OpenDraft(workspace, task, "main")))
    assert "conversation was compacted from" in page and "being continued" not in page
    again = smartwriter(workspace.root, "write", task.id, "/compact", model=model)
    assert again.returncode == 0
    refused = smartwriter(workspace.root, "write", task.id, "/compact", model=model)
    assert refused.returncode == 1 and b"Not enough messages to compact" in refused.stderr


def test_a_prompt_that_reads_as_a_command_is_none(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Only what the writer sent as a command is one: a prompt in the CLI's own words for a command stands
    behind the compaction that it was sent after."""
    model.script = says
    task = workspace.new_task("Ferry")
    asked = ["First.", "Second.", "/compact", "<command-name>/x</command-name>", "Fifth."]
    turns, _ = take_turns(workspace, claude, [(task.id, prompt) for prompt in asked])
    said = messages(OpenDraft(workspace, task, "main").transcript.read().entries, prompts(turns))
    places = [one.text if one.role == "user" else one.role for one in said if one.role != "assistant"]
    assert places == [*asked[:3], "compaction", *asked[3:]]


def test_what_the_cli_compacts_by_itself_is_said_too(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A conversation that became too long, in the middle of a turn or before it, says so where it was."""
    model.script = says
    task = workspace.new_task("Ferry")
    jobs = [(task.id, prompt) for prompt in ("First.", "Tools.", "Third. " + LONG + LONG)]
    turns, events = take_turns(workspace, early(claude), jobs)
    assert [turn.state for turn in turns] == [TurnState.finished] * 3
    compacted = [event for event in events if isinstance(event, Compacted)]
    assert [(event.turn, event.by_itself) for event in compacted] == [(2, True), (3, True)]
    assert all(event.before and event.after and event.before > event.after for event in compacted)
    said = messages(OpenDraft(workspace, task, "main").transcript.read().entries, prompts(turns))
    roles = [message.role for message in said if message.role != "assistant"]
    assert roles == ["user", "user", "compaction", "user", "compaction"]


def test_what_the_model_knows_of_the_text_ends_with_a_compaction(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """It cannot replace a text of which it has a summary at best, in the next turn or in the middle of one,
    is told so once, and can as soon as it has read it."""
    replace = ToolUse("write_draft", {"text": "All new.\n"})
    task = workspace.new_task("Ferry")
    main = workspace.text(task, "main")
    model.script = says
    for prompt in ("First.", "Second.", "/compact"):
        take_turn(workspace, claude, task.id, prompt)
    main.path.write_text("The ferry left at dusk.\n")
    model.script = lambda request: [Text("I tried.")] if request.tool_results else [replace]
    take_turn(workspace, claude, task.id, "Replace it.")
    assert main.read() == "The ferry left at dusk.\n"
    assert model.requests[-1].system.count(FORGOTTEN) == 1
    assert "[The author edited the draft by hand.]" in model.requests[-1].said
    take_turn(workspace, claude, task.id, "Now that you have seen it.")
    assert main.read() == "All new.\n"

    def in_a_turn(request: Request) -> Reply:
        if asks_for_summary(request):
            return [Text("<summary>So far.</summary>")]
        calls = len(request.tool_results)
        if FORGOTTEN in request.system and calls < 2:
            return [replace]
        if "Read" in request.said and not calls:
            return [ToolUse("read_draft", {})]
        return [Text("Done.")]

    main.path.write_text(f"By hand. {LONG} {LONG}\n")
    model.script = in_a_turn
    task = workspace.tasks.find(task.id)
    take_turn(workspace, early(claude), task.id, "Read and replace it.")
    assert main.read().startswith("By hand.")
    assert [revision.aside for revision in main.revisions()][-1]


def test_a_compaction_that_outlives_its_program_is_one(workspace: Workspace, model: OfflineModel) -> None:
    """Finished by the CLI when the program had died, a compaction is said to be, and the model knows no more
    of the text than after any other: in the draft and in a fork it cannot replace it unseen."""
    gate = threading.Event()
    task = workspace.new_task("Ferry")
    model.script = says
    for prompt in ("First.", "Second."):
        written(workspace.root, task.id, prompt, model=model)
    asked = len(model.requests)
    model.script = lambda _: [Text("<summary>So"), Wait(gate), Text(" far.</summary>")]
    process = subprocess.Popen(
        [*command(workspace.root, "write", task.id, "/compact"), "--offline"],
        env=environment(model),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(model.requests) == asked:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    gate.set()
    replace = ToolUse("write_draft", {"text": "All new.\n"})
    model.script = lambda request: [Text("I tried.")] if request.tool_results else [replace]
    done = smartwriter(workspace.root, "write", task.id, "Replace it.", model=model)
    assert b"The compaction in turn 3" in done.stderr and b"was finished after" in done.stderr
    fork = smartwriter(workspace.root, "fork", task.id, "--at", "3", "--name", "trial")
    assert fork.returncode == 0, fork.stderr
    written(workspace.root, f"{task.id}@trial", "Replace it.", model=model)
    task = workspace.tasks.find(task.id)
    assert {workspace.text(task, name).read() for name in task.drafts} == {"The ferry left at dawn.\n"}
    shown = smartwriter(workspace.root, "show", task.id).stdout.decode()
    assert "── The conversation was compacted" in shown and "interrupted" not in shown


def test_a_compaction_that_did_not_come_about_leaves_nothing(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A compaction that was stopped, or failed, is no part of the conversation: the model is sent nothing of
    it, and the writer is not asked to send a command again as if it were a prompt."""
    task = workspace.new_task("Ferry")
    refused = take_turn(workspace, claude, task.id, "/compact")
    assert refused.state is TurnState.failed and "not sent along" not in refused.detail
    for prompt in ("First.", "Second."):
        take_turn(workspace, claude, task.id, prompt)
    gate, asked = threading.Event(), threading.Event()

    def held(request: Request) -> Reply:
        asked.set()
        return [Wait(gate)]

    async def stopped() -> Turn:
        async with Engine(workspace, claude) as engine:
            sent = engine.send(task, task.drafts["main"], "/compact")
            assert await run_sync(asked.wait, 30)
            await engine.stop(task, task.drafts["main"])
            return await sent.outcome()

    model.script = held
    assert anyio.run(stopped).state is TurnState.stopped
    gate.set()
    model.script = says
    take_turn(workspace, claude, task.id, "Third.")
    assert "Third." in model.requests[-1].said and "<command-name>" not in model.requests[-1].said
    assert "canceled" not in model.requests[-1].said and "Second." in model.requests[-1].said


def test_what_it_wrote_before_a_compaction_it_knows_no_more(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A text that the model made in the turn that was compacted behind it is one that it has not seen."""

    def script(request: Request) -> Reply:
        if asks_for_summary(request):
            return [Text("<summary>So far.</summary>")]
        if "Replace" in request.prompt:
            return (
                [Text("I tried.")] if request.tool_results else [ToolUse("write_draft", {"text": "New.\n"})]
            )
        if FORGOTTEN in request.system:
            return [Text("Done.")]
        return [ToolUse("read_draft", {}) if request.tool_results else ToolUse("write_draft", {"text": text})]

    text = f"The ferry. {LONG}{LONG}\n"
    model.script = script
    task = workspace.new_task("Ferry")
    take_turn(workspace, early(claude), task.id, "Write.")
    take_turn(workspace, claude, task.id, "Replace it.")
    assert workspace.text(task, "main").read() == text


def test_a_turn_goes_on_after_a_compaction_with_its_prompt(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Compacted in the middle of a turn, its later requests have the whole of the writer's prompt and of the
    notes before it, however long; compacted before the first, the prompt is there once."""
    task = workspace.new_task("Ferry")
    model.script = says
    take_turn(workspace, claude, task.id, "First.")
    text = workspace.text(task, "main")
    text.path.write_text("The ferry left at dawn, by hand.\n")
    sentences = "".join(f"Say {number}. " for number in range(3000))
    assert len(sentences) > 25_000
    take_turn(workspace, early(claude, 12), task.id, f"Tools. {sentences}The end.")
    last = model.requests[-1]
    together = re.sub(r"SessionStart hook additional context: |\n", "", last.system)
    assert "by hand" in together and "Tools. Say 0." in together
    assert all(f"Say {number}." in together for number in range(3000))
    other = workspace.new_task("Heron")
    take_turn(workspace, claude, other.id, "First.")
    before = len(model.requests)
    take_turn(workspace, early(claude), other.id, f"Another one. {LONG} {LONG}")
    sent = model.requests[before:]
    assert asks_for_summary(sent[0]) and not asks_for_summary(sent[1])
    assert sent[1].said.count("Another one.") == 1 and "Another one." not in sent[1].system


def test_the_summary_is_asked_for_in_our_words(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Asked for or by itself, a summary is of an article's making, with what the writer wants kept; and no
    request names the workspace, nor a folder that is gone."""
    task = workspace.new_task("Ferry")
    model.script = says
    for prompt in ("First.", "Second.", "/compact keep the names", f"Tools. {LONG}"):
        take_turn(workspace, early(claude), task.id, prompt)
    take_turn(workspace, claude, task.id, "And after it.")
    asked, by_itself = (request.prompt for request in model.requests if asks_for_summary(request))
    assert INSTRUCTIONS in asked and "keep the names" in asked
    assert INSTRUCTIONS in by_itself and "keep the names" not in by_itself.partition("Additional Instr")[2]
    sent = [json.dumps(request.body) for request in model.requests]
    assert not any(str(workspace.root) in body for body in sent)
    assert "claude-resume-" not in sent[-1] and "full transcript" not in sent[-1]
    entries = OpenDraft(workspace, task, "main").transcript.read().entries
    assert any("full transcript" in str(entry) for entry in entries)
