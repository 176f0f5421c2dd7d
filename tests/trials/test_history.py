from __future__ import annotations

import pytest
from histories import a_turn, written_task

from smartwriter.errors import SessionMissing
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import MAIN, Task, TurnState
from smartwriter.trials.history import history_of
from smartwriter.workspace import Workspace


@pytest.fixture
def written(workspace: Workspace) -> tuple[Workspace, Task]:
    return workspace, written_task(workspace)


def test_the_history_of_a_draft(written: tuple[Workspace, Task]) -> None:
    """Turns, what they wrote, and hand edits between them come in order, with all that is known."""
    workspace, task = written
    history = history_of(OpenDraft(workspace, task, MAIN))
    assert [(step.kind, step.number) for step in history.steps] == [
        ("turn", 1),
        ("revision", 1),
        ("revision", 2),
        ("turn", 2),
        ("revision", 3),
        ("turn", 3),
    ]
    first, wrote, by_hand, _, _, stopped = history.steps
    assert (first.prompt, first.body) == ("Prompt 1", "第一段写好了。")
    assert first.facts == (
        "1,200 tokens in, 0 cached, 34 out · $0.02 · 5 s · m-1",
        "Tools: write_draft × 1",
        "Memory: profile.md",
    )
    assert wrote.title == "Revision 1: by the model in turn 1"
    assert by_hand.title == "Revision 2: by hand, before or during turn 2"
    assert wrote.change and (wrote.change.added_words, wrote.change.removed_words) == (6, 0)
    assert by_hand.change and (by_hand.change.added_words, by_hand.change.removed_words) == (1, 1)
    assert (stopped.title, stopped.body, stopped.facts) == ("Turn 3: stopped", "Half an ans", ("Stopped.",))
    assert history.warnings == ()


def test_an_answer_that_broke_off(written: tuple[Workspace, Task]) -> None:
    """What is in the transcript of an unfinished answer, and what was only heard, stand there once."""
    workspace, task = written

    def body(partial: str) -> str:
        broken = a_turn(task, 2, state=TurnState.interrupted, partial=partial)
        workspace.tasks.record(task, MAIN, [broken])
        return history_of(OpenDraft(workspace, task, MAIN)).steps[3].body

    assert body("Second ans") == "Second answer."
    assert body("Second answer. And") == "Second answer. And"
    assert body("And more") == "Second answer.\n\nAnd more"


def test_a_history_that_is_missing(written: tuple[Workspace, Task]) -> None:
    """A transcript that is gone is an error, never an empty history; a damaged one is a warning."""
    workspace, task = written
    path = OpenDraft(workspace, task, MAIN).transcript.path
    with path.open("ab") as file:
        file.write(b"{torn\n")
    workspace.text(task, MAIN).path.write_text("By hand.\n")
    warnings = history_of(OpenDraft(workspace, task, MAIN)).warnings
    assert len(warnings) == 2 and "damaged" in warnings[0] and "by hand" in warnings[1]
    path.unlink()
    with pytest.raises(SessionMissing):
        history_of(OpenDraft(workspace, task, MAIN))
