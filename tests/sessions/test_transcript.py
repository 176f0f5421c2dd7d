from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smartwriter.sessions.transcript import Message, Transcript, answer_to, cut, messages, relinked
from smartwriter.storage.interface import Storage
from smartwriter.storage.journal import Journal
from smartwriter.storage.salvage import Entry


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


def test_an_answer_ends_where_the_next_prompt_begins() -> None:
    """What was answered to a later prompt is no part of an answer, and makes none whole."""
    broken = assistant("a-1", text("好。"))
    whole = assistant("a-2", text("行。"))
    whole["message"]["stop_reason"] = "end_turn"
    entries = linked(user("p-1", "写"), broken, user("p-2", "再"), whole)
    assert answer_to(entries, "p-1", {"p-2"}) is None
    assert answer_to(entries, "p-1", {"p-2"}, whole=False) == "好。"
    assert answer_to(entries, "p-2") == "行。"


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


def compaction(uuid: str, logical: str, **metadata: Any) -> Entry:
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": uuid,
        "parentUuid": None,
        "logicalParentUuid": logical,
        "compactMetadata": metadata,
    }


COMPACTED: list[Entry] = [
    *CONVERSATION,
    compaction("b", "a-4", trigger="manual", preTokens=9000, postTokens=1200),
    user("sum", "This session is being continued …", parentUuid="b", isCompactSummary=True, promptId="c"),
    user("cav", "<local-command-caveat>…", parentUuid="sum", isMeta=True, promptId="c"),
    user("com", "<command-name>/compact</command-name>", parentUuid="cav", promptId="c"),
    user("out", "<local-command-stdout>Compacted", parentUuid="com", promptId="c"),
    user("p-3", "Go on.", parentUuid="out", promptId="d"),
    user("cav-2", "<local-command-caveat>…", parentUuid="p-3", isMeta=True, promptId="e"),
    user("com-2", "<command-name>/compact</command-name>", parentUuid="cav-2", promptId="e"),
]
"""As the CLI writes a compaction by command, which it notes after what it did, and one that failed."""


def test_a_compaction_belongs_to_the_turn_that_asked_for_it() -> None:
    """Cut before a command, nothing of what it did is shared: no boundary, no summary; cut after it, all."""
    assert cut(COMPACTED, {"com", "p-3"}) == "a-4"
    assert cut(COMPACTED, {"p-3"}) == "out"
    assert cut(COMPACTED, {"com-2"}) == "p-3"
    by_itself = [*COMPACTED, user("p-4", "On."), compaction("b-2", "p-4"), assistant("a-5", text("Yes."))]
    assert cut(by_itself, {"p-4"}) == "com-2" and cut(by_itself, ()) == "a-5"


def test_linking_past_a_gap_leaves_a_compaction_one() -> None:
    """Where what a compaction follows is missing, it is linked as a compaction is: without a parent."""
    missing = [one for one in COMPACTED if one.get("uuid") != "a-4"]
    (boundary,) = [one for one in relinked(missing) if one.get("uuid") == "b"]
    assert (boundary["parentUuid"], boundary["logicalParentUuid"]) == (None, "p-2")


# The file ---------------------------------------------------------------------------------------


def test_a_transcript_on_disk(tmp_path: Path) -> None:
    """A transcript says what is in its file: entries, one of a uuid, and where it is damaged."""
    transcript = Transcript(Journal(tmp_path / "s.jsonl"))
    Journal(transcript.path).append(CONVERSATION)
    with transcript.path.open("ab") as file:
        file.write(b'{"type":"user","uuid":"torn')
    contents = transcript.read()
    assert contents.entries == CONVERSATION
    assert [stretch.length for stretch in contents.damage] == [27]
    assert transcript.has_entries()
    assert transcript.has("p-2") and not transcript.has("torn")


def test_a_transcript_by_name(storage: Storage) -> None:
    """Whatever keeps it: what was never said is empty, and what was is read."""
    transcript = Transcript(storage.journal("sessions", "book", "s"))
    assert not transcript.has_entries() and not transcript.has("p-1")
    assert transcript.read().entries == [] == list(transcript.entries())
    transcript.journal.append(CONVERSATION)
    assert transcript.has_entries() and transcript.has("p-2") and not transcript.has("nobody")
    assert transcript.read().entries == CONVERSATION == list(transcript.entries())
