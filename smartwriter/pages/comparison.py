"""Two texts and what differs between them, on a page side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smartwriter.pages.difference import Row, Side, marked, rows, stretches
from smartwriter.pages.page import escaped, page
from smartwriter.text.differences.comparison import Comparison, compare
from smartwriter.text.language import language_of_script
from smartwriter.text.wording import counted

_SIDES: tuple[Side, ...] = ("before", "after")


@dataclass(frozen=True)
class Compared:
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
        added = counted(found.added_words, "word")
        moved = counted(found.moved, "paragraph")
        numbers = f"{added} added, {found.removed_words:,} removed, {moved} moved."
        return " ".join([numbers, *self._more()]) + ends

    def _more(self) -> Iterator[str]:
        """What the numbers do not show."""
        kinds = [block.kind for block in self.comparison.blocks]
        for kind in ("split", "merged"):
            if times := kinds.count(kind):
                yield f"{times:,} {kind}."
        if places := self.comparison.recomposed:
            yield (
                f"In {counted(places, 'place')} what differs looks the same: its letters are composed of "
                "other characters."
            )


def compared(before: tuple[str, str], after: tuple[str, str]) -> Compared:
    """What differs between two texts, each given as its label and itself."""
    texts = [before[1], after[1]]
    if line_ends := ("\r\n" in texts[0]) != ("\r\n" in texts[1]):
        texts = [text.replace("\r\n", "\n") for text in texts]
    return Compared(before[0], after[0], compare(*texts), line_ends)


def comparison_page(found: Compared, *, all_: bool = False) -> str:
    """A page that needs nothing but itself. Stretches that are the same unfold, or are open with ``all_``."""
    names = "".join(f'<h2 dir="auto">{escaped(name)}</h2>' for name in (found.before, found.after))
    language = language_of_script("".join(block.after_text for block in found.comparison.blocks))
    body = [
        f'<header class="sides">{names}</header>',
        f'<article lang="{language}">',
        *(_stretch(same, stretch, all_) for same, stretch in stretches(rows(found.comparison))),
        "</article>",
        f"<footer>{escaped(found.summary)}</footer>",
    ]
    return page(f"{found.before} → {found.after}", "en", "\n".join(body), wide=True)


def _stretch(same: bool, stretch: list[Row], all_: bool) -> str:
    shown = "\n".join(map(_row, stretch))
    if not same:
        return shown
    state = " open" if all_ else ""
    return f'<details{state}><summary lang="en">{fold_line(stretch)}</summary>\n{shown}\n</details>'


def fold_line(same: list[Row]) -> str:
    return f"{counted(len(same), 'paragraph')} the same"


def _row(row: Row) -> str:
    title = f'<div class="about" lang="en">{escaped(row.title)}</div>'
    sides = "".join(f'<p class="said" dir="auto">{marked(row, side)}</p>' for side in _SIDES)
    shown = f'<div class="sides">{sides}</div>' if row.pieces else ""
    return f'<div class="row {row.kind}">{title}{shown}</div>'
