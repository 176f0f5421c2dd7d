"""Commands for workspaces and collections."""

from __future__ import annotations

from pathlib import Path

import click

from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.memory import normal
from smartwriter.workspace import Workspace


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
def init_command(folder: Path) -> None:
    """Make FOLDER a workspace (by default the current one)."""
    workspace = Workspace.create(folder)
    click.echo(f"{workspace.root} is a workspace.")


@click.group()
def collection_command() -> None:
    """Collections: series of articles that share their memory."""


@collection_command.command("new")
@click.argument("name")
@in_workspace
def new_collection(workspace: Workspace, name: str) -> None:
    """Make a collection, with memory files to fill in."""
    collection = workspace.new_collection(name)
    click.echo(f"Made {collection.path}; fill in its profile.md, memory.md and index.md.")


@collection_command.command("list")
@as_json
@in_workspace
def list_collections(workspace: Workspace, json_: bool) -> None:
    """List the collections."""
    tasks = workspace.tasks.all()
    counts = {
        collection.name: sum(normal(task.collection) == normal(collection.name) for task in tasks)
        for collection in workspace.collections()
    }
    if json_:
        print_json([{"name": name, "tasks": count} for name, count in counts.items()])
    for name, count in counts.items() if not json_ else ():
        click.echo(f"{name}  ({count} {'task' if count == 1 else 'tasks'})")


@collection_command.command("show")
@click.argument("name")
@as_json
@in_workspace
def show_collection(workspace: Workspace, name: str, json_: bool) -> None:
    """Show a collection's memory files, as new sessions get them."""
    collection = workspace.collection(name)
    memory = collection.memory()
    if json_:
        files = [{"name": file.name, "sha256": file.sha256, "text": file.text} for file in memory.files]
        print_json({"name": collection.name, "files": files, "problems": memory.problems})
        return
    click.echo(memory.render())
    for problem in memory.problems:
        click.secho(problem, err=True, fg="yellow")
