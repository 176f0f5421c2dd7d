"""A damaged history, end to end: what the next turn's API request holds, and what is shown.

The CLI mends a broken chain by itself when it resumes. These tests keep it so: one per kind of
damage, on the real CLI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from transcripts import entry, entry_uuid
from turns import take_turn, take_turns

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.sdk import sdk_reads
from smartwriter.sessions.transcript import messages
from smartwriter.storage.journal import Journal
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.workspace import Workspace

Entries = list[dict[str, Any]]
WORDS = ["heron", "granite", "saffron", "walnut", "copper", "juniper"]


def history(task: Task) -> Entries:
    """Three turns, of one prompt and one answer each, as the CLI would have written them."""
    common = {
        "sessionId": task.drafts["main"].session_id,
        "version": "2.1.332",
        "userType": "external",
        "isSidechain": False,
    }
    return [entry(n, f"Say {word}.", **common) for n, word in enumerate(WORDS)]


def resumed(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, damage: Callable[[Entries], Entries]
) -> tuple[Request, list[str]]:
    """The request of the turn after some damage, and the texts that are shown of what was before."""
    task = workspace.new_task("Herons")
    entries = damage(history(task))
    path = OpenDraft(workspace, task, "main").transcript.path
    Journal(path).append(entries)
    before = path.read_bytes()
    shown = [message.text for message in messages(entries)]
    turn = take_turn(workspace, claude, task.id, "Go on.")
    assert turn.state is TurnState.finished, turn.detail
    assert path.read_bytes().startswith(before)
    return model.requests[-1], shown


def said(texts: list[str]) -> list[str]:
    """Which of the six words are in some texts, in the order of their first use."""
    text = "\n".join(texts)
    return sorted((word for word in WORDS if word in text), key=text.index)


def lose(*numbers: int) -> Callable[[Entries], Entries]:
    return lambda entries: [item for n, item in enumerate(entries) if n not in numbers]


def point(number: int, parent: int) -> Callable[[Entries], Entries]:
    def damage(entries: Entries) -> Entries:
        entries[number]["parentUuid"] = entry_uuid(parent)
        return entries

    return damage


def without_timestamps(entries: Entries) -> Entries:
    for item in entries:
        del item["timestamp"]
    return entries


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        pytest.param(lambda entries: entries, WORDS, id="none"),
        pytest.param(lose(2), WORDS[:2] + WORDS[3:], id="missing-middle"),
        pytest.param(lose(3), WORDS[:3] + WORDS[4:], id="missing-answer"),
        pytest.param(lose(0), WORDS[1:], id="missing-first"),
        pytest.param(point(1, 2), WORDS, id="parent-cycle"),
        pytest.param(point(3, 3), WORDS, id="self-parent"),
        pytest.param(lambda entries: entries + entries[:4], WORDS, id="duplicates"),
        pytest.param(lambda entries: [entries[n] for n in (3, 0, 5, 1, 4, 2)], WORDS, id="shuffled"),
        pytest.param(without_timestamps, WORDS, id="no-timestamps"),
    ],
)
def test_a_broken_chain_reaches_the_model_whole(
    workspace: Workspace,
    claude: ClaudeAgent,
    model: OfflineModel,
    damage: Callable[[Entries], Entries],
    left: list[str],
) -> None:
    """Whatever broke the chain, the next request holds every entry that is left, once and in order,
    and so does what is shown."""
    request, shown = resumed(workspace, claude, model, damage)
    assert said(request.texts) == left
    assert all(request.said.count(word) == 1 for word in left)
    assert said(shown) == left


def _tool_use(number: int) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "mcp__draft__read_draft", "input": {}}
    return entry(number, message={"role": "assistant", "content": [call]}, isSidechain=False)


def _tool_result(number: int) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "the result itself"}
    return entry(number, message={"role": "user", "content": [result]}, isSidechain=False)


def _calls(request: Request, kind: str, id: str) -> int:
    """How often the call is in a request, as a tool_use or a tool_result."""
    return sum(
        block["type"] == kind and block[id] == "toolu_1"
        for message in request.messages
        if isinstance(message["content"], list)
        for block in message["content"]
    )


def test_a_tool_call_at_the_end_is_closed(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """An interrupted tool call as the last entry gets a result, so that the API takes the request."""
    request, shown = resumed(workspace, claude, model, lambda entries: [*entries[:5], _tool_use(5)])
    assert _calls(request, "tool_use", "id") == 1
    assert _calls(request, "tool_result", "tool_use_id") == 1
    assert said(request.texts) == WORDS[:5] and said(shown) == WORDS[:5]


def test_a_tool_call_without_result_in_the_middle_is_left_out(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A call whose result was lost does not reach the API, and everything around it does."""
    request, _ = resumed(workspace, claude, model, lambda entries: [*entries[:3], _tool_use(3), *entries[4:]])
    assert _calls(request, "tool_use", "id") == 0
    assert said(request.texts) == WORDS[:3] + WORDS[4:]


