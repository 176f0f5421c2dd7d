"""What differs between two texts, as a reader meets it: paragraph by paragraph, each with its title."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from smartwriter.pages.page import escaped
from smartwriter.text.differences.comparison import Comparison, Step
from smartwriter.text.differences.pieces import Piece

Side = Literal["before", "after", "both"]
_HIDDEN: dict[Side, str] = {"before": "added", "after": "removed", "both": ""}
_TAGS = {"same": "{}", "added": "<ins>{}</ins>", "removed": "<del>{}</del>"}


@dataclass(frozen=True)
class Row:
    """A paragraph, or the place that one has left."""

    kind: str
    """As of a block; ``left`` of the place."""
    title: str
    pieces: tuple[Piece, ...] = ()

    def on(self, side: Side) -> list[Piece]:
        return [piece for piece in self.pieces if piece.kind != _HIDDEN[side]]

    def text(self, side: Side) -> str:
        return "".join(piece.text for piece in self.on(side))


def rows(found: Comparison) -> Iterator[Row]:
    """In reading order of the text after."""
    if found.front:
        yield Row("changed", "Front matter", found.front)
    for step in found.steps():
        pieces = () if step.leaves else step.block.pieces
        yield Row("left" if step.leaves else step.block.kind, _title(step), pieces)


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


def stretches(rows: Iterable[Row]) -> Iterator[tuple[bool, list[Row]]]:
    """Rows in stretches that are the same (true) or not."""
    for same, stretch in groupby(rows, key=lambda row: row.kind == "same"):
        yield same, list(stretch)


def marked(row: Row, side: Side = "both") -> str:
    """The text of a row as HTML, in which is marked what was added and removed."""
    return "".join(_TAGS[piece.kind].format(escaped(piece.text)) for piece in row.on(side))
