"""Where everything lies in ``.smartwriter``: nobody else knows a path in it, nor how the trash is named.

::

    config.toml                              what the writer has set for this workspace
    tasks.jsonl                              the tasks and their drafts
    turns/<task>/<draft>.jsonl, .lease       a draft's turns, and who writes it; fork: who forks the task
    revisions/<task>/<draft>.jsonl           every version of a draft's text
    sessions/<project>/<session>.jsonl       the transcripts
    live/<task>/<draft>.jsonl                the events of a draft's last turn
    outbox/<task>/<draft>.jsonl              prompts that wait
    locks/<task>/<draft>.stop, .wanted       what is asked of who holds a lease; .lock, fork: of old
    proposals/<collection>.jsonl             what is proposed for a collection's memory
    memory/<sha256>.md, <collection>.jsonl   versions of memory files, and which a memory had when
    spool/<when>.jsonl                       parts of turns that are not in their place yet
    cache/summaries/<project>.jsonl          can be deleted
    trash/<what it was>/<name>.<when>…       nothing is ever deleted
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path


def stamp() -> str:
    """When something was put away, UTC, so that names are in order and no two are the same."""
    ns = time.time_ns()
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(ns // 10**9))}-{ns % 10**9:09d}"


class Places:
    """The paths of one workspace's records. Nothing need be there."""

    def __init__(self, hidden: Path) -> None:
        """:param hidden: the ``.smartwriter`` folder, or the one of a session store alone."""
        self.hidden = hidden
        self.config = hidden / "config.toml"
        self.tasks = hidden / "tasks.jsonl"
        self.live_folder = hidden / "live"
        self.memory = hidden / "memory"
        self.sessions = hidden / "sessions"
        self.spool = hidden / "spool"
        self._trash = hidden / "trash"
        self._cache = hidden / "cache"

    def folder(self, *name: str) -> Path:
        """Where the journals under a name are."""
        return self.hidden.joinpath(*name)

    def journal(self, *name: str) -> Path:
        """The journal of a name, such as ``turns``, a task and a draft."""
        return self.folder(*name[:-1]) / f"{name[-1]}.jsonl"

    def leases_of(self, *name: str) -> tuple[Path, Path]:
        """What is locked for ``turns``, task and draft, or ``forks`` and a task; and what once was."""
        kind, task, *draft = name
        if kind == "forks":
            return self._of_draft("turns", task, "fork"), self._of_draft("locks", task, "fork")
        (draft_name,) = draft
        lease = self._of_draft("turns", task, f"{draft_name}.lease")
        return lease, self._of_draft("locks", task, f"{draft_name}.lock")

    def request(self, *name: str) -> Path:
        """The file that asks for something: to ``stop``, of a task and a draft."""
        kind, task, draft = name
        return self._of_draft("locks", task, f"{draft}.{kind}")

    def kept(self, sha256: str) -> Path:
        """A version of a memory file."""
        return self.memory / f"{sha256}.md"

    # Of drafts -------------------------------------------------------------------------------

    def turns(self, task: str, draft: str) -> Path:
        return self.journal("turns", task, draft)

    def revisions(self, task: str, draft: str) -> Path:
        return self.journal("revisions", task, draft)

    def live(self, task: str, draft: str) -> Path:
        return self.journal("live", task, draft)

    def outbox(self, task: str, draft: str) -> Path:
        return self.journal("outbox", task, draft)

    def _of_draft(self, kind: str, task: str, name: str) -> Path:
        return self.hidden / kind / task / name

    def recorded(self) -> set[str]:
        """The names of all folders in which turns or texts of a task are."""
        found = (*self.hidden.glob("turns/*"), *self.hidden.glob("revisions/*"))
        return {path.name for path in found if path.is_dir()}

    def drafts_of(self, task: str) -> set[str]:
        """The names of all drafts of a task that have turns or texts."""
        folders = (self.turns(task, "").parent, self.revisions(task, "").parent)
        return {path.stem for folder in folders for path in folder.glob("*.jsonl")}

    def live_journals(self) -> list[Path]:
        """Each lies in a folder named for its task, and is named for its draft."""
        return sorted(self.live_folder.glob("*/*.jsonl"))

    def leases(self) -> list[Path]:
        """The files of all leases, be they held or not."""
        drafts = (*self.hidden.glob("turns/*/*.lease"), *self.hidden.glob("locks/*/*"))
        return sorted((*drafts, *self.hidden.glob("turns/*/fork")))

    # Of collections, projects and the rest ---------------------------------------------------

    def transcripts(self, session_id: str = "*") -> list[Path]:
        """All main transcripts, or those that have the id of one session."""
        return sorted(self.sessions.glob(f"*/{session_id}.jsonl"))

    def journals(self) -> Iterator[Path]:
        """All that are in use, in order."""
        for path in sorted(self.hidden.rglob("*.jsonl")):
            if not path.is_relative_to(self._trash):
                yield path

    def is_cache(self, path: Path) -> bool:
        """Whether a file can be made again from others."""
        return path.is_relative_to(self._cache)

    # The trash -------------------------------------------------------------------------------

    def trash(self, kind: str, name: str, ending: str = "") -> Path:
        """Where something goes now. :param kind: what it is, as the name of a folder."""
        return self._trash / kind / f"{name.lstrip('.')}.{stamp()}{ending}"

    def trash_of(self, *name: str) -> Path:
        """Where the journal of a name goes now; what is under its name lies beside it there."""
        if name[0] == "sessions":
            return self.trash(name[1], name[2]) / f"{name[-1]}.jsonl"
        return self.trash(name[0], "-".join(name[1:]) or name[0], ".jsonl")

    def in_trash(self, kind: str, name: str) -> list[Path]:
        """What went there under a name, oldest first."""
        return sorted((self._trash / kind).glob(f"{name}.*"))
