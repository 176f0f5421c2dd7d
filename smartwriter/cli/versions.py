"""Commands over what happened to a text: see it, go back, put a version back, ask who wrote what."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import anyio
import click

from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.cli.terminal import print_pieces, secho
from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Draft, Revision, Task, Turn
from smartwriter.text.wording import shortened
from smartwriter.trials.blame import Blamed, blame
from smartwriter.trials.edits import put_back, take_answer
from smartwriter.trials.provenance import Mark
from smartwriter.trials.timeline import Branch, Change, timeline
from smartwriter.trials.version import version
from smartwriter.workspace import Workspace

_PROMPT_CHARACTERS = 60
_PARAGRAPH_CHARACTERS = 70


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]")
@as_json
@in_workspace
def log_command(workspace: Workspace, address: str, json_: bool) -> None:
    """Show what happened: turns, versions of the text and forks, a line each.

    A version is named TASK@DRAFT:NUMBER, for text, compare, restore and fork.
    """
    task, draft = workspace.tasks.resolve(address)
    for name in task.live_drafts:
        _record_hand_edit(OpenDraft(workspace, task, name))
    branches = timeline(workspace, task, draft.name if "@" in address else None)
    if json_:
        print_json([_branch_fields(branch) for branch in branches])
        return
    secho(f"{task.title}  {task.id}", bold=True)
    for branch in branches:
        for line in _lines(task, branch, ""):
            print_pieces(line)


_Line = list[tuple[str, str | None]]
"""Pieces, each with its colour."""


def _lines(task: Task, branch: Branch, indent: str) -> Iterator[_Line]:
    head = f"{indent[:-3]}├─ " if indent else ""
    yield [(head, None), (branch.draft.name, "green"), (_about(task, branch.draft), None)]
    for item in branch.items:
        if isinstance(item, Branch):
            yield from _lines(task, item, f"{indent}│  ")
        elif isinstance(item, Turn):
            yield [(f"{indent}│ ", None), *_turn_line(item)]
        else:
            yield [(f"{indent}│ {_change_line(item)}", None)]


def _about(task: Task, draft: Draft) -> str:
    said = "  (current)" if draft.name == task.current else "  (dropped)" if draft.dropped else ""
    if draft.origin is None:
        return said
    where = f":{draft.origin.revision}" if draft.origin.revision else f" after turn {draft.origin.turn}"
    return f"{said}  from {draft.origin.draft}{where}"


def _turn_line(turn: Turn) -> _Line:
    state = "" if turn.state.value == "finished" else f"  {turn.state.value}"
    state += f"  ({turn.stop_reason})" if turn.stop_reason else ""
    return [
        (f"turn {turn.number}  ", None),
        (shortened(turn.prompt, _PROMPT_CHARACTERS), "cyan"),
        (state, None),
    ]


def _change_line(change: Change) -> str:
    revision = change.revision
    words = f"+{change.gained} −{change.lost} words"
    beside = "  kept beside the text" if revision.aside else ""
    if revision.cut_off:
        beside = f"  {'whole, but never the text' if revision.is_whole else 'cut off'}; kept beside the text"
    return f"  :{revision.number}  {_who(revision)}  {words}{beside}"


def _who(revision: Revision) -> str:
    source = revision.source
    if source is None:
        return revision.author
    if source.turn is not None:
        return f"model, the answer of turn {source.turn}"
    part = f"paragraph {', '.join(map(str, revision.paragraphs))} " if revision.paragraphs else ""
    return f"{revision.author}, {part}from {source}"


def _branch_fields(branch: Branch) -> dict[str, Any]:
    return {
        "draft": branch.draft.model_dump(mode="json"),
        "items": [
            _branch_fields(item)
            if isinstance(item, Branch)
            else {"turn": item.model_dump(mode="json")}
            if isinstance(item, Turn)
            else {
                "revision": item.revision.model_dump(mode="json", exclude={"text"}),
                "gained": item.gained,
                "lost": item.lost,
            }
            for item in branch.items
        ],
    }


@click.command()
@click.argument("address", metavar="TASK[@DRAFT][:REVISION]")
@as_json
@in_workspace
def text_command(workspace: Workspace, address: str, json_: bool) -> None:
    """Print a draft's text, or an earlier version of it."""
    task, draft, number = workspace.tasks.resolve_revision(address)
    at_hand = OpenDraft(workspace, task, draft.name)
    text = at_hand.text
    if number is None:
        _record_hand_edit(at_hand)
    said = text.read() if number is None else text.revision(number).text
    if number is None and said and not text.path.exists():
        secho(f"{text.path} is missing; this is the last text that was recorded.", err=True, fg="yellow")
    if json_:
        path = {"path": str(text.path)} if number is None else {"revision": number}
        print_json({"task": task.id, "draft": draft.name, **path, "text": said})
    else:
        click.echo(said.rstrip("\r\n"))


