"""A disk that refuses: every way in which it can, at every byte of a batch.

Most of it is simulated: in place of the ``os`` module, all that writes gets one whose
``write`` really writes the first so many bytes and then fails, or reports that it wrote no more;
or whose ``fdatasync``, ``fsync`` or ``open`` fails. After the error the file must have its old
bytes (a new one must not be there), and the same append again must give the exact content: from
the same ``Journal``, as the SDK tries again, or from a new one, as another process would. A small
disk that is really full, a tmpfs, must behave the same.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "support"))

import oracle
from disks import in_place_of_os
from figure import Figure, Outcome, Run, file_system
from mounts import NotPossible, keep_to_ourselves, mounted
from writers import Entry, entries, in_memory, in_parallel

import smartwriter.files.durable as durable
import smartwriter.storage.encoding as encoding
from smartwriter.errors import JournalError
from smartwriter.storage import journal

_BATCH = 20
_SHORT = 0
_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ETIMEDOUT)  # the last: Python's TimeoutError
_FULL_DISKS = 2_000
_DISK_BYTES = 1 << 20
_PAGE = 4096


@dataclass
class Faults:
    """Stands in for ``os``: the first call of one function fails, and every call of another."""

    call: str
    number: int
    """Errno; ``_SHORT`` for a write that only takes less."""
    written: int = 0
    """Bytes that a failing write does write."""
    also: str = ""
    failed: bool = False

    def __getattr__(self, name: str) -> Any:
        if name == self.also:
            return self._refuse
        return self._fail_once if name == self.call and not self.failed else getattr(os, name)

    def _fail_once(self, *arguments: Any) -> int:
        self.failed = True
        taken = os.write(arguments[0], arguments[1][: self.written]) if self.call == "write" else 0
        return taken if self.number == _SHORT else self._refuse()

    def _refuse(self, *arguments: Any) -> int:
        number = self.number or errno.EIO
        raise OSError(number, os.strerror(number))


@dataclass(frozen=True)
class _Before:
    """What a journal has when the disk begins to refuse."""

    path: Path
    data: bytes | None
    """None: the journal is not there yet."""
    batch: list[Entry]

    @property
    def payload(self) -> bytes:
        """All that the append has to add."""
        lf = b"\n" if self.data and not self.data.endswith(b"\n") else b""
        return lf + b"".join(map(encoding.encode, self.batch))

    def start(self) -> journal.Journal:
        if self.data is None:
            self.path.unlink(missing_ok=True)
        else:
            self.path.write_bytes(self.data)
        return journal.Journal(self.path, unique=True)

    def now(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None


def _measure(run: Run) -> Outcome:
    return in_parallel([partial(_measure_apart, run)])[0]


def _measure_apart(run: Run) -> Outcome:
    """In a process of its own, because of what it mounts."""
    random = run.random()
    totals = Counter[str]()
    with in_memory(run.folder) as folder:
        disk = file_system(folder)
        totals.update(_simulated(folder, random, every=20 if run.quick else 1))
    simulated = totals.pop("faults")
    try:
        totals.update(_full_disk(run, random))
    except NotPossible as why:
        return replace(outcome(simulated, totals, not_measured=str(why)), disk=disk)
    return replace(outcome(simulated, totals), disk=disk)


def outcome(simulated: int, totals: Counter[str], not_measured: str = "") -> Outcome:
    """
    :param totals: how often a disk was really full, under ``full``, and what was wrong.
    :param not_measured: why none could be.
    """
    full = totals.pop("full", 0)
    real = f"full tmpfs not measured: {not_measured}" if not_measured else f"{full:,} on a full tmpfs"
    wrong = ", ".join(f"{count} times {what}" for what, count in totals.items())
    got = f"{simulated:,} faults simulated, {real}: {wrong or 'all as they should be'}"
    if not_measured and not wrong:
        return Outcome(got, None)
    return Outcome(got, not wrong and full > 0)


def _simulated(folder: Path, random: Random, every: int) -> Iterator[str]:
    for before in _starts(folder / "journals", random):
        for at in range(random.randrange(every), len(before.payload), every):
            yield from _writes_refused(before, at)
        yield from _calls_refused(before, every)
    for at in range(random.randrange(every), 2_000, every):
        yield from _document_refused(folder / "document.md", at)


def _starts(folder: Path, random: Random) -> Iterator[_Before]:
    folder.mkdir()
    batch = entries(random, [random.randrange(8) for _ in range(_BATCH)])
    old = b"".join(map(encoding.encode, entries(random, [10, 200, 3_000])))
    for number, data in enumerate([old, old[:-1], old[:-700], None]):
        yield _Before(folder / f"{number}.jsonl", data, batch)


def _writes_refused(before: _Before, at: int) -> Iterator[str]:
    """Every kind of error at one offset of the write."""
    for number in (_SHORT, *_ERRORS):
        yield from _refused(before, Faults("write", number, at), same=at % 2 == 0)


def _calls_refused(before: _Before, every: int) -> Iterator[str]:
    """Each other call that can fail, and a rollback that fails as well."""
    for call, number, same in product(("fdatasync", "fsync", "open"), _ERRORS, (True, False)):
        yield from _refused(before, Faults(call, number), same=same)
    for at, same in product(range(0, len(before.payload), every), (True, False)):
        faults = Faults("write", errno.EIO, at, also="ftruncate")
        yield from _refused(before, faults, same=same, rolled_back=False)


def _refused(before: _Before, faults: Faults, *, same: bool, rolled_back: bool = True) -> Iterator[str]:
    """One append that fails and is tried again: ``faults``, and what was wrong.

    :param same: the same ``Journal`` tries again.
    :param rolled_back: what the failed append wrote could be taken back.
    """
    yield "faults"
    transcript = before.start()
    with in_place_of_os(faults):
        yield from _append_fails(transcript, before.batch, faults.number or errno.ENOSPC)
    if rolled_back and before.now() != before.data:
        yield "bytes changed by a failed append"
    if not same:
        transcript = journal.Journal(before.path, unique=True)
    transcript.append(before.batch)
    if rolled_back or same:
        if before.now() != (before.data or b"") + before.payload:
            yield "other bytes after the retry"
    elif not _holds(before):
        yield "other content after the retry"


def _holds(before: _Before) -> bool:
    """Old bytes first and then the whole batch, in order, whatever torn line is between."""
    data, old = before.now() or b"", before.data or b""
    kept = [one for line in old.split(b"\n") if (one := oracle.entry(line)) is not None]
    return data.startswith(old) and oracle.read(before.path).entries == kept + before.batch


def _append_fails(transcript: journal.Journal, batch: list[Entry], number: int) -> Iterator[str]:
    try:
        transcript.append(batch)
    except JournalError as error:
        if isinstance(error, TimeoutError) or error.errno != number:
            yield f"raised {type(error).__name__} {error.errno} for {number}"
    except Exception as error:
        yield f"raised {type(error).__name__}"
    else:
        yield "no error raised"


def _document_refused(path: Path, at: int) -> Iterator[str]:
    """A document whose temporary file cannot be written or synced."""
    old, new = "旧" * 500, "新" * 700
    for call, number in product(("write", "fsync", "open"), _ERRORS):
        yield "faults"
        durable.write_document(path, old)
        with in_place_of_os(Faults(call, number, at)):
            try:
                durable.write_document(path, new)
                yield "no error raised for a document"
            except OSError:
                pass
        if path.read_text() != old or len(list(path.parent.glob(f".{path.name}*"))) > 0:
            yield "document not as it was"
        durable.write_document(path, new)
        if path.read_text() != new:
            yield "document not written by the retry"


# --- a disk that is really full ---------------------------------------------------------------


def _full_disk(run: Run, random: Random) -> Iterator[str]:
    """Appends to a disk with few pages left. :raises NotPossible:"""
    keep_to_ourselves()
    with mounted("tmpfs", "none", run.folder / "disk", f"size={_DISK_BYTES},nr_inodes=40") as disk:
        path = disk / "sessions" / "project" / "session.jsonl"
        for _ in range(run.scaled(_FULL_DISKS)):
            if path.exists() and path.stat().st_size > _DISK_BYTES // 3:
                shutil.rmtree(disk / "sessions")
            yield from _append_to_full(disk, path, random)


def _append_to_full(disk: Path, path: Path, random: Random) -> Iterator[str]:
    """One append with too little room, and again with enough: ``full``, and what was wrong."""
    transcript = journal.Journal(path, unique=True)
    lengths = [random.randrange(random.choice([100, 4_000])) for _ in range(_BATCH)]
    before = _Before(path, path.read_bytes() if path.exists() else None, entries(random, lengths))
    fillers = _fill(disk, random, len(before.payload) // _PAGE)
    try:
        transcript.append(before.batch)
    except JournalError as error:
        yield "full"
        if error.errno != errno.ENOSPC or isinstance(error, TimeoutError):
            yield f"raised {type(error).__name__} {error.errno} on a full disk"
        if before.now() != before.data:
            yield "bytes changed on a full disk"
    for filler in fillers:
        filler.unlink()
    transcript.append(before.batch)  # nothing new, where there was room after all
    if before.now() != (before.data or b"") + before.payload:
        yield "other bytes after a full disk"


def _fill(disk: Path, random: Random, pages: int) -> list[Path]:
    """Leave too few pages on a disk, or sometimes no room for another file."""
    state = os.statvfs(disk)
    if random.random() < 0.1:
        fillers = [disk / f"file-{number}" for number in range(state.f_ffree)]
        for filler in fillers:
            filler.touch()
        return fillers
    left = random.randint(0, max(0, pages))
    filler = disk / "filler"
    filler.write_bytes(bytes(max(0, state.f_bfree - left) * _PAGE))
    return [filler]


FIGURES = [
    Figure(
        "a disk that is full, over quota or broken, and short writes, at every byte of a 20-entry batch",
        "error raised, never TimeoutError; file = its old bytes; the retry gives the exact content; "
        "the same on a real tiny tmpfs",
        _measure,
    )
]
