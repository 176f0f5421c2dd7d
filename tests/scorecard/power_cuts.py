"""Power cuts, as near as software comes to one: an ext4 that is told to forget what it has not written.

A small image, loop-mounted, and writers at work on it: of several sessions, the tasks journal, the
summaries cache, a document, and of all that a workspace keeps (``cut_writers``); each time some of
them. At a random moment the ioctl ``EXT4_IOC_SHUTDOWN`` (without a flush of its log) makes the file
system refuse everything; unmounted and mounted again, it has what had reached the disk by then. What a
writer had reported before must be there, read by plain means (``oracle``), and the product must be able
to read it all; then the writers go on where they were, over what the cut left. (What was reported when
the ioctl had begun does not count, and is not expected to be lost either: the file system is cut
off bit by bit, and a sync at that very moment may still say yes.) A writer that fails before the cut is
a fault.

One more session is written with ``durability="os"``, which promises nothing here: its appends
reach the disk in part, with NULs where pages are missing, and so does every batch that was under
way. Half of the cuts are of a mount with ``data=writeback``, which leaves such stretches most often.
(With ``nodelalloc`` besides, ext4 shows old blocks of other files in their place, whole lines of
another session too; that nobody should mount so is not for a store to mend.)
"""

from __future__ import annotations

import fcntl
import itertools
import mmap
import os
import shutil
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Protocol

import anyio
import oracle
from cut_writers import KINDS, Live, Reported, Steps, prepare, seeing
from figure import Figure, Outcome, Run
from mounts import NotPossible, command, keep_to_ourselves, mounted
from writers import Child, Entry, Report, entries, fault, forget_folders, in_parallel, kill_all, start

import smartwriter.files.durable as durable
import smartwriter.files.whole as whole_file
import smartwriter.memory.files as memories
from smartwriter.sessions.store import FileSessionStore
from smartwriter.sessions.summaries import Summaries
from smartwriter.storage import journal
from smartwriter.storage.files import FileStorage
from smartwriter.tasks.manager import TaskManager
from smartwriter.tasks.values import Task

_CUTS, _QUICK_CUTS = 2_000, 60
_SHUTDOWN, _WITHOUT_FLUSH = 0x8004587D, struct.pack("I", 2)
_IMAGE_BYTES = 32 << 20
_CUTS_PER_IMAGE = 12
_LATEST_CUTS_S = (0.03, 0.3, 0.8)  # the workspace's own work takes longer than an append
_STEPS_PER_CUT = 3
_SYNCED, _UNSYNCED = ("synced-1", "synced-2"), "unsynced"
_MOUNTS = ("rw", "data=writeback")
_TEXT = "文" * 3_000


class _Writer(Protocol):
    def write(self, root: Path, report: Report) -> None:
        """Go on from what there is, until the disk refuses."""

    def verdict(self, root: Path, reported: Reported) -> str:
        """What is wrong after a cut; empty if nothing."""


class _Session:
    """A session, and what must be in it."""

    def __init__(self, name: str, seed: str) -> None:
        self.name = name
        self.kept: list[Entry] = []
        """What was there after the last cut, all batches before ``next`` included."""
        self.next = 0
        """The number of the first batch that was under way."""
        self._seed = seed
        self._batches: dict[int, list[Entry]] = {}

    def batch(self, number: int) -> list[Entry]:
        # The writer and its watcher each make their own: the same, as only the number decides.
        if number not in self._batches:
            random = Random(f"{self._seed}-{self.name}-{number}")
            lengths = random.choices([50, 500, 9_000], [4, 4, 1], k=random.randint(1, 4))
            self._batches[number] = entries(random, lengths)
        return self._batches[number]

    def missing(self, numbers: range) -> list[Entry]:
        """Of these batches, what was not there after the last cut."""
        kept = {entry["uuid"] for entry in self.kept}
        batches = map(self.batch, numbers)
        return [entry for entry in chain.from_iterable(batches) if entry["uuid"] not in kept]

    def write(self, root: Path, report: Report) -> None:
        transcript = journal.Journal(_path(root, self.name), unique=True)
        for number in itertools.count(self.next):
            transcript.append(self.batch(number))
            report(b".")

    def verdict(self, root: Path, reported: Reported) -> str:
        found = _entries(root, self.name)
        first, self.next = self.next, self.next + len(reported.before)
        acknowledged = self.kept + self.missing(range(first, self.next))
        under_way = self.missing(range(self.next, self.next + len(reported.after) + 1))
        self.kept = found
        return fault(found, acknowledged, under_way, holes=True)


