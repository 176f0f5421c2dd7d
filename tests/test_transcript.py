from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smartwriter.damage import Entry
from smartwriter.journal import Journal
from smartwriter.transcript import Message, Transcript, cut, forked_uuids, messages


def user(uuid: str, content: Any, **more: Any) -> Entry:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}, **more}


def assistant(uuid: str, *blocks: Entry, **more: Any) -> Entry:
    return {
        "type": "assistant",
        "uuid": uuid,
        "message": {"role": "assistant", "content": list(blocks)},
        **more,
    }


def text(text: str) -> Entry:
    return {"type": "text", "text": text}


def tool_use(name: str) -> Entry:
    return {"type": "tool_use", "id": "t-1", "name": name, "input": {}}


def tool_result(uuid: str) -> Entry:
    return user(uuid, [{"type": "tool_result", "tool_use_id": "t-1", "content": [text("Saved.")]}])


def linked(*entries: Entry) -> list[Entry]:
    """The entries as the CLI links them: each one that has a uuid to the one before."""
    parent, found = None, []
    for entry in entries:
        if "uuid" in entry:
            entry = {"parentUuid": parent, **entry}
            parent = entry["uuid"]
        found.append(entry)
    return found


CONVERSATION = linked(
    {"type": "queue-operation", "operation": "enqueue"},
    user("p-1", "写第一段"),
    assistant("a-1", {"type": "thinking", "thinking": "hm"}, text("好。")),
    assistant("a-2", tool_use("mcp__draft__write_draft")),
    tool_result("r-1"),
    assistant("a-3", text("写好了。")),
    {"type": "last-prompt", "lastPrompt": "写第一段"},
    user("p-2", [text("第二段"), {"type": "image"}, text("短一点")]),
    assistant("a-4", text("改好了。")),
    {"type": "summary", "summary": "渡口", "leafUuid": "a-4"},
)


def said(entries: list[Entry]) -> list[str]:
    return [message.uuid for message in messages(entries)]


# What was said ----------------------------------------------------------------------------------


def test_messages_are_what_was_said() -> None:
    """Prompts, answers and the names of tools, in order; no thinking, tool results or service entries."""
    assert messages(CONVERSATION) == [
        Message("user", "p-1", "写第一段", ()),
        Message("assistant", "a-1", "好。", ()),
        Message("assistant", "a-2", "", ("mcp__draft__write_draft",)),
        Message("assistant", "a-3", "写好了。", ()),
        Message("user", "p-2", "第二段\n\n短一点", ()),
        Message("assistant", "a-4", "改好了。", ()),
    ]


@pytest.mark.parametrize("mark", ["isMeta", "isSidechain", "isCompactSummary"])
def test_service_entries_are_not_said(mark: str) -> None:
    """What the CLI told itself, a subagent's talk and a summary are not part of the conversation."""
    service = user("x", "service", **{mark: True})
    assert said(linked(user("p-1", "写"), service, assistant("a-1", text("好。")))) == ["p-1", "a-1"]
    assert said(linked(user("p-1", "写", **{mark: False}))) == ["p-1"]


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"type": "user"},
        {"type": "user", "message": None},
        {"type": "assistant", "message": "text"},
        {"type": "assistant", "message": {"content": None}},
        {"type": "assistant", "message": {"content": 7}},
        {
            "type": "assistant",
            "message": {"content": [None, "x", {"type": "text"}, {"type": "text", "text": 5}]},
        },
        {"type": "assistant", "message": {"content": [{"type": "tool_use"}]}},
        {"type": "future-thing", "message": {"content": "x"}},
        {"type": "user", "message": {"content": "  \n"}},
    ],
)
def test_an_entry_of_an_unknown_shape_says_nothing(entry: Entry) -> None:
    """Entries of a later version, or without any words, are passed over and end nothing."""
    assert said(
        [user("p-1", "写"), {"uuid": "x", "parentUuid": "p-1", **entry}, user("p-2", "写", parentUuid="x")]
    ) == [
        "p-1",
        "p-2",
    ]


def test_an_abandoned_line_is_not_said() -> None:
    """Where the conversation went on from an earlier entry, only the line that was followed is shown."""
    entries = linked(user("p-1", "写"), assistant("a-1", text("好。")), user("old", "算了"))
    entries += [user("new", "再写", parentUuid="a-1")]
    assert said(entries) == ["p-1", "a-1", "new"]


