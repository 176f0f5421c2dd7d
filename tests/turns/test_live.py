"""The turn in flight, on disk: how it ends there, and what is no event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smartwriter.events import Failed, TextDelta, TurnStarted, ending, ends_turn, settles_prompt
from smartwriter.tasks.values import Turn, TurnState
from smartwriter.turns.live import LiveJournal, LiveReader

OF: dict[str, Any] = {"task": "k7mq", "draft": "main"}


def _turn(state: TurnState) -> Turn:
    return Turn(number=1, uuid="u1", session_id="s1", prompt="Go.", state=state, detail="The disk was full.")


@pytest.mark.parametrize("state", [state for state in TurnState if state is not TurnState.running])
def test_however_a_turn_ended_one_event_says_so(tmp_path: Path, state: TurnState) -> None:
    """Each state that a turn can end in has its event, also in the journal of a program that died: a turn
    that had failed before, and of which more was found later, too."""
    event = ending(_turn(state), "k7mq", "main")
    assert ends_turn(event) and settles_prompt(event)
    live = LiveJournal(tmp_path / "live.jsonl")
    live.begin()
    live.append([TurnStarted(**OF, turn=1, prompt="Go.")])
    assert not LiveJournal.has_ended(live.path)
    live.end("k7mq", "main", [_turn(state)])
    assert LiveJournal.has_ended(live.path)


def test_a_turn_that_failed_says_why_and_one_that_died_how() -> None:
    """The words of the turn itself, or where its program died, what became of it."""
    failed, died = ending(_turn(TurnState.failed), **OF), ending(_turn(TurnState.interrupted), **OF)
    assert isinstance(failed, Failed) and failed.detail == "The disk was full."
    assert isinstance(died, Failed) and died.detail == "The program died before the answer had ended."


def test_an_event_of_no_draft_is_passed_over(tmp_path: Path) -> None:
    """What an agent hears names no draft; on a disk there is no such event, and a line like one is none."""
    live = LiveJournal(tmp_path / "live.jsonl")
    live.begin()
    (placed,) = live.append([TextDelta(**OF, turn=1, text="Fog.")])
    nobodys = {"type": "text_delta", **TextDelta(text="x", position=placed.position + 1).model_dump()}
    with open(live.path, "a", encoding="utf-8") as file:
        file.write(json.dumps(nobodys) + "\n")
    assert LiveReader(live.path, placed.position - 1).read() == [placed]
