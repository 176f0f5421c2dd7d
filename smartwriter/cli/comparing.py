"""The command that shows what differs between two texts, in the terminal or on a page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

import smartwriter.files.output as output
from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.workspace import Workspace

if TYPE_CHECKING:  # rich and the comparison take a moment to import, which --help need not wait for
    from rich.console import Console
    from rich.text import Text

    from smartwriter.text.comparison import Comparison, Piece, Step

_WIDE_COLUMNS = 100
"""From this width of the terminal on there is room for two texts side by side."""

_Side = Literal["before", "after", "both"]
_MARKS = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
_STYLES = {"same": "", "removed": "red strike", "added": "green"}
_HIDDEN: dict[_Side, str] = {"before": "added", "after": "removed", "both": ""}

# A control character could do anything to a terminal: its picture does nothing.
_PICTURES = {n: 0x2400 + n for n in range(0x20) if n not in (0x09, 0x0A)}
_PICTURES |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}


@dataclass(frozen=True)
class _Compared:
    """Two texts with their names, and what differs."""

    before: str
    after: str
    comparison: Comparison
    line_ends: bool
    """Their line ends differ; they are compared as if they did not."""

    @property
    def summary(self) -> str:
        found = self.comparison
        ends = " Their line ends differ." if self.line_ends else ""
        if not found.differs:
            return f"Nothing differs{' but blank lines' if found.spacing else ''}.{ends}"
        added = _number(found.added_words, "word")
        moved = _number(found.moved, "paragraph")
        counted = f"{added} added, {found.removed_words:,} removed, {moved} moved."
        return " ".join([counted, *self._more()]) + ends

    def _more(self) -> Iterator[str]:
        """What the numbers do not show."""
        kinds = [block.kind for block in self.comparison.blocks]
        for kind in ("split", "merged"):
            if times := kinds.count(kind):
                yield f"{times:,} {kind}."
        if places := self.comparison.recomposed:
            yield (
                f"In {_number(places, 'place')} what differs looks the same: its letters are composed of "
                "other characters."
            )


def compared(before: tuple[str, str], after: tuple[str, str]) -> _Compared:
    """What differs between two texts, each given as its label and itself."""
    from smartwriter.text.comparison import compare

    texts = [before[1], after[1]]
    if line_ends := ("\r\n" in texts[0]) != ("\r\n" in texts[1]):
        texts = [text.replace("\r\n", "\n") for text in texts]
    return _Compared(before[0], after[0], compare(*texts), line_ends)


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--inline", "layout", flag_value="inline", help="One text, with what was removed and added.")
@click.option("--side-by-side", "layout", flag_value="side", help="Two columns, whatever the width.")
@click.option("--all", "all_", is_flag=True, help="Show the paragraphs that are the same, too.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a page that any browser shows, instead; - prints it.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there already.")
@as_json
@in_workspace
def compare_command(
    workspace: Workspace,
    before: str,
    after: str,
    layout: str | None,
    all_: bool,
    page: Path | None,
    force: bool,
    json_: bool,
) -> None:
    """Show what differs from A to B: drafts as TASK[@DRAFT][:REVISION], or files."""
    from smartwriter.cli.addresses import text_of

    if page not in (None, output.STDOUT):
        output.check(page, force=force)
    found = compared(text_of(workspace, before), text_of(workspace, after))
    if page == output.STDOUT:
        click.echo(html_page(found, all_=all_), nl=False)
        return
    if page is not None:
        output.write(page, html_page(found, all_=all_).encode("utf-8", "surrogatepass"))
    if json_:
        labels = {"before": found.before, "after": found.after, "line_ends": found.line_ends}
        print_json(labels | asdict(found.comparison))
    elif page is not None:
        click.echo(f"Wrote {page}.\n{found.summary}")
    else:
        show(found, layout=layout, all_=all_)


# What both the terminal and the page show -------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A paragraph, or the place that one has left."""

    kind: str
    title: str
    pieces: tuple[Piece, ...] = ()


