"""What the doctor finds that other people, or other users of the machine, could make use of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil

import smartwriter.system.bounds as bounds
from smartwriter.doctor.finding import Finding
from smartwriter.errors import Invalid
from smartwriter.workspace import Workspace


def examine_safety(workspace: Workspace) -> Iterator[Finding]:
    """Settings that cannot be used, links that lead out, names that would, what others can read."""
    yield from _config(workspace)
    yield from _links(workspace)
    yield from _refused_tasks(workspace)
    yield from _open_to_others(workspace)


def _config(workspace: Workspace) -> Iterator[Finding]:
    try:
        problems = workspace.config_problems()
        workspace.config()
    except Invalid as error:
        yield Finding(
            "config", workspace.config_path, "cannot be used", f"nothing is written until it can: {error}"
        )
        return
    for problem in problems:
        yield Finding("config", workspace.config_path, "asks for what a workspace cannot have", problem)


def _links(workspace: Workspace) -> Iterator[Finding]:
    for path in bounds.links(workspace.hidden):
        yield Finding(
            "link",
            path,
            f"is a link to {os.path.realpath(path)}",
            "nothing is read or written there; if it is your own doing, allow that folder in your own config",
        )


def _refused_tasks(workspace: Workspace) -> Iterator[Finding]:
    for id, why in workspace.tasks.refused().items():
        yield Finding(
            "task",
            workspace.places.tasks,
            f"has a task {id!r} that is passed over",
            f"a value of it is not one that SmartWriter writes ({why})",
        )


def _open_to_others(workspace: Workspace) -> Iterator[Finding]:
    # What is in a closed folder nobody else can reach, whatever its own permissions.
    if os.name == "nt" or not bounds.is_open(workspace.hidden) or not _keeps_permissions(workspace.hidden):
        return
    found = [path for path in _all_of(workspace.hidden) if bounds.is_open(path)]
    number = "a folder" if len(found) == 1 else f"{len(found)} files and folders"
    yield Finding(
        "permissions",
        workspace.hidden,
        f"has {number} that other users of this machine may open",
        "conversations and versions are yours alone",
        "take them from the eyes of others",
        partial(_make_private, found),
    )


_WITHOUT_PERMISSIONS = frozenset(
    {"vfat", "exfat", "msdos", "ntfs", "ntfs3", "fuseblk", "cifs", "smb3", "9p", "drvfs"}
)


def _keeps_permissions(path: Path) -> bool:
    """Whether the disk that a folder is on has permissions: a stick made for every system has none."""
    real = os.path.realpath(path)
    mounts = [one for one in psutil.disk_partitions(all=True) if Path(real).is_relative_to(one.mountpoint)]
    nearest = max(mounts, key=lambda one: len(one.mountpoint), default=None)
    return nearest is None or nearest.fstype.lower() not in _WITHOUT_PERMISSIONS


def _all_of(hidden: Path) -> Iterator[Path]:
    yield hidden
    yield from sorted(hidden.rglob("*"))


def _make_private(paths: list[Path]) -> None:
    for path in paths:
        if path.exists():
            path.chmod(0o700 if path.is_dir() else 0o600)
