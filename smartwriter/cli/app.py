"""The ``smartwriter`` command: its group, and how every command fails and prints."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from smartwriter.cli.terminal import secho
from smartwriter.errors import SmartWriterError
from smartwriter.text.harmless import harmless

# By what they are for: the module of each command, and its help. A module is imported when one of its
# commands runs, so that the quick ones stay quick, and the list of commands needs none.
_SECTIONS = {
    "Write": {
        "new": ("tasks", "Start a task: one article with this TITLE."),
        "write": ("writing", "Write on with PROMPT (or - for standard input): start a draft, or resume it."),
        "run": ("writing", "Write several drafts at once."),
        "watch": ("watching", "Watch drafts being written, by whatever process, until ctrl-C."),
        "stop": ("watching", "Stop the turn of a draft, in whatever process; what was written of it stays."),
        "withdraw": ("waiting", "Take back a prompt that waits for its turn, and print it."),
        "status": ("watching", "Say what is being written, by whom, and what was cut off."),
    },
    "Read": {
        "tasks": ("tasks", "List the tasks."),
        "show": ("showing", "Show a draft's conversation."),
        "text": ("versions", "Print a draft's text, or an earlier version of it."),
        "count": ("tasks", "Count a text: words, characters, paragraphs, reading time."),
        "usage": ("tasks", "Show what a task's drafts have used: tokens, cost, time."),
        "log": ("versions", "Show what happened: turns, versions of the text and forks, a line each."),
        "export": ("exporting", "Write a text to a file that others can read."),
    },
    "Try things out": {
        "fork": ("writing", "Start a trial draft that shares a draft's past, and leave that one alone."),
        "rewind": (
            "versions",
            "Go back to a turn, text and conversation; what came after it stays in its own draft.",
        ),
        "compare": (
            "comparing",
            "Show what differs from A to B: drafts as TASK[@DRAFT][:REVISION], or files.",
        ),
        "blame": (
            "versions",
            "Say of each paragraph who wrote it, in which turn, and with which memory files.",
        ),
        "pick": (
            "choosing",
            "Bring paragraphs of the text FROM into the draft TO; or be asked for each that differs.",
        ),
        "take": (
            "versions",
            "Make an answer of the model, or an article that was cut off, the draft's text.",
        ),
        "blind": (
            "choosing",
            "Read two texts without their names, in random order, and pick the better one.",
        ),
        "restore": (
            "versions",
            "Put an earlier version of a text back as a new one; or take a dropped draft up again.",
        ),
        "adopt": ("tasks", "Make a draft the one that TASK alone means."),
        "drop": ("tasks", "Put a draft away."),
    },
    "Series": {
        "collection": ("collection", "Collections: series of articles that share their memory."),
        "memory": ("memory", "What a collection remembers, and what is proposed for it."),
        "finish": (
            "finishing",
            "Declare TASK done: its text goes to articles/ and into the index, and its draft is closed.",
        ),
        "reopen": ("finishing", "Let a finished TASK be written again."),
    },
    "The workspace": {
        "init": ("collection", "Make FOLDER a workspace (by default the current one)."),
        "doctor": ("doctor", "Read everything and prove that it can be used."),
        "demo": ("demo", "Watch three articles written at once, killed, resumed, forked and compared."),
    },
}
_COMMANDS = {name: about for section in _SECTIONS.values() for name, about in section.items()}
_WIDTH = max(map(len, _COMMANDS))


class Group(click.Group):
    """Commands, each listed with its whole first sentence; of a misspelt one, the nearest is named."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(1000)) for name, command in found if command]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            from difflib import get_close_matches

            if near := get_close_matches(args[0], self.list_commands(ctx), n=1):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


class _Commands(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"smartwriter.cli.{_COMMANDS[name][0]}")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(_WIDTH), help) for name, (_, help) in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SmartWriterError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            where = f": {error.filename}" if error.filename else ""
            raise click.ClickException(f"{error.strerror or error}{where}.") from None
        except KeyboardInterrupt:  # before, or where, nothing else heeds it; click's own code says "failed"
            click.echo(err=True)
            raise SystemExit(128 + signal.SIGINT) from None


# In colour, which is to say: click takes nothing out of what is piped. Colours come from ``secho`` alone.
@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "color": True})
@click.version_option(package_name="smartwriter")
def cli() -> None:
    """Write several articles at once with Claude, and never lose a word."""
    if sys.getfilesystemencoding() == "ascii":
        # LC_ALL=C with PYTHONUTF8=0: no Chinese title could name a file, and arguments are garbled.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


_workspace_option = click.option(
    "-w",
    "--workspace",
    "folder",
    type=click.Path(path_type=Path),
    envvar="SMARTWRITER_WORKSPACE",
    show_envvar=True,
    default=Path(),
    help="The workspace; by default the one around the current folder.",
)


def in_workspace(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``-w`` and, as its first argument, the workspace it means."""

    @functools.wraps(command)
    def with_workspace(*args: Any, folder: Path, **kwargs: Any) -> Any:
        from smartwriter.workspace import Workspace

        workspace = Workspace.around(folder)
        if damage := workspace.tasks.damage():
            places = ", ".join(f"byte {stretch.offset}" for stretch in damage[:3])
            secho(
                f"Warning: {workspace.places.tasks} is damaged at {places}; "
                "the other lines are used, and nothing in it is deleted.",
                err=True,
                fg="yellow",
            )
        return command(*args, workspace, **kwargs)

    return _workspace_option(with_workspace)


as_json = click.option("--json", "json_", is_flag=True, help="Print JSON, for programs.")
offline_option = click.option(
    "--offline",
    is_flag=True,
    envvar="SMARTWRITER_OFFLINE",
    show_envvar=True,
    help="Use the stand-in model: no login, no network, and no real answers.",
)


def print_json(value: Any) -> None:
    # Escapes everything beyond ASCII that could not be printed as it is; any JSON reader turns it back.
    text = json.dumps(value, ensure_ascii=False, indent=2)
    with contextlib.suppress(UnicodeEncodeError):
        text.encode(sys.stdout.encoding or "utf-8")
        if harmless(text) == text:
            click.echo(text)
            return
    click.echo(json.dumps(value, indent=2))


def print_json_line(value: Any) -> None:
    """One line of a stream of them. Escaped: a prompt may hold half an emoji."""
    click.echo(json.dumps(value))
