"""Commands that look at what other processes are writing, and stop it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import anyio
import click
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from smartwriter.cli.app import as_json, in_workspace, print_json, print_json_line
from smartwriter.cli.interrupts import first_signal
from smartwriter.cli.outlet import is_read
from smartwriter.cli.progress import Progress
from smartwriter.cli.typist import Typist
from smartwriter.events import Event, Failed
from smartwriter.files.durable import write_document
from smartwriter.tasks.cut_off import version_of
from smartwriter.tasks.values import Draft, Task, TurnState
from smartwriter.turns.live import LiveJournal, LiveReader
from smartwriter.turns.watching import follow_all
from smartwriter.workspace import Workspace

_UNREAD_POLL_S = 0.5
_DEAD_POLL_S = 0.5  # for what can be waited for in no other way: a process that died says nothing


@click.command()
@click.argument("addresses", metavar="[TASK[@DRAFT]]...", nargs=-1)
@click.option("--after", type=int, help="Only what came after this position.")
@as_json
@in_workspace
def watch_command(workspace: Workspace, addresses: tuple[str, ...], after: int | None, json_: bool) -> None:
    """Watch drafts being written, by whatever process, until ctrl-C. By default all tasks.

    Of one draft, the article and the answers are printed as they are typed, from the beginning of the
    turn in flight. --json first tells again what is kept of the last turn, then what happens.
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
    from smartwriter.writing.orphans import end_orphans

    task, draft = workspace.tasks.resolve(address)
    address = task.address(draft.name)
    if workspace.lease(task, draft.name).is_held():
        write_document(workspace.stop_path(task, draft.name), "stop\n")
        click.echo(f"Asked the process that writes {address} to stop.")
    elif end_orphans(workspace, task, draft):
        click.echo(f"The program that wrote {address} had died; Claude, which still went on, was ended.")
    else:
        click.echo(f"{address} is not being written.")


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
    turns = workspace.turns_now(task, draft.name)
    if turns and turns[-1].detail:
        return f"turn {turns[-1].number} {turns[-1].state.value}: {turns[-1].detail}"
    if not turns or turns[-1].state is not TurnState.interrupted:
        return ""
    kept = version_of(turns[-1], workspace.text(task, draft.name).revisions())
    where = f", its article is kept as {task.address(draft.name)}:{kept.number}" if kept is not None else ""
    return f"turn {turns[-1].number} was cut off{where}; just write on"


async def _watch(
    workspace: Workspace, watched: list[tuple[Task, Draft]], after: int | None, json_: bool
) -> None:
    titles = {task.id: task.title for task, _ in watched}
    drafts = {(task.id, draft.name): (task, draft) for task, draft in watched}
    in_flight: dict[tuple[str, str], int] = {}
    """The turn of each draft that has begun and not ended."""
    with contextlib.ExitStack() as stack:
        if json_:
            tell: Callable[[Event], None] = _print_json_event
        elif len(watched) == 1:
            tell = Typist(watching=True).show
        else:
            tell = stack.enter_context(Progress(titles, drafts=list(drafts))).show

        def show(event: Event) -> None:
            if event.kind == "turn_started":
                in_flight[event.task, event.draft] = event.turn
            elif event.kind in ("finished", "stopped", "failed"):
                # A turn that died was told already, when it is settled later.
                told = in_flight.pop((event.task, event.draft), None) is None
                if told and event.kind == "failed" and not json_:
                    return
            if json_ or event.kind != "reload":
                tell(event)

        async def tell_all() -> None:
            paths = [workspace.live_path(task, draft.name) for task, draft in watched]
            starts = [0 if json_ else LiveJournal.start_of_flight(path) for path in paths]
            readers = {
                path: LiveReader(path, start if after is None else after)
                for path, start in zip(paths, starts, strict=True)
            }
            async for event in follow_all(workspace.places.live_folder, readers):
                show(event)

        async def tell_of_the_dead() -> None:
            while True:
                await anyio.sleep(_DEAD_POLL_S)
                for address, turn in list(in_flight.items()):
                    died = await run_sync(_died, workspace, *drafts[address], turn)
                    if died is not None and in_flight.get(address) == turn:
                        show(died)

        async with anyio.create_task_group() as group:
            group.start_soon(tell_all)
            if not json_:
                group.start_soon(tell_of_the_dead)
            group.start_soon(_until_unread, group)
            await first_signal()
            group.cancel_scope.cancel()


async def _until_unread(group: TaskGroup) -> None:
    """Who watches for nobody ends: ``watch | head``."""
    while is_read():  # noqa: ASYNC110 - no reader tells that it leaves
        await anyio.sleep(_UNREAD_POLL_S)
    group.cancel_scope.cancel()


def _died(workspace: Workspace, task: Task, draft: Draft, number: int) -> Event | None:
    """How a turn ended whose process did not live to say it; None while it may."""
    for turn in workspace.turns_now(task, draft.name):
        if turn.number == number and turn.state is TurnState.interrupted:
            kept = version_of(turn, workspace.text(task, draft.name).revisions())
            where = f"; kept as {task.address(draft.name)}:{kept.number}" if kept is not None else ""
            return Failed(task=task.id, draft=draft.name, detail=f"(cut off here{where})", turn=turn)
    return None


def _print_json_event(event: Event) -> None:
    print_json_line(event.model_dump(mode="json"))
