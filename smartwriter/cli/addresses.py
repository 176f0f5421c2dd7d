"""What a person means by a text: a draft, one of its revisions, or a file."""

from __future__ import annotations

from pathlib import Path

from smartwriter.errors import Invalid, TaskNotFound
from smartwriter.files.utf8 import decoded
from smartwriter.trials.edits import version
from smartwriter.workspace import Workspace


def text_of(workspace: Workspace, wanted: str) -> tuple[str, str]:
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
    if not found.text:
        raise Invalid(f"{found.task.address(found.draft.name)} has no text yet.")
    return str(found), found.text


def _read(path: Path) -> str:
    text = decoded(path.read_bytes(), str(path), encoding="utf-8-sig")
    if not text.strip():
        raise Invalid(f"{path} is empty.")
    return text
