"""Records kept in files of the workspace: the storage that needs nothing but a folder."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import smartwriter.files.durable as durable
import smartwriter.system.bounds as bounds
import smartwriter.system.roots as roots
from smartwriter.errors import Invalid
from smartwriter.storage.interface import Durability, Listed, Overtaken
from smartwriter.storage.journal import LOCK_TIMEOUT_S, Journal
from smartwriter.storage.lease import Lease
from smartwriter.storage.places import Places

_SHA256 = re.compile("[0-9a-f]{64}")


class FileStorage:
    """See :class:`smartwriter.storage.interface.Storage`. Where each thing lies, ``places`` tells."""

    def __init__(self, hidden: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        """
        :param hidden: the ``.smartwriter`` folder. Made when something is first kept.
        :param lock_timeout_s: how long an append waits for another writer.
        """
        self._places = Places(hidden)
        self._lock_timeout_s = lock_timeout_s

    def check(self) -> None:
        roots.check_or_hold(self._places.hidden)

    def journal(
        self, *name: str, durability: Durability = "sync", unique: bool = False, kept: bool = False
    ) -> Journal:
        return Journal(
            self._places.journal(*name),
            durability=durability,
            unique=unique,
            kept=kept,
            lock_timeout_s=self._lock_timeout_s,
        )

    def names(self, *under: str, deep: bool = False) -> Iterator[Listed]:
        for item in _files(self._places.folder(*under)):
            name = item.name
            if name[-6:] != ".jsonl" or name[0] == ".":
                continue
            try:
                status = item.stat()
            except FileNotFoundError:  # put away a moment ago
                continue
            if stat.S_ISREG(status.st_mode):
                yield Listed((*under, name[:-6]), status.st_size, status.st_mtime_ns // 1_000_000)
        if deep:
            for group in self.groups(*under):
                yield from self.names(*under, group, deep=True)

    def groups(self, *under: str) -> Iterator[str]:
        return (item.name for item in _files(self._places.folder(*under)) if item.is_dir())

    def put_away(self, *name: str, at: int | None = None, deep: bool = False) -> bool:
        path, trash = self._places.journal(*name), self._places.trash_of(*name)
        found = path.exists() and self._put_away(path, trash, at)
        if deep and (folder := self._places.folder(*name)).is_dir():
            durable.move(folder, trash.with_suffix(""))
            return True
        return found

    def _put_away(self, path: Path, trash: Path, at: int | None) -> bool:
        journal = Journal(path, lock_timeout_s=self._lock_timeout_s)
        with journal.locked() as transaction:  # what is being appended comes before it, or begins anew
            if transaction.created:
                return False
            if at is not None and transaction.size != at:
                raise Overtaken
            durable.move(path, trash)
        return True

    def discard(self, *name: str, at: int) -> None:
        path = self._places.journal(*name)
        if not path.exists():
            return
        with Journal(path).locked() as transaction:
            if transaction.size != at:
                raise Overtaken
            with suppress(OSError):  # in use, on Windows: next time
                path.unlink()

    def lease(
        self,
        *name: str,
        address: str,
        is_idle: Callable[[], bool] = lambda: False,
        gives_way: bool = False,
    ) -> Lease:
        path, earlier = self._places.leases_of(*name)
        return Lease(path, address, is_idle, earlier, gives_way=gives_way)

    def keep(self, data: bytes) -> str:
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._places.kept(sha256)
        # One that is there but of another length was damaged: it is put right.
        if not path.exists() or path.stat().st_size != len(data):
            durable.write_document(path, data)
        return sha256

    def kept(self, sha256: str) -> bytes | None:
        if not _SHA256.fullmatch(sha256):
            return None
        path = self._places.kept(sha256)
        try:
            data = bounds.read_record(path)
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise Invalid(f"{path} is damaged: it no longer holds the version that it is named for.")
        return data

    def where_kept(self, sha256: str) -> str:
        return str(self._places.kept(sha256))

    def ask(self, *name: str) -> None:
        durable.write_document(self._places.request(*name), f"{name[0]}\n")

    def asked(self, *name: str) -> bool:
        return self._places.request(*name).exists()

    def heed(self, *name: str) -> bool:
        try:
            self._places.request(*name).unlink()
        except FileNotFoundError:
            return False
        return True


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """What is in a folder; nothing where there is none."""
    with ExitStack() as stack, suppress(FileNotFoundError, NotADirectoryError):
        if os.scandir not in os.supports_fd:
            yield from stack.enter_context(os.scandir(folder))
            return
        # By descriptor a sixth faster: the path need not be walked again for the status of each file.
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, fd)
        yield from stack.enter_context(os.scandir(fd))
