"""What is heard of an answer before it is stored."""

from __future__ import annotations

from typing import Any

from crashes import crashed
from faces import data, printed

from smartwriter.agent.conversation import Happening
from smartwriter.events import Event, TextDelta, TextDropped, ToolAnswered, ToolUsed
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.speakers import only_heard, whole_answer
from smartwriter.turns.heard import Heard
from smartwriter.turns.live import LiveJournal
from smartwriter.workspace import Workspace
from smartwriter.writing.answer import Answer

OF: dict[str, Any] = {"turn": 1}
CALL: list[Happening] = [ToolUsed(**OF, name="read_draft"), ToolAnswered(**OF, text="Fog.", failed=False)]


def test_the_answers_of_one_turn_stand_apart() -> None:
    """What the model says before and after it used a tool is never glued together, in whichever of the two
    places it is put together, and is still known for what the transcript has of it."""
    events: list[Happening] = [TextDelta(**OF, text="aa"), *CALL, TextDelta(**OF, text="fin")]
    answer = Answer(1)
    for event in events:
        answer.hear(event)
    assert answer.text == Heard(events).text == "aa\n\nfin"
    assert only_heard("aa", answer.text).strip() == "fin" and only_heard("aa\n\nfin", answer.text) == ""
    assert whole_answer("aa", answer.text) == "aa\n\nfin"


def test_what_is_taken_back_may_have_been_said_around_a_call() -> None:
    """An attempt that the API broke off is taken back to its first word, and nothing before it."""
    events: list[Happening] = [TextDelta(**OF, text="aa"), *CALL, TextDelta(**OF, text="bb")]
    events += [*CALL, TextDelta(**OF, text="cc"), TextDropped(**OF, characters=4)]
    assert Heard(events).text == "aa"
    events += [TextDelta(**OF, text="dd"), *CALL, TextDelta(**OF, text="ee")]
    assert Heard(events).text == "aa\n\ndd\n\nee"
    assert Heard([TextDropped(**OF, characters=9), TextDelta(**OF, text="a")]).text == "a"


def test_show_does_not_glue_what_is_not_stored_yet(workspace: Workspace) -> None:
    """A turn whose process died after two answers, none of them stored: each is shown as it was said."""
    task = workspace.new_task("Herons")
    crashed(workspace, task)
    more: list[Event] = [*CALL, TextDelta(**OF, text="The end.")]
    named = [event.model_copy(update={"task": task.id, "draft": "main"}) for event in more]
    LiveJournal(OpenDraft(workspace, task, "main").live_path).append(named)
    assert "\nHalf a sen\n\nThe end.\n" in printed(workspace, "show", task.id)
    assert data(workspace, "show", task.id)["turns"][0]["partial"] == "Half a sen\n\nThe end."