def test_a_missing_entry_is_a_gap() -> None:
    """Where an entry is missing all others are shown, and the next message says that there is a gap."""
    entries = linked(
        user("p-1", "写"), assistant("a-1", text("好。")), user("p-2", "再"), assistant("a-2", text("行"))
    )
    del entries[1]
    assert [(message.uuid, message.gap) for message in messages(entries)] == [
        ("p-1", False),
        ("p-2", True),
        ("a-2", False),
    ]


def test_a_circle_ends() -> None:
    """Entries that are each other's parents are shown once each."""
    entries = [user("p-1", "写", parentUuid="a-1"), assistant("a-1", text("好。"), parentUuid="p-1")]
    assert said(entries) == ["p-1", "a-1"]


def test_an_entry_that_stands_twice_is_said_once() -> None:
    """A file in which a tool wrote old entries again shows each message once."""
    assert messages([*CONVERSATION, *CONVERSATION]) == messages(CONVERSATION)


# Where a fork is cut ----------------------------------------------------------------------------


def test_a_fork_is_cut_before_the_next_prompt() -> None:
    """The cut is the last entry of the turn, after its tool results, not any earlier."""
    assert cut(CONVERSATION, {"p-2"}) == "a-3"
    assert cut(CONVERSATION, {"p-3", "p-2"}) == "a-3"


def test_without_later_prompts_all_is_shared() -> None:
    """Where no prompt comes later, or none of them is in the file, the cut is the last entry."""
    assert cut(CONVERSATION, set()) == cut(CONVERSATION, {"elsewhere"}) == "a-4"


def test_nothing_before_the_first_prompt_can_be_shared() -> None:
    """There is no cut before the first prompt, or in a transcript without entries."""
    assert cut(CONVERSATION, {"p-1"}) is None
    assert cut([], set()) is None


def test_a_fork_is_cut_at_an_entry_of_the_chain() -> None:
    """Subagents' entries, service lines and entries without uuid are no place to cut."""
    entries = [
        user("p-1", "写"),
        {"type": "system", "uuid": "s-1"},
        assistant("side", text("sub"), isSidechain=True),
        {"type": "file-history-snapshot", "uuid": "f-1"},
        {"type": "assistant"},
        user("p-2", "再写"),
    ]
    assert cut(entries, {"p-2"}) == "s-1"


# What a fork took over --------------------------------------------------------------------------


def test_a_forks_entries_by_their_origin() -> None:
    """Each entry that a fork copied is known by its uuid in the origin; its own are not among them."""
    entries = [
        user("n-1", "写", forkedFrom={"sessionId": "s", "messageUuid": "p-1"}),
        assistant("n-2", text("好。"), forkedFrom={"sessionId": "s", "messageUuid": "a-1"}),
        user("n-3", "再写"),
        user("n-4", "x", forkedFrom=None),
        {"type": "summary", "forkedFrom": {"messageUuid": "a-2"}},
        assistant("n-5", forkedFrom={"sessionId": "s"}),
    ]
    assert forked_uuids(entries) == {"p-1": "n-1", "a-1": "n-2"}
    assert forked_uuids(CONVERSATION) == {}


# The file ---------------------------------------------------------------------------------------


def test_a_transcript_on_disk(tmp_path: Path) -> None:
    """A transcript says what is in its file: entries, one of a uuid, and where it is damaged."""
    transcript = Transcript(tmp_path / "s.jsonl")
    Journal(transcript.path).append(CONVERSATION)
    with transcript.path.open("ab") as file:
        file.write(b'{"type":"user","uuid":"torn')
    contents = transcript.read()
    assert contents.entries == CONVERSATION
    assert [stretch.length for stretch in contents.damage] == [27]
    assert transcript.has_entries()
    assert transcript.has("p-2") and not transcript.has("torn")


def test_a_missing_transcript_is_told_from_an_empty_one(tmp_path: Path) -> None:
    """Neither has entries, but reading one that is missing is an error, never an empty history."""
    transcript = Transcript(tmp_path / "s.jsonl")
    assert not transcript.has_entries() and not transcript.has("p-1")
    with pytest.raises(FileNotFoundError):
        transcript.read()
    transcript.path.touch()
    assert not transcript.has_entries()
    assert transcript.read().entries == []
