"""Prompts that wait on disk: sent first, in their order, and said so; or taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from smartwriter.cli.app import in_workspace
from smartwriter.cli.terminal import secho
from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Draft, Task
from smartwriter.text.wording import acting, shortened
from smartwriter.turns.outbox import Waiting
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from smartwriter.turns.sent import SentPrompt
    from smartwriter.writing.engine import Engine, Job

_SHOWN_CHARACTERS = 60


async def send_earlier(engine: Engine, jobs: Sequence[Job]) -> tuple[list[SentPrompt], list[Job]]:
    """Send what waits in the drafts of these jobs, and say so; and the jobs that are left."""
    earlier = await engine.send_earlier(jobs)
    for address, sent in earlier.found:
        _tell(address, sent)
    return earlier.sent, earlier.left


def _tell(address: str, earlier: Sequence[SentPrompt]) -> None:
    if earlier:
        what = "A prompt was" if len(earlier) == 1 else f"{len(earlier)} prompts were"
        verb = "is" if len(earlier) == 1 else "are"
        secho(f"{address}: {what} still waiting and {verb} sent first:", err=True, fg="yellow")
        for one in earlier:
            secho(f"  {shortened(one.prompt, _SHOWN_CHARACTERS)}", err=True, fg="yellow")


def tell_waiting(workspace: Workspace, drafts: Sequence[tuple[Task, Draft]]) -> None:
    """Say what still waits when a command ends."""
    for task, draft in {(task.id, draft.name): (task, draft) for task, draft in drafts}.values():
        if waiting := OpenDraft(workspace, task, draft.name).outbox().waiting():
            address = task.address(draft.name)
            secho(
                f"{address}: {in_words(waiting)}, and the next write sends it first; "
                f"to take it back: smartwriter withdraw {address}",
                err=True,
                fg="yellow",
            )


def in_words(waiting: Sequence[Waiting]) -> str:
    return acting(len(waiting), "prompt", "wait")


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]")
@click.argument("number", type=click.IntRange(1), required=False)
@in_workspace
def withdraw_command(workspace: Workspace, address: str, number: int | None) -> None:
    """Take back a prompt that waits for its turn, and print it.

    Of several, NUMBER says which one, as `show` lists them.
    """
    task, draft = workspace.tasks.resolve(address)
    address = task.address(draft.name)
    outbox = OpenDraft(workspace, task, draft.name).outbox()
    waiting = outbox.waiting()
    if not waiting:
        raise Invalid(f"No prompt waits in {address}.")
    if number is None and len(waiting) > 1:
        listed = "; ".join(
            f"{n}: {shortened(one.prompt, _SHOWN_CHARACTERS)}" for n, one in enumerate(waiting, 1)
        )
        raise Invalid(f"{in_words(waiting)} in {address}; say which one by its number: {listed}")
    if number is not None and number > len(waiting):
        raise Invalid(f"{in_words(waiting)} in {address}: there is no number {number}.")
    held = OpenDraft(workspace, task, draft.name).lease().is_held()
    found = outbox.withdraw(waiting[(number or 1) - 1].id, held=held)
    if found is None:
        raise Invalid("The turn of this prompt has begun meanwhile.")
    click.echo(found.prompt)
