"""What the figures about dying writers share: their processes, their entries, and the verdict."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from uuid import UUID

import smartwriter.system.roots as roots

Entry = dict[str, Any]
Report = Callable[[bytes], None]
T = TypeVar("T")

_LONGEST_LIFE_S = 1800


# --- processes --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Child:
    """A forked process, and the pipe through which it reports."""

    pid: int
    pipe: int

    def so_far(self) -> bytes:
        """What it has reported and nobody has read yet."""
        ready, _, _ = select.select([self.pipe], [], [], 0)
        return os.read(self.pipe, 1 << 16) if ready else b""

    def kill(self) -> bytes:
        """``kill -9``; returns what it had reported. :raises RuntimeError: it had failed."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> bytes:
        """Until it ends; returns what it reported. :raises RuntimeError: it failed."""
        reported = self._reported()
        _, status = os.waitpid(self.pid, 0)
        if status not in (0, signal.SIGKILL):
            raise RuntimeError(f"a process ended with status {os.waitstatus_to_exitcode(status)}")
        return reported

    def _reported(self) -> bytes:
        pieces = []
        while piece := os.read(self.pipe, 1 << 16):
            pieces.append(piece)
        os.close(self.pipe)
        return b"".join(pieces)


def start(work: Callable[[Report], None]) -> Child:
    """Run ``work`` in a fork of this process: warm, so that thousands of them are affordable.

    What it reports is in the pipe when the call returns, whatever happens to the process next.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return Child(pid, read_end)
    status = 1
    try:
        signal.alarm(_LONGEST_LIFE_S)  # should nobody be left to kill it
        os.close(read_end)
        work(lambda data: _write_all(write_end, data))
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def in_parallel(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """The result of each job, all run at once in processes of their own."""
    children = [start(partial(_report_result, job)) for job in jobs]
    try:
        return [pickle.loads(child.wait()) for child in children]
    finally:
        kill_all(children)


def _report_result(job: Callable[[], T], report: Report) -> None:
    report(pickle.dumps(job()))


def kill_all(children: Iterable[Child]) -> None:
    """Kill those that are left, when something else went wrong."""
    for child in children:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(child.pid, os.WNOHANG)[0] == 0:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


@contextlib.contextmanager
def in_memory(folder: Path, needed_bytes: int = 1 << 28) -> Iterator[Path]:
    """A folder on a disk of memory where there is one, else the given one.

    For all but power cuts: what a process has written outlives it either way, and a real disk
    would only add its own time.
    """
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < needed_bytes:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="scorecard-", dir=memory) as name:
        yield Path(name)


def forget_folders() -> None:
    """Another machine, so to say: a folder at the place of one that this process knew may be another one."""
    roots._held.clear()


# --- entries ----------------------------------------------------------------------------------


_POOL_CHARACTERS = 1 << 20
_POOL = "".join(
    Random(3).choices(
        ["渡口", "river ", "的", "{", "}", '"', "\\", "\n", '"uuid":"', "é", "0"], k=_POOL_CHARACTERS
    )
)


def text(random: Random, characters: int) -> str:
    """Text with everything in it that looks like JSON, in the time that a slice takes."""
    at = random.randrange(len(_POOL))
    pieces = [_POOL[at : at + characters]]
    missing = characters - len(pieces[0])
    while missing > 0:
        pieces.append(_POOL[:missing])
        missing -= len(pieces[-1])
    return "".join(pieces)


def uuid(random: Random) -> str:
    return str(UUID(int=random.getrandbits(128), version=4))


def entries(random: Random, lengths: Iterable[int], parent: str | None = None) -> list[Entry]:
    """A chain of transcript entries with texts of these lengths."""
    chain: list[Entry] = []
    for number, length in enumerate(lengths):
        chain.append(
            {
                "type": "assistant" if number % 2 else "user",
                "parentUuid": chain[-1]["uuid"] if chain else parent,
                "message": {"role": "user", "content": [{"type": "text", "text": text(random, length)}]},
                "uuid": uuid(random),
                "timestamp": "2026-01-01T00:00:00.000Z",
            }
        )
    return chain


# --- the verdict ------------------------------------------------------------------------------


def fault(
    found: Sequence[Entry], acknowledged: Sequence[Entry], under_way: Sequence[Entry], *, holes: bool = False
) -> str:
    """What is wrong with a session's entries; empty if nothing.

    Right is: all acknowledged ones in order, then the first few of those that were under way.

    :param holes: any of these may be there, in order: after a power cut, pages of one write
        are on the disk or not each by itself.
    """
    kept, rest = found[: len(acknowledged)], found[len(acknowledged) :]
    if kept == acknowledged and _is_part(rest, under_way, holes):
        return ""
    known = {entry["uuid"]: entry for entry in [*acknowledged, *under_way]}
    if any(known.get(entry.get("uuid", "")) != entry for entry in found):
        return "invented"
    uuids = [entry["uuid"] for entry in found]
    if len(set(uuids)) < len(uuids):
        return "doubled"
    return "reordered" if {entry["uuid"] for entry in acknowledged} <= set(uuids) else "lost"


def _is_part(rest: Sequence[Entry], batch: Sequence[Entry], holes: bool) -> bool:
    if not holes:
        return rest == batch[: len(rest)]
    remaining = iter(batch)
    return all(any(entry == other for other in remaining) for entry in rest)
