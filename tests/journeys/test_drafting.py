"""Trying things out, end to end: the real CLI, the stand-in model, hand edits, forks and what is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ResultMessage,
    get_subagent_messages_from_store,
    list_subagents_from_store,
    query,
)
from turns import make_task, take_turn, take_turns

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.transcript import messages
from smartwriter.tasks.values import Draft, Task, Turn, TurnState
from smartwriter.trials.edits import pick, put_back, take_answer
from smartwriter.trials.forking import fork, rewind
from smartwriter.trials.version import version
from smartwriter.workspace import Workspace


def make_fork(
    workspace: Workspace, address: str, *, at: int | None = None, revision: int | None = None
) -> Draft:
    task, draft = workspace.tasks.resolve(address)
    return anyio.run(partial(fork, OpenDraft(workspace, task, draft.name), at=at, revision=revision))


def writes(request: Request) -> Reply:
    """Write what was asked for, after what stands there."""
    asked = re.sub(r"\[.*\]\s*", "", request.prompt, flags=re.DOTALL)
    if not request.tool_results:
        return [ToolUse("read_draft", {})]
    if len(request.tool_results) == 1:
        before = request.tool_results[0].replace("(The draft is empty.)", "")
        return [ToolUse("write_draft", {"text": f"{before}{asked}\n\n"})]
    return [Text("Done.")]


def says(request: Request) -> Reply:
    return [Text("Fine.")]


# What the model is told ---------------------------------------------------------------------------


def test_a_hand_edit_is_told_word_for_word_and_once(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """The next prompt says what the writer changed; the one after it does not say it again."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "The grey heron stands in the reeds.")
    text = workspace.text(task, "main")
    text.path.write_text(text.read().replace("grey heron", "old heron"))
    model.script = says
    take_turn(workspace, claude, task.id, "Go on.")
    prompt = model.requests[-1].prompt
    assert "The author edited the draft by hand. What changed:" in prompt
    assert "[-grey-]{+old+}" in prompt and prompt.endswith("Go on.")
    take_turn(workspace, claude, task.id, "And on.")
    assert model.requests[-1].prompt == "And on."


