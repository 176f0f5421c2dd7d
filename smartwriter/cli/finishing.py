"""Commands that declare an article done, or take it up again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime

import anyio
import click

from smartwriter.cli.app import as_json, in_workspace, offline_option, print_json
from smartwriter.cli.terminal import secho
from smartwriter.errors import Invalid
from smartwriter.memory.index import IndexEntry, find
from smartwriter.series.finishing import finish, reopen
from smartwriter.series.summary import Summary, parse_summary, summary_of_text, summary_prompt
from smartwriter.tasks.values import Finished, Task
from smartwriter.workspace import Workspace

Summarise = Callable[[str, str], str | None]
"""A model's answer to an article's title and text; None where it could not be asked."""


@click.command()
@click.argument("wanted", metavar="TASK")
@click.option(
    "--date",
    "on",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="In the index; by default today.",
)
@click.option("--no-model", is_flag=True, help="Take the article's first sentence for its gist.")
@offline_option
@as_json
@in_workspace
def finish_command(
    workspace: Workspace, wanted: str, on: datetime | None, no_model: bool, offline: bool, json_: bool
) -> None:
    """Declare TASK done: its text goes to articles/ and into the index, and its draft is closed.

    Its gist, claims and terms come from the model.
    """
    task = workspace.tasks.find(wanted)
    workspace.check_folder(task)
    entered = workspace.task_series(task).has_index
    ask = entered and not no_model  # nobody is asked for what nobody will read
    finished, summary = finish_task(workspace, task, on, _summariser(workspace, offline) if ask else None)
    if json_:
        print_json({"task": task.id, "gist": summary.gist, **finished.model_dump(mode="json")})
        return
    click.echo(f"{task.title} is finished: {workspace.task_collection(task).path / finished.article}")
    if entered:
        click.echo(f"In the index: {summary.gist}")
    if ask and not summary.from_model:
        secho("No model gave a summary; put a gist of your own into index.md.", err=True, fg="yellow")


def finish_task(
    workspace: Workspace, task: Task, on: datetime | None, summarise: Summarise | None
) -> tuple[Finished, Summary]:
    """Finish a task with the summary of a model, or without one where it gives none. Blocking.

    :raises Invalid, DraftBusy: as :func:`smartwriter.series.finishing.finish`.
    """
    with workspace.lease(task, task.current):  # where it is being written, no model is asked
        workspace.take_hand_edit(task, task.current)
        text = workspace.text(task, task.current).read()
    if not text.strip():
        raise Invalid(f"{task.title} has no text yet; there is nothing to finish.")
    known = workspace.task_series(task).index()
    summary = _entered(task, known) or _summary(task, text, known, summarise)
    return finish(workspace, task, text, summary, on=on.date() if on else None), summary


def _entered(task: Task, known: list[IndexEntry]) -> Summary | None:
    """What the index says of a task that is finished already."""
    finished = task.finished
    if finished is None or not finished.closed:
        return None
    entry = find(known, finished.article, task.title)
    return Summary(entry.gist, entry.claims, entry.terms, entry.links) if entry else None


def _summary(task: Task, text: str, known: list[IndexEntry], summarise: Summarise | None) -> Summary:
    answer = summarise(task.title, text) if summarise else None
    return (parse_summary(answer) if answer else None) or summary_of_text(task.title, text, known)


def _summariser(workspace: Workspace, offline: bool) -> Summarise:
    """What asks the model, in a short call of its own."""

    def summarise(title: str, text: str) -> str | None:
        from smartwriter.agent.conversation import AgentError
        from smartwriter.cli.running import agent

        if sys.stderr.isatty():
            click.echo("Asking the model for a summary; it may take a minute …", err=True)
        with agent(offline, workspace) as claude:
            try:
                return anyio.run(claude.ask, summary_prompt(title, text), workspace.root)
            except AgentError as error:
                secho(f"The model gave no summary: {error}", err=True, fg="yellow")
                return None

    return summarise


@click.command()
@click.argument("wanted", metavar="TASK")
@in_workspace
def reopen_command(workspace: Workspace, wanted: str) -> None:
    """Let a finished TASK be written again. Its article stays until it is finished anew."""
    task = reopen(workspace, workspace.tasks.find(wanted))
    click.echo(f"{task.title} can be written again: {task.address(task.current)}")
