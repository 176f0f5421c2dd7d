"""What is at work in a workspace when the power is cut: a writer for each kind of thing that it keeps.

Most do one step after the other, and how many steps were taken shows on the disk. What was reported before
the cut must be there; of what was under way, one step more may be. All is read by plain means (``oracle``).
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from oracle import Disk, Entry, latest, read
from writers import Report

import smartwriter.storage.reading as reading
from smartwriter.events import TextDelta
from smartwriter.memory.proposals import Proposals
from smartwriter.memory.versions import MemoryVersions
from smartwriter.open_draft import OpenDraft
from smartwriter.series.finishing import finish, reopen
from smartwriter.series.summary import Summary
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.turns.live import LiveJournal
from smartwriter.turns.parts import Part
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey

COLLECTION = "rivers"
_FILLING = "文" * 400


@dataclass(frozen=True)
class Reported:
    """What a writer had reported when the cut began, and until its end."""

    before: bytes
    after: bytes


class Wrong(Exception):
    """What a cut must never leave."""


class Steps:
    """Takes one step after the other, each of them reported."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.known = 0
        """Steps that were on the disk after the last cut; of the last one perhaps not all."""
        self._acknowledged = 0

    def begin(self, workspace: Workspace) -> None:
        """The first step: what it has to import is there, then, in all processes that are forked."""
        self.step(workspace, workspace.tasks.find(self.name), 1)
        self.known = 1

    def write(self, root: Path, report: Report) -> None:
        """Go on from what there is, until the disk refuses."""
        workspace = Workspace(root)
        task = workspace.tasks.find(self.name)
        for number in itertools.count(self.known + 1):
            self.step(workspace, task, number)
            report(b".")

    def verdict(self, root: Path, reported: Reported) -> str:
        """What is wrong after a cut; empty if nothing."""
        least = self.known + len(reported.before)
        if reported.before:
            self._acknowledged = least
        disk = Disk(root, nuls=True)
        (task,) = (task for task in disk.tasks() if task["title"] == self.name)
        try:
            self.known = self.found(disk, task, self._acknowledged)
        except (Wrong, OSError, ValueError, LookupError) as wrong:
            return f"{self.name}: {wrong}"
        if self.known > least + len(reported.after) + 1:
            return f"{self.name} invented"
        return f"{self.name} lost" if self.known < least else ""

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        raise NotImplementedError

    def made_up_for(self, workspace: Workspace, task: Task, number: int) -> None:
        """What is half there of the last step is completed, as by whoever comes next."""

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        """How many steps are there, the one under way included. :raises Wrong:

        :param least: so many are there as a whole.
        """
        raise NotImplementedError


def _unbroken(numbers: Sequence[int]) -> int:
    """:raises Wrong: unless they are 1, 2, 3, …"""
    if list(numbers) != list(range(1, len(numbers) + 1)):
        raise Wrong(f"{numbers[-5:]} in disorder, or not all")
    return len(numbers)


class Turns(Steps):
    name = "turns"

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        session_id = task.drafts["main"].session_id
        turn = Turn(
            number=number,
            uuid=f"turn-{number}",
            session_id=session_id,
            prompt="Go.",
            state=TurnState.finished,
        )
        workspace.tasks.record(task, "main", [turn])

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        return _unbroken([line["number"] for line in disk.turns(task, "main")])


class Texts(Steps):
    """A text, and its revisions: what is acknowledged is in both."""

    name = "revisions and texts"

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        workspace.text(task, "main").write(f"{number} {_FILLING}\n", author="model", turn=number)

    def made_up_for(self, workspace: Workspace, task: Task, number: int) -> None:
        OpenDraft(workspace, task, "main").take_hand_edit(restore=True)

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        revisions = disk.revisions(task, "main")
        for line in revisions:
            if line["text"] != f"{line['number']} {_FILLING}\n":
                raise Wrong("a revision of another text")
            if hashlib.sha256(line["text"].encode()).hexdigest() != line["sha256"]:
                raise Wrong("a revision that its hash does not fit")
        count = _unbroken([line["number"] for line in revisions])
        place = disk.place(task, "main")
        in_file = _numbered(place, _FILLING)
        if not max(least, count - 1) <= in_file <= count:
            raise Wrong(f"revision {in_file} of {count} is in the file, {least} were acknowledged")
        if in_file:
            os.utime(place, (0, 0))  # whoever edits it is done long ago
        return count


def _numbered(path: Path, filling: str) -> int:
    """The number that a document of ours begins with; 0 for none. :raises Wrong:"""
    if not path.exists():
        return 0
    number, _, text = path.read_text(encoding="utf-8").partition(" ")
    if text != f"{filling}\n":
        raise Wrong(f"{path.name} is neither the old nor the new")
    return int(number)


