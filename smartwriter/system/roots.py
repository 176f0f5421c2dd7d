"""Folders that are to stay the ones they are, for as long as this process lives.

Who keeps things in a folder *holds* it, by its device and inode. When it goes away, renamed,
unmounted or pulled out, nothing is made anew at its old place, and nothing there is taken for it: not
the empty folder that it was mounted on, nor a journal that is missing for one that never was.
"""

from __future__ import annotations

import os
from pathlib import Path

from smartwriter.errors import FolderGone

_held: dict[str, tuple[int, int]] = {}


def hold(folder: Path) -> None:
    """From now on, this folder or none. One that is not there yet is not held."""
    if (found := identity(folder)) is not None:
        _held[os.fspath(folder)] = found
    else:
        _held.pop(os.fspath(folder), None)


def check_or_hold(folder: Path) -> None:
    """:raises FolderGone: as :func:`check`; a folder that was not held is from now on."""
    if os.fspath(folder) in _held:
        check(folder)
    else:
        hold(folder)


def check(path: Path) -> None:
    """:raises FolderGone: when a folder that is held, and that a path is in or names, is not there."""
    place = os.fspath(path)  # not by ``path.parents``: this is asked before every write
    while place:
        known = _held.get(place)
        if known is not None and identity(place) != known:
            raise FolderGone(Path(place))
        place = place.rpartition(os.sep)[0]


def identity(folder: str | Path) -> tuple[int, int] | None:
    """Device and inode; None where there is no such folder."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino
