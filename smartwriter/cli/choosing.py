"""Commands that choose between drafts: bring paragraphs home, or judge blind."""

from __future__ import annotations

import random

import click

from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.cli.terminal import secho
from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.trials.choosing import choose, give_reason, new_paragraphs, propose_reason
from smartwriter.trials.edits import pick
from smartwriter.trials.version import Version, version
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
    theirs = version(workspace, origin).needed()
    ours = OpenDraft.at(workspace, target)
    if not numbers:
        numbers = tuple(_asked(theirs, ours.text.read()))
    picked = pick(theirs, ours, numbers, after)
    if json_:
        revision = picked.revision and picked.revision.model_dump(mode="json", exclude={"text"})
        print_json({"revision": revision, "placed": picked.placed})
        return
    for sentence in picked.placed:
        click.echo(sentence)
    if picked.revision is not None:
        click.echo(f"{ours.address} has revision {picked.revision.number} now.")


def _asked(theirs: Version, ours: str) -> list[int]:
    chosen = []
    for number, text in new_paragraphs(theirs, ours):
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
    texts = [version(workspace, address).needed() for address in (first, second)]
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
    choice = choose(chosen, other)  # whatever becomes of the next question
    click.echo(f"You chose {chosen}, over {other}.")
    why = click.prompt("Why? (one line, or nothing)", default="", show_default=False)
    if why.strip():
        give_reason(chosen, choice, why.strip())
    collection = workspace.task_collection(chosen.of.task)
    question = f"Propose that for the memory of {collection.name}?"
    if why.strip() and collection.memory().hashes and click.confirm(question, default=False):
        propose_reason(chosen, why)
        click.echo(f"Decide on it with: smartwriter memory review {collection.name}")
    if chosen.of.name != chosen.of.task.current:
        click.echo(f"To go on with it: smartwriter adopt {chosen.of.address}")