def _record_hand_edit(draft: OpenDraft) -> None:
    try:
        draft.take_hand_edit()
    except OSError:  # on a disk that takes nothing now, what is there can be read all the same
        return
    except Invalid as error:  # and so it can beside a file that cannot be kept as it is
        secho(f"Not recorded: {error}", err=True, fg="yellow")


@click.command()
@click.argument("address", metavar="TASK@DRAFT[:REVISION]")
@in_workspace
def restore_command(workspace: Workspace, address: str) -> None:
    """Put an earlier version of a text back as a new one; or take a dropped draft up again."""
    if (draft := OpenDraft.dropped(workspace, address)) is not None:
        draft.take_up()
        click.echo(f"{draft.address} is a draft again.")
        return
    task, found, number = workspace.tasks.resolve_revision(address)
    if number is None:
        raise Invalid(
            f"Say which version to put back, as in {task.address(found.name)}:3; "
            f"see them with: smartwriter log {task.id}"
        )
    revision = put_back(version(workspace, address))
    click.echo(f"{task.address(found.name)}:{revision.number} has the text of :{number} again.")


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]")
@click.option("--to", type=click.IntRange(0), required=True, help="The last turn to keep; 0 for none.")
@click.option("--name", help="Of the new draft; by default draft-2, draft-3, …")
@in_workspace
def rewind_command(workspace: Workspace, address: str, to: int, name: str | None) -> None:
    """Go back to a turn, text and conversation; what came after it stays in its own draft."""
    from smartwriter.trials.forking import rewind

    origin = OpenDraft.at(workspace, address)
    rewound = anyio.run(rewind, origin, to, name)
    click.echo(
        f"{origin.task.address(rewound.name)} is the current draft now, at turn {to}; "
        f"all of {origin.address} is still there."
    )


@click.command()
@click.argument("address", metavar="TASK[@DRAFT][:REVISION]")
@click.option("--turn", type=click.IntRange(1), help="By default the last one.")
@in_workspace
def take_command(workspace: Workspace, address: str, turn: int | None) -> None:
    """Make an answer of the model, or an article that was cut off, the draft's text.

    Where a turn was cut off while it wrote the article, that is what it takes; or name the REVISION.
    """
    task, draft, number = workspace.tasks.resolve_revision(address)
    if number is not None and turn is not None:
        raise Invalid("Name a version or a turn, not both.")
    if number is None:
        revision = take_answer(OpenDraft(workspace, task, draft.name), turn)
    else:
        revision = put_back(version(workspace, address))
    assert revision.source is not None
    if revision.source.turn is None:
        click.echo(f"{revision.source} is the text now (revision {revision.number}).")
        return
    click.echo(
        f"The answer of turn {revision.source.turn} is the text of "
        f"{task.address(draft.name)} now (revision {revision.number})."
    )


@click.command()
@click.argument("address", metavar="TASK[@DRAFT][:REVISION]")
@as_json
@in_workspace
def blame_command(workspace: Workspace, address: str, json_: bool) -> None:
    """Say of each paragraph who wrote it, in which turn, and with which memory files."""
    paragraphs = blame(version(workspace, address))
    if json_:
        print_json([_blamed_fields(one) for one in paragraphs])
        return
    for number, one in enumerate(paragraphs, 1):
        made = one.made
        click.echo(f"{number:>3}  {shortened(made.text, _PARAGRAPH_CHARACTERS)}")
        secho(f"     {_mark(made.origin)}", dim=True)
        if made.changed != made.origin:
            secho(f"     changed by {_mark(made.changed)}", dim=True)
        if one.memory_version:
            secho(f"     with version {one.memory_version} of the memory", dim=True)
        elif one.memory:
            files = ", ".join(f"{name} {sha256[:8]}" for name, sha256 in one.memory.items())
            secho(f"     with {files}", dim=True)


def _mark(mark: Mark) -> str:
    return f"{mark.author}, turn {mark.turn}, {mark.task}@{mark.draft}:{mark.revision}"


def _blamed_fields(one: Blamed) -> dict[str, Any]:
    return {
        "text": one.made.text,
        "origin": dataclasses.asdict(one.made.origin),
        "changed": dataclasses.asdict(one.made.changed),
        "memory": one.memory,
        "memory_version": one.memory_version,
    }
