"""Everything SmartWriter raises for a reason that can be foreseen.

SmartWriterError
├── UnsafeName (ValueError)            a name that cannot be a file name
├── Invalid (ValueError)               an argument that makes no sense
├── JournalError (OSError)             a journal could not be written; nothing was
│   ├── JournalBusy                    another writer held the lock for too long
│   ├── FolderGone                     a folder that was there was renamed, unmounted or pulled out
│   └── LeadsOutside (Invalid)         a link would have led out of the workspace
├── NotAWorkspace (LookupError)
├── TaskNotFound (LookupError)
│   └── TaskAmbiguous
├── CollectionNotFound (LookupError)
├── DraftNotFound (LookupError)
├── TurnNotFound (LookupError)
├── RevisionNotFound (LookupError)
├── ParagraphNotFound (LookupError)
├── TextConflict                       the writer changed a text while it was being rewritten
├── AlreadyExists (ValueError)
├── SessionMissing (LookupError)       a recorded session is not on disk
├── DraftBusy                          another process is writing this draft
└── NotSavedYet                        a draft waits until its last turn is stored

The message of each is one plain sentence that can be shown to a writer as it is.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path


class SmartWriterError(Exception):
    """Base of the family."""


class UnsafeName(SmartWriterError, ValueError):
    """A session id or subpath that would be unsafe as a file name."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name[:60]!r} cannot name a stored session: {why}.")
        self.name = name


class Invalid(SmartWriterError, ValueError):
    """An argument that makes no sense, such as an empty title."""


class JournalError(SmartWriterError, OSError):
    """An append failed; the file has its old bytes and the append may be tried again.

    An ``OSError`` with ``errno`` and ``filename``, but never a ``TimeoutError``, whatever the
    operating system said: the SDK does not try an append again that timed out.
    """

    def __init__(self, path: Path, error: OSError, room: str = "") -> None:
        """:param room: how much was needed and how much there is, in words; empty: not known."""
        super().__init__(error.errno, error.strerror or str(error), str(path))
        self.path = path
        self.room = room

    def __str__(self) -> str:
        room = f" ({self.room})" if self.room else ""
        return f"Could not write {self.filename}: {self.strerror}{room}."


class JournalBusy(JournalError):
    """The journal's lock stayed taken for ``waited_s`` seconds; nothing was written."""

    def __init__(self, path: Path, waited_s: float) -> None:
        super().__init__(path, OSError(11, f"another writer has held it for {waited_s:.0f} s"))
        self.waited_s = waited_s


class FolderGone(JournalError):
    """A folder that held everything is not there any more, or another one is in its place.

    Never a ``FileNotFoundError``: what was there and is gone is not what never was.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, OSError(errno.ENOENT, "it is not there any more"))

    def __str__(self) -> str:
        return (
            f"{self.filename} is not there any more: it was renamed, unmounted or pulled out. "
            "Nothing was made in its place."
        )


class LeadsOutside(JournalError, Invalid):
    """What stands in the place of a workspace's file leads elsewhere, or is no file: a pipe, a socket.

    Nothing was read or written there.
    """

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(path, OSError(errno.ELOOP, message))

    def __str__(self) -> str:
        return self.strerror or ""


class NotAWorkspace(SmartWriterError, LookupError):
    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is not a SmartWriter workspace; make one with: smartwriter init {path}")
        self.path = path


class TaskNotFound(SmartWriterError, LookupError):
    """No task has this id, title or prefix of either."""

    def __init__(self, task: str, message: str | None = None) -> None:
        super().__init__(message or f"There is no task {task!r}; see them with: smartwriter tasks")
        self.task = task


class TaskAmbiguous(TaskNotFound):
    """More than one task fits; ``candidates`` holds their ids."""

    def __init__(self, task: str, candidates: Sequence[tuple[str, str]]) -> None:
        shown = ", ".join(f"{id} ({title})" for id, title in candidates[:5])
        more = f" and {len(candidates) - 5} more" if len(candidates) > 5 else ""
        super().__init__(task, f"{task!r} fits several tasks: {shown}{more}.")
        self.candidates = tuple(id for id, _ in candidates)


class CollectionNotFound(SmartWriterError, LookupError):
    def __init__(self, collection: str) -> None:
        super().__init__(
            f"There is no collection {collection!r}; make it with: smartwriter collection new {collection}"
        )
        self.collection = collection


class DraftNotFound(SmartWriterError, LookupError):
    def __init__(
        self, task: str, draft: str, drafts: Sequence[str], what: str = "draft", *, dropped: bool = False
    ) -> None:
        has = f"it has: {', '.join(drafts)}" if drafts else "it has none"
        back = f" To take up the dropped one: smartwriter restore {task}@{draft}" if dropped else ""
        super().__init__(f"Task {task} has no {what} {draft!r}; {has}.{back}")
        self.task, self.draft = task, draft


class TurnNotFound(SmartWriterError, LookupError):
    def __init__(self, address: str, turn: int, turns: int) -> None:
        has = {0: "no finished turn", 1: "one finished turn"}.get(turns, f"{turns} finished turns")
        super().__init__(f"{address} has no turn {turn}: it has {has}.")
        self.address, self.turn = address, turn


class RevisionNotFound(SmartWriterError, LookupError):
    def __init__(self, address: str, revision: int, revisions: int) -> None:
        has = {0: "no revision yet", 1: "one revision"}.get(revisions, f"{revisions} revisions")
        super().__init__(f"{address} has no revision {revision}: it has {has}.")
        self.address, self.revision = address, revision


class ParagraphNotFound(SmartWriterError, LookupError):
    def __init__(self, label: str, paragraph: int, paragraphs: int) -> None:
        has = {0: "no paragraph", 1: "one paragraph"}.get(paragraphs, f"{paragraphs} paragraphs")
        super().__init__(f"{label} has no paragraph {paragraph}: it has {has}.")
        self.label, self.paragraph = label, paragraph


class TextConflict(SmartWriterError):
    """The writer changed the text in the meantime; theirs stands.

    ``current`` is the number and ``text`` the text of the revision that stands, ``aside`` the number of
    the one that was kept beside it, None when there was nothing to keep.
    """

    def __init__(self, current: int, text: str, aside: int | None) -> None:
        kept = f" Your version is kept as revision {aside}, beside it." if aside else ""
        super().__init__(
            f"The author has changed the text since you last read it, so it was not replaced.{kept} "
            f"This is the text now (revision {current}); work on from it:\n\n{text}"
        )
        self.current, self.text, self.aside = current, text, aside


class AlreadyExists(SmartWriterError, ValueError):
    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"There is already a {what} {name!r}.")
        self.name = name


class SessionMissing(SmartWriterError, LookupError):
    """A draft has finished turns, but its transcript is gone or unreadable."""

    def __init__(self, address: str, path: Path) -> None:
        super().__init__(
            f"The transcript of {address} is missing; put {path} back to go on (nothing was changed)."
        )
        self.address, self.path = address, path


class DraftBusy(SmartWriterError):
    """Another process holds the draft's lease."""

    def __init__(self, address: str, holder: str) -> None:
        super().__init__(
            f"{address} is being written by {holder}; to write beside it: smartwriter fork {address}"
        )
        self.address, self.holder = address, holder


class NotSavedYet(SmartWriterError):
    """Part of a draft's last turn is only in memory; until it is stored, no turn is taken."""

    def __init__(self, address: str, detail: str) -> None:
        super().__init__(f"{address} takes no turn until its last one is stored: {detail}")
        self.address, self.detail = address, detail
