"""Which of two texts a writer prefers, and why."""

from __future__ import annotations

from smartwriter.errors import Invalid
from smartwriter.tasks.values import Choice, Task
from smartwriter.text.words import paragraphs
from smartwriter.trials.version import Version


def new_paragraphs(theirs: Version, ours: str) -> list[tuple[int, str]]:
    """The paragraphs of a text that another one has not, with their numbers. :raises Invalid: for none."""
    there = set(paragraphs(ours))
    found = [(number, text) for number, text in enumerate(paragraphs(theirs.text), 1) if text not in there]
    if not found:
        raise Invalid(f"Every paragraph of {theirs} is there already.")
    return found


def choose(chosen: Version, other: Version) -> Choice:
    """Record which of two texts is the better one. Blocking."""
    choice = Choice(chosen=str(chosen), other=str(other))
    chosen.of.workspace.tasks.choose(chosen.of.task.id, choice)
    return choice


def give_reason(chosen: Version, choice: Choice, why: str) -> None:
    """Record why a choice was made. Blocking."""

    def with_reason(task: Task) -> Task:
        choices = tuple(
            one.model_copy(update={"why": why}) if (one.at, one.chosen) == (choice.at, choice.chosen) else one
            for one in task.choices
        )
        return task.model_copy(update={"choices": choices})

    chosen.of.workspace.tasks.update(chosen.of.task.id, with_reason)


def propose_reason(chosen: Version, why: str) -> None:
    """What made a text the better one may be what the whole series should be like. Blocking."""
    of = chosen.of
    turn = max(of.next_turn() - 1, 0)
    series = of.workspace.task_series(of.task)
    series.proposals.propose(why, task=of.task.id, draft=of.name, turn=turn)
