"""A draft printed as it is typed: the answer, and the article itself, so that one reads along."""

from __future__ import annotations

import sys
from typing import Any

import click

from smartwriter.cli.notices import notice
from smartwriter.cli.running import NOT_KEPT, SAVED
from smartwriter.cli.terminal import secho
from smartwriter.events import ArticleDelta, Event
from smartwriter.sessions.compaction import Compaction
from smartwriter.tasks.cut_off import kept_as
from smartwriter.text.wording import counted

_MARKS = {"old_text": ("− ", "red"), "new_text": ("+ ", "green")}


class Typist:
    """Prints what is typed to standard output, and what else happens, on lines of its own, to the other."""

    def __init__(self, *, watching: bool = False) -> None:
        """:param watching: who reads has not asked: the prompts are printed too, and how turns end."""
        self._watching = watching
        self._at_line_start = True
        self._field = ("", 0, "")  # that is being typed: of a call, an edit, by name

    def show(self, event: Event) -> None:
        match event.kind:
            case "turn_started" if self._watching:
                self._note(f"\n[turn {event.turn}] {event.prompt}", fg="cyan")
            case "text_delta":
                self._type(event.text)
            case "call_begun":
                self._note(f"  · {event.tool}", dim=True)
            case "article_delta":
                self._type_article(event)
            case "text_dropped" | "call_dropped":
                self._note("  · taken back: the API broke off, and is asked again", fg="yellow")
            case "retrying" | "rate_limited" | "clashed":
                self._note(notice(event), fg="yellow")
            case "saved":
                self._note(SAVED, fg="green")
            case "not_kept":
                self._note(f"{NOT_KEPT}\n\n{event.text}\n", fg="red")
            case "draft_revised":
                size = counted(event.characters, "character")
                self._note(f"  · revision {event.revision}, {size}", dim=True)
            case "cut_off_kept":
                address = f"{event.task}@{event.draft}:{event.revision}"
                self._note(kept_as(address, whole=event.whole), fg="yellow")
            case "compacted":
                self._note(f"  · {Compaction(event.by_itself, event.before, event.after)}")
            case "memory_proposed":
                self._note(f"  · proposed for {event.file}: {event.text}")
            case "not_saved":
                self._note(f"NOT SAVED: {event.detail}", fg="red")
            case "awaited" | "turn_recovered":
                self._note(event.detail, fg="yellow")
            case "finished" | "stopped":
                self._note("" if event.kind == "finished" or not self._watching else "(stopped)")
            case "failed":
                self._note(event.detail if self._watching else "", fg="yellow")

    def _type_article(self, event: ArticleDelta) -> None:
        mark, colour = _MARKS.get(event.field, ("", None))
        if not mark and event.field != "text":
            return
        field = (event.call, event.edit, event.field)
        if field != self._field:
            self._field = field
            self._note("")
            self._type(mark, colour)
        self._type(event.text, colour)

    def _type(self, text: str, colour: str | None = None) -> None:
        if not text:
            return
        if colour is None:
            click.echo(text, nl=False)
        else:
            secho(text, nl=False, fg=colour)
        sys.stdout.flush()
        self._at_line_start = text.endswith("\n")

    def _note(self, text: str, **style: Any) -> None:
        if not self._at_line_start:
            click.echo()
            self._at_line_start = True
        if text:
            secho(text, err=True, **style)
