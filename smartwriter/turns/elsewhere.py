"""Another disk, for what a workspace's own takes no more, or is not there to take.

::

    <folder for temporary files>/smartwriter-kept-<user>/<workspace>/<when>-<n>.jsonl
    <home>/.smartwriter-kept/<workspace>/<when>-<n>.jsonl         when that is full, too

Nobody else may read or write there: a folder that another user could have put there is left alone. The
first line of each file tells which workspace it is of.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading
import smartwriter.system.roots as roots
from smartwriter.errors import JournalError
from smartwriter.files.names import readable_name
from smartwriter.storage.salvage import Entry


class Elsewhere:
    """What is kept of one workspace outside of it. Calls block."""

    def __init__(self, hidden: Path, knows: Callable[[Entry], bool]) -> None:
        """
        :param hidden: its ``.smartwriter`` folder, which may go away later.
        :param knows: whether what a first line names is in this workspace. Raises ``OSError``: it is gone.
        """
        self._knows = knows
        self._hidden = hidden
        found = roots.identity(hidden)
        self._inode = found[1] if found else 0

    def put(self, name: str, lines: Sequence[Mapping[str, Any]]) -> Path:
        """Where they are. :raises JournalError: they are nowhere."""
        of = {"folder": str(self._hidden), "inode": self._inode}
        head = {**lines[0], "workspace": of}
        refused: OSError = OSError("there is no other folder")
        for folder in _folders():
            try:
                _make_private(folder)
                path = folder / readable_name(self._hidden.parent.name or "workspace") / name
                journal.Journal(path).append([head, *lines[1:]])
            except OSError as error:
                refused = error
            else:
                return path
        if isinstance(refused, JournalError):
            raise refused
        raise JournalError(self._hidden, refused)

    def paths(self) -> list[Path]:
        """The files that are of this workspace."""
        return [path for folder in _folders() if _is_private(folder) for path in self._ours(folder)]

    def remove(self, path: Path) -> None:
        """Of what is in its place by now."""
        path.unlink()
        with contextlib.suppress(OSError):  # there may be others
            path.parent.rmdir()
            path.parent.parent.rmdir()

    def _ours(self, folder: Path) -> Iterator[Path]:
        for path in folder.glob("*/*.jsonl"):
            with contextlib.suppress(OSError):
                head = next((entry for _, entry in reading.stream(path)), {})
                if self._is_ours(head):
                    yield path

    def _is_ours(self, head: Entry) -> bool:
        """A copy of a workspace does not get what is the other's, unless there is no other any more."""
        match head.get("workspace"):
            case {"folder": str(folder), "inode": int(inode)}:
                was_here = inode == self._inode or folder == str(self._hidden)
                try:
                    return (was_here or not Path(folder).is_dir()) and self._knows(head)
                except OSError:
                    return was_here
        return False


def _folders() -> Iterator[Path]:
    user = str(os.getuid()) if hasattr(os, "getuid") else "me"
    with contextlib.suppress(OSError):  # no folder takes temporary files
        yield Path(tempfile.gettempdir()) / f"smartwriter-kept-{user}"
    with contextlib.suppress(RuntimeError):
        yield Path.home() / ".smartwriter-kept"


def _make_private(folder: Path) -> None:
    """:raises OSError: it cannot be made, or is not ours alone."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not _is_private(folder):
        raise OSError(f"{folder} is not this user's alone")


def _is_private(folder: Path) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    mine = not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077
    )
    return stat.S_ISDIR(status.st_mode) and mine