class Memory(Steps):
    """A line is proposed, then accepted, and so on."""

    name = "proposals and accepted lines"

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        proposals = Proposals(workspace.storage, workspace.collection(COLLECTION))
        line = f"Line {(number + 1) // 2} says so"
        if number % 2:
            proposals.propose(line, task=task.id, draft="main", turn=number)
        else:
            (wanted,) = (one for one in proposals.all() if one.text == line)
            proposals.accept(wanted.id)

    def made_up_for(self, workspace: Workspace, task: Task, number: int) -> None:
        Proposals(workspace.storage, workspace.collection(COLLECTION)).complete()

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        lines = latest(disk.journal("proposals", f"{task['project_key']}.jsonl"), "proposal", "id")
        memory = (
            (disk.root / "collections" / COLLECTION / "memory.md").read_text(encoding="utf-8").split("\n")
        )
        if [line["text"] for line in lines] != [f"Line {n} says so" for n in range(1, len(lines) + 1)]:
            raise Wrong("proposals in disorder, or not all")
        for line in lines:
            times = memory.count(f"- {line['text']}")
            allowed = {"pending": (0,), "accepting": (0, 1), "accepted": (1,)}[line["state"]]
            if times not in allowed or (line is not lines[-1] and line["state"] != "accepted"):
                raise Wrong(f"a line that is {line['state']} stands {times} times in the memory")
        if lines and lines[-1]["state"] == "accepting" and 2 * len(lines) <= least:
            raise Wrong("an acceptance was acknowledged, and is not recorded")
        return 2 * len(lines) - (bool(lines) and lines[-1]["state"] != "accepted")


class Versions(Steps):
    """The profile changes, and each version of it is kept."""

    name = "memory versions"

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        collection = workspace.collection("hills")
        (collection.path / "profile.md").write_text(f"{number} {_FILLING}\n", encoding="utf-8")
        memory = collection.memory()
        if memory.problems:  # what cannot be read is told, and passed over
            raise OSError("; ".join(memory.problems))
        MemoryVersions(workspace.storage).keep(memory)

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        numbers = []
        for line in disk.journal("memory", "hills.jsonl"):
            sha256 = line["files"]["profile.md"]
            data = (disk.hidden / "memory" / f"{sha256}.md").read_bytes()
            if hashlib.sha256(data).hexdigest() != sha256:
                raise Wrong("a version that its hash does not fit")
            numbers.append(int(data.split(b" ")[0]))
        return _unbroken(numbers)


class Spooled(Steps):
    """What could not be stored waits in the spool; then it is stored."""

    name = "spool"

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        if number % 2 == 0:
            workspace.spool.replay(task.id, "main")
            return
        session_id = task.drafts["main"].session_id
        key = {"project_key": task.project_key, "session_id": session_id}
        workspace.spool.put(Part("transcript", task.id, "main", [_entry(number)], key))

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        waiting, stored = (
            [
                lines[1]["number"]
                for path in sorted(folder.glob("*.jsonl"))
                if len(lines := read(path, nuls=True).entries) == 2
            ]
            for folder in (disk.hidden / "spool", disk.hidden / "trash" / "spool")
        )
        in_place = [line["number"] for line in disk.session(task, "main")]
        if not set(stored) <= set(in_place):
            raise Wrong("a part was put away that is not in its place")
        odd = sorted({*waiting, *stored})
        if odd != list(range(1, 2 * len(odd), 2)) or len(waiting) > 1:
            raise Wrong("parts are not all there, or twice")
        return 2 * len(odd) - len(waiting)


def _entry(number: int) -> dict[str, Any]:
    return {"type": "user", "uuid": f"entry-{number}", "number": number, "text": _FILLING}


class Trash(Steps):
    """A session is begun, then deleted, and so on."""

    name = "trash"

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        key: SessionKey = {"project_key": "gone", "session_id": f"s{(number + 1) // 2}"}
        if number % 2:
            entry: Any = _entry(number)
            workspace.store.append_now(key, [entry])
        else:
            workspace.store.delete_now(key)

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        here = {path.stem for path in (disk.hidden / "sessions" / "gone").glob("*.jsonl")}
        trash = {path.stem: path for path in (disk.hidden / "trash" / "gone").glob("*/*.jsonl")}
        for name, path in trash.items():
            if [line["number"] for line in read(path, nuls=True).entries] != [2 * int(name[1:]) - 1]:
                raise Wrong("a deleted session is not whole in the trash")
        if here & trash.keys() or len(here) > 1:
            raise Wrong("a deleted session is still there")
        _unbroken(sorted(int(name[1:]) for name in here | trash.keys()))
        whole = [name for name in here if disk.journal("sessions", "gone", f"{name}.jsonl")]
        return 2 * len(trash) + len(whole)


