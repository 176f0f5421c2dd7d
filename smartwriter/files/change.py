"""A file of the writer's that is changed for them, without losing what they save meanwhile.

::

    <file>.md           the document
    .<file>.md.next     what it becomes, until it is in place

The next version is made of what the file holds, written beside it, and put in its place only if
nobody has changed the file in the meantime; else it is made anew. Between that look and the renaming
nothing else is done: no system offers the two as one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import smartwriter.files.durable as durable
import smartwriter.system.bounds as bounds
from smartwriter.errors import Invalid
from smartwriter.files.whole import read_whole

_TRIES = 20


def change(
    path: Path,
    made_of: Callable[[bytes], bytes],
    max_bytes: int,
    *,
    missing: bytes | None = None,
    mode: int | None = None,
) -> None:
    """Replace a file by what is made of its bytes. Blocking. A crash leaves the old or the new ones.

    :param made_of: may be called several times; the same bytes back leave the file alone.
    :param missing: what it is made of where there is no file; None: that is an error.
    :param mode: the permissions of a file that is new.
    :raises Invalid: for a file that cannot be changed. :raises OSError: when the system refuses.
    """
    target = bounds.checked(path)
    beside = target.with_name(f".{target.name}.next")
    for _ in range(_TRIES):
        before = _read(path, max_bytes)
        if before is None and missing is None:
            raise Invalid(f"There is no {path.name} in {path.parent}.")
        after = made_of(before if before is not None else missing or b"")
        if len(after) > max_bytes:
            raise Invalid(f"{path.name} would become too large; shorten it first.")
        if after == before:
            beside.unlink(missing_ok=True)
            return
        durable.write_document(beside, after, mode=mode if before is None else bounds.mode_of(target))
        if _bytes(target) == before:
            durable.move(beside, target)
            return
    beside.unlink(missing_ok=True)
    raise Invalid(f"{path.name} is being saved over and over; try again when it rests.")


def read(path: Path, max_bytes: int) -> bytes:
    """What is in a file, once an editor that saves it is done. Empty for none.

    :raises Invalid: for a file that is not for reading. :raises OSError:
    """
    return _read(path, max_bytes) or b""


def _read(path: Path, max_bytes: int) -> bytes | None:
    real = bounds.checked(path)
    if real.parent != Path(os.path.realpath(path.parent)):
        raise Invalid(f"{path.name} is a link to {real}; change that file by hand.")
    try:
        return read_whole(path, path.parent, max_bytes)
    except FileNotFoundError:
        return None
    except Invalid as error:
        raise Invalid(f"{path.name} {error}.") from None


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
