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
from smartwriter.events import Event, ends_turn
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Draft, Task
from smartwriter.text.wording import acting
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
    from smartwriter.writing.status import stop

    draft = OpenDraft.at(workspace, address)
    address = draft.address
    said = {
        "asked": f"Asked the process that writes {address} to stop.",
        "ended": f"The program that wrote {address} had died; Claude, which still went on, was ended.",
        "idle": f"{address} is not being written.",
    }
    click.echo(said[stop(draft)])


@click.command()
@as_json
@in_workspace
def status_command(workspace: Workspace, json_: bool) -> None:
    """Say what is being written, by whom, and what was cut off."""
    from smartwriter.writing.status import statuses

    found = statuses(workspace)
    if json_:
        print_json(
            [
                {"task": one.task.id, "draft": one.draft, "state": one.state, "waiting": one.waiting}
                for one in found
            ]
        )
        return
    for one in found:
        waits = [acting(one.waiting, "prompt", "wait")] if one.waiting else []
        said = "; ".join([one.state] * bool(one.state) + waits)
        click.echo(f"{one.task.address(one.draft)}  {one.task.title}: {said}")
    if not found:
        click.echo("Nothing is being written.")


async def _watch(
    workspace: Workspace, watched: list[tuple[Task, Draft]], after: int | None, json_: bool
) -> None:
    titles = {task.id: task.title for task, _ in watched}
    drafts = [(task.id, draft.name) for task, draft in watched]
    with contextlib.ExitStack() as stack:
        if json_:
            tell: Callable[[Event], None] = _print_json_event
        elif len(watched) == 1:
            tell = Typist(watching=True).show
        else:
            tell = stack.enter_context(Progress(titles, drafts=drafts)).show
        watch = _Watch(workspace, watched, tell, exactly=json_)
        async with anyio.create_task_group() as group:
            group.start_soon(watch.tell_all, after)
            if not json_:
                group.start_soon(watch.tell_of_the_dead)
            group.start_soon(_until_unread, group)
            await first_signal()
            group.cancel_scope.cancel()


class _Watch:
    def __init__(
        self,
        workspace: Workspace,
        watched: list[tuple[Task, Draft]],
        tell: Callable[[Event], None],
        *,
        exactly: bool,
    ) -> None:
        """:param exactly: every event is told, also those that say to a person what they know already."""
        self._workspace = workspace
        self._drafts = {(task.id, draft.name): (task, draft) for task, draft in watched}
        self._tell = tell
        self._exactly = exactly
        self._in_flight: dict[tuple[str, str], int] = {}
        """The turn of each draft that has begun and not ended."""

    async def tell_all(self, after: int | None) -> None:
        paths = [
            OpenDraft(self._workspace, task, draft.name).live_path for task, draft in self._drafts.values()
        ]
        starts = [0 if self._exactly else LiveJournal.start_of_flight(path) for path in paths]
        readers = {
            path: LiveReader(path, start if after is None else after)
            for path, start in zip(paths, starts, strict=True)
        }
        async for event in follow_all(self._workspace.places.live_folder, readers):
            self._show(event)

    async def tell_of_the_dead(self) -> None:
        from smartwriter.writing.status import died

        while True:
            await anyio.sleep(_DEAD_POLL_S)
            for address, turn in list(self._in_flight.items()):
                task, draft = self._drafts[address]
                ending = await run_sync(died, OpenDraft(self._workspace, task, draft.name), turn)
                if ending is not None and self._in_flight.get(address) == turn:
                    self._show(ending)

    def _show(self, event: Event) -> None:
        if event.kind == "turn_started":
            self._in_flight[event.task, event.draft] = event.turn
        elif ends_turn(event):
            # A turn that died was told already, when it is settled later.
            told = self._in_flight.pop((event.task, event.draft), None) is None
            if told and event.kind == "failed" and not self._exactly:
                return
        if self._exactly or event.kind != "reload":
            self._tell(event)


async def _until_unread(group: TaskGroup) -> None:
    """Who watches for nobody ends: ``watch | head``."""
    while is_read():  # noqa: ASYNC110 - no reader tells that it leaves
        await anyio.sleep(_UNREAD_POLL_S)
    group.cancel_scope.cancel()


def _print_json_event(event: Event) -> None:
    print_json_line(event.model_dump(mode="json"))
