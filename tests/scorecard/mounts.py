"""Disks of our own, for figures that fill one or pull its plug. They need root."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


class NotPossible(Exception):
    """This machine does not let us; the message says why."""


def command(*arguments: str | Path) -> str:
    """What a command prints. :raises NotPossible: when it is missing or fails."""
    if os.geteuid() != 0:
        raise NotPossible("it needs root")
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    program = shutil.which(str(arguments[0]), path=path)
    if program is None:
        raise NotPossible(f"there is no {arguments[0]}")
    done = subprocess.run([program, *arguments[1:]], capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise NotPossible(f"{arguments[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def keep_to_ourselves() -> None:
    """Let this process mount where nobody else sees it, and nothing is left when it dies.

    :raises NotPossible:
    """
    if not sys.platform.startswith("linux"):
        raise NotPossible("it needs Linux")
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NAMESPACE) < 0:
        raise NotPossible(f"unshare: {os.strerror(ctypes.get_errno())}")
    command("mount", "--make-rprivate", "/")


_NEW_NAMESPACE = 0x20000


@contextlib.contextmanager
def mounted(kind: str, device: str, folder: Path, options: str) -> Iterator[Path]:
    """A disk in a folder, until the block ends. :raises NotPossible:"""
    folder.mkdir(exist_ok=True)
    command("mount", "-t", kind, "-o", options, device, folder)
    try:
        yield folder
    finally:
        unmount(folder)


def unmount(folder: Path) -> None:
    for attempt in range(50):  # busy for a moment, when a process that used it has just died
        try:
            command("umount", folder)
            return
        except NotPossible:
            if attempt == 49:
                raise
            time.sleep(0.1)
