"""The command that shows what differs between two texts, in the terminal or on a page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

import smartwriter.files.output as output
from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.text.harmless import harmless
from smartwriter.workspace import Workspace

if TYPE_CHECKING:  # rich and the comparison take a moment to import, which --help need not wait for
    from rich.console import Console
    from rich.text import Text

    from smartwriter.pages.comparison import Compared
    from smartwriter.pages.difference import Row, Side

_WIDE_COLUMNS = 100
"""From this width of the terminal on there is room for two texts side by side."""

_MARKS = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
_STYLES = {"same": "", "removed": "red strike", "added": "green"}


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
    from smartwriter.pages.comparison import compared, comparison_page
    from smartwriter.trials.version import named_text

    if page not in (None, output.STDOUT):
        output.check(page, force=force)
    found = compared(named_text(workspace, before), named_text(workspace, after))
    if page == output.STDOUT:
        click.echo(comparison_page(found, all_=all_), nl=False)
        return
    if page is not None:
        output.write(page, comparison_page(found, all_=all_).encode("utf-8", "surrogatepass"))
    if json_:
        labels = {"before": found.before, "after": found.after, "line_ends": found.line_ends}
        print_json(labels | asdict(found.comparison))
    elif page is not None:
        click.echo(f"Wrote {page}.\n{found.summary}")
    else:
        show(found, layout=layout, all_=all_)


# In the terminal --------------------------------------------------------------------------------


def show(
    found: Compared, *, layout: str | None = None, all_: bool = False, console: Console | None = None
) -> None:
    """Print a comparison.

    :param layout: ``inline``, ``side``, or ``None`` for what the terminal has room for.
    :param console: of rich; by default for standard output.
    """
    from smartwriter.cli.console import TerminalConsole
    from smartwriter.pages.comparison import fold_line
    from smartwriter.pages.difference import rows, stretches

    console = console or TerminalConsole()
    if layout is None:
        layout = "side" if console.is_terminal and console.width >= _WIDE_COLUMNS else "inline"
    if found.comparison.differs:
        _head(console, found, layout)
        for same, stretch in stretches(rows(found.comparison)):
            if same and not all_:
                console.print(f"… {fold_line(stretch)} …\n", style="dim")
                continue
            for row in stretch:
                _show_row(console, row, layout)
    console.print(_text(found.summary, "bold"), soft_wrap=True)


def _head(console: Console, found: Compared, layout: str) -> None:
    if layout == "side":
        _side_by_side(console, _text(found.before, "bold"), _text(found.after, "bold"))
    else:
        console.print(_text(f"From {found.before}\nto   {found.after}", "bold"), soft_wrap=True)
    console.print()


def _show_row(console: Console, row: Row, layout: str) -> None:
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


def _styled(console: Console, row: Row, side: Side) -> Text:
    """The text of a paragraph on one side or both, readable without colours where there are none."""
    from rich.text import Text

    plain = console.color_system is None or console.no_color
    text = Text()
    for piece in row.on(side):
        before, after = _MARKS[piece.kind] if plain else ("", "")
        text.append(f"{before}{_safe(piece.text)}{after}", _STYLES[piece.kind])
    return text


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(_safe(text), style)


def _safe(text: str) -> str:
    return harmless(text.replace("\r\n", "\n").replace("\r", "\n"))
