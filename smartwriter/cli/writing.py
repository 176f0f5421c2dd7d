"""Commands that write with the model, one draft or many at once."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import click

from smartwriter.cli.app import as_json, in_workspace, offline_option, print_json, print_json_line
from smartwriter.cli.jobs import job_of_argument, jobs_of_file
from smartwriter.cli.running import checked_prompt, run_jobs, write
from smartwriter.cli.terminal import secho
from smartwriter.errors import Invalid, SmartWriterError
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Draft, Task
from smartwriter.workspace import Workspace


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]")
@click.argument("prompt", required=False)
@offline_option
@as_json
@in_workspace
def write_command(workspace: Workspace, address: str, prompt: str | None, offline: bool, json_: bool) -> None:
    """Write on with PROMPT (or - for standard input): start a draft, or resume it.

    Exit code 3: the model ended its answer for a reason of its own (it refused, paused, said nothing, or
    reached a limit).
    """
    task, draft = workspace.tasks.resolve(address)
    show = print_json if json_ else None
    OpenDraft(workspace, task, draft.name).lease().check()  # before anything is typed for nothing
    said = _prompt(prompt)
    try:
        write(workspace, task, draft, said, offline=offline, show_turn=show)
    except SmartWriterError:
        if prompt in (None, "-") and said.strip():  # no shell remembers it
            secho(f"This was not sent:\n\n{said.rstrip()}\n", err=True)
        raise


@click.command()
@click.argument("jobs", metavar="TASK=PROMPT...", nargs=-1)
@click.option("-f", "--file", "file", type=click.Path(path_type=Path), help="A YAML list of jobs.")
@click.option("--parallel", type=click.IntRange(1, 64), help="At most so many at once.")
@click.option("--notify", help="A command to run when a draft is done; {} becomes the message.")
@offline_option
@as_json
@in_workspace
def run_command(
    workspace: Workspace,
    jobs: tuple[str, ...],
    file: Path | None,
    parallel: int | None,
    notify: str | None,
    offline: bool,
    json_: bool,
) -> None:
    """Write several drafts at once. --json prints every event, one a line.

    In FILE each job has a prompt and a task (its id or title) and maybe one of its drafts, or a
    title and maybe a collection, for a new one. Exit code 3: each that did not finish was ended by the
    model, as in write.
    """
    wanted = [job_of_argument(workspace, job) for job in jobs]
    if file is not None:
        wanted += jobs_of_file(workspace, file)
    if not wanted:
        raise Invalid("Nothing to run: name TASK=PROMPT, or a file of jobs with -f.")
    config = workspace.config()
    if parallel is not None:
        config = config.model_copy(update={"parallel": parallel})
    started = [(*job.resolve(workspace), job.prompt) for job in wanted]
    run_jobs(workspace, started, config, notify, offline=offline, json_=json_)


@click.command()
@click.argument("address", metavar="TASK[@DRAFT][:REVISION]")
@click.option("--at", type=click.IntRange(0), help="The last turn to share; by default the latest.")
@click.option("--name", help="By default draft-2, draft-3, …")
@click.option(
    "--memory", "memory", multiple=True, metavar="FILE=OTHER", help="What if its memory FILE were OTHER."
)
@click.option("--variants", type=click.IntRange(2, 20), help="So many forks at once, written with -p.")
@click.option("-p", "--prompt", help="Write on in the fork with this prompt.")
@offline_option
@as_json
@in_workspace
def fork_command(
    workspace: Workspace,
    address: str,
    at: int | None,
    name: str | None,
    memory: tuple[str, ...],
    variants: int | None,
    prompt: str | None,
    offline: bool,
    json_: bool,
) -> None:
    """Start a trial draft that shares a draft's past, and leave that one alone.

    With a REVISION, it starts from that version of the text. With --memory its sessions get another
    version of one of the collection's memory files; the collection itself stays as it is. --json
    with a prompt prints a line for each fork, and then one for every event.
    """
    from smartwriter.trials.forking import fork
    from smartwriter.trials.what_if import what_if

    task, draft, revision = workspace.tasks.resolve_revision(address)
    if variants is not None and (prompt is None or name is not None):
        raise Invalid("Variants need a prompt (-p), and get their names by themselves.")
    if prompt is not None:
        checked_prompt(prompt)
    other_memory = what_if(OpenDraft(workspace, task, draft.name), memory)

    make = partial(
        fork, OpenDraft(workspace, task, draft.name), at=at, revision=revision, name=name, memory=other_memory
    )
    forks = anyio.run(_several, make, variants or 1)
    for new in forks:
        if json_:  # before events, a line each as they are
            (print_json if prompt is None else print_json_line)(new.model_dump(mode="json"))
        else:
            _tell_fork(task, draft, new)
    if prompt is not None:
        run_jobs(workspace, [(task, new, prompt) for new in forks], offline=offline, json_=json_)


async def _several(make: Callable[[], Awaitable[Draft]], count: int) -> list[Draft]:
    return [await make() for _ in range(count)]


def _tell_fork(task: Task, draft: Draft, new: Draft) -> None:
    assert new.origin is not None
    text = f", with the text of :{new.origin.revision}" if new.origin.revision else ""
    click.echo(
        f"{task.address(new.name)} shares {task.address(draft.name)} up to turn {new.origin.turn}{text}."
    )


def _prompt(argument: str | None) -> str:
    if sys.stdin is None and argument in (None, "-"):
        raise Invalid("There is no prompt: standard input is closed.")
    if argument == "-" or (argument is None and not sys.stdin.isatty()):
        from smartwriter.files.utf8 import decoded

        given = sys.stdin.buffer.read()
        return decoded(given, "The prompt on standard input", "; nothing was sent.", encoding="utf-8-sig")
    if argument is None:
        from smartwriter.cli.asking import ask

        argument = ask("Prompt> ")
    return argument
