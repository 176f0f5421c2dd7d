"""What may be read and written on behalf of a workspace: itself, and nothing that it only leads to.

A workspace may come from somebody else, in an archive, by git or through a shared folder, and with it
links to anywhere, pipes and devices. Its own files are regular ones, inside it. Where a writer keeps a part
of it elsewhere, their own settings allow that folder (``smartwriter.system.config``), never the workspace's.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from smartwriter.errors import Invalid, LeadsOutside

HIDDEN = ".smartwriter"
"""The folder in a workspace that holds its records."""

MAX_TEXT_BYTES = 100_000_000
"""Of a text, or of settings: a hundred long novels."""

_INSIDE = f"{os.sep}{HIDDEN}{os.sep}"


def is_workspace(folder: Path) -> bool:
    """Whether a folder has records in it."""
    return (folder / HIDDEN).is_dir()


def is_record(path: Path) -> bool:
    """Whether a path is that of ``.smartwriter`` or of something in it: nobody else's business."""
    return _INSIDE in f"{path}{os.sep}"


def check_record(path: Path) -> None:
    """:raises LeadsOutside: when a link stands in a file's place in ``.smartwriter``, or on the way to it."""
    place = os.fspath(path)  # not by its parents: this is asked before every write
    at = place.rfind(_INSIDE) + len(_INSIDE)
    while at >= len(_INSIDE):
        end = place.find(os.sep, at)
        part = place if end < 0 else place[:end]
        if os.path.islink(part):  # noqa: PTH114
            _check_allowed(Path(part), Path(os.path.realpath(part)))
        at = end + 1 if end >= 0 else 0


def is_own_record(path: Path) -> bool:
    """Whether no link stands in a file's place in ``.smartwriter``, or on the way to it."""
    try:
        check_record(path)
    except LeadsOutside:
        return False
    return True


def checked(path: Path, *, of_records: bool = False) -> Path:
    """Where a file of a workspace really is. One that is in no workspace may be anywhere.

    :param of_records: it may be one of them.
    :raises LeadsOutside: when that is outside of it, or among its records.
    """
    real = Path(os.path.realpath(path))
    root = _root(path)
    if root is not None:
        inside = Path(os.path.realpath(root))
        if not real.is_relative_to(inside):
            _check_allowed(path, real)
        elif not of_records and HIDDEN in real.relative_to(inside).parts:
            raise LeadsOutside(path, f"{path} leads to where the workspace keeps its records ({real}).")
    return real


def check_owner(root: Path) -> None:
    """:raises Invalid: for a workspace of another user: they could change it, and what is told to the model.

    Who is root by ``sudo`` may use their own.
    """
    if not hasattr(os, "geteuid"):
        return
    owner = (root / HIDDEN).stat().st_uid
    own = {str(os.geteuid())} | ({os.environ.get("SUDO_UID", "")} if os.geteuid() == 0 else set())
    if str(owner) not in own and not is_allowed(Path(os.path.realpath(root))):
        from smartwriter.system.config import own_path

        raise Invalid(
            f"{root} is the workspace of another user (number {owner}). To use it all the same, say so in "
            f'{own_path()}: allow = ["{os.path.realpath(root)}"]'
        )


def is_allowed(place: Path) -> bool:
    """Whether the writer's own settings name a folder that a real path is, or is in."""
    from smartwriter.system.config import own  # only here is it needed, and it takes a moment to load

    return any(place.is_relative_to(os.path.realpath(folder)) for folder in own().allow)


def is_inside(path: Path) -> bool:
    """Whether a file of a workspace is where :func:`checked` allows it to be."""
    try:
        checked(path)
    except LeadsOutside:
        return False
    return True


def read_regular(path: Path) -> bytes:
    """The bytes of a file that is one: a pipe would be waited for, a device do whatever it does.

    :raises LeadsOutside: for anything else. :raises Invalid: for more than anybody writes, which the
        machine's memory might not hold. :raises OSError: as usual.
    """
    with open(open_regular(path, os.O_RDONLY), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(MAX_TEXT_BYTES + 1) if size <= MAX_TEXT_BYTES else b""
    if max(size, len(data)) > MAX_TEXT_BYTES:  # it may grow while it is read
        size = max(size, len(data))
        raise Invalid(f"{path} is too large ({size / 1e6:.1f} MB; at most {MAX_TEXT_BYTES / 1e6:.0f} MB).")
    return data


def open_record(path: Path) -> int:
    """The descriptor, for reading, of a file of ``.smartwriter``, or of one that is in no workspace.

    :raises LeadsOutside: for a link, a pipe or whatever else stands in its place.
    """
    check_record(path)
    return open_regular(path, os.O_RDONLY)


def read_record(path: Path) -> bytes:
    """The bytes of a file as :func:`open_record` opens it."""
    with open(open_record(path), "rb") as file:
        return file.read()


def open_regular(path: Path, flags: int) -> int:
    """The descriptor of a file that is one, for this process alone; a new one is for nobody else.

    :raises LeadsOutside: for anything else: already to open it may wait, or do something.
    :raises OSError: as usual.
    """
    with contextlib.suppress(FileNotFoundError):
        _check_regular(path, os.stat(path))
    more = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    return opened_regular(path, os.open(path, flags | sum(more), 0o600))


def opened_regular(path: Path, fd: int) -> int:
    """A descriptor, when it is that of a regular file; else it is closed. :raises LeadsOutside:"""
    try:
        _check_regular(path, os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise LeadsOutside(path, f"{path} is not a regular file.")


def mode_of(path: Path) -> int | None:
    """The permissions of a file; None where there is none."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o777
    except OSError:
        return None


def make_private(path: Path) -> None:
    """Take a file, or a folder with all that is in it, from the eyes of other users."""
    for place in [path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())]:
        if is_open(place):
            place.chmod(0o700 if place.is_dir() else 0o600)


def is_open(path: Path) -> bool:
    """Whether other users may do anything with a file or folder."""
    status = path.lstat()
    return not stat.S_ISLNK(status.st_mode) and bool(status.st_mode & 0o077)


def links(hidden: Path) -> Iterator[Path]:
    """What in ``.smartwriter`` is a link to somewhere that was not allowed."""
    for folder, folders, files in os.walk(hidden):
        for name in sorted([*folders, *files]):
            path = Path(folder, name)
            if path.is_symlink() and not is_allowed(Path(os.path.realpath(path))):
                yield path


def _root(path: Path) -> Path | None:
    """The workspace that a path is in: one in which a link leads to another one is still that."""
    found: Path | None = None
    for folder in _around(path):
        # Another workspace that is linked in the place of the records is none of its own, either.
        if folder.name == HIDDEN or not is_workspace(folder):
            continue
        if found is None or not Path(os.path.realpath(found)).is_relative_to(os.path.realpath(folder)):
            found = folder
    return found


def _around(path: Path) -> Iterator[Path]:
    """The folders that a path lies in, not those that it leaves again with ``..``."""
    ups = 0
    for inner, folder in zip((path, *path.parents), path.parents, strict=False):
        ups = ups + 1 if inner.name == ".." else max(ups - 1, 0)
        if not ups:
            yield folder


def _check_allowed(path: Path, real: Path) -> None:
    if not is_allowed(real):
        from smartwriter.system.config import own_path

        raise LeadsOutside(
            path,
            f"{path} leads out of the workspace, to {real}. If that is your own doing, say so in "
            f'{own_path()}: allow = ["{real}"]',
        )