def test_a_long_hand_edit_is_told_in_part_and_never_overwritten(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Of a rewrite the model is told a part, and what it has not read it cannot replace."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "The grey heron.")
    text = workspace.text(task, "main")
    mine = "\n\n".join(f"Paragraph {number} of my own, about reeds." for number in range(300))
    text.path.write_text(mine)

    def script(request: Request) -> Reply:
        if not request.tool_results:
            return [ToolUse("write_draft", {"text": "All new."})]
        return [Text("Done.")]

    model.script = script
    take_turn(workspace, claude, task.id, "Go on.")
    assert "What changed, in part; read it before you change it" in model.requests[-1].prompt
    assert len(model.requests[-1].prompt) < 6000
    assert "The author has changed the text since you last read it" in model.requests[-1].tool_results[0]
    assert text.read() == mine
    assert [(one.author, one.aside) for one in text.revisions()] == [
        ("model", False),
        ("writer", False),
        ("model", True),
    ]


def test_a_hand_edit_while_a_turn_writes_is_not_overwritten(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A rewrite that comes too late is refused with the newer text; an edit that still fits is made in it."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "The grey heron. The reed.")
    text = workspace.text(task, "main")

    def script(request: Request) -> Reply:
        step = len(request.tool_results)
        if step == 0:
            text.path.write_text("The grey heron. The reed. And mine.")
            return [ToolUse("write_draft", {"text": "All new."})]
        if step == 1:
            text.path.write_text("The grey heron. The reed. And mine again.")
            edit = {"old_text": "grey", "new_text": "white"}
            return [ToolUse("edit_draft", {"edits": [edit]})]
        return [Text("Done.")]

    model.script = script
    turn = take_turn(workspace, claude, task.id, "Go on.")
    refused, edited = model.requests[-1].tool_results
    assert "The grey heron. The reed. And mine." in refused and "kept as revision 3" in refused
    assert edited.startswith("Saved as revision 5") and "And mine{+ again+}." in edited
    assert text.read() == text.path.read_text() == "The white heron. The reed. And mine again."
    assert turn.revision == 5


def test_one_huge_change_by_hand_is_never_overwritten_unread(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A change too big to be told at all is not taken for told, however small the others are."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "The grey heron.")
    text = workspace.text(task, "main")
    mine = "The old heron.\n\n" + "A chapter in a single paragraph. " * 400
    text.path.write_text(mine)

    def script(request: Request) -> Reply:
        if not request.tool_results:
            return [ToolUse("write_draft", {"text": "All new."})]
        return [Text("Done.")]

    model.script = script
    take_turn(workspace, claude, task.id, "Go on.")
    assert "What changed, in part; read it before you change it" in model.requests[-1].prompt
    assert text.read() == mine


def test_an_edit_is_no_proof_that_the_whole_text_was_read(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Who edits a passage of a text that was told in part still cannot replace the rest of it."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "The grey heron. The reed.")
    text = workspace.text(task, "main")
    mine = "\n\n".join(f"Paragraph {number} of my own, about reeds." for number in range(300))

    def script(request: Request) -> Reply:
        step = len(request.tool_results)
        if step == 0:
            text.path.write_text(f"The grey heron. The reed.\n\n{mine}")
            return [ToolUse("edit_draft", {"edits": [{"old_text": "grey", "new_text": "white"}]})]
        if step == 1:
            return [ToolUse("edit_draft", {"edits": [{"old_text": "white", "new_text": "black"}]})]
        if step == 2:
            return [ToolUse("write_draft", {"text": "All new."})]
        return [Text("Done.")]

    model.script = script
    take_turn(workspace, claude, task.id, "Go on.")
    first, second, refused = model.requests[-1].tool_results
    assert "had changed the draft by hand, of which this is a part" in first
    assert second.startswith("Saved as revision 4") and "by hand" not in second
    assert "so it was not replaced" in refused
    assert text.read() == f"The black heron. The reed.\n\n{mine}"


@pytest.mark.parametrize(
    "change", [str.rstrip, lambda text: text.replace("\n", "\r\n"), lambda text: "\ufeff" + text]
)
def test_a_change_of_no_word_is_told_as_one(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, change: Callable[[str], str]
) -> None:
    """What an editor does by itself to line ends and the end of a file is no empty list of changes."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "The grey heron.\nThe reed.")
    text = workspace.text(task, "main")
    text.path.write_bytes(change(text.read()).encode())
    model.script = says
    take_turn(workspace, claude, task.id, "Go on.")
    assert model.requests[-1].prompt == (
        "[The author edited the draft by hand. What changed:\n\n"
        "Nothing but blank lines, line ends or the like.]\n\nGo on."
    )


def test_a_deleted_file_is_restored_and_told(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A draft whose file is gone is written again, and the next prompt says so."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "The grey heron.")
    text = workspace.text(task, "main")
    text.path.unlink()
    model.script = says
    take_turn(workspace, claude, task.id, "Go on.")
    assert "file was gone; it was restored" in model.requests[-1].prompt
    assert text.path.read_text() == "The grey heron.\n\n"


def test_what_the_writer_does_by_command_is_told(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Taking an answer, putting a version back and bringing paragraphs home are named in the next prompt."""
    task = make_task(workspace, "Herons")
    main = task.drafts["main"]
    model.script = lambda request: [Text("The answer in the chat.")]
    take_turn(workspace, claude, task.id, "First.")
    assert take_answer(OpenDraft(workspace, task, main.name)).text == "The answer in the chat.\n"
    model.script = says
    take_turn(workspace, claude, task.id, "Second.")
    assert "made your answer of turn 1 the draft's text" in model.requests[-1].prompt
    workspace.text(task, "main").path.write_text("Mine.\n")
    put_back(version(workspace, f"{task.id}:1"))
    take_turn(workspace, claude, task.id, "Third.")
    assert model.requests[-1].prompt == "Third."  # it knows that text
    trial = make_fork(workspace, task.id)
    workspace.text(task, trial.name).path.write_text("The answer in the chat.\n\nA new end.\n")
    task = workspace.tasks.find(task.id)
    pick(version(workspace, task.address(trial.name)), OpenDraft(workspace, task, main.name), [2])
    take_turn(workspace, claude, task.id, "Fourth.")
    prompt = model.requests[-1].prompt
    assert f"took over paragraph 2 of {task.address(trial.name)}:2 into the draft" in prompt
    assert "A new end." in prompt


def test_an_answer_is_taken_from_its_own_turn(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """``take --turn`` takes what was said in that turn, not in the later ones."""
    task = make_task(workspace, "Herons")
    model.script = lambda request: [Text(f"Answer to {request.prompt}")]
    for prompt in ("one", "two", "three"):
        take_turn(workspace, claude, task.id, prompt)
    revision = take_answer(OpenDraft(workspace, task, "main"), 2)
    assert (revision.text, revision.author) == ("Answer to two\n", "model")
    assert workspace.text(task, "main").at_turn(3) == ""  # it came after the third


# Forks ------------------------------------------------------------------------------------------


def files_of(workspace: Workspace, task: Task, draft: str) -> dict[Path, bytes]:
    """All that a draft consists of."""
    task = workspace.tasks.find(task.id)
    session = OpenDraft(workspace, task, draft).transcript.path
    paths = [
        session,
        workspace.text(task, draft).path,
        *(workspace.hidden / kind / task.id / f"{draft}.jsonl" for kind in ("turns", "revisions")),
    ]
    return {path: path.read_bytes() for path in paths}


def test_twenty_drafts_three_deep_each_hold_their_own_past(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Forks at turns 1, 2 and 3 of drafts three deep, all written on in parallel: no origin changes by
    a byte, and each fork's next request holds exactly its own past and its own text."""
    task = make_task(workspace, "Herons")
    model.script = writes
    for number in (1, 2, 3):
        take_turn(workspace, claude, task.id, f"main{number}")
    past = {"main": ["main1", "main2", "main3"]}
    origins = ["main"]
    for _ in range(2):  # a fork of a fork
        origin = origins[-1]
        name = make_fork(workspace, task.address(origin)).name
        past[name] = [*past[origin]]
        for _ in range(2):
            prompt = f"{name}-{len(past[name]) + 1}"
            take_turn(workspace, claude, task.address(name), prompt)
            past[name].append(prompt)
        origins.append(name)
    for number in range(17):
        origin, at = origins[number % 3], number % 3 + 1
        name = make_fork(workspace, task.address(origin), at=at).name
        past[name] = past[origin][:at]
        assert workspace.text(task, name).read() == "".join(f"{prompt}\n\n" for prompt in past[name])
    trials = [name for name in past if name not in origins]
    before = {origin: files_of(workspace, task, origin) for origin in origins}
    asked = model.requests.__len__()
    take_turns(workspace, claude, [(task.address(name), f"on-{name}") for name in trials], parallel=4)
    assert len(past) == 20
    assert before == {origin: files_of(workspace, task, origin) for origin in origins}
    last = {request.prompt: request for request in model.requests[asked:]}  # of each draft
    for name in trials:
        request = last[f"on-{name}"]
        prompts = [word for word in re.findall(r"[\w-]+", request.said) if word in _all_prompts(past)]
        assert set(prompts) == set(past[name]), name
        assert request.tool_results[0] == "".join(f"{prompt}\n\n" for prompt in past[name])
        assert workspace.text(task, name).read().endswith(f"on-{name}\n\n")


def _all_prompts(past: dict[str, list[str]]) -> set[str]:
    return {prompt for prompts in past.values() for prompt in prompts}


def test_a_fork_starts_from_any_version(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A fork of a revision has that text and the conversation up to its turn; what the model does not know
    of it is told."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "First.")
    text = workspace.text(task, "main")
    text.path.write_text("First, by hand.\n\n")
    take_turn(workspace, claude, task.id, "Second.")
    assert [one.author for one in text.revisions()] == ["model", "writer", "model"]
    trial = make_fork(workspace, task.id, revision=2)
    assert trial.origin is not None and (trial.origin.turn, trial.origin.revision) == (1, 2)
    assert workspace.text(task, trial.name).read() == "First, by hand.\n\n"
    model.script = says
    take_turn(workspace, claude, task.address(trial.name), "On.")
    said = model.requests[-1].said
    assert f"started this trial draft from the text of {task.id}@main:2" in said and "by hand" in said
    assert "Second." not in said


def test_a_fork_at_a_turn_that_never_reached_the_model_tells_what_that_turn_would_have(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """What was to be told with a prompt that got lost is told in the fork, as it is in its origin."""
    task = make_task(workspace, "Herons")
    model.script = writes
    turn = take_turn(workspace, claude, task.id, "The grey heron.")
    text = workspace.text(task, "main")
    text.path.write_text("The old heron.\n")
    known = OpenDraft(workspace, task, "main").take_hand_edit().revision
    assert known is not None
    lost = turn.model_copy(
        update={"number": 2, "uuid": "lost", "state": TurnState.failed, "revision": known.number}
    )
    workspace.tasks.record(task, "main", [lost])
    model.script = says
    for address in (f"{task.id}@{make_fork(workspace, task.id, at=2).name}", task.id):
        take_turn(workspace, claude, address, "Go on.")
        assert "[-grey-]{+old+}" in model.requests[-1].prompt


@pytest.mark.parametrize("state", ["recovered", "stopped", "failed", "interrupted"])
def test_a_fork_shares_the_last_turn_however_it_ended(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, state: str
) -> None:
    """The fork starts from the text as it is now, also when the last turn did not come to its end."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "One.")
    turn = take_turn(workspace, claude, task.id, "Two.")
    workspace.tasks.record(task, "main", [turn.model_copy(update={"state": TurnState(state)})])
    text = workspace.text(task, "main")
    text.path.write_text(text.read() + "By hand.\n")
    trial = make_fork(workspace, task.id)
    assert trial.origin is not None and trial.origin.turn == 2
    assert workspace.text(task, trial.name).read() == text.read()


def test_a_fork_of_a_running_draft_shares_its_last_finished_turn(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """While a turn is being written its draft can be forked; the fork knows nothing of that turn."""
    task = make_task(workspace, "Herons")
    model.script = writes
    take_turn(workspace, claude, task.id, "First.")
    forks: list[Draft] = []

    def script(request: Request) -> Reply:
        if not request.tool_results:
            return [ToolUse("write_draft", {"text": "Half-way."})]
        if not forks:
            with ThreadPoolExecutor() as elsewhere:
                forks.append(elsewhere.submit(make_fork, workspace, task.id).result())
        return [Text("Done.")]

    model.script = script
    turn = take_turn(workspace, claude, task.id, "Second.")
    assert turn.state is TurnState.finished
    (trial,) = forks
    assert trial.origin is not None and trial.origin.turn == 1
    assert workspace.text(task, trial.name).read() == "First.\n\n"
    model.script = says
    take_turn(workspace, claude, task.address(trial.name), "On.")
    assert "Second." not in model.requests[-1].said


def test_a_draft_whose_collection_is_gone_can_be_forked(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Conversation and text are carried, also where the writer removed the collection's folder."""
    task = make_task(workspace, "Herons", "Rivers")
    model.script = writes
    take_turn(workspace, claude, task.id, "First.")
    (workspace.root / "collections" / "Rivers").rename(workspace.root / "elsewhere")
    trial = make_fork(workspace, task.id)
    assert workspace.text(task, trial.name).read() == "First.\n\n"
    take_turn(workspace, claude, task.address(trial.name), "Second.")
    assert workspace.text(task, trial.name).read() == "First.\n\nSecond.\n\n"


def test_rewinding_takes_the_model_back_and_keeps_what_came_after(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """After a rewind the current draft's context and text end at that turn; the old line is untouched."""
    task = make_task(workspace, "Herons")
    model.script = writes
    for prompt in ("First.", "Second.", "Third."):
        take_turn(workspace, claude, task.id, prompt)
    before = files_of(workspace, task, "main")
    rewound = anyio.run(rewind, OpenDraft(workspace, task, "main"), 1)
    assert workspace.tasks.find(task.id).current == rewound.name
    take_turn(workspace, claude, task.id, "Another way.")
    assert "Second." not in model.requests[-1].said and "First." in model.requests[-1].said
    assert workspace.text(task, rewound.name).read() == "First.\n\nAnother way.\n\n"
    assert files_of(workspace, task, "main") == before


@pytest.mark.anyio
async def test_a_fork_keeps_subagents_and_parallel_tool_calls(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A session with two subagents called at once is forked whole: every call has its result, and the
    fork's subagents can be listed and read; those of a later turn stay behind."""
    task = await run_sync(workspace.new_task, "Herons")
    main = task.drafts["main"]
    store = workspace.store.bind(task.project_key)
    turns = []
    for number in (1, 2):
        await _delegate(workspace, task, model, claude, number)
        entries = (await run_sync(OpenDraft(workspace, task, main.name).transcript.read)).entries
        prompts = [one for one in messages(entries) if one.role == "user" and "Delegate" in one.text]
        turn = Turn(
            number=number,
            uuid=prompts[-1].uuid,
            session_id=main.session_id,
            prompt=prompts[-1].text,
            state=TurnState.finished,
        )
        turns.append(turn)
        await run_sync(workspace.tasks.record, task, "main", [turn])
    ours = await list_subagents_from_store(store, main.session_id)
    assert len(ours) == 4
    fork_at_1 = await fork(OpenDraft(workspace, task, main.name), at=1)
    fork_at_2 = await fork(OpenDraft(workspace, task, main.name))
    kept = await list_subagents_from_store(store, fork_at_1.session_id)
    assert len(kept) == 2 and set(kept) < set(ours)
    assert sorted(await list_subagents_from_store(store, fork_at_2.session_id)) == sorted(ours)
    for agent in kept:
        said = await get_subagent_messages_from_store(store, fork_at_1.session_id, agent)
        assert len(said) >= 2
    forked = OpenDraft(workspace, task.with_draft(fork_at_2), fork_at_2.name)
    entries = (await run_sync(forked.transcript.read)).entries
    calls, results = _pairs(entries)
    assert len(calls) == 4 and calls == results


async def _delegate(
    workspace: Workspace, task: Task, model: OfflineModel, claude: ClaudeAgent, number: int
) -> None:
    def script(request: Request) -> Reply:
        if "Delegate" not in request.said:
            return [Text(f"I looked: {request.prompt}")]
        if request.tool_results:
            return [Text("Both have answered.")]
        agent = request.tool("Task") or request.tool("Agent")
        assert agent is not None, request.tools
        return [
            ToolUse(agent, {"description": "look", "prompt": f"Look {side}", "subagent_type": "looker"})
            for side in ("left", "right")
        ]

    model.script = script
    session_id = task.drafts["main"].session_id
    options = ClaudeAgentOptions(
        session_store=workspace.store.bind(task.project_key),
        session_store_flush="eager",
        session_id=session_id if number == 1 else None,
        resume=None if number == 1 else session_id,
        max_buffer_size=64 << 20,
        setting_sources=[],
        agents={"looker": AgentDefinition(description="Looks.", prompt="You look.", tools=["Read"])},
        allowed_tools=["Task", "Agent"],
        cwd=workspace.root,
        env=dict(claude.env),
    )
    async for message in query(prompt=f"Delegate {number}.", options=options):
        if isinstance(message, ResultMessage):
            assert not message.is_error, message


def _pairs(entries: list[dict[str, object]]) -> tuple[list[str], list[str]]:
    """The ids of tool calls and of tool results, sorted."""
    calls, results = [], []
    for entry in entries:
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_use":
                calls.append(block["id"])
            if block.get("type") == "tool_result":
                results.append(block["tool_use_id"])
    return sorted(calls), sorted(results)
