"""What the doctor finds in the journals: damage, and files in which nothing is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading
from smartwriter.doctor.finding import Finding
from smartwriter.doctor.leftovers import put_away
from smartwriter.storage.salvage import Damage
from smartwriter.text.wording import counted
from smartwriter.workspace import Workspace

_TOLD = 8  # stretches, of one file


def examine_journals(workspace: Workspace) -> Iterator[Finding]:
    """Whatever holds a journal's entries, wherever in the workspace it lies."""
    for path in workspace.places.journals():
        try:
            contents = reading.read(path)
        except FileNotFoundError:  # another process has just moved it
            continue
        except OSError as error:
            yield Finding(
                "unreadable", path, f"cannot be read: {error.strerror}", "what it holds is out of reach"
            )
            continue
        if contents.size == 0:
            yield _empty(workspace, path)
        if contents.damage:
            yield _damaged(workspace, path, contents.damage)


def _empty(workspace: Workspace, path: Path) -> Finding:
    return Finding(
        "empty",
        path,
        "is empty",
        "whatever was to be written there never was",
        "move it to the trash",
        partial(_put_away_empty, workspace, path),
    )


def _damaged(workspace: Workspace, path: Path, damage: Sequence[Damage]) -> Finding:
    places = ", ".join(f"{counted(stretch.length, 'byte')} at {stretch.offset}" for stretch in damage[:_TOLD])
    more = f" and {counted(len(damage) - _TOLD, 'more place')}" if len(damage) > _TOLD else ""
    cache = workspace.places.is_cache(path)
    return Finding(
        "damage",
        path,
        f"is damaged: {places}{more}",
        "only a cache" if cache else "no whole entry is in there; all others are used",
        f"write the whole entries to a new file, and keep the old one as {path.name}.damaged-…",
        partial(journal.rewrite, path, list),
    )


def _put_away_empty(workspace: Workspace, path: Path) -> None:
    with journal.Journal(path).locked() as transaction:  # somebody may just be about to write there
        if transaction.size == 0:
            put_away(workspace, path)