class _Unsynced(_Session):
    """One whose appends may be lost; not so what is appended again, and synced."""

    def write(self, root: Path, report: Report) -> None:
        transcript = journal.Journal(_path(root, self.name), unique=True, durability="os")
        transcript.append(self.missing(range(self.next)))
        for number in itertools.count(self.next):
            transcript.append(self.batch(number))
            report(b".")
            time.sleep(0.001)

    def verdict(self, root: Path, reported: Reported) -> str:
        self.next += len(reported.before + reported.after)
        self.kept = _entries(root, self.name)
        possible = {entry["uuid"]: entry for number in range(self.next + 1) for entry in self.batch(number)}
        if any(possible.get(entry["uuid"]) != entry for entry in self.kept):
            return "invented"
        return "doubled" if len({entry["uuid"] for entry in self.kept}) < len(self.kept) else ""

    def made_good(self, root: Path) -> str:
        journal.Journal(_path(root, self.name), unique=True).append(self.missing(range(self.next)))
        before, self.kept = self.kept, _entries(root, self.name)
        if self.kept[: len(before)] != before:
            return "changed by an append after a cut"
        return "lost although appended again" if self.missing(range(self.next)) else ""


class _Tasks:
    """Tasks whose titles count their changes; and the listing of the sessions beside them."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def write(self, root: Path, report: Report) -> None:
        tasks = TaskManager(FileStorage(root))
        store = FileSessionStore(root)
        random = Random()
        for number in itertools.count(1):
            if not self._counts or random.random() < 0.1:
                id = tasks.create("0", "unfiled", "unfiled").id
            else:
                id = random.choice(list(self._counts))
                tasks.update(id, _count_up)
            self._counts[id] = self._counts.get(id, -1) + 1
            report(f"{id} {self._counts[id]}\n".encode())
            if number % 8 == 0:
                anyio.run(store.list_session_summaries, "essays")

    def verdict(self, root: Path, reported: Reported) -> str:
        for line in reported.before.decode().splitlines():
            id, count = line.split()
            self._counts[id] = int(count)
        lines = oracle.latest(oracle.read(root / "tasks.jsonl", nuls=True).entries, "task", "id")
        found = {line["id"]: int(line["title"]) for line in lines}
        if {task.id: int(task.title) for task in TaskManager(FileStorage(root)).all()} != found:
            return "tasks read that are others than those that stand there"
        lost = any(found.get(id, -1) < count for id, count in self._counts.items())
        more = sum(count - self._counts.get(id, -1) for id, count in found.items())
        self._counts = found
        possible = reported.after.count(b"\n") + 1
        return "tasks lost" if lost else "tasks invented" if more > possible else ""


def _count_up(task: Task) -> Task:
    return task.model_copy(update={"title": str(int(task.title) + 1)})


class _Document:
    """A document that says how often it was saved."""

    def __init__(self) -> None:
        self._count = 0

    def write(self, root: Path, report: Report) -> None:
        for number in itertools.count(self._count + 1):
            durable.write_document(root / "document.md", f"{number} {_TEXT}")
            report(b".")

    def verdict(self, root: Path, reported: Reported) -> str:
        acknowledged = self._count + len(reported.before)
        possible = range(acknowledged, acknowledged + len(reported.after) + 2)
        path = root / "document.md"
        if not path.exists():
            return "documents lost" if acknowledged else ""
        number, _, text = path.read_text(errors="replace").partition(" ")
        if text != _TEXT or not number.isdecimal():
            return "documents neither old nor new"
        self._count = int(number)
        return "" if self._count in possible else "documents lost"


# --- cutting ----------------------------------------------------------------------------------


def _measure(run: Run) -> Outcome:
    return in_parallel([partial(_measure_apart, run)])[0]


def _measure_apart(run: Run) -> Outcome:
    """In a process of its own, because of what it mounts."""
    random = run.random()
    anyio.run(FileSessionStore(run.folder).list_session_summaries, "none")
    import claude_agent_sdk  # noqa: F401  once, and not in each of the thousands of processes

    for module in (memories, whole_file):
        vars(module)["SETTLED_S"] = 0.0  # nobody edits by hand here: nobody is waited for
    # What the disk of a workspace refuses, the spool keeps on another one: here there is none.
    tempfile.tempdir, os.environ["HOME"] = str(run.folder / "none"), str(run.folder / "none")
    totals = Counter[str]()
    cuts = _QUICK_CUTS if run.quick else _CUTS
    try:
        keep_to_ourselves()
        with mounted("tmpfs", "none", run.folder / "memory", f"size={_IMAGE_BYTES + (1 << 20)}") as memory:
            while totals["cuts"] < cuts:
                count = min(_CUTS_PER_IMAGE, cuts - totals["cuts"])
                totals.update(_one_image(memory / "image", run.folder, random, count))
    except NotPossible as why:
        return Outcome(f"after {totals['cuts']} cuts: {why}" if totals else str(why), None)
    return outcome(totals, quick=run.quick)


def outcome(totals: Counter[str], *, quick: bool) -> Outcome:
    """Where a quick run came to none of something, that was not measured; in a full one it falls short."""
    counts = {name: totals.pop(name, 0) for name in (*_NEEDED, *_COUNTED)}
    wrong = ", ".join(f"{count} times {what}" for what, count in totals.items())
    none = [name for name in _NEEDED if not counts[name]]
    got = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    got += f": {wrong or '0 acknowledged lost, all readable'}"
    if none and not wrong:
        return Outcome(f"{got}; no {', no '.join(none)}", None if quick else False, _DISK)
    return Outcome(got, not wrong, _DISK)


_DISK = "ext4 in a loop device"
_NEEDED = (  # without some of each, nothing is proved
    "cuts",
    "appends acknowledged",
    "task changes acknowledged",
    "documents acknowledged",
    *(f"{kind.name} acknowledged" for kind in KINDS if kind is not Live),
    "NUL tails survived",
)
_COUNTED = ("unsynced appends acknowledged", "live acknowledged", "files with NULs elsewhere", "torn tails")


def _one_image(image: Path, folder: Path, random: Random, cuts: int) -> Counter[str]:
    """A new file system, and cuts one after the other."""
    image.touch()
    os.truncate(image, 0)
    os.truncate(image, _IMAGE_BYTES)
    command("mkfs.ext4", "-q", "-F", "-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
    seed = str(random.random())
    unsynced = _Unsynced(_UNSYNCED, seed)
    old: list[tuple[str, _Writer]] = [("appends", _Session(name, seed)) for name in _SYNCED]
    old += [("task changes", _Tasks()), ("documents", _Document()), ("unsynced appends", unsynced)]
    totals = Counter[str]()
    disk, root, workspace = folder / "disk", folder / "disk" / "root", folder / "disk" / "workspace"
    forget_folders()
    with mounted("ext4", str(image), disk, "loop"):
        steps = prepare(workspace)
    for _ in range(cuts):
        working = [*old, *((each.name, each) for each in random.sample(steps, _STEPS_PER_CUT))]
        places = [workspace if isinstance(writer, Steps) else root for _, writer in working]
        forget_folders()
        # A loop device of its own for each mount: one that is kept would serve the next mount
        # from its cache, and so what had not reached the disk.
        with mounted("ext4", str(image), disk, f"loop,{random.choice(_MOUNTS)}"):
            works = [partial(writer.write, place) for (_, writer), place in zip(working, places, strict=True)]
            reported = _cut(disk, works, random)
        forget_folders()
        with mounted("ext4", str(image), disk, "loop"):
            totals.update(_tails(disk))
            for (name, writer), place, said in zip(working, places, reported, strict=True):
                totals[writer.verdict(place, said)] += 1
                totals[f"{name} acknowledged"] += said.before.count(b"\n") or len(said.before)
            totals.update([_listing_fault(root, folder / "anew"), unsynced.made_good(root)])
            seeing(workspace)
        totals["cuts"] += 1
        totals.pop("", None)
    return totals


def _cut(disk: Path, works: Sequence[Callable[[Report], None]], random: Random) -> list[Reported]:
    """Let them write for a moment, then cut."""
    children: list[Child] = []
    is_cut = mmap.mmap(-1, 1)  # shared with the children
    fd = os.open(disk, os.O_RDONLY)
    try:
        for work in works:
            children.append(start(partial(_until_cut, work, is_cut)))
        time.sleep(random.uniform(0, random.choice(_LATEST_CUTS_S)))
        before = [child.so_far() for child in children]
        is_cut[0] = 1
        fcntl.ioctl(fd, _SHUTDOWN, _WITHOUT_FLUSH)
        after = [child.kill() for child in children]
    finally:
        kill_all(children)
        os.close(fd)
    return list(map(Reported, before, after))


def _until_cut(work: Callable[[Report], None], is_cut: mmap.mmap, report: Report) -> None:
    try:
        work(report)
    except Exception:
        if not is_cut[0]:  # else it is what everything gets that comes after it
            raise


# --- looking ----------------------------------------------------------------------------------


def _path(root: Path, session: str) -> Path:
    return FileSessionStore(root).path({"project_key": "essays", "session_id": session})


def _entries(root: Path, session: str) -> list[Entry]:
    return oracle.read(root / "sessions" / "essays" / f"{session}.jsonl", nuls=True).entries


def _tails(root: Path) -> Iterator[str]:
    """What the cut did to the ends of journals."""
    for path in root.rglob("*.jsonl"):
        data = path.read_bytes()
        if data.endswith(b"\0"):
            yield "NUL tails survived"
        elif b"\0" in data:
            yield "files with NULs elsewhere"
        elif data and not data.endswith(b"\n"):
            yield "torn tails"


def _listing_fault(root: Path, anew: Path) -> str:
    """The cache can be read, and says what a new one would say."""
    told = anyio.run(FileSessionStore(root).list_session_summaries, "essays")
    shutil.rmtree(anew, ignore_errors=True)
    anew.mkdir()
    (anew / "sessions").symlink_to(root / "sessions")
    expected = Summaries(FileStorage(anew), "essays").current()

    def by_id(summaries: list[Any]) -> dict[str, Any]:
        return {summary["session_id"]: summary["data"] for summary in summaries}

    return "" if by_id(told) == by_id(expected) else "summaries other than without the cache"


FIGURES = [
    Figure(
        "simulated power cuts: ext4 told to forget what it has not written",
        f"{_CUTS:,} cuts; 0 acknowledged lost of sessions, task list, turns, revisions, texts, proposals, "
        "accepted lines, memory versions, spool, trash, articles, outbox; live in order; all readable; "
        "NUL tails survived",
        _measure,
    )
]
