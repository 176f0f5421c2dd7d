"""What the model was typing into the draft, from the events of its turn.

A call whose answer came leaves nothing here: the draft has it. One that was cut off leaves the text that the
draft would have had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from smartwriter.errors import Invalid
from smartwriter.events import (
    ArticleDelta,
    CallBegun,
    CallDropped,
    DraftRevised,
    Event,
    ToolAnswered,
    ToolUsed,
)
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.revisions import text_of
from smartwriter.tasks.values import Breaks, CutOff, Revision
from smartwriter.text.passages import Edit, appended, before_more, edited

WRITE, EDIT, APPEND = "write_draft", "edit_draft", "append_draft"
DRAFT_TOOLS = frozenset({WRITE, EDIT, APPEND})


@dataclass
class _Call:
    tool: str
    fields: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    """The pieces of each, by edit and name, in order of arrival."""
    whole: bool = False
    over: bool = False
    """It was taken back, or failed; only a later call that succeeds makes up for it."""

    def said(self, name: str, edit: int = 0) -> str:
        return "".join(self.fields.get((edit, name), ()))

    @property
    def breaks(self) -> Breaks:
        if self.whole:
            return "nowhere"
        within = self.tool == EDIT or (self.tool == APPEND and self.said("after"))
        return "within" if within else "at the end"

    def is_whole(self, name: str, edit: int) -> bool:
        return self.whole or ((edit, name) in self.fields and (edit, name) != next(reversed(self.fields)))


class Calls:
    """The calls of one turn that have no answer yet, as far as they were heard."""

    def __init__(self, turn: int, events: Iterable[Event] = ()) -> None:
        self._turn = turn
        self._calls: dict[str, _Call] = {}
        self._done: set[str] = set()  # those whose answers came
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Go on with what happened next."""
        match event:
            case CallBegun(turn=self._turn):
                self._calls.setdefault(event.call, _Call(event.tool))
            case ArticleDelta(turn=self._turn) if call := self._calls.get(event.call):
                call.fields.setdefault((event.edit, event.field), []).append(event.text)
            case CallDropped(turn=self._turn) if call := self._calls.get(event.call):
                call.over = True
            case ToolUsed(turn=self._turn) if call := self._calls.get(event.call):
                call.whole = event.whole
            case ToolAnswered(turn=self._turn) if call := self._calls.get(event.call):
                self._answered(event.call, call, event.failed)
            case DraftRevised(turn=self._turn):
                done = next((id for id, call in self._calls.items() if not call.over), None)
                if done is not None:
                    self._answered(done, self._calls[done], failed=False)

    def finish(self, id: str, tool: str, fields: Mapping[tuple[int, str], str]) -> None:
        """Take a call's whole input, of which nobody was there to hear the end, or to answer it."""
        if id in self._done:
            return
        call = self._calls.setdefault(id, _Call(tool))
        call.fields = {place: [text] for place, text in fields.items()}
        call.whole, call.over = True, False

    def _answered(self, id: str, call: _Call, failed: bool) -> None:
        self._done.add(id)
        if not failed:
            del self._calls[id]
            self._calls = {other: kept for other, kept in self._calls.items() if not kept.over}
        elif call.whole and call.tool == EDIT:  # the passages did not fit; the model knows what it wanted
            del self._calls[id]
        else:
            call.over = True

    def versions(self, revisions: Sequence[Revision]) -> list[CutOff]:
        """What the draft's text would have become, had each call been made with what was heard of it.

        :param revisions: the draft's, with the text that the model knew.
        """
        found: dict[str, CutOff] = {}
        text, in_one = text_of(revisions), False
        for id, call in self._calls.items():
            after = _after(call, text, revisions)
            if after is None:
                continue
            if in_one and not call.over and call.tool != WRITE:
                found.pop(text, None)  # it goes on from the call before
            found.setdefault(after, CutOff(text=after, breaks=call.breaks, call=id))
            if not call.over:
                text, in_one = after, True
        longest = sorted(found, key=len, reverse=True)
        kept: list[str] = []
        for one in longest:
            if not any(other.startswith(one) for other in kept):
                kept.append(one)
        return [one for text, one in found.items() if text in kept]

    def keep(self, text: DraftText) -> list[Revision]:
        """Make what was cut off versions beside the draft's text, each once. Blocking.

        :raises JournalError: as any revision.
        """
        if not self._calls:
            return []
        kept = (
            text.keep_cut_off(one.text, self._turn, breaks=one.breaks, call=one.call)
            for one in self.versions(text.revisions())
        )
        return [revision for revision in kept if revision is not None]


def _after(call: _Call, text: str, revisions: Sequence[Revision]) -> str | None:
    """The text after a call, or what there is of it; None where nothing was typed."""
    if call.tool == EDIT:
        return _edited(call, text)
    said = call.said("text")
    if not said:
        return None
    if call.tool == WRITE:
        return said
    version = next((one.text for one in revisions if str(one.number) == call.said("version")), None)
    if version is not None:
        return version + said
    if not call.whole and not call.said("after"):
        return before_more(text) + said.lstrip("\r\n")  # to the character, so that it can be gone on with
    try:
        return appended(text, said, call.said("after"))
    except Invalid:
        return appended(text, said)


def _edited(call: _Call, before: str) -> str | None:
    """All passages as far as they are known; one that has no place goes to the end, and is not lost."""
    text, homeless = before, []
    for number in sorted({edit for edit, _ in call.fields}):
        new = call.said("new_text", number)
        if not new and not call.is_whole("new_text", number):
            continue
        try:
            if not call.is_whole("old_text", number):
                raise Invalid("It is not known yet what is replaced.")
            text = edited(text, [Edit(call.said("old_text", number), new)])
        except Invalid:
            homeless.append(new)
    for new in filter(str.strip, homeless):
        text = appended(text, new)
    return None if text == before else text
