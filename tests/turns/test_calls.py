"""What was being typed into the draft when a turn ended."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smartwriter.agent.tool_input import ToolInput
from smartwriter.events import (
    ArticleDelta,
    CallBegun,
    CallDropped,
    DraftRevised,
    Event,
    ToolAnswered,
    ToolUsed,
)
from smartwriter.storage.journal import Journal
from smartwriter.tasks.draft_text import DraftText
from smartwriter.turns.calls import Calls

_OF: dict[str, Any] = {"task": "k7mq", "draft": "main", "turn": 3}


def typed(tool: str, given: dict[str, Any], characters: int | None = None, call: str = "a") -> list[Event]:
    """A call, or as many characters of its JSON."""
    data = json.dumps(given)
    events: list[Event] = [CallBegun(**_OF, call=call, tool=tool)]
    for piece in ToolInput().feed(data[:characters]):
        edit = next((key for key in piece.path if isinstance(key, int)), 0)
        events.append(ArticleDelta(**_OF, call=call, field=str(piece.path[-1]), edit=edit, text=piece.text))
    return events if characters is not None else [*events, ToolUsed(**_OF, name=tool, call=call)]


def answered(call: str = "a", *, failed: bool = False) -> Event:
    return ToolAnswered(**_OF, text="", failed=failed, call=call)


@pytest.fixture
def text(tmp_path: Path) -> DraftText:
    return DraftText(tmp_path / "main.md", Journal(tmp_path / "main.jsonl"), lambda: tmp_path / "trash")


def versions(text: DraftText, events: list[Event]) -> list[str]:
    return [one.text for one in Calls(3, events).versions(text.revisions())]


FOG = "# Fog\n\nThe ferry waited.\n\n# Low water\n\nIt left.\n"


@pytest.mark.parametrize(
    ("tool", "given", "characters", "after"),
    [
        pytest.param("write_draft", {"text": "A new text"}, 14, "A ne", id="write"),
        pytest.param("write_draft", {"text": "A new text"}, None, "A new text", id="whole write"),
        pytest.param("append_draft", {"text": "And then"}, 14, f"{FOG}\nAnd ", id="append"),
        pytest.param(
            "append_draft",
            {"after": "Fog", "text": "And then"},
            31,
            "# Fog\n\nThe ferry waited.\n\nAnd t\n\n# Low water\n\nIt left.\n",
            id="append to a section",
        ),
        pytest.param("append_draft", {"version": 1, "text": "\nAnd"}, None, f"{FOG}\nAnd", id="go on"),
        pytest.param(
            "edit_draft",
            {
                "edits": [
                    {"old_text": "ferry", "new_text": "boat"},
                    {"old_text": "left", "new_text": "sailed"},
                ]
            },
            None,
            FOG.replace("ferry", "boat").replace("left", "sailed"),
            id="whole edit",
        ),
        pytest.param(
            "edit_draft",
            {
                "edits": [
                    {"old_text": "ferry", "new_text": "boat"},
                    {"old_text": "left", "new_text": "sailed"},
                ]
            },
            90,
            FOG.replace("ferry", "boat").replace("left", "sa"),
            id="half edit",
        ),
        pytest.param(
            "edit_draft",
            {
                "edits": [
                    {"old_text": "ferry", "new_text": "boat"},
                    {"old_text": "left", "new_text": "sailed"},
                ]
            },
            70,
            FOG.replace("ferry", "boat"),
            id="half passage",
        ),
        pytest.param(
            "edit_draft",
            {"edits": [{"new_text": "the grey boat", "old_text": "ferry"}]},
            50,
            f"{FOG}\nthe grey boat\n",
            id="no passage yet",
        ),
        pytest.param(
            "edit_draft", {"edits": [{"old_text": " ferry", "new_text": ""}]}, 51, None, id="half a deletion"
        ),
    ],
)
def test_half_a_call_leaves_the_text_that_the_draft_would_have_had(
    text: DraftText, tool: str, given: dict[str, Any], characters: int | None, after: str | None
) -> None:
    """Whatever a call was to do, and wherever it broke off, the version has each character that came."""
    text.write(FOG, author="model", turn=1)
    found = versions(text, typed(tool, given, characters))
    assert found == ([after] if after else [])


@pytest.mark.parametrize(
    ("tool", "given", "characters", "breaks"),
    [
        pytest.param("write_draft", {"text": "A new text"}, 14, "at the end", id="write"),
        pytest.param("append_draft", {"text": "And then"}, 14, "at the end", id="append"),
        pytest.param("append_draft", {"after": "Fog", "text": "And then"}, 30, "within", id="into a section"),
        pytest.param(
            "edit_draft",
            {"edits": [{"old_text": "ferry", "new_text": "boat of old"}]},
            60,
            "within",
            id="passage",
        ),
        pytest.param("append_draft", {"after": "Fog", "text": "And then"}, None, "nowhere", id="whole"),
    ],
)
def test_a_version_says_where_it_breaks_off(
    text: DraftText, tool: str, given: dict[str, Any], characters: int | None, breaks: str
) -> None:
    """Only what breaks off at its end can be gone on with to the character."""
    text.write(FOG, author="model", turn=1)
    (kept,) = Calls(3, typed(tool, given, characters)).keep(text)
    assert (kept.breaks, kept.call) == (breaks, "a")


def test_a_call_that_was_answered_leaves_nothing(text: DraftText) -> None:
    """What the draft has, or the model was refused and knows, is no version beside it."""
    whole = typed("write_draft", {"text": "A new text"})
    revised = DraftRevised(**_OF, revision=1, characters=10)
    edit = typed("edit_draft", {"edits": [{"old_text": "x", "new_text": "y"}]})
    assert versions(text, [*whole, answered()]) == []
    assert versions(text, [*whole, revised]) == []  # the process died before the answer
    assert versions(text, [*edit, answered(failed=True)]) == []


def test_what_was_taken_back_leaves_a_version_unless_it_comes_anew(text: DraftText) -> None:
    """An API that is asked again, and a call that failed, lose nothing: only one that succeeds ends that."""
    half = typed("write_draft", {"text": "A new text"}, 14)
    dropped = [*half, CallDropped(**_OF, call="a")]
    assert versions(text, dropped) == ["A ne"]
    again = typed("write_draft", {"text": "A new text"}, 12, call="b")
    assert versions(text, [*dropped, *again]) == ["A ne"]  # the longer one
    whole = typed("write_draft", {"text": "Another text"}, call="b")
    assert versions(text, [*dropped, *whole]) == ["A ne", "Another text"]
    assert versions(text, [*dropped, *whole, answered("b")]) == []
    failed = [*typed("write_draft", {"text": "Too long"}), answered(failed=True)]
    assert versions(text, failed) == ["Too long"]


def test_several_calls_of_one_answer_go_on_from_each_other(text: DraftText) -> None:
    """Calls of one message build on those before, done or not; another whole text is a version of its own."""
    write = typed("write_draft", {"text": "One."})
    append = typed("append_draft", {"text": "Two, and"}, 13, call="b")
    assert versions(text, [*write, *append]) == ["One.\n\nTwo"]
    other = typed("write_draft", {"text": "Else"}, 12, call="b")
    assert versions(text, [*write, *other]) == ["One.", "El"]
    text.write("One.", author="model", turn=3)
    assert versions(text, [*write, answered(), *append]) == ["One.\n\nTwo"]


def test_a_version_that_was_cut_off_is_kept_once(text: DraftText) -> None:
    """However often a turn is settled, whatever its text was before, each version is there once."""
    text.write("---\ntitle: Fog\n---\n\nThe ferry.\n", author="writer", turn=1)
    calls = Calls(3, typed("write_draft", {"text": "A new text"}, 14))
    (kept,) = calls.keep(text)
    assert (kept.cut_off, kept.aside, kept.turn, kept.author) == (True, True, 3, "model")
    assert kept.text == "---\ntitle: Fog\n---\nA ne"
    assert calls.keep(text) == [] and len(text.revisions()) == 2
    assert text.read() == text.path.read_text() == "---\ntitle: Fog\n---\n\nThe ferry.\n"
    assert Calls(3).keep(text) == []
    assert text.keep_cut_off(" \n", 3) is None


def test_a_draft_that_has_only_half_a_text_has_none(text: DraftText) -> None:
    """A first text that was cut off makes no file, is not missed, and does not become the text."""
    text.keep_cut_off("Half a text", 1)
    assert text.read() == "" and text.take_hand_edit(1).restored is False
    assert not text.path.exists()
    assert text.write("A text.", author="model", turn=2, base=0).number == 2


def test_any_beginning_of_any_calls_is_kept(text: DraftText) -> None:
    """At whatever character a turn of random calls ends, all that was heard of the last is in a version or
    in the draft."""
    seeds = random.Random(5)
    text.write(FOG, author="model", turn=1)

    def script() -> Iterator[tuple[str, dict[str, Any]]]:
        for _ in range(seeds.randint(1, 3)):
            word = "".join(seeds.choice("渡口 ab😀\n") for _ in range(seeds.randint(1, 12))) + "."
            calls: list[tuple[str, dict[str, Any]]] = [
                ("write_draft", {"text": word}),
                ("append_draft", {"text": word, "after": seeds.choice(["", "Fog", "None"])}),
                ("edit_draft", {"edits": [{"old_text": seeds.choice(["left", "e"]), "new_text": word}]}),
            ]
            yield seeds.choice(calls)

    for _ in range(300):
        *before, (tool, given) = script()
        events = [event for id, call in enumerate(before) for event in typed(*call, call=str(id))]
        half = typed(tool, given, seeds.randint(1, len(json.dumps(given))), call="last")
        heard = "".join(
            event.text
            for event in half
            if isinstance(event, ArticleDelta) and event.field in ("text", "new_text")
        )
        found = "\n".join([*versions(text, [*events, *half]), text.read()])
        assert all(line in found for line in heard.strip("\n").split("\n"))
