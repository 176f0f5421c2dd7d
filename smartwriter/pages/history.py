"""The history of a draft as a page or as Markdown.

All that was said stands there as the characters it was made of, never as Markdown or HTML: what is in a
prompt or an answer must not act on whoever reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import smartwriter.files.output as output
from smartwriter.pages.difference import Row, marked, rows, stretches
from smartwriter.pages.page import escaped, page, printable
from smartwriter.text.differences.comparison import Comparison
from smartwriter.text.language import guessed_language
from smartwriter.text.wording import counted
from smartwriter.trials.history import History, Step

ENDINGS = (".html", ".md")
_NOTHING = "Nothing was written yet."
_SHORT = 1200  # characters; a longer text is folded


def export_history(history: History, path: Path) -> None:
    """Write it as a page, by the file's ending, over an older one. Blocking.

    :raises Invalid: as :func:`smartwriter.export.export`. :raises OSError: when the disk fails.
    """
    ending = output.checked_ending(path, ENDINGS)
    text = history_page(history) if ending == ".html" else history_markdown(history)
    output.write(path, text.encode())


# As HTML ----------------------------------------------------------------------------------------


def history_page(history: History) -> str:
    """One HTML page that loads nothing."""
    language = guessed_language("\n".join(step.prompt + step.body for step in history.steps))
    parts = [f'<header>\n<h1 dir="auto">{escaped(history.title)}</h1>', *map(_about, history.facts)]
    parts += ["</header>"]
    parts += [f'<p class="warning" dir="auto">{escaped(warning)}</p>' for warning in history.warnings]
    parts += [_section(step) for step in history.steps] or [f"<p>{_NOTHING}</p>"]
    return page(history.title, language, "\n".join(parts))


def _section(step: Step) -> str:
    parts = [f'<section class="step" id="{step.kind}-{step.number}">', f"<h2>{escaped(step.title)}</h2>"]
    parts += map(_about, step.about)
    if step.prompt:
        parts.append(f"<blockquote>{_said(step.prompt)}</blockquote>")
    if step.body:
        parts.append(_said(step.body))
    if step.change is not None and step.change.differs:
        parts.append(_folded(_difference(step.change), _size(step.change), "What changed"))
    return "\n".join([*parts, "</section>"])


def _about(fact: str) -> str:
    return f'<p class="about" dir="auto">{escaped(fact)}</p>'


def _said(text: str) -> str:
    """Paragraphs, so that each finds its own direction."""
    paragraphs = re.split(r"\n[ \t]*\n\s*?(?=\S|\Z)", printable(text).strip("\n"))
    shown = "\n".join(f'<p class="said" dir="auto">{escaped(words)}</p>' for words in paragraphs)
    return _folded(shown, len(text), " ".join(text[:200].split())[:80] + " …")


def _folded(shown: str, size: int, summary: str) -> str:
    if size <= _SHORT:
        return shown
    return f'<details>\n<summary dir="auto">{escaped(summary)}</summary>\n{shown}\n</details>'


def _size(change: Comparison) -> int:
    changed = (row for stretch in _stretches(change) if not isinstance(stretch, int) for row in stretch)
    return sum(len(piece.text) for row in changed for piece in row.pieces)


def _difference(change: Comparison) -> str:
    return "\n".join(
        f'<p class="passage same">{_unchanged(stretch)}</p>'
        if isinstance(stretch, int)
        else "\n".join(map(_passage, stretch))
        for stretch in _stretches(change)
    )


def _passage(row: Row) -> str:
    whence = f'<span class="about">{escaped(said)}</span> ' if (said := _whence(row)) else ""
    return f'<p class="said passage {row.kind}" dir="auto">{whence}{marked(row)}</p>'


# What both show ---------------------------------------------------------------------------------


def _stretches(change: Comparison) -> Iterable[list[Row] | int]:
    """The paragraphs that changed, and between them how many did not: a page of a hundred revisions
    cannot have the whole text a hundred times."""
    shown = (row for row in rows(change) if row.kind != "left")
    for same, stretch in stretches(shown):
        yield len(stretch) if same else stretch


def _unchanged(count: int) -> str:
    return f"… {counted(count, 'paragraph')} unchanged …"


def _whence(row: Row) -> str:
    """Where a paragraph comes from that was there before, elsewhere."""
    return f"({row.title})" if row.kind in ("moved", "split", "merged") else ""


# As Markdown ------------------------------------------------------------------------------------


def history_markdown(history: History) -> str:
    """The same as Markdown, in which nothing that was said is a link, an image or HTML."""
    parts = [f"# {_plain(history.title)}", *map(_plain, history.facts)]
    parts += [f"**Note:** {_plain(warning)}" for warning in history.warnings]
    parts += [] if history.steps else [_NOTHING]
    for step in history.steps:
        parts += [f"## {_plain(step.title)}", "  \n".join(map(_plain, step.about))]
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
        for row in stretch:
            if said := _whence(row):
                yield f"  {said}"
            before, after = row.text("before"), row.text("after")
            if before == after:
                yield from _with_sign(" ", after)
            else:
                yield from [*_with_sign("-", before), *_with_sign("+", after)]


def _with_sign(sign: str, text: str) -> Iterable[str]:
    return (f"{sign} {line}" for line in printable(text).strip("\n").split("\n") if text)
