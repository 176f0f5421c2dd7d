"""The whole history of a draft on one page: what was asked, said, written and changed, in order.

All that was said stands there as the characters it was made of, never as Markdown or HTML: the
page is a record, and what is in a prompt or an answer must not act on whoever reads it.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import Literal

import smartwriter.files.output as output
from smartwriter.errors import Invalid
from smartwriter.export.export import checked_ending, guessed_language, page, printable
from smartwriter.sessions.speakers import prompts, whole_answer
from smartwriter.sessions.transcript import Message, messages
from smartwriter.tasks.draft_text import shared_turn, text_of
from smartwriter.tasks.values import Draft, Revision, Task, Turn, Usage, usage_of
from smartwriter.text.comparison import Block, Comparison, Piece, compare
from smartwriter.text.words import count_words
from smartwriter.workspace import Workspace

ENDINGS = (".html", ".md")
_NOTHING = "Nothing was written yet."
_COMPACTION = "compaction"
_SHORT = 1200  # characters; a longer text is folded


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


@dataclass(frozen=True)
class History:
    title: str
    steps: tuple[Step, ...]
    """Oldest first."""
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """A sentence for each thing that is missing or damaged."""


def export_history(history: History, path: Path) -> None:
    """Write it as a page, by the file's ending, over an older one. Blocking.

    :raises Invalid: as :func:`smartwriter.export.export`. :raises OSError: when the disk fails.
    """
    ending = checked_ending(path, ENDINGS)
    text = history_page(history) if ending == ".html" else history_markdown(history)
    output.write(path, text.encode())


# From a workspace ----------------------------------------------------------------------------


def history_of(workspace: Workspace, task: Task, draft: Draft) -> History:
    """All that is recorded of a draft. Blocking.

    :raises SessionMissing: as :meth:`Workspace.conversation`.
    """
    turns = workspace.turns_now(task, draft.name)
    contents = workspace.conversation(task, draft, turns)
    said = messages(contents.entries, prompts(turns))
    path = workspace.transcript(task, draft).path
    text = workspace.text(task, draft.name)
    revisions = text.revisions()
    warnings = [
        f"The transcript is damaged at byte {stretch.offset}, {stretch.length} bytes: {path}"
        for stretch in contents.damage
    ]
    try:
        if revisions and text.read() != text_of(revisions):
            warnings.append("The file was edited by hand since the last revision.")
    except Invalid as error:  # not UTF-8: its revisions can be read all the same
        warnings.append(str(error))
    return History(
        title=task.title,
        steps=tuple(_in_order(_turn_steps(turns, said), revisions)),
        facts=tuple(_header(task, draft, turns, revisions)),
        warnings=tuple(warnings),
    )


def _header(task: Task, draft: Draft, turns: list[Turn], revisions: list[Revision]) -> Iterable[str]:
    yield f"{task.address(draft.name)} · {task.collection} · started {_time(task.created_at)}"
    if draft.origin is not None:
        yield f"Forked from {draft.origin.draft} after turn {draft.origin.turn}"
    words = count_words(text_of(revisions))
    yield f"{_many(len(turns), 'turn')} · {_many(len(revisions), 'revision')} · {_many(words, 'word')}"
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
    aside = f"; cut off{aside}" if revision.cut_off else aside
    if revision.source is not None:
        some = ", ".join(map(str, revision.paragraphs))
        return f"taken from {revision.source}{f', paragraphs {some}' if some else ''}{aside}"
    by = {
        "model": f"by the model in turn {revision.turn}",
        "writer": f"by hand, before or during turn {revision.turn}",
        "fork": f"as it was when this draft was forked, after turn {revision.turn}",
    }
    return by[revision.author] + aside


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _time(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _used(usage: Usage) -> str:
    """Empty where nothing was counted."""
    if usage == Usage():
        return ""
    tokens = f"{usage.input_tokens:,} tokens in, {usage.cached_tokens:,} cached, {usage.output_tokens:,} out"
    return f"{tokens} · ${usage.cost_usd:.2f} · {usage.duration_ms / 1000:.0f} s"


def _all_facts(step: Step) -> list[str]:
    facts = [_time(step.when), *step.facts]
    if step.change is not None:
        gained = _many(step.change.added_words, "word")
        facts.append(f"{gained} gained, {step.change.removed_words:,} lost")
        if not step.change.differs:
            facts.append(
                "Only blank lines and line ends changed" if step.change.spacing else "Nothing changed"
            )
    return facts


# As HTML -------------------------------------------------------------------------------------


def history_page(history: History) -> str:
    """One HTML page that loads nothing."""
    language = guessed_language("\n".join(step.prompt + step.body for step in history.steps))
    title = printable(history.title)
    parts = [f'<header>\n<h1 dir="auto">{_escaped(title)}</h1>', *map(_about, history.facts), "</header>"]
    parts += [f'<p class="warning" dir="auto">{_escaped(warning)}</p>' for warning in history.warnings]
    parts += [_section(step) for step in history.steps] or [f"<p>{_NOTHING}</p>"]
    return page(title, language, "\n".join(parts))


def _section(step: Step) -> str:
    parts = [f'<section class="step" id="{step.kind}-{step.number}">', f"<h2>{_escaped(step.title)}</h2>"]
    parts += map(_about, _all_facts(step))
    if step.prompt:
        parts.append(f"<blockquote>{_said(step.prompt)}</blockquote>")
    if step.body:
        parts.append(_said(step.body))
    if step.change is not None and step.change.differs:
        parts.append(_folded(_difference(step.change), _size(step.change), "What changed"))
    return "\n".join([*parts, "</section>"])


def _about(fact: str) -> str:
    return f'<p class="about" dir="auto">{_escaped(fact)}</p>'


def _said(text: str) -> str:
    """Paragraphs, so that each finds its own direction."""
    paragraphs = re.split(r"\n[ \t]*\n\s*?(?=\S|\Z)", printable(text).strip("\n"))
    shown = "\n".join(f'<p class="said" dir="auto">{_escaped(words)}</p>' for words in paragraphs)
    return _folded(shown, len(text), " ".join(printable(text[:200]).split())[:80] + " …")


def _folded(shown: str, size: int, summary: str) -> str:
    if size <= _SHORT:
        return shown
    return f'<details>\n<summary dir="auto">{_escaped(summary)}</summary>\n{shown}\n</details>'


def _size(change: Comparison) -> int:
    stretches = [stretch for stretch in _stretches(change) if isinstance(stretch, Block)]
    return sum(len(piece.text) for block in stretches for piece in block.pieces)


def _difference(change: Comparison) -> str:
    return "\n".join(
        _block(stretch)
        if isinstance(stretch, Block)
        else f'<p class="passage same">{_unchanged(stretch)}</p>'
        for stretch in _stretches(change)
    )


def _block(block: Block) -> str:
    moved = f'<span class="about">{said}</span> ' if (said := _moved(block)) else ""
    words = "".join(map(_piece, block.pieces))
    return f'<p class="said passage {block.kind}" dir="auto">{moved}{words}</p>'


def _piece(piece: Piece) -> str:
    words = _escaped(piece.text)
    return {"same": words, "added": f"<ins>{words}</ins>", "removed": f"<del>{words}</del>"}[piece.kind]


def _stretches(change: Comparison) -> Iterable[Block | int]:
    """The paragraphs that changed, and between them how many did not: a page of a hundred revisions
    cannot have the whole text a hundred times."""
    if change.front:
        yield Block("changed", None, None, change.front)
    for same, blocks in groupby(change.blocks, key=lambda block: block.kind == "same"):
        if same:
            yield sum(1 for _ in blocks)
        else:
            yield from blocks


def _unchanged(count: int) -> str:
    return f"… {_many(count, 'paragraph')} unchanged …"


def _moved(block: Block) -> str:
    if block.kind == "moved":
        return f"(moved here; it was paragraph {block.before})"
    if block.kind == "split":
        return f"(split: it was one paragraph, {block.before})"
    if block.kind == "merged":
        return f"(merged: it was paragraphs {block.before} to {block.before_last})"
    return ""


def _escaped(text: str) -> str:
    return html.escape(printable(text))


# As Markdown ---------------------------------------------------------------------------------


def history_markdown(history: History) -> str:
    """The same as Markdown, in which nothing that was said is a link, an image or HTML."""
    parts = [f"# {_plain(history.title)}", *map(_plain, history.facts)]
    parts += [f"**Note:** {_plain(warning)}" for warning in history.warnings]
    parts += [] if history.steps else [_NOTHING]
    for step in history.steps:
        parts += [f"## {_plain(step.title)}", "  \n".join(map(_plain, _all_facts(step)))]
        if step.prompt:
            parts.append(_quoted(_fenced(step.prompt)))
        if step.body:
            parts.append(_fenced(step.body))
        if step.change is not None and step.change.differs:
            parts.append(_fenced("\n".join(_marked_lines(step.change)), "diff"))
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """One line of words, without a character that Markdown would act on."""
    return re.sub(r"([\\`*_\[\]<>&#!|~])", r"\\\1", " ".join(printable(text).split()))


def _fenced(text: str, kind: str = "text") -> str:
    """As it is, behind a fence that is longer than any in it."""
    text = printable(text).strip("\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{kind}\n{text}\n{fence}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _marked_lines(change: Comparison) -> Iterable[str]:
    for stretch in _stretches(change):
        if isinstance(stretch, int):
            yield f"  {_unchanged(stretch)}"
            continue
        if said := _moved(stretch):
            yield f"  {said}"
        before, after = stretch.before_text, stretch.after_text
        if before == after:
            yield from _with_sign(" ", after)
        else:
            yield from [*_with_sign("-", before), *_with_sign("+", after)]


def _with_sign(sign: str, text: str) -> Iterable[str]:
    return (f"{sign} {line}" for line in printable(text).strip("\n").split("\n") if text)
