"""Running the engine in the foreground: the agent, what is shown, and how it is stopped."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import click

from smartwriter.agent.endings import UNUSUAL_EXIT
from smartwriter.cli.app import print_json_line
from smartwriter.cli.interrupts import Interrupts, Stopped, interrupts
from smartwriter.cli.notices import NOTICED, names, notice
from smartwriter.cli.outlet import never_touch_turns
from smartwriter.cli.terminal import bell, secho
from smartwriter.cli.waiting import send_earlier, tell_waiting
from smartwriter.errors import Invalid, SmartWriterError
from smartwriter.series.problems import memory_problems
from smartwriter.tasks.values import Draft, Task, Turn, TurnState
from smartwriter.text.wording import acting
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from smartwriter.agent.claude import ClaudeAgent
    from smartwriter.events import Event
    from smartwriter.system.config import Config
    from smartwriter.turns.sent import SentPrompt
    from smartwriter.writing.engine import Engine

SAVED = "All of it is saved in its place now."
NOT_KEPT = "No disk takes what was written. This is all of it, and it is nowhere else:"
OFFLINE_URL = "SMARTWRITER_OFFLINE_URL"
"""Environment variable: a stand-in that is already running, to be used by --offline."""


def write(
    workspace: Workspace,
    task: Task,
    draft: Draft,
    prompt: str,
    *,
    offline: bool,
    show_turn: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Take one turn in the foreground.

    :param show_turn: gets the fields of the turn when it has ended; None: the answer is printed as it
        is typed.
    :raises Invalid: for an empty prompt. :raises click.ClickException: when the turn does not finish.
    """
    checked_prompt(prompt)
    config = workspace.config()
    warn_of_memory(workspace, [task])
    with agent(offline, workspace, typed=show_turn is None) as claude:
        tell_recovered(workspace, claude)
        turn, signal_ = anyio.run(_write, workspace, claude, config, task, draft, prompt, show_turn is None)
    if show_turn is not None and turn is not None:
        show_turn(turn.model_dump(mode="json"))
    _say_if_not_saved(workspace)
    tell_waiting(workspace, [(task, draft)])
    if turn is None or turn.state is TurnState.stopped:
        _end_stopped(signal_, turn.detail if turn else "")
    if turn.stop_reason:
        raise EndedEarly(turn.detail)
    if turn.state is not TurnState.finished:
        raise click.ClickException(turn.detail)


def run_jobs(
    workspace: Workspace,
    started: list[tuple[Task, Draft, str]],
    config: Config | None = None,
    notify: str | None = None,
    *,
    offline: bool,
    json_: bool,
) -> None:
    config = config or workspace.config()
    for problem in workspace.config_problems():
        secho(problem, err=True, fg="yellow")
    warn_of_memory(workspace, [task for task, _, _ in started])
    with agent(offline, workspace) as claude:
        tell_recovered(workspace, claude)
        titles = {task.id: task.title for task, _, _ in started}
        called = names(titles, [(task.id, draft.name) for task, draft, _ in started])
        notifier = Notifier(config.notify if notify is None else notify, called)
        turns, signal_ = anyio.run(_run, workspace, claude, started, config, notifier, json_)
    _say_if_not_saved(workspace)
    tell_waiting(workspace, [(task, draft) for task, draft, _ in started])
    failed = [turn for turn in turns if not isinstance(turn, Turn) or not _is_whole(turn)]
    if failed and signal_ is not None:
        _end_stopped(signal_)
    if failed:
        by_the_model = all(isinstance(turn, Turn) and turn.stop_reason for turn in failed)
        kind = EndedEarly if by_the_model else click.ClickException
        raise kind(f"{len(failed)} of {len(turns)} did not finish.")


def _is_whole(turn: Turn) -> bool:
    return turn.state is TurnState.finished and not turn.stop_reason


class EndedEarly(click.ClickException):
    """The model ended an answer for a reason of its own; the message says for which."""

    exit_code = UNUSUAL_EXIT


def warn_of_memory(workspace: Workspace, tasks: list[Task]) -> None:
    """:raises Invalid: when the folder of a collection has another name by now."""
    for problem in memory_problems(workspace, tasks):
        secho(problem, err=True, fg="yellow")


def checked_prompt(prompt: str) -> None:
    if not prompt.strip():
        raise Invalid("The prompt is empty.")


def _say_if_not_saved(workspace: Workspace) -> None:
    if waiting := workspace.spool.paths():
        folders = " and ".join(dict.fromkeys(str(path.parent) for path in waiting))
        then = "make room on the disk" if workspace.hidden.is_dir() else f"bring {workspace.root} back"
        raise click.ClickException(
            f"Not all that was written could be stored in its place: {acting(len(waiting), 'part', 'wait')} "
            f"in {folders}; {then}, and the next write stores it."
        )


def _end_stopped(number: signal.Signals | None, why: str = "") -> NoReturn:
    """To stop is no error, but not the end that was wanted either.

    :param number: by what; None: on request of another process.
    :param why: there was nothing written.
    """
    secho(f"Stopped. {why}" if why else "Stopped; what had been written is kept.", err=True)
    raise SystemExit(1) if number is None else Stopped(number)