def _rows(found: Comparison) -> Iterator[_Row]:
    if found.front:
        yield _Row("changed", "Front matter", found.front)
    for step in found.steps():
        yield _Row("left", _title(step)) if step.leaves else _row(step)


def _row(step: Step) -> _Row:
    return _Row(step.block.kind, _title(step), step.block.pieces)


def _title(step: Step) -> str:
    block = step.block
    if step.leaves:
        return f"Paragraph {block.before} moved to {block.after}"
    if block.kind == "moved":
        edited = " and edited" if len(block.pieces) > 1 else ""
        return f"Paragraph {block.after}, moved from {block.before}{edited}"
    if block.kind == "split":
        return f"Paragraph {block.before}, split into {block.after} to {block.after_last}"
    if block.kind == "merged":
        return f"Paragraph {block.after}, merged from {block.before} to {block.before_last}"
    if block.kind == "added":
        return f"Paragraph {block.after}, added"
    if block.kind == "removed":
        return f"Paragraph {block.before}, removed"
    was = f", was {block.before}" if block.before != block.after else ""
    return f"Paragraph {block.after}{was}"


def _folded(rows: Iterable[_Row]) -> Iterator[tuple[bool, list[_Row]]]:
    """Rows in stretches that are the same (true) or not."""
    for same, stretch in groupby(rows, key=lambda row: row.kind == "same"):
        yield same, list(stretch)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _fold_line(rows: list[_Row]) -> str:
    return f"{_number(len(rows), 'paragraph')} the same"


# In the terminal --------------------------------------------------------------------------------


def show(
    found: _Compared, *, layout: str | None = None, all_: bool = False, console: Console | None = None
) -> None:
    """Print a comparison.

    :param layout: ``inline``, ``side``, or ``None`` for what the terminal has room for.
    :param console: of rich; by default for standard output.
    """
    from smartwriter.cli.console import TerminalConsole

    console = console or TerminalConsole()
    if layout is None:
        layout = "side" if console.is_terminal and console.width >= _WIDE_COLUMNS else "inline"
    if found.comparison.differs:
        _head(console, found, layout)
        for same, rows in _folded(_rows(found.comparison)):
            if same and not all_:
                console.print(f"… {_fold_line(rows)} …\n", style="dim")
                continue
            for row in rows:
                _show_row(console, row, layout)
    console.print(_text(found.summary, "bold"), soft_wrap=True)


def _head(console: Console, found: _Compared, layout: str) -> None:
    if layout == "side":
        _side_by_side(console, _text(found.before, "bold"), _text(found.after, "bold"))
    else:
        console.print(_text(f"From {found.before}\nto   {found.after}", "bold"), soft_wrap=True)
    console.print()


def _show_row(console: Console, row: _Row, layout: str) -> None:
    console.print(row.title, style="yellow" if row.kind in {"moved", "left"} else "dim")
    if row.pieces and layout == "side":
        _side_by_side(console, _styled(console, row, "before"), _styled(console, row, "after"))
    elif row.pieces:
        # What goes to a file or another program is not wrapped: lines are the text's own.
        console.print(_styled(console, row, "both"), soft_wrap=not console.is_terminal)
    console.print()