def test_a_tool_result_without_call_is_replaced(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A result whose call was lost does not reach the API as one, and everything around it does."""
    request, _ = resumed(
        workspace, claude, model, lambda entries: [*entries[:2], _tool_result(2), *entries[3:]]
    )
    assert _calls(request, "tool_result", "tool_use_id") == 0
    assert said(request.texts) == WORDS[:2] + WORDS[3:]


def test_half_an_emoji_is_sent_as_a_replacement_character(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A lone surrogate in the history does not stop the session; the API gets U+FFFD for it."""

    def halve(entries: Entries) -> Entries:
        entries[3]["message"]["content"][0]["text"] = "Say walnut \ud83d."
        return entries

    request, shown = resumed(workspace, claude, model, halve)
    assert "Say walnut \ufffd." in request.said
    assert "Say walnut \ud83d." in shown
    assert said(request.texts) == WORDS


def test_a_prompt_that_was_never_answered_stays(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """A history that ends with a prompt resumes, and the prompt is still there."""
    request, shown = resumed(workspace, claude, model, lose(5))
    assert said(request.texts) == WORDS[:5] and said(shown) == WORDS[:5]
    assert request.prompt.endswith("Go on.")


def test_a_damaged_file_gives_every_whole_entry(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Of a file with a torn line, a run of NULs and two glued lines, all whole entries are sent."""
    task = workspace.new_task("Herons")
    path = OpenDraft(workspace, task, "main").transcript.path
    Journal(path).append(history(task))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2][:150], *lines[3:5], b"\0" * 300, b"\n", lines[5][:-1]]))
    take_turn(workspace, claude, task.id, "Go on.")
    assert said(model.requests[-1].texts) == WORDS[:2] + WORDS[3:]


def test_where_the_sdks_reader_is_right_ours_shows_the_same(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """In healthy sessions of the real CLI, parallel tool calls included, ours finds what it finds."""

    def script(request: Request) -> Reply:
        if request.tool_results or "plain" in request.prompt:
            return [Text("Done.")]
        return [Text("Two at once."), ToolUse("read_draft", {}), ToolUse("write_draft", {"text": "x"})]

    model.script = script
    task = workspace.new_task("Herons")
    prompts = ["First, plain.", "Second, with tools.", "Third, with tools.", "Fourth, plain."]
    turns: list[Turn] = take_turns(workspace, claude, [(task.id, prompt) for prompt in prompts])[0]
    assert all(turn.state is TurnState.finished for turn in turns)
    entries = OpenDraft(workspace, task, "main").transcript.read().entries
    ours = messages(entries)
    theirs = sdk_reads(entries)
    results = {item["uuid"] for item in entries if "toolUseResult" in item or _is_result(item)}
    assert {message.uuid for message in ours} == theirs - results
    assert not any(message.gap for message in ours)
    assert [message.text for message in ours if message.role == "user"] == prompts
    assert [message.tools for message in ours if message.tools] == [
        ("mcp__draft__read_draft",),
        ("mcp__draft__write_draft",),
    ] * 2


def _is_result(item: dict[str, Any]) -> bool:
    content = item.get("message", {}).get("content")
    return isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
