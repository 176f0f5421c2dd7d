"""Commands that choose between drafts: bring paragraphs home, or judge blind."""

from __future__ import annotations

import random

import click

from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.cli.terminal import secho
from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Choice, Task
from smartwriter.text.words import paragraphs
from smartwriter.trials.edits import Version, pick, version
from smartwriter.workspace import Workspace


@click.command()
@click.argument("origin", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "-p", "--paragraph", "numbers", type=int, multiple=True, help="Of FROM, from 1; may be repeated."
)
@click.option("--after", type=click.IntRange(0), help="The paragraph of TO behind which they go; 0: first.")
@as_json
@in_workspace
def pick_command(
    workspace: Workspace, origin: str, target: str, numbers: tuple[int, ...], after: int | None, json_: bool
) -> None:
    """Bring paragraphs of the text FROM into the draft TO; or be asked for each that differs.

    A paragraph takes the place of the one that it is a version of.
    """
    theirs = _with_text(version(workspace, origin))
    task, draft = workspace.tasks.resolve(target)
    if not numbers:
        numbers = tuple(_asked(theirs, workspace.text(task, draft.name).read()))
    picked = pick(workspace, theirs, task, draft, numbers, after)
    if json_:
        revision = picked.revision and picked.revision.model_dump(mode="json", exclude={"text"})
        print_json({"revision": revision, "placed": picked.placed})
        return
    for sentence in picked.placed:
        click.echo(sentence)
    if picked.revision is not None:
        click.echo(f"{task.address(draft.name)} has revision {picked.revision.number} now.")


def _asked(theirs: Version, ours: str) -> list[int]:
    there = set(paragraphs(ours))
    different = [
        (number, text) for number, text in enumerate(paragraphs(theirs.text), 1) if text not in there
    ]
    if not different:
        raise Invalid(f"Every paragraph of {theirs} is there already.")
    chosen = []
    for number, text in different:
        secho(f"\n[{number}]", fg="cyan")
        click.echo(text)
        if click.confirm("Take it?", default=False):
            chosen.append(number)
    if not chosen:
        raise Invalid("Nothing was picked, and nothing was changed.")
    return chosen


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@in_workspace
def blind_command(workspace: Workspace, first: str, second: str) -> None:
    """Read two texts without their names, in random order, and pick the better one."""
    texts = [_with_text(version(workspace, address)) for address in (first, second)]
    if texts[0].text == texts[1].text:
        raise Invalid(f"{texts[0]} and {texts[1]} are the same text.")
    random.shuffle(texts)
    for number, one in enumerate(texts, 1):
        secho(f"\n──── {number} ────\n", fg="cyan")
        click.echo(one.text.strip())
    answer = click.prompt("\nWhich is better", type=click.Choice(["1", "2", "neither"]))
    if answer == "neither":
        click.echo("Nothing was recorded.")
        return
    chosen, other = texts if answer == "1" else reversed(texts)
    choice = Choice(chosen=str(chosen), other=str(other))
    workspace.tasks.choose(chosen.task.id, choice)  # whatever becomes of the next question
    click.echo(f"You chose {chosen}, over {other}.")
    why = click.prompt("Why? (one line, or nothing)", default="", show_default=False)
    if why.strip():
        workspace.tasks.update(chosen.task.id, lambda task: _with_reason(task, choice, why.strip()))
    if why.strip() and workspace.task_collection(chosen.task).memory().hashes:
        _propose(workspace, chosen, why)
    if chosen.draft.name != chosen.task.current:
        click.echo(f"To go on with it: smartwriter adopt {chosen.task.address(chosen.draft.name)}")


def _with_reason(task: Task, choice: Choice, why: str) -> Task:
    choices = tuple(
        one.model_copy(update={"why": why}) if one.at == choice.at and one.chosen == choice.chosen else one
        for one in task.choices
    )
    return task.model_copy(update={"choices": choices})


def _propose(workspace: Workspace, chosen: Version, why: str) -> None:
    """What made a text the better one may be what the whole series should be like."""
    series = workspace.task_series(chosen.task)
    collection = series.collection
    if not click.confirm(f"Propose that for the memory of {collection.name}?", default=False):
        return
    turn = OpenDraft(workspace, chosen.task, chosen.draft.name).next_turn() - 1
    series.proposals.propose(why, task=chosen.task.id, draft=chosen.draft.name, turn=max(turn, 0))
    click.echo(f"Decide on it with: smartwriter memory review {collection.name}")


def _with_text(found: Version) -> Version:
    if not found.text:
        raise Invalid(f"{found.task.address(found.draft.name)} has no text yet.")
    return found
