"""The only way to a terminal.

Where standard output or error is one, it is replaced, once, by a stream that makes harmless whatever is
written to it, by whatever means: a command cannot forget to. Colours are put around a text by
:func:`secho`, or by the console of rich in ``smartwriter.cli.console``, once it is harmless. What goes to
a file or to another program is exact.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from smartwriter.text.harmless import harmless


class Guarded(io.TextIOWrapper):
    """A terminal's stream that shows everything, and lets nothing act."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        # click would go around a stream whose encoding is ASCII.
        is_ascii = codecs.lookup(stream.encoding).name == "ascii"
        encoding = "utf-8" if is_ascii else stream.encoding
        super().__init__(stream.buffer, encoding, "replace", line_buffering=True, write_through=True)
        self.trusted = io.TextIOWrapper(
            stream.buffer, encoding, "replace", line_buffering=True, write_through=True
        )
        """The same terminal, for what is harmless already and has colours around it."""

    def write(self, text: str) -> int:
        super().write(harmless(text))
        return len(text)


def guard() -> None:
    """Guard standard output and error, each where it is a terminal."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Guarded):
            stream.reconfigure(errors="replace")  # a stray half of an emoji must not end a command
            if stream.isatty():
                setattr(sys, name, Guarded(stream))


def secho(text: str, *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a text, in the style of ``click.style`` where it is for a terminal."""
    _print([(text, style)], err=err, nl=nl)


def print_pieces(pieces: Iterable[tuple[str, str | None]]) -> None:
    """Print a line, each piece of it in a colour, ``dim``, or as it is."""
    _print([(text, {}) if look is None else (text, _look(look)) for text, look in pieces])


def _look(look: str) -> dict[str, Any]:
    return {"dim": True} if look == "dim" else {"fg": look}


def _print(pieces: Sequence[tuple[str, dict[str, Any]]], *, err: bool = False, nl: bool = True) -> None:
    stream = sys.stderr if err else sys.stdout
    terminal = getattr(stream, "rich_proxied_file", stream)  # while a display is live, rich stands before it
    if not isinstance(terminal, Guarded):
        click.echo("".join(text for text, _ in pieces), err=err, nl=nl)
        return
    styled = "".join(
        click.style(harmless(text), **style) if style else harmless(text) for text, style in pieces
    )
    target = terminal.trusted if stream is terminal else stream
    target.write(styled + ("\n" if nl else ""))
    target.flush()


def bell() -> None:
    """Ring, where somebody can hear it."""
    if isinstance(sys.stderr, Guarded):
        sys.stderr.trusted.write("\a")
        sys.stderr.trusted.flush()
