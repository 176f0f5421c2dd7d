"""Commands that declare an article done, or take it up again."""

from __future__ import annotations

import sys
from datetime import datetime

import anyio
import click

from smartwriter.cli.app import as_json, in_workspace, offline_option, print_json
from smartwriter.cli.terminal import secho
from smartwriter.series.finishing import finish_task, reopen
from smartwriter.series.summary import Summarise, summary_prompt
from smartwriter.workspace import Workspace


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
    summarise = _summariser(workspace, offline) if ask else None
    finished, summary = finish_task(workspace, task, on.date() if on else None, summarise)
    if json_:
        print_json({"task": task.id, "gist": summary.gist, **finished.model_dump(mode="json")})
        return
    click.echo(f"{task.title} is finished: {workspace.task_collection(task).path / finished.article}")
    if entered:
        click.echo(f"In the index: {summary.gist}")
    if ask and not summary.from_model:
        secho("No model gave a summary; put a gist of your own into index.md.", err=True, fg="yellow")


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
