"""The text of a draft: a Markdown file of the writer's, and every version it ever had.

::

    collections/<collection>/drafts/<task>/<draft>.md    the text, for any editor
    .smartwriter/revisions/<task>/<draft>.jsonl          one line per revision, with its text

    {"type":"revision","timestamp":"2026-…","number":3,"author":"model","turn":2,"text":"# 渡口…",…}

A revision is recorded before the file is replaced. A file that differs from the last revision was
edited by hand, unless it still has the text of an earlier one: then a crash came between the two.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from pydantic import ValidationError

import smartwriter.journal as journal
from smartwriter.damage import Entry
from smartwriter.errors import Invalid
from smartwriter.tasks import Author, Revision, now

MAX_TEXT_BYTES = 1 << 20


class DraftText:
    """The text of one draft and its revisions. All calls block."""

    def __init__(self, path: Path, revisions: Path, trash: Path) -> None:
        self.path = path
        self._journal = journal.Journal(revisions)
        self._trash = trash

    def revisions(self) -> list[Revision]:
        """Oldest first."""
        try:
            lines = self._journal.read().entries
        except FileNotFoundError:
            return []
        return [revision for line in lines if (revision := _revision(line))]

    def read(self) -> str:
        """The text as it is in the file now; empty before the first revision.

        :raises Invalid: when the file is not UTF-8: guessing at it would lose what it says.
        """
        text = self._read_file()
        if text is None:
            revisions = self.revisions()
            return revisions[-1].text if revisions else ""
        return text

    def _read_file(self) -> str | None:
        try:
            return self.path.read_bytes().decode("utf-8", "surrogatepass")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise Invalid(
                f"{self.path} is not UTF-8 text (byte {error.start}); save it as UTF-8 to go on."
            ) from None

    def at_turn(self, turn: int) -> str:
        """The text as it was when a turn had ended."""
        texts = [revision.text for revision in self.revisions() if revision.turn <= turn]
        return texts[-1] if texts else ""

    def write(self, text: str, *, author: Author, turn: int) -> Revision:
        """Make a text the next revision. :raises Invalid: for one that cannot be kept.

        What the writer did to the file in the meantime becomes a revision of its own before it.
        """
        _check(text)
        with self._journal.locked() as transaction:
            revisions = self.revisions()
            new: list[Revision] = []
            edited = self._hand_edit(revisions)
            if edited is not None and edited != text:
                new.append(_next_revision(revisions, edited, "writer", turn))
            new.append(_next_revision([*revisions, *new], text, author, turn))
            transaction.append([_line(revision) for revision in new])
            journal.write_document(self.path, text)
        return new[-1]

    def _hand_edit(self, revisions: list[Revision]) -> str | None:
        """The text of the file, if no revision has it."""
        text = self._read_file()
        if text is None or text in {"", *(revision.text for revision in revisions)}:
            return None
        return text

    def edit(self, old: str, new: str, *, turn: int) -> Revision:
        """Replace a passage. :raises Invalid: unless it stands there exactly once."""
        text = self.read()
        count = len(re.findall(f"(?={re.escape(old)})", text)) if old else 0  # overlapping ones too
        if count != 1:
            raise Invalid(
                f"The passage stands {count} times in the draft; it must stand there exactly once."
                if old
                else "The passage to replace is empty."
            )
        return self.write(text.replace(old, new), author="model", turn=turn)

    def take_hand_edit(self, turn: int) -> Revision | None:
        """Record what the writer changed in the file since the last revision, if anything.

        :param turn: the turn that is about to start.
        """
        revisions = self.revisions()
        text = self._read_file()
        last = revisions[-1].text if revisions else ""
        if text == last or (text is None and not revisions):
            return None
        if text is None or any(revision.text == text for revision in revisions):
            # The file was deleted or moved away, or is older than a crash: its text is not lost.
            journal.write_document(self.path, last)
            return None
        return self.write(text, author="writer", turn=turn)

    def put_away(self) -> None:
        """Move the file to the trash; the revisions stay."""
        if self.path.exists():
            journal.move(self.path, self._trash)


def _next_revision(revisions: list[Revision], text: str, author: Author, turn: int) -> Revision:
    number = revisions[-1].number + 1 if revisions else 1
    return Revision(number=number, author=author, turn=turn, sha256=sha256_of(text), text=text)


def _line(revision: Revision) -> Entry:
    return {"type": "revision", "timestamp": now().isoformat(), **revision.model_dump(mode="json")}


def _revision(line: Entry) -> Revision | None:
    if line.get("type") != "revision":
        return None
    try:
        return Revision.model_validate(line)
    except ValidationError:  # of a later version: left alone
        return None


def _check(text: str) -> None:
    if "\0" in text:
        raise Invalid("The text holds a NUL character, which a Markdown file cannot.")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise Invalid("The text is longer than 1 MB.")


def sha256_of(text: str) -> str:
    """As revisions record it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
