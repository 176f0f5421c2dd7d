"""Commands that write with the model, one draft or many at once."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import yaml

from smartwriter.cli.app import as_json, in_workspace, offline_option, print_json
from smartwriter.errors import Invalid, SmartWriterError
from smartwriter.tasks import Draft, Task, Turn, TurnState
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from smartwriter.agent.claude import ClaudeAgent
    from smartwriter.engine import SentPrompt
    from smartwriter.events import Event

OFFLINE_URL = "SMARTWRITER_OFFLINE_URL"
"""Environment variable: a stand-in that is already running, to be used by --offline."""


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]")
@click.argument("prompt", required=False)
@offline_option
@as_json
@in_workspace
def write_command(workspace: Workspace, address: str, prompt: str | None, offline: bool, json_: bool) -> None:
    """Write on with PROMPT (or - for standard input): start a draft, or resume it."""
    task, draft = workspace.tasks.resolve(address)
    write(workspace, task, draft, _prompt(prompt), offline=offline, json_=json_)


@click.command()
@click.argument("jobs", metavar="TASK=PROMPT...", nargs=-1)
@click.option("-f", "--file", "file", type=click.Path(path_type=Path), help="A YAML list of jobs.")
@click.option("--parallel", type=click.IntRange(1, 64), default=4, show_default=True)
@offline_option
@as_json
@in_workspace
def run_command(
    workspace: Workspace,
    jobs: tuple[str, ...],
    file: Path | None,
    parallel: int,
    offline: bool,
    json_: bool,
) -> None:
    """Write several drafts at once. --json prints every event, one a line.

    In FILE each job has a prompt and a task (its id or title), or a title and maybe a
    collection, for a new one.
    """
    wanted = [_job(workspace, job) for job in jobs]
    if file is not None:
        wanted += _jobs_of_file(workspace, file)
    if not wanted:
        raise Invalid("Nothing to run: name TASK=PROMPT, or a file of jobs with -f.")
    started = [(*job.resolve(workspace), job.prompt) for job in wanted]
    with agent(offline) as claude:
        turns = anyio.run(_run, workspace, claude, started, parallel, json_)
    failed = [turn for turn in turns if not isinstance(turn, Turn) or turn.state is not TurnState.finished]
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(turns)} did not finish.")


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]")
@click.option("--at", type=click.IntRange(0), help="The last turn to share; by default the latest.")
@click.option("--name", help="By default draft-2, draft-3, …")
@as_json
@in_workspace
def fork_command(workspace: Workspace, address: str, at: int | None, name: str | None, json_: bool) -> None:
    """Start a trial draft that shares a draft's past, and leave that one alone."""
    from smartwriter.fork import fork

    task, draft = workspace.tasks.resolve(address)

    async def run() -> Draft:
        return await fork(workspace, task, draft, at=at, name=name)

    new = anyio.run(run)
    if json_:
        print_json(new.model_dump(mode="json"))
        return
    turn = new.origin.turn if new.origin else 0
    click.echo(f"{task.address(new.name)} shares {task.address(draft.name)} up to turn {turn}.")


def write(workspace: Workspace, task: Task, draft: Draft, prompt: str, *, offline: bool, json_: bool) -> None:
    """Take one turn in the foreground."""
    checked_prompt(prompt)
    with agent(offline) as claude:
        turn = anyio.run(_write, workspace, claude, task, draft, prompt, json_)
    if json_:
        print_json(turn.model_dump(mode="json"))
    if turn.state is not TurnState.finished:
        raise click.ClickException(turn.detail)


@contextlib.contextmanager
def agent(offline: bool) -> Iterator[ClaudeAgent]:
    """The agent that writes: Claude, or the stand-in."""
    from smartwriter.agent.claude import ClaudeAgent

    if not offline:
        yield ClaudeAgent()
        return
    from smartwriter.agent.offline import BANNER, OfflineModel, clean_environment, offline_env

    with clean_environment(), contextlib.ExitStack() as stack:
        home = tempfile.TemporaryDirectory(prefix="smartwriter-", ignore_cleanup_errors=True)
        url = os.environ.get(OFFLINE_URL)
        if not url:
            click.secho(BANNER, err=True, fg="yellow")
            url = stack.enter_context(OfflineModel()).url
        yield ClaudeAgent(env=offline_env(url, Path(stack.enter_context(home))))


def checked_prompt(prompt: str) -> None:
    if not prompt.strip():
        raise Invalid("The prompt is empty.")


def _prompt(argument: str | None) -> str:
    if sys.stdin is None and argument in (None, "-"):
        raise Invalid("There is no prompt: standard input is closed.")
    if argument == "-" or (argument is None and not sys.stdin.isatty()):
        try:
            return sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Invalid(
                f"The prompt on standard input is not UTF-8 text (byte {error.start}); nothing was sent."
            ) from None
    if argument is None:
        argument = click.prompt("Prompt", prompt_suffix="> ")
    return argument


