"""Records kept in files of the workspace: the storage that needs nothing but a folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import smartwriter.files.durable as durable
import smartwriter.system.bounds as bounds
from smartwriter.errors import Invalid
from smartwriter.storage.interface import Durability, Listed, Overtaken
from smartwriter.storage.journal import Journal
from smartwriter.storage.lease import Lease
from smartwriter.storage.places import Places

_SHA256 = re.compile("[0-9a-f]{64}")


class FileStorage:
    """See :class:`smartwriter.storage.interface.Storage`. Where each thing lies, ``places`` tells."""

    def __init__(self, hidden: Path) -> None:
        """:param hidden: the ``.smartwriter`` folder. Made when something is first kept."""
        self._places = Places(hidden)

    def journal(
        self, *name: str, durability: Durability = "sync", unique: bool = False, kept: bool = False
    ) -> Journal:
        return Journal(self._places.journal(*name), durability=durability, unique=unique, kept=kept)

    def names(self, *under: str) -> Iterator[Listed]:
        with (
            suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self._places.folder(*under)) as items,
        ):
            for item in items:
                if item.name.startswith(".") or not item.name.endswith(".jsonl") or not item.is_file():
                    continue
                with suppress(FileNotFoundError):  # put away a moment ago
                    status = item.stat()
                    name = item.name.removesuffix(".jsonl")
                    yield Listed((*under, name), status.st_size, status.st_mtime_ns // 1_000_000)

    def put_away(self, *name: str, at: int | None = None) -> bool:
        path = self._places.journal(*name)
        if not path.exists():
            return False
        with Journal(path).locked() as transaction:  # what is being appended comes before it, or begins anew
            if transaction.size == 0:
                return False
            if at is not None and transaction.size != at:
                raise Overtaken
            durable.move(path, self._places.trash(name[0], "-".join(name[1:]) or name[0], ".jsonl"))
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
