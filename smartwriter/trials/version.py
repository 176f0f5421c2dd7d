"""One version of a draft's text, as a person names it; or a text that lies in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from smartwriter.errors import Invalid, TaskNotFound
from smartwriter.files.utf8 import decoded
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.revisions import current_number, text_of
from smartwriter.tasks.values import Source
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Version:
    of: OpenDraft
    number: int
    """Of the revision; 0 for a draft that has none yet."""
    text: str

    def __str__(self) -> str:
        return f"{self.of.address}:{self.number}"

    @property
    def source(self) -> Source:
        return self.of.source(self.number)

    def needed(self) -> Version:
        """Itself. :raises Invalid: when there is no text."""
        if not self.text:
            raise Invalid(f"{self.of.address} has no text yet.")
        return self


def version(workspace: Workspace, address: str) -> Version:
    """The version that ``TASK[@DRAFT][:REVISION]`` names; without a revision the text as it is now.

    What the writer has changed in the file is recorded first. Blocking.
    :raises TaskNotFound, DraftNotFound, RevisionNotFound, Invalid:
    """
    task, draft, number = workspace.tasks.resolve_revision(address)
    of = OpenDraft(workspace, task, draft.name)
    if number is None:
        return version_now(of)
    workspace.check_folder(task)
    return Version(of, number, of.text.revision(number).text)


def version_now(of: OpenDraft) -> Version:
    """The text of a draft as it is now, as :func:`version`."""
    of.workspace.check_folder(of.task)
    of.take_hand_edit()
    revisions = of.text.revisions()
    return Version(of, current_number(revisions), text_of(revisions))


def named_text(workspace: Workspace, wanted: str) -> tuple[str, str]:
    """What ``TASK[@DRAFT][:REVISION]``, or the path of a file, is called, and its text.

    :raises Invalid: for one that has no text, and for a file that is not UTF-8.
    :raises TaskNotFound: for what is neither.
    """
    try:
        found = version(workspace, wanted)
    except TaskNotFound:
        if not Path(wanted).is_file():
            raise
        return wanted, _read(Path(wanted))
    return str(found.needed()), found.text


def _read(path: Path) -> str:
    text = decoded(path.read_bytes(), str(path), encoding="utf-8-sig")
    if not text.strip():
        raise Invalid(f"{path} is empty.")
    return text
