"""Writing where the writer points: every file that a command is told to write.

Such a file is the writer's own affair, so it is replaced only if they say so; and whatever they say, no slip
of theirs costs them what a workspace keeps: its records, drafts, articles and memory are written by other
commands, which keep what was there before.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import smartwriter.files.durable as durable
from smartwriter.errors import Invalid, JournalError
from smartwriter.system.bounds import HIDDEN, is_workspace

STDOUT = Path("-")
"""What means standard output in a file's place."""
_STREAMS = re.compile(r"/dev/(?:std(?:in|out|err)|fd/\d+)|/proc/[^/]+/fd/\d+")


def check(path: Path, *, force: bool = False) -> None:
    """Look at a place before anything is made for it. Blocking.

    :param force: a file that is there already may be replaced.
    :raises Invalid: for a place that no file is written to.
    """
    _target(path)
    if not force and os.path.lexists(path):
        raise Invalid(f"{path} is there already; to write over it, add --force.")


def checked_ending(path: Path, endings: tuple[str, ...]) -> str:
    """The ending of a path that a file can be written to. :raises Invalid:"""
    ending = path.suffix.lower()
    if ending not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise Invalid(f"{path.name or str(path)!r} does not say the format: it must end in {known}.")
    check(path, force=True)
    return ending


def write(path: Path, data: bytes) -> None:
    """Write a file as a whole; a link stays one. Where anything fails, an older one stands. Blocking.

    :raises Invalid: as :func:`check`, and where the system does not allow it.
    :raises OSError: when the disk fails.
    """
    target = _target(path)
    try:
        durable.write_document(target, data)
    except PermissionError:
        raise Invalid(f"{path} cannot be written: its folder does not allow it.") from None
    except JournalError:  # which names the file
        raise
    except OSError as error:  # named by the file that was wanted
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _target(path: Path) -> Path:
    """The file that a path means. :raises Invalid:"""
    if _STREAMS.match(str(path.absolute())):  # even where a file stands behind it
        raise Invalid(f"{path} is a stream, and no file; to print it, name {STDOUT} in its place.")
    target = Path(os.path.realpath(path))
    try:
        status = target.lstat()
    except OSError:
        status = None
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise Invalid(f"{path} is a folder; name a file.")
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise Invalid(
            f"{path} is not a regular file; to write to another program, name {STDOUT} and pipe it."
        )
    if not target.parent.is_dir():
        raise Invalid(f"There is no folder {path.parent} to write {path.name} in.")
    _check_place(path, target)
    return target


def _check_place(path: Path, target: Path) -> None:
    """:raises Invalid: for a place that a workspace keeps something in."""
    # Whatever the letters' case: some disks do not tell them apart.
    parts = [part.casefold() for part in target.parts]
    if HIDDEN in parts[:-1]:
        raise Invalid(f"{path} lies where the workspace keeps its records; export to another folder.")
    for folder in target.parents:
        if is_workspace(folder):
            inside = [part.casefold() for part in target.relative_to(folder).parts]
            is_text = inside[-1].endswith(".md") and inside[0] == "collections"
            if is_text or inside == ["claude.md"]:
                raise Invalid(
                    f"{path} lies where the workspace keeps its drafts, articles and memory; "
                    "export to another folder, or under another ending."
                )
