"""The live display of several drafts being written: a line each."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from smartwriter.cli.console import TerminalConsole
from smartwriter.cli.interrupts import keys_unseen
from smartwriter.cli.notices import names, notice
from smartwriter.cli.running import NOT_KEPT, SAVED
from smartwriter.events import Event
from smartwriter.sessions.compaction import Compaction
from smartwriter.text.wording import counted

_STYLES = {"waiting": "dim", "writing": "cyan", "finished": "green", "failed": "red", "NOT SAVED": "bold red"}
_NAME_WIDTH = 28


@dataclass
class _Line:
    state: str = "waiting"
    characters: int = 0
    tail: str = ""
    notice: str = ""
    """Of the last event, in the place of the tail."""
    kept: str = ""
    """Where the article is, when the turn was cut off."""
    started: float = field(default_factory=time.monotonic)
    seconds: float | None = None

    def elapsed(self) -> float:
        return time.monotonic() - self.started if self.seconds is None else self.seconds


class Progress:
    """Shows events as they come. Where there is no terminal, only how each draft ended."""

    def __init__(
        self,
        titles: dict[str, str],
        console: Console | None = None,
        drafts: Iterable[tuple[str, str]] = (),
    ) -> None:
        """
        :param titles: of the tasks, by id.
        :param drafts: that may come, by their tasks' ids and their names.
        """
        self._titles = titles
        self._drafts = set(drafts)
        self._lines: dict[tuple[str, str], _Line] = {}
        self._console = console or TerminalConsole()
        self._stack = ExitStack()
        self._live = Live(
            console=self._console, get_renderable=self._table, refresh_per_second=12, transient=False
        )

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._stack.enter_context(keys_unseen())
            self._stack.enter_context(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def show(self, event: Event) -> None:
        draft = (event.task, event.draft)
        line = self._lines.setdefault(draft, _Line())
        line.notice = notice(event)
        if line.notice and not self._console.is_terminal:
            self._print(f"{self._names()[draft]}: {line.notice}")
        match event.kind:
            case "turn_started":
                line.state, line.started, line.seconds = "writing", time.monotonic(), None
            case "text_delta":
                line.characters += len(event.text)
                line.tail = (line.tail + event.text)[-200:]
            case "call_begun":
                line.tail = ""
            case "article_delta" if event.field in ("text", "new_text"):
                line.characters += len(event.text)
                line.tail = (line.tail + event.text)[-200:]
            case "call_dropped":
                line.tail = ""
            case "cut_off_kept":
                line.kept = f"its article is kept as {event.task}@{event.draft}:{event.revision}. "
            case "draft_revised":
                line.tail = f"draft: revision {event.revision}, {counted(event.characters, 'character')}. "
            case "compacted":
                line.tail = f"{Compaction(event.by_itself, event.before, event.after)} "
            case "not_saved":
                line.state, line.tail = "NOT SAVED", event.detail
            case "saved":
                line.state, line.tail = "writing", SAVED
            case "not_kept":
                self._print(f"{self._names()[draft]}: {NOT_KEPT}\n\n{event.text}\n")
            case "text_dropped":
                line.characters -= event.characters
                line.tail = ""
            case "finished" | "stopped":
                self._end(draft, line, event.turn.state.value, event.turn.detail)
            case "failed":
                self._end(draft, line, "failed", event.detail)

    def _names(self) -> dict[tuple[str, str], str]:
        return names(self._titles, self._drafts | set(self._lines))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def _end(self, draft: tuple[str, str], line: _Line, state: str, detail: str) -> None:
        line.seconds = line.elapsed()
        line.state = state
        detail, line.kept = " ".join(filter(None, [detail, line.kept])).strip(), ""
        line.tail = detail or line.tail
        if not self._console.is_terminal:
            self._print(f"{self._names()[draft]}: {state}, {line.seconds:.1f} s. {detail}".rstrip())

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(no_wrap=True, max_width=_NAME_WIDTH)
        table.add_column(no_wrap=True, width=9)
        table.add_column(justify="right", no_wrap=True, width=7)
        table.add_column(no_wrap=True, ratio=1, overflow="ellipsis")
        called = self._names()
        for draft, line in self._lines.items():
            tail = Text(" ".join(line.tail.split())[-60:], style="dim")
            if line.notice:
                tail = Text(line.notice, style="yellow")
            table.add_row(
                _fitted(called[draft], draft[1]),
                Text(line.state, _STYLES.get(line.state, "")),
                f"{line.elapsed():.1f} s",
                tail,
            )
        return table


def _fitted(name: str, draft: str) -> Text:
    """A name that keeps the draft's when it is cut short."""
    title, at, _ = name.rpartition(" @")
    if not at or not name.endswith(f" @{draft}"):
        return Text(name)
    end = Text(f" @{draft}")
    end.truncate(_NAME_WIDTH // 2, overflow="ellipsis")
    start = Text(title)
    start.truncate(_NAME_WIDTH - end.cell_len, overflow="ellipsis")
    return start + end
