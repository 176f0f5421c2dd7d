"""Who a workspace is: an id that no copy of it shares.

``.smartwriter/identity/<machine>-<folder>.json``, one for each folder that it has been, by inode::

    {"id": "5f0c…", "copied_from": ["91ab…"]}

The id marks the CLI processes of a workspace and the temporary folders that they work in. A copy
has the same sessions, so these alone would not tell whose they are; but its folder is another one.
A workspace that is synced, or on a network, goes by an id of its own on each machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

import smartwriter.files.durable as durable
import smartwriter.system.bounds as bounds
from smartwriter.errors import LeadsOutside

_ID = re.compile(r"[0-9a-f]{32}")
_UNUSUAL = re.compile(r"[^A-Za-z0-9.]+")


@dataclass(frozen=True)
class Identity:
    """What a workspace goes by on this machine."""

    id: str
    """Empty: it has none yet."""
    copied_from: tuple[str, ...] = ()
    """The ids of the workspaces that it is a copy of, and of those they are copies of."""
    is_new_copy: bool = False
    """It has just been found to be a copy."""


def identity(hidden: Path) -> Identity:
    """As it is recorded, or would be: changes nothing. :param hidden: the ``.smartwriter`` folder."""
    recorded = _path(hidden)
    if found := _read(recorded):
        return found
    others = recorded.parent.glob(f"{_machine()}-*.json")
    copied_from = tuple(sorted(other.id for path in others if (other := _read(path))))
    return Identity("", copied_from, is_new_copy=bool(copied_from))


def identify(hidden: Path) -> Identity:
    """As :func:`identity`; a workspace that has no id yet, or is a copy of another, gets its own.

    :raises OSError: it could not be recorded.
    """
    found = identity(hidden)
    if found.id:
        return found
    id, path = uuid.uuid4().hex, _path(hidden)
    text = json.dumps({"id": id, "copied_from": list(found.copied_from)})
    mine = path.with_name(f"{path.name}.{id}")
    durable.write_document(mine, text)
    try:
        os.link(mine, path)  # of two processes that look at once, one gives it its id
    except FileExistsError:
        pass
    except OSError:  # no links on this disk
        durable.write_document(path, text)
    finally:
        with contextlib.suppress(FileNotFoundError):
            mine.unlink()
    durable.sync_folder(path.parent)
    if (recorded := _read(path)) is None:  # damaged
        durable.write_document(path, text)
        recorded = Identity(id, found.copied_from)
    return Identity(recorded.id, recorded.copied_from, found.is_new_copy and recorded.id == id)


def _path(hidden: Path) -> Path:
    return hidden / "identity" / f"{_machine()}-{hidden.stat().st_ino}.json"


def _machine() -> str:
    return _UNUSUAL.sub("_", socket.gethostname()) or "_"


def _read(path: Path) -> Identity | None:
    try:
        found = json.loads(bounds.read_record(path))
        id, copied_from = found["id"], found["copied_from"]
    except (FileNotFoundError, NotADirectoryError, LeadsOutside, ValueError, TypeError, KeyError):
        return None
    if not isinstance(copied_from, list) or not all(_is_id(one) for one in [id, *copied_from]):
        return None
    return Identity(id, tuple(copied_from))


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None
