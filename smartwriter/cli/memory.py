"""Commands over the versions of a collection's memory, beside those of ``remembering``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import click

from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.cli.review import memory_command
from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.series.reliance import Relied
from smartwriter.series.staleness import Stale, stale
from smartwriter.trials.what_if import adopt_memory
from smartwriter.workspace import Workspace

__all__ = ["memory_command"]


@memory_command.command("log")
@click.argument("name", metavar="COLLECTION")
@as_json
@in_workspace
def log_memory(workspace: Workspace, name: str, json_: bool) -> None:
    """List the versions of a collection's memory that turns have had, and what changed in each."""
    log = workspace.series(workspace.collection(name)).log()
    if json_:
        print_json([version.model_dump(mode="json") for version in log])
        return
    if not log:
        click.echo("No turn has had this memory yet.")
    before: Mapping[str, str] = {}
    for number, version in enumerate(log, 1):
        when = version.timestamp.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        click.echo(f"{number}  {when}  {', '.join(_changes(before, version.files))}")
        before = version.files


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    changed = [name for name in after if name in before and before[name] != after[name]]
    return [
        *(f"new {name}" for name in after if name not in before),
        *(f"changed {name}" for name in changed),
        *(f"without {name}" for name in before if name not in after),
    ] or ["another order"]


@memory_command.command("diff")
@click.argument("name", metavar="COLLECTION")
@click.argument("first", metavar="A", type=int, required=False)
@click.argument("second", metavar="B", type=int, required=False)
@in_workspace
def diff_memory(workspace: Workspace, name: str, first: int | None, second: int | None) -> None:
    """Show what differs between two versions of a memory, by their numbers in the log.

    Without numbers: between the last two; with one: from that to the last.
    """
    from smartwriter.cli.comparing import show
    from smartwriter.pages.comparison import compared

    log = workspace.series(workspace.collection(name)).log()
    if len(log) < 2 and first is None:
        raise Invalid(f"The memory of {name} has only one version, or none; there is nothing to compare.")
    numbers = (len(log) - 1 if first is None else first, len(log) if second is None else second)
    for number in numbers:
        if not 1 <= number <= len(log):
            raise Invalid(f"The memory of {name} has no version {number}: it has {len(log)}.")
    before, after = (log[number - 1].files for number in numbers)
    same = True
    for file in dict.fromkeys([*before, *after]):
        if before.get(file) != after.get(file):
            same = False
            texts = [workspace.versions.text(files.get(file, "")) or "" for files in (before, after)]
            show(compared((f"{file} ({numbers[0]})", texts[0]), (f"{file} ({numbers[1]})", texts[1])))
    if same:
        click.echo("Nothing differs.")


@memory_command.command("stale")
@click.argument("name", metavar="COLLECTION")
@as_json
@in_workspace
def stale_memory(workspace: Workspace, name: str, json_: bool) -> None:
    """Name the drafts and articles that were last written under an older version of the memory."""
    found = stale(workspace, workspace.collection(name))
    if json_:
        print_json([_stale_fields(one) for one in found])
        return
    if not found:
        click.echo("Everything was last written under the memory as it is now.")
    for one in found:
        address = one.task.address(one.draft.name)
        article = " (an article)" if one.is_article else ""
        click.echo(f"{address}  {one.task.title}{article}, turn {one.turn}: {', '.join(_reasons(one))}")
        for use in one.uses:
            click.echo(f"  {_use_in_words(use)}")


def _use_in_words(use: Relied) -> str:
    if not use.sentence:
        what = f"now says: {use.new}" if use.new else f"no longer says: {use.old}"
        return f"uses {use.used!r}; {use.file} {what}"
    place = f"paragraph {use.paragraph}: " if use.paragraph else ""
    now = use.value or use.new or "nothing of the kind"
    return f"{place}“{' '.join(use.sentence.split())}” has {use.used!r}; {use.file} says: {now}"


def _stale_fields(one: Stale) -> dict[str, object]:
    return {
        "task": one.task.id,
        "title": one.task.title,
        "draft": one.draft.name,
        "article": one.is_article,
        "turn": one.turn,
        "changed": one.changed,
        "added": one.added,
        "removed": one.removed,
        "uses": [dataclasses.asdict(use) for use in one.uses],
    }


def _reasons(one: Stale) -> list[str]:
    return [
        *(f"an older {name}" for name in one.changed),
        *(f"without {name}" for name in one.added),
        *(f"with {name}, which is gone" for name in one.removed),
    ]


@memory_command.command("adopt")
@click.argument("address", metavar="TASK@DRAFT")
@in_workspace
def adopt_memory_command(workspace: Workspace, address: str) -> None:
    """Make a what-if draft's memory the collection's own."""
    draft = OpenDraft.at(workspace, address)
    for path in adopt_memory(draft):
        click.echo(f"{path} has the text of {draft.address}'s version now.")