def _side_by_side(console: Console, before: Text, after: Text) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    for width in (console.width // 2 - 2, 1, console.width // 2 - 2):
        grid.add_column(width=max(width, 1), overflow="fold")
    left, right = (text.wrap(console, max(console.width // 2 - 2, 2)) for text in (before, after))
    for number in range(max(len(left), len(right))):
        grid.add_row(
            left[number] if number < len(left) else "", "│", right[number] if number < len(right) else ""
        )
    console.print(grid)


def _styled(console: Console, row: _Row, side: _Side) -> Text:
    """The text of a paragraph on one side or both, readable without colours where there are none."""
    from rich.text import Text

    plain = console.color_system is None or console.no_color
    text = Text()
    for piece in row.pieces:
        if piece.kind == _HIDDEN[side]:
            continue
        before, after = _MARKS[piece.kind] if plain else ("", "")
        text.append(f"{before}{_safe(piece.text)}{after}", _STYLES[piece.kind])
    return text


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(_safe(text), style)


def _safe(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_PICTURES)


# On a page --------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --dim: #666; --line: #ddd;
  --added: #d8f5dd; --removed: #fbdcdc; --moved: #fff2cc; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --paper: #17191c; --dim: #999; --line: #3a3d42;
    --added: #17452a; --removed: #5a2226; --moved: #4a3d12; }
}
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.6 Georgia, "Songti SC", "Noto Serif CJK SC", serif; }
header, .title, summary, footer { font-family: system-ui, sans-serif; }
.title, summary { color: var(--dim); font-size: .8rem; }
.row { border-top: 1px solid var(--line); padding: .5rem 0; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 2rem; }
.sides > * { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; min-width: 0; }
.moved > .title, .left > .title { background: var(--moved); color: inherit; padding: 0 .4rem; }
ins { background: var(--added); text-decoration: none; border-bottom: 2px solid #2a9d50; }
del { background: var(--removed); }
details > summary { cursor: pointer; padding: .5rem 0; }
footer { border-top: 1px solid var(--line); padding-top: 1rem; font-weight: bold; }
@media (max-width: 45rem) { .sides { grid-template-columns: 1fr; gap: .5rem; } }
"""


def html_page(found: _Compared, *, all_: bool = False) -> str:
    """A page that needs nothing but itself. Stretches that are the same unfold, or are open with ``all_``."""
    before, after = _escaped(found.before), _escaped(found.after)
    rows = "\n".join(_stretch(same, rows, all_) for same, rows in _folded(_rows(found.comparison)))
    language = _language("".join(block.after_text for block in found.comparison.blocks))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{before} → {after}</title>
<style>{_STYLE}</style>
</head>
<body>
<header class="sides"><h2 dir="auto">{before}</h2><h2 dir="auto">{after}</h2></header>
<main lang="{language}">
{rows}
</main>
<footer>{_escaped(found.summary)}</footer>
</body>
</html>
"""


def _stretch(same: bool, rows: list[_Row], all_: bool) -> str:
    shown = "\n".join(map(_html_row, rows))
    if not same:
        return shown
    state = " open" if all_ else ""
    return f'<details{state}><summary lang="en">{_fold_line(rows)}</summary>\n{shown}\n</details>'


def _html_row(row: _Row) -> str:
    title = f'<div class="title" lang="en">{_escaped(row.title)}</div>'
    before, after = _html_text(row, "before"), _html_text(row, "after")
    sides = f'<p dir="auto">{before}</p><p dir="auto">{after}</p>'
    return f'<div class="row {row.kind}">{title}' + (
        f'<div class="sides">{sides}</div></div>' if row.pieces else "</div>"
    )


def _html_text(row: _Row, side: _Side) -> str:
    tags = {"same": "{}", "added": "<ins>{}</ins>", "removed": "<del>{}</del>"}
    return "".join(
        tags[piece.kind].format(_escaped(piece.text)) for piece in row.pieces if piece.kind != _HIDDEN[side]
    )


def _escaped(text: str) -> str:
    # Half an emoji cannot be written as UTF-8.
    return html.escape(_safe(text)).encode("utf-8", "replace").decode()


def _language(text: str) -> str:
    """Which script's shapes a browser should use; empty where it need not choose."""
    sizes = {
        "ja": _within(text, 0x3041, 0x30FF) * 5,  # Japanese has more Han than kana in places
        "ko": _within(text, 0xAC00, 0xD7A3),
        "zh": _within(text, 0x4E00, 0x9FFF),
        "he": _within(text, 0x0590, 0x05FF),
        "ar": _within(text, 0x0600, 0x06FF),
    }
    language = max(sizes, key=lambda name: sizes[name])
    return language if sizes[language] * 4 > len(text) else ""


def _within(text: str, first: int, last: int) -> int:
    return sum(first <= ord(character) <= last for character in text)
