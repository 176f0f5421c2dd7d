"""Writing files so that a crash, a full disk or a power cut leaves the old or the new, never a part.

A **document** is a file that is replaced as a whole: written beside its place, synced, renamed. A name is
as durable as what it names: whatever makes one syncs its folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import sys
from pathlib import Path

import smartwriter.system.bounds as bounds
import smartwriter.system.roots as roots
from smartwriter.errors import JournalError


def sync_data(fd: int) -> None:
    """Have the disk take the bytes of an open file. :raises OSError:"""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync alone leaves it in the drive's cache there
    elif hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a synced file whose name is lost is lost too."""
    if os.name == "nt":
        return  # folders cannot be opened there; NTFS journals names by itself
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folder(folder: Path, *, sync: bool = True, private: bool = False) -> None:
    """Create a folder and its parents, durably. It may exist.

    :param private: for nobody else, whatever the umask; as everything in ``.smartwriter`` is.
    :raises FolderGone: for one that is in a folder that was there and is gone.
    """
    if folder.is_dir():
        return
    roots.check(folder)
    bounds.check_record(folder)
    make_folder(folder.parent, sync=sync, private=private)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700 if private or bounds.is_record(folder) else 0o777)
    if sync:
        sync_folder(folder.parent)


def move(source: Path, target: Path) -> None:
    """Move a file or folder, durably, creating the folder it goes to.

    To another disk it is copied beside its place first: a crash leaves the old one, the new one or, for
    a moment, both, but never a part of it under the new name.
    """
    bounds.check_record(target.parent)
    make_folder(target.parent)
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_to_other_disk(source, target)
    if bounds.is_record(target):
        bounds.make_private(target)
    sync_folder(target.parent)
    sync_folder(source.parent)


def _move_to_other_disk(source: Path, target: Path) -> None:
    beside = target.with_name(f".{target.name[:40]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, beside, symlinks=True)
        else:
            shutil.copy2(source, beside, follow_symlinks=False)
        for path in [beside, *beside.rglob("*")]:
            _sync_copy(path)
        beside.rename(target)
    except BaseException:
        _remove(beside)
        raise
    sync_folder(target.parent)
    _remove(source)


def _sync_copy(path: Path) -> None:
    if path.is_symlink():
        return
    if path.is_dir():
        sync_folder(path)
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_document(path: Path, text: str | bytes, *, mode: int | None = None) -> None:
    """Replace a document as a whole: a crash leaves the old text or the new one.

    :param mode: its permissions; None: those that it has, for a new one what the umask says. In
        ``.smartwriter`` it is for nobody else.
    :raises OSError: when it cannot be written; the old text stands. It names the document.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    roots.check(path)
    bounds.check_record(path.parent)
    make_folder(path.parent)
    if bounds.is_record(path):
        mode = 0o600
    elif mode is None:
        mode = bounds.mode_of(path)
    temporary = path.with_name(f".{path.name[:40]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        try:
            if mode not in (None, 0o600) and hasattr(os, "fchmod"):
                os.fchmod(fd, mode)
            _write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _DISK_REFUSES:
            raise refused(path, error, len(data)) from error
        raise
    sync_folder(path.parent)


_FULL = (errno.ENOSPC, errno.EDQUOT)
_DISK_REFUSES = (*_FULL, errno.EFBIG, errno.EIO, errno.EROFS)


def refused(path: Path, error: OSError, needed_bytes: int = 0) -> JournalError:
    """What the system said when a file could not be written, with the file; of a full disk, how full."""
    room = ""
    if error.errno in _FULL:
        with contextlib.suppress(OSError):
            folder = next(folder for folder in path.parents if folder.is_dir())
            needed = f"{needed_bytes:,} bytes needed, " if needed_bytes else ""
            room = f"{needed}{shutil.disk_usage(folder).free:,} free in {folder}"
    return JournalError(path, error, room)


_TEMPORARY = re.compile(r"\..{1,40}\.(?P<process>[0-9]+)-[0-9a-f]{8}\.tmp", re.DOTALL)


def half_written_by(path: Path) -> int | None:
    """The id of the process that was, or is, writing a document by this file; None: it is no such file."""
    found = _TEMPORARY.fullmatch(path.name)
    return int(found["process"]) if found else None


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
