"""The whole history of a draft: what was asked, said, written and changed, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.speakers import prompts, whole_answer
from smartwriter.sessions.transcript import Message, messages
from smartwriter.tasks.revisions import shared_turn, text_of
from smartwriter.tasks.values import Revision, Turn, Usage, usage_of
from smartwriter.text.differences.comparison import Comparison, compare
from smartwriter.text.wording import counted
from smartwriter.text.words import count_words

_COMPACTION = "compaction"


@dataclass(frozen=True)
class Step:
    """One thing that happened to a draft."""

    kind: Literal["turn", "revision"]
    number: int
    when: datetime
    title: str
    facts: tuple[str, ...] = ()
    """A line each: what it used, how it ended."""
    prompt: str = ""
    body: str = ""
    """The answer."""
    change: Comparison | None = None
    """A revision's, from the one before."""

    @property
    def about(self) -> tuple[str, ...]:
        """A line each: when it was, what it used, how it ended, how much it changed."""
        return (_time(self.when), *self.facts, *(_changed(self.change) if self.change is not None else ()))


@dataclass(frozen=True)
class History:
    title: str
    steps: tuple[Step, ...]
    """Oldest first."""
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """A sentence for each thing that is missing or damaged."""


# From a workspace ----------------------------------------------------------------------------


def history_of(draft: OpenDraft) -> History:
    """All that is recorded of a draft. Blocking.

    :raises SessionMissing: as :meth:`OpenDraft.conversation`.
    """
    turns = draft.turns_now()
    contents = draft.conversation(turns)
    said = messages(contents.entries, prompts(turns))
    path, text = draft.transcript.path, draft.text
    revisions = text.revisions()
    warnings = [
        f"The transcript is damaged at byte {stretch.offset}, {counted(stretch.length, 'byte')}: {path}"
        for stretch in contents.damage
    ]
    try:
        if revisions and text.read() != text_of(revisions):
            warnings.append("The file was edited by hand since the last revision.")
    except Invalid as error:  # not UTF-8: its revisions can be read all the same
        warnings.append(str(error))
    return History(
        title=draft.task.title,
        steps=tuple(_in_order(_turn_steps(turns, said), revisions)),
        facts=tuple(_header(draft, turns, revisions)),
        warnings=tuple(warnings),
    )


def _header(draft: OpenDraft, turns: list[Turn], revisions: list[Revision]) -> Iterable[str]:
    yield f"{draft.address} · {draft.task.collection} · started {_time(draft.task.created_at)}"
    if (origin := draft.draft.origin) is not None:
        yield f"Forked from {origin.draft} after turn {origin.turn}"
    words = count_words(text_of(revisions))
    yield f"{counted(len(turns), 'turn')} · {counted(len(revisions), 'revision')} · {counted(words, 'word')}"
    if used := _used(usage_of(turns)):
        yield used


def _in_order(turns: list[Step], revisions: list[Revision]) -> Iterable[Step]:
    """Each turn with the revisions of its own after it, and those made since before the next."""
    waiting = list(turns)
    before = ""
    for revision in revisions:
        while waiting and waiting[0].number <= shared_turn(revision):
            yield waiting.pop(0)
        yield _revision_step(revision, before)
        before = before if revision.aside else revision.text
    yield from waiting


def _turn_steps(turns: list[Turn], said: list[Message]) -> list[Step]:
    answers: dict[str, list[Message]] = {turn.uuid: [] for turn in turns}
    current: list[Message] = []
    for message in said:
        if message.role == "user":
            current = answers.get(message.uuid, current)
        else:
            current.append(message)
    return [_turn_step(turn, answers[turn.uuid]) for turn in turns]


def _turn_step(turn: Turn, answer: list[Message]) -> Step:
    gap = "[… something that was said here is missing from the file …]\n\n"
    texts = [
        (gap if message.gap else "") + message.text.strip()
        for message in answer
        if message.role != _COMPACTION
    ]
    body = "\n\n".join(text for text in texts if text)
    tools = Counter(tool.rpartition("__")[2] for message in answer for tool in message.tools)
    facts = [
        turn.detail,
        _used(turn.usage) + (f" · {turn.model}" if turn.model else ""),
        "Tools: " + ", ".join(f"{name} × {count}" for name, count in tools.items()) if tools else "",
        *(message.text for message in answer if message.role == _COMPACTION),
        "Memory: " + ", ".join(turn.memory) if turn.memory else "",
    ]
    where = ", in the draft that this one was forked from" if turn.inherited else ""
    return Step(
        kind="turn",
        number=turn.number,
        when=turn.started_at,
        title=f"Turn {turn.number}: {turn.state.value}{where}",
        facts=tuple(fact.strip(" ·") for fact in facts if fact.strip(" ·")),
        prompt=turn.prompt,
        body=whole_answer(body, turn.partial.strip()),
    )


def _revision_step(revision: Revision, before: str) -> Step:
    return Step(
        kind="revision",
        number=revision.number,
        when=revision.at,
        title=f"Revision {revision.number}: {_how(revision)}",
        change=compare(before, revision.text),
    )


def _how(revision: Revision) -> str:
    aside = "; kept aside, it never was the draft's text" if revision.aside else ""
    aside = f"; {'whole' if revision.is_whole else 'cut off'}{aside}" if revision.cut_off else aside
    if revision.source is not None:
        some = ", ".join(map(str, revision.paragraphs))
        return f"taken from {revision.source}{f', paragraphs {some}' if some else ''}{aside}"
    by = {
        "model": f"by the model in turn {revision.turn}",
        "writer": f"by hand, before or during turn {revision.turn}",
        "fork": f"as it was when this draft was forked, after turn {revision.turn}",
    }
    return by[revision.author] + aside


def _time(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _used(usage: Usage) -> str:
    """Empty where nothing was counted."""
    if usage == Usage():
        return ""
    read = f"{counted(usage.input_tokens, 'token')} in, {usage.cached_tokens:,} cached"
    tokens = f"{read}, {usage.output_tokens:,} out"
    return f"{tokens} · ${usage.cost_usd:.2f} · {usage.duration_ms / 1000:.0f} s"


def _changed(change: Comparison) -> Iterable[str]:
    yield f"{counted(change.added_words, 'word')} gained, {change.removed_words:,} lost"
    if not change.differs:
        yield "Only blank lines and line ends changed" if change.spacing else "Nothing changed"
