"""What was heard of an answer, from the events of its turn."""

from __future__ import annotations

from collections.abc import Iterable

from smartwriter.events import Event, TextDelta, TextDropped, ToolAnswered, ToolUsed


class Heard:
    """The text of one turn's answer: what the model said before and after it used a tool stands apart."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._parts = [""]
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Go on with what happened next."""
        match event:
            case TextDelta():
                self._parts[-1] += event.text
            case TextDropped():
                self._drop(event.characters)
            case ToolUsed() | ToolAnswered() if self._parts[-1]:
                self._parts.append("")

    def _drop(self, characters: int) -> None:
        while len(self._parts) > 1 and characters > len(self._parts[-1]):
            characters -= len(self._parts.pop())
        last = self._parts[-1]
        self._parts[-1] = last[: max(len(last) - characters, 0)]

    @property
    def text(self) -> str:
        return "\n\n".join(filter(None, self._parts))
