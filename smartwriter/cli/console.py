"""The console of rich as every command uses it: its colours and its cursor, and texts that are only shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from smartwriter.cli.terminal import Guarded
from smartwriter.text.harmless import harmless


class TerminalConsole(Console):
    """For standard output. A text is never taken for markup, and no text reaches a terminal unchanged."""

    def __init__(self) -> None:
        terminal = sys.stdout.trusted if isinstance(sys.stdout, Guarded) else None
        super().__init__(file=terminal, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control or not self.is_terminal else _shown(segment)

    def render_str(self, text: str, **style: Any) -> Text:
        return super().render_str(harmless(text) if self.is_terminal else text, **style)


def _shown(segment: Segment) -> Segment:
    style = segment.style.update_link(None) if segment.style and segment.style.link else segment.style
    return Segment(harmless(segment.text), style)
