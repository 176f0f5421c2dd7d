"""The command that takes a text, or all that happened to it, out of the workspace."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartwriter.cli.app import in_workspace
from smartwriter.errors import Invalid, TaskNotFound
from smartwriter.files.output import STDOUT, check
from smartwriter.open_draft import OpenDraft
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from smartwriter.export.document import Document


@click.command()
@click.argument("wanted", metavar="TASK[@DRAFT][:REV]")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file: .md, .html, .docx, .epub, .txt or .json; by default (or for -) Markdown is printed.",
)
@click.option("--history", "whole", is_flag=True, help="All prompts, answers and revisions, as .html or .md.")
@click.option("--verse", is_flag=True, help="Keep every line end, as a poem needs; else paragraphs flow.")
@click.option("--force", is_flag=True, help="Write over a file that is there already.")
@in_workspace
def export_command(
    workspace: Workspace, wanted: str, output: Path | None, whole: bool, verse: bool, force: bool
) -> None:
    """Write a text to a file that others can read.

    Pictures of the workspace (PNG, JPEG, GIF) are packed into it. Of verse, the lines of a stanza are joined
    as those of any paragraph are, unless you say --verse, or end each with two spaces.
    .docx, .epub, .html and .txt are made by pandoc: scripts/install export.
    """
    if output == STDOUT:
        output = None
    if output is not None:
        check(output, force=force)
    if whole:
        _export_history(workspace, wanted, output)
    else:
        _export_text(workspace, wanted, output, verse)
    if output is not None:
        click.echo(f"Wrote {output}.")


def _export_text(workspace: Workspace, wanted: str, output: Path | None, verse: bool) -> None:
    from smartwriter.export.export import export

    document = dataclasses.replace(_document(workspace, wanted), verse=verse, root=workspace.root)
    if output is None:
        click.echo(document.text, nl=not document.text.endswith("\n"))
    else:
        export(document, output)


def _document(workspace: Workspace, wanted: str) -> Document:
    from smartwriter.export.document import Document
    from smartwriter.text.words import count
    from smartwriter.trials.version import named_text

    label, text = named_text(workspace, wanted)
    extra = {"label": label, "counts": dataclasses.asdict(count(text))}
    try:
        task, draft, _ = workspace.tasks.resolve_revision(wanted)
    except TaskNotFound:  # it was the path of a file
        return Document(Path(wanted).stem, text, folder=Path(wanted).parent, extra=extra)
    extra |= {"task": task.id, "draft": draft.name, "collection": task.collection}
    folder = workspace.text(task, draft.name).path.parent
    return Document(task.title, text, identity=task.address(draft.name), folder=folder, extra=extra)


def _export_history(workspace: Workspace, wanted: str, output: Path | None) -> None:
    from smartwriter.pages.history import export_history, history_markdown
    from smartwriter.trials.history import history_of

    task, draft, revision = workspace.tasks.resolve_revision(wanted)
    if revision is not None:
        raise Invalid(f"A history is of a whole draft; leave out the :{revision}.")
    at_hand = OpenDraft(workspace, task, draft.name)
    with contextlib.suppress(Invalid, OSError):  # then the history says that the file differs
        at_hand.take_hand_edit()
    history = history_of(at_hand)
    if output is None:
        click.echo(history_markdown(history), nl=False)
    else:
        export_history(history, output)