class Articles(Steps):
    """A text is written, finished and reopened, and so on."""

    name = "articles"

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        task = workspace.tasks.find(task.id)
        if task.finished is not None and task.finished.closed:
            task = reopen(workspace, task)
        text = f"{number} {_FILLING}\n"
        workspace.text(task, "main").write(text, author="model", turn=number)
        finish(workspace, task, text, Summary(f"Gist {number}."))

    def made_up_for(self, workspace: Workspace, task: Task, number: int) -> None:
        self.step(workspace, task, number)

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        articles = disk.root / "collections" / COLLECTION / "articles"
        count = _numbered(articles / "articles.md", _FILLING)
        index = disk.root / "collections" / COLLECTION / "index.md"
        said = index.read_text(encoding="utf-8") if index.exists() else ""
        entered = next((number for number in (count, count - 1) if f"Gist {number}." in said), 0)
        if entered < least or (count and (task.get("finished") is None)):
            raise Wrong(f"article {count} is there, but {entered} in the index; {least} were acknowledged")
        place = disk.place(task, "main")
        if place.exists():
            os.utime(place, (0, 0))
        return count


class Outboxes(Steps):
    """A prompt waits, those before it are withdrawn, and so on."""

    name = "outbox"

    def step(self, workspace: Workspace, task: Task, number: int) -> None:
        outbox = OpenDraft(workspace, task, "main").outbox()
        outbox.put(f"p{number}", f"Prompt {number}")
        for earlier in outbox.waiting()[:-1]:
            outbox.withdraw(earlier.id)

    def made_up_for(self, workspace: Workspace, task: Task, number: int) -> None:
        self.step(workspace, task, number)

    def found(self, disk: Disk, task: Entry, least: int) -> int:
        lines = disk.journal("outbox", task["id"], "main.jsonl")
        gone = {line["id"] for line in lines if line["type"] == "withdrawn"}
        waiting = [
            int(line["id"][1:]) for line in lines if line["type"] == "waiting" and line["id"] not in gone
        ]
        if not waiting:
            return 0
        if waiting != list(range(waiting[0], waiting[-1] + 1)) or waiting[0] < least:
            raise Wrong(f"the prompts {waiting} wait; all before {least} were withdrawn")
        return waiting[-1]


class Live(Steps):
    """Events of a turn. A cut may take the last of them; not the beginning, nor one from between."""

    name = "live"

    def begin(self, workspace: Workspace) -> None:
        """Nothing: it is begun with each process."""

    def write(self, root: Path, report: Report) -> None:
        workspace = Workspace(root)
        task = workspace.tasks.find(self.name)
        live = LiveJournal(OpenDraft(workspace, task, "main").live_path)
        live.begin()
        report(b"b")
        for number in itertools.count(1):
            live.append([TextDelta(task=task.id, draft="main", turn=1, text=f"{number} {_FILLING}")])
            report(b".")

    def verdict(self, root: Path, reported: Reported) -> str:
        disk = Disk(root, nuls=True)
        (task,) = (task for task in disk.tasks() if task["title"] == self.name)
        lines = disk.journal("live", task["id"], "main.jsonl")
        least = self.known
        positions = [line["position"] for line in lines]
        self.known = max(positions, default=0)
        if not reported.before:
            return ""
        if not lines or lines[0]["type"] != "begin":
            return "live: no beginning"
        numbers = [int(line["text"].split(" ")[0]) for line in lines[1:]]
        if positions != sorted(set(positions)) or numbers != sorted(set(numbers)) or positions[0] < least:
            return "live: in disorder"
        return "live invented" if max(numbers, default=0) > len(reported.before + reported.after) else ""


KINDS: tuple[type[Steps], ...] = (
    Turns,
    Texts,
    Memory,
    Versions,
    Spooled,
    Trash,
    Articles,
    Outboxes,
    Live,
)


def prepare(root: Path) -> list[Steps]:
    """A workspace, with a task for each kind."""
    workspace = Workspace.create(root)
    for name in (COLLECTION, "hills"):
        workspace.new_collection(name)
    for kind in KINDS:
        workspace.new_task(kind.name, COLLECTION if kind in (Memory, Articles) else None)
    steps = [kind() for kind in KINDS]
    for each in steps:
        each.begin(workspace)
    return steps


def seeing(root: Path) -> None:
    """What the product reads of it: whatever a cut left, it must not fail."""
    workspace = Workspace(root)
    for task in workspace.tasks.all():
        workspace.tasks.turns(task, "main")
        text = workspace.text(task, "main")
        text.revisions()
        text.read()
        OpenDraft(workspace, task, "main").outbox().waiting()
        OpenDraft(workspace, task, "main").transcript.has_entries()
        LiveJournal.has_ended(OpenDraft(workspace, task, "main").live_path)
    workspace.spool.waiting()
    Proposals(workspace.storage, workspace.collection(COLLECTION)).all()
    reading.read(workspace.hidden / "tasks.jsonl")
