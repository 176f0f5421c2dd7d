"""The live display of several drafts being written: a line each."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from smartwriter.cli.console import TerminalConsole
from smartwriter.cli.running import NOT_KEPT, SAVED
from smartwriter.events import Event

_STYLES = {"waiting": "dim", "writing": "cyan", "finished": "green", "failed": "red", "NOT SAVED": "bold red"}


@dataclass
class _Line:
    title: str
    state: str = "waiting"
    characters: int = 0
    tail: str = ""
    started: float = field(default_factory=time.monotonic)
    seconds: float | None = None

    def elapsed(self) -> float:
        return time.monotonic() - self.started if self.seconds is None else self.seconds


class Progress:
    """Shows events as they come. Where there is no terminal, only how each draft ended."""

    def __init__(self, titles: dict[str, str], console: Console | None = None) -> None:
        """:param titles: of the tasks, by id."""
        self._titles = titles
        self._lines: dict[tuple[str, str], _Line] = {}
        self._console = console or TerminalConsole()
        self._live = Live(
            console=self._console, get_renderable=self._table, refresh_per_second=12, transient=False
        )

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, event: Event) -> None:
        line = self._lines.setdefault(
            (event.task, event.draft), _Line(self._titles.get(event.task, event.task))
        )
        match event.kind:
            case "turn_started":
                line.state, line.started, line.seconds = "writing", time.monotonic(), None
            case "text_delta":
                line.characters += len(event.text)
                line.tail = (line.tail + event.text)[-200:]
            case "draft_revised":
                line.tail = f"draft: revision {event.revision}, {event.characters} characters. "
            case "not_saved":
                line.state, line.tail = "NOT SAVED", event.detail
            case "saved":
                line.state, line.tail = "writing", SAVED
            case "not_kept":
                said = f"{line.title}: {NOT_KEPT}\n\n{event.text}\n"
                self._console.print(said, markup=False, soft_wrap=True)
            case "text_dropped":
                line.characters -= event.characters
                line.tail = ""
            case "retrying":
                line.tail = (
                    f"{event.why}: asked again in {event.wait_s:.0f} s ({event.attempt} of {event.of}) "
                )
            case "finished" | "stopped":
                self._end(line, event.turn.state.value, event.turn.detail)
            case "failed":
                self._end(line, "failed", event.detail)

    def _end(self, line: _Line, state: str, detail: str) -> None:
        line.seconds = line.elapsed()
        line.state = state
        line.tail = detail or line.tail
        if not self._console.is_terminal:
            ended = f"{line.title}: {state}, {line.seconds:.1f} s. {detail}".rstrip()
            self._console.print(ended, markup=False, soft_wrap=True)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(no_wrap=True, max_width=28)
        table.add_column(no_wrap=True, width=9)
        table.add_column(justify="right", no_wrap=True, width=7)
        table.add_column(no_wrap=True, ratio=1, overflow="ellipsis")
        for line in self._lines.values():
            tail = Text(" ".join(line.tail.split())[-60:], style="dim")
            table.add_row(
                Text(line.title),
                Text(line.state, _STYLES.get(line.state, "")),
                f"{line.elapsed():.1f} s",
                tail,
            )
        return table