@contextlib.contextmanager
def agent(offline: bool, workspace: Workspace, *, typed: bool = False) -> Iterator[ClaudeAgent]:
    """The agent that writes: Claude, or the stand-in.

    :param typed: what it says is seen as it is said, and so is what it is.
    """
    from smartwriter.agent.claude import ClaudeAgent
    from smartwriter.system.config import own

    if not offline:
        yield ClaudeAgent(pass_on=own().environment)
        return
    from smartwriter.agent.offline.agent import offline_agent
    from smartwriter.agent.offline.stand_in import BANNER

    url = os.environ.get(OFFLINE_URL, "")
    if not url and not typed:
        secho(BANNER, err=True, fg="yellow")
    with offline_agent(workspace.identify().id, url) as claude:
        yield claude


def tell_recovered(workspace: Workspace, claude: ClaudeAgent) -> None:
    """Settle what a crash left, and say so, once."""
    from smartwriter.writing.recovery import recover

    if workspace.identify().is_new_copy:
        secho(
            "This workspace is a copy of another one: it goes its own way from now on, and leaves alone "
            "what is still being written there.",
            err=True,
            fg="yellow",
        )
    for recovered in recover(workspace, [claude.config_folder]):
        secho(str(recovered), err=True, fg="yellow")


async def _run(
    workspace: Workspace,
    claude: ClaudeAgent,
    started: list[tuple[Task, Draft, str]],
    config: Config,
    notifier: Notifier,
    json_: bool,
) -> tuple[list[Turn | Exception], signal.Signals | None]:
    from smartwriter.cli.progress import Progress
    from smartwriter.writing.engine import Engine

    engine = Engine(workspace, claude, config)
    async with _running(engine) as (signals, events):
        sent, left = await send_earlier(engine, started)
        if signals.heard is None:
            sent += await engine.send_all(left)
        with contextlib.ExitStack() as stack:
            if json_:
                show: Callable[[Event], None] = _print_json_event
            else:
                drafts = [(task.id, draft.name) for task, draft, _ in started]
                titles = {task.id: task.title for task, _, _ in started}
                show = stack.enter_context(Progress(titles, drafts=drafts)).show
            await _until_ended(events, _both(_both(show, _tell_of_the_dead), notifier.hear), len(sent))
    return [await _outcome(prompt) for prompt in sent], signals.heard


def _both(one: Callable[[Event], None], other: Callable[[Event], None]) -> Callable[[Event], None]:
    def show(event: Event) -> None:
        one(event)
        other(event)

    return show


def _tell_noticed(event: Event) -> None:
    """For who prints the turn alone."""
    _tell_of_the_dead(event)
    if event.kind in NOTICED:
        secho(notice(event), err=True, fg="yellow")


def _tell_of_the_dead(event: Event) -> None:
    if event.kind in ("awaited", "turn_recovered"):
        secho(event.detail, err=True, fg="yellow")


def _print_json_event(event: Event) -> None:
    print_json_line(event.model_dump(mode="json"))


async def _until_ended(events: AsyncIterable[Event], show: Callable[[Event], None], prompts: int) -> None:
    from smartwriter.events import settles_prompt

    if not prompts:
        return
    async for event in events:
        show(event)
        prompts -= settles_prompt(event)
        if not prompts:
            return


@contextlib.asynccontextmanager
async def _running(engine: Engine) -> AsyncIterator[tuple[Interrupts, AsyncIterable[Event]]]:
    """The engine, its events, and signals heeded until the last process of it is closed."""

    async def stop(number: signal.Signals) -> None:
        # Ctrl-C is a person who takes back what they asked for; all else may come at any time.
        await engine.stop_all(keep=number != signal.SIGINT)

    never_touch_turns()
    async with interrupts() as signals, engine, engine.events() as events:
        signals.stop_by(stop)
        yield signals, events


class Notifier:
    """Tells a person who looks elsewhere that a draft is done, or needs them."""

    def __init__(self, command: str, names: dict[tuple[str, str], str]) -> None:
        """:param command: to run, with the message in the place of ``{}``; empty: the bell."""
        self._command = command
        self._names = names

    def hear(self, event: Event) -> None:
        if event.kind not in ("finished", "failed", "not_saved"):
            return
        if not self._command:
            bell()
            return
        message = f"{self._names.get((event.task, event.draft), event.task)}: {event.kind.replace('_', ' ')}"
        try:
            words = [word.replace("{}", message) for word in shlex.split(self._command)]
            subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
            )
        except (OSError, ValueError) as error:  # no such program; no pair of quotes; a title that none takes
            why = getattr(error, "strerror", None) or error
            secho(f"{self._command} could not be run: {why}.", err=True, fg="yellow")


async def _outcome(prompt: SentPrompt) -> Turn | Exception:
    try:
        return await prompt.outcome()
    except (SmartWriterError, OSError) as error:
        return error


async def _write(
    workspace: Workspace,
    claude: ClaudeAgent,
    config: Config,
    task: Task,
    draft: Draft,
    prompt: str,
    typed: bool,
) -> tuple[Turn | None, signal.Signals | None]:
    from smartwriter.cli.typist import Typist
    from smartwriter.writing.engine import Engine

    engine = Engine(workspace, claude, config)
    async with _running(engine) as (signals, events):
        sent, left = await send_earlier(engine, [(task, draft, prompt)])
        if signals.heard is None:
            sent += [engine.send(*job) for job in left]
        await _until_ended(events, Typist().show if typed else _tell_noticed, len(sent))
    wanted = [one for one in sent if one.prompt == prompt]
    outcome = await _outcome(wanted[-1]) if wanted else None
    if isinstance(outcome, Exception) and signals.heard is None:
        raise outcome
    return outcome if isinstance(outcome, Turn) else None, signals.heard
