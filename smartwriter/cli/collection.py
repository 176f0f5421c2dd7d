"""Commands for workspaces and collections."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from smartwriter.cli.app import Group, as_json, in_workspace, print_json
from smartwriter.cli.terminal import secho
from smartwriter.errors import AlreadyExists
from smartwriter.memory.files import LeftOut, MemoryFile
from smartwriter.memory.snapshot import Memory
from smartwriter.text.sameness import normal
from smartwriter.text.wording import counted
from smartwriter.workspace import Workspace


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option("--sample", is_flag=True, help="With two sample collections, an English and a Chinese one.")
def init_command(folder: Path, sample: bool) -> None:
    """Make FOLDER a workspace (by default the current one)."""
    workspace = Workspace.create(folder)
    click.echo(f"{workspace.root} is a workspace.")
    for source in samples() if sample else ():
        try:
            click.echo(f"Copied the collection {workspace.add_sample(source).name}.")
        except AlreadyExists:
            click.echo(f"The collection {source.name} is there already, and stays as it is.")


def samples() -> list[Path]:
    """The sample collections: in the installed package, or in a checkout."""
    package = Path(__file__).parent.parent
    for folder in (package / "samples", package.parent / "collections"):
        if folder.is_dir():
            return sorted(path for path in folder.iterdir() if path.is_dir())
    return []


@click.group(cls=Group)
def collection_command() -> None:
    """Collections: series of articles that share their memory."""


@collection_command.command("new")
@click.argument("name")
@in_workspace
def new_collection(workspace: Workspace, name: str) -> None:
    """Make a collection, with memory files to fill in.

    A NAME such as series/book makes one in another: its sessions get the memory of both.
    """
    collection = workspace.new_collection(name)
    *names, last = (file.name for file in collection.memory().files if file.origin == collection.name)
    click.echo(f"Made {collection.path}; fill in its {', '.join(names)} and {last}.")


@collection_command.command("rename")
@click.argument("old")
@click.argument("new")
@in_workspace
def rename(workspace: Workspace, old: str, new: str) -> None:
    """Give a collection another name; also after its folder got one already."""
    from smartwriter.series.renaming import rename_collection

    collection, tasks = rename_collection(workspace, old, new)
    click.echo(f"{old} is {collection.name} now, for {counted(len(tasks), 'task')} as well.")


@collection_command.command("list")
@as_json
@in_workspace
def list_collections(workspace: Workspace, json_: bool) -> None:
    """List the collections, each before those in it."""
    tasks = Counter(normal(task.collection) for task in workspace.tasks.all())
    counts = {one.name: tasks[normal(one.name)] for one in workspace.collections()}
    if json_:
        print_json([{"name": name, "tasks": count} for name, count in counts.items()])
    for name, count in counts.items() if not json_ else ():
        click.echo(f"{name}  ({counted(count, 'task')})")


@collection_command.command("show")
@click.argument("name")
@as_json
@in_workspace
def show_collection(workspace: Workspace, name: str, json_: bool) -> None:
    """Show a collection's memory, as it stands in the prompts of its sessions."""
    collection, memory = _memory(workspace, name)
    if json_:
        files = [
            {"name": file.name, "sha256": file.sha256, "text": file.text}
            for file in (*memory.files, *memory.on_demand)
        ]
        print_json({"name": collection, "files": files, "problems": memory.problems})
        return
    click.echo(memory.render())
    _say_problems(memory)


@collection_command.command("check")
@click.argument("name")
@as_json
@in_workspace
def check_collection(workspace: Workspace, name: str, json_: bool) -> None:
    """Show which memory files a session will get, what they take of the budget, and what is left out."""
    from smartwriter.text.token_count import RULE

    collection, memory = _memory(workspace, name)
    if json_:
        print_json(
            {
                "name": collection,
                "files": [_file(file, memory) for file in memory.files],
                "on_demand": [_file(file, memory) for file in memory.on_demand],
                "left_out": [_left_out(file) for file in memory.left_out],
                "budget_tokens": memory.budget_tokens,
                "used_tokens": memory.used_tokens,
                "estimate": RULE,
                "problems": memory.problems,
            }
        )
        return
    _print_files(memory)
    click.echo(
        f"About {memory.used_tokens:,} of {counted(memory.budget_tokens, 'token')}, with the lines that list "
        f"files.\nEstimated: {RULE}."
    )
    for file in memory.left_out:
        click.echo(f"Left out: {_where(file)} {file.why}.")
    _say_problems(memory)


def _memory(workspace: Workspace, name: str) -> tuple[str, Memory]:
    collection = workspace.collection(name)
    return collection.name, collection.memory(workspace.config().memory_tokens)


def _say_problems(memory: Memory) -> None:
    for problem in memory.problems:
        secho(problem, err=True, fg="yellow")


def _file(file: MemoryFile, memory: Memory) -> dict[str, Any]:
    return {
        "name": file.name,
        "title": file.title,
        "description": file.description,
        "from": file.origin,
        "path": str(file.path),
        "order": file.order,
        "words": file.words,
        "max_words": file.front.max_words,
        "tokens": file.tokens,
        "share": round(file.tokens / memory.budget_tokens, 4) if memory.budget_tokens else None,
        "sha256": file.sha256,
    }


def _left_out(file: LeftOut) -> dict[str, str]:
    return {"name": file.name, "from": file.origin, "path": str(file.path), "why": file.why}


def _where(file: LeftOut) -> str:
    return f"{file.origin}/{file.name}".strip("/")


def _share(tokens: int, memory: Memory) -> str:
    return f"{tokens / memory.budget_tokens:.1%}" if memory.budget_tokens else "-"


def _print_files(memory: Memory) -> None:
    """A table of what sessions get, in the order in which they get it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from smartwriter.cli.console import TerminalConsole

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("file", overflow="fold")
    table.add_column("from", overflow="fold")
    table.add_column("prompt")
    for heading in ("order", "words", "tokens", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for file in (*memory.files, *memory.on_demand):
        always = file.include == "always"
        table.add_row(
            Text(file.path.name),  # not a string: brackets in a name are no markup
            Text(file.origin or "the workspace"),
            "whole" if always else "listed",
            f"{file.order:g}",
            f"{file.words:,}",
            f"{file.tokens:,}",
            _share(file.tokens, memory) if always else "-",
            style="" if always else "dim",
        )
    TerminalConsole().print(table)