# Several at once ------------------------------------------------------------------------------


class _Job:
    def __init__(self, prompt: str, task: str | None, title: str | None, collection: str | None) -> None:
        self.prompt, self._task, self._title, self._collection = prompt, task, title, collection

    def check(self, workspace: Workspace) -> None:
        """Everything that can be known before anything is started."""
        checked_prompt(self.prompt)
        if self._task is not None:
            workspace.tasks.resolve(self._task)
        elif self._collection is not None:
            workspace.collection(self._collection)

    def resolve(self, workspace: Workspace) -> tuple[Task, Draft]:
        if self._task is not None:
            return workspace.tasks.resolve(self._task)
        task = workspace.new_task(self._title or "", self._collection)
        return task, task.drafts[task.current]


def _job(workspace: Workspace, argument: str) -> _Job:
    address, equals, prompt = argument.partition("=")
    if not equals:
        raise Invalid(f"{argument!r} is no job: write TASK=PROMPT.")
    job = _Job(prompt, address, None, None)
    job.check(workspace)
    return job


def _jobs_of_file(workspace: Workspace, file: Path) -> list[_Job]:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that is none
        raise Invalid(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, list):
        raise Invalid(f"{file} is no list of jobs.")
    jobs = []
    for number, item in enumerate(found, 1):
        try:
            jobs.append(_job_of_item(workspace, item))
        except SmartWriterError as error:
            raise Invalid(f"{file}, job {number}: {error}") from None
    return jobs


def _job_of_item(workspace: Workspace, item: Any) -> _Job:
    fields = {"task", "title", "collection", "prompt"}
    if not isinstance(item, dict) or not all(isinstance(value, str) for value in item.values()):
        raise Invalid("it must have a prompt and a task or title, all of them text.")
    if unknown := item.keys() - fields:
        raise Invalid(f"it has an unknown field {sorted(map(str, unknown))[0]!r}.")
    if ("task" in item) == bool(item.get("title", "").strip()):
        raise Invalid("it needs either a task or, for a new one, a title.")
    job = _Job(item.get("prompt", ""), item.get("task"), item.get("title"), item.get("collection"))
    job.check(workspace)
    return job


async def _run(
    workspace: Workspace,
    claude: ClaudeAgent,
    started: list[tuple[Task, Draft, str]],
    parallel: int,
    json_: bool,
) -> list[Turn | Exception]:
    from smartwriter.cli.progress import Progress
    from smartwriter.engine import Engine

    async with Engine(workspace, claude, parallel=parallel) as engine, engine.events() as events:
        sent = [engine.send(task, draft, prompt) for task, draft, prompt in started]
        with contextlib.ExitStack() as stack:
            if json_:
                show: Callable[[Event], None] = _print_json_event
            else:
                show = stack.enter_context(Progress({task.id: task.title for task, _, _ in started})).show
            await _until_ended(events, show, len(sent))
    return [await _outcome(prompt) for prompt in sent]


def _print_json_event(event: Event) -> None:
    click.echo(json.dumps(event.model_dump(mode="json")))  # escaped: a prompt may hold half an emoji


async def _until_ended(events: AsyncIterable[Event], show: Callable[[Event], None], prompts: int) -> None:
    async for event in events:
        show(event)
        prompts -= event.kind in ("finished", "failed")
        if not prompts:
            break


async def _outcome(prompt: SentPrompt) -> Turn | Exception:
    try:
        return await prompt.outcome()
    except (SmartWriterError, OSError) as error:
        return error


async def _write(
    workspace: Workspace, claude: ClaudeAgent, task: Task, draft: Draft, prompt: str, json_: bool
) -> Turn:
    from smartwriter.engine import Engine

    async with Engine(workspace, claude) as engine, engine.events() as events:
        sent = engine.send(task, draft, prompt)
        await _until_ended(events, (lambda event: None) if json_ else _Typist().show, 1)
    return await sent.outcome()


class _Typist:
    """Prints the answer as it is typed, and what else happens on lines of its own."""

    def __init__(self) -> None:
        self._at_line_start = True

    def show(self, event: Event) -> None:
        match event.kind:
            case "text_delta":
                click.echo(event.text, nl=False)
                sys.stdout.flush()
                self._at_line_start = event.text.endswith("\n")
            case "draft_revised":
                self._note(f"  · revision {event.revision}, {event.characters} characters")
            case "not_saved":
                self._note(f"NOT SAVED: {event.detail}", fg="red")
            case "finished" | "failed":
                self._note("")

    def _note(self, text: str, **style: Any) -> None:
        if not self._at_line_start:
            click.echo()
            self._at_line_start = True
        if text:
            click.secho(text, err=True, **style)
