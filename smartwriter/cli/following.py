"""Commands that look at what other processes are writing, and stop it."""

from __future__ import annotations

import contextlib

import anyio
import click
from anyio.abc import TaskGroup

from smartwriter.cli.app import as_json, in_workspace, print_json, print_json_line
from smartwriter.cli.interrupts import first_signal
from smartwriter.cli.outlet import is_read
from smartwriter.cli.progress import Progress
from smartwriter.cut_off import turns_now, version_of
from smartwriter.events import Event
from smartwriter.journal import write_document
from smartwriter.live import LiveJournal, LiveReader
from smartwriter.tasks import Draft, Task, TurnState
from smartwriter.watching import follow_all
from smartwriter.workspace import Workspace

_UNREAD_POLL_S = 0.5


@click.command()
@click.argument("addresses", metavar="[TASK[@DRAFT]]...", nargs=-1)
@click.option("--after", type=int, default=0, help="Only what came after this position.")
@as_json
@in_workspace
def watch_command(workspace: Workspace, addresses: tuple[str, ...], after: int, json_: bool) -> None:
    """Watch drafts being written, by whatever process, until ctrl-C. By default all tasks.

    First what is kept of the last turn is told again, then what happens.
    """
    watched = [workspace.tasks.resolve(address) for address in addresses]
    if not addresses:
        watched = [(task, workspace.tasks.draft(task, task.current)) for task in workspace.tasks.all()]
    anyio.run(_watch, workspace, watched, after, json_)


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]")
@in_workspace
def stop_command(workspace: Workspace, address: str) -> None:
    """Stop the turn of a draft, in whatever process; what was written of it stays."""
    task, draft = workspace.tasks.resolve(address)
    if not workspace.lease(task, draft.name).is_held():
        click.echo(f"{task.address(draft.name)} is not being written.")
        return
    write_document(workspace.stop_path(task, draft.name), "stop\n")
    click.echo(f"Asked the process that writes {task.address(draft.name)} to stop.")


@click.command()
@as_json
@in_workspace
def status_command(workspace: Workspace, json_: bool) -> None:
    """Say what is being written, by whom, and what was cut off."""
    found = [
        (task, name, state, waiting)
        for task in workspace.tasks.all()
        for name in task.live_drafts
        for waiting in [len(workspace.outbox(task, name).waiting())]
        if (state := _state(workspace, task, task.drafts[name])) or waiting
    ]
    if json_:
        fields = ("task", "draft", "state", "waiting")
        print_json([dict(zip(fields, (task.id, *more), strict=True)) for task, *more in found])
        return
    for task, name, state, waiting in found:
        waits = [f"{waiting} prompt{' waits' if waiting == 1 else 's wait'}"] if waiting else []
        click.echo(f"{task.address(name)}  {task.title}: {'; '.join([state] * bool(state) + waits)}")
    if not found:
        click.echo("Nothing is being written.")


def _state(workspace: Workspace, task: Task, draft: Draft) -> str:
    lease = workspace.lease(task, draft.name)
    if lease.is_held():
        ended = LiveJournal.has_ended(workspace.live_path(task, draft.name))
        return f"{'idle' if ended else 'writing'}, in {lease.holder()}"
    turns = turns_now(workspace, task, draft.name)
    if turns and turns[-1].detail:
        return f"turn {turns[-1].number} {turns[-1].state.value}: {turns[-1].detail}"
    if not turns or turns[-1].state is not TurnState.interrupted:
        return ""
    kept = version_of(turns[-1], workspace.text(task, draft.name).revisions())
    where = f", its article is kept as {task.address(draft.name)}:{kept.number}" if kept is not None else ""
    return f"turn {turns[-1].number} was cut off{where}; just write on"


async def _watch(workspace: Workspace, watched: list[tuple[Task, Draft]], after: int, json_: bool) -> None:
    titles = {task.id: task.title for task, _ in watched}
    drafts = [(task.id, draft.name) for task, draft in watched]
    with contextlib.ExitStack() as stack:
        progress = None if json_ else stack.enter_context(Progress(titles, drafts=drafts))

        async def tell() -> None:
            paths = [workspace.live_path(task, draft.name) for task, draft in watched]
            readers = {path: LiveReader(path, after) for path in paths}
            async for event in follow_all(workspace.hidden / "live", readers):
                _show(event, progress)

        async with anyio.create_task_group() as group:
            group.start_soon(tell)
            group.start_soon(_until_unread, group)
            await first_signal()
            group.cancel_scope.cancel()


async def _until_unread(group: TaskGroup) -> None:
    """Who watches for nobody ends: ``watch | head``."""
    while is_read():  # noqa: ASYNC110 - no reader tells that it leaves
        await anyio.sleep(_UNREAD_POLL_S)
    group.cancel_scope.cancel()


def _show(event: Event, progress: Progress | None) -> None:
    if progress is None:
        print_json_line(event.model_dump(mode="json"))
    elif event.kind != "reload":
        progress.show(event)
