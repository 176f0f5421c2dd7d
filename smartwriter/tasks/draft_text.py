"""The text of a draft: a Markdown file of the writer's, and every version it ever had.

::

    collections/<collection>/drafts/<task>/<draft>.md          the text, for any editor
    collections/<collection>/drafts/<task>/.<draft>.md.next    the next one, until it is in place
    .smartwriter/revisions/<task>/<draft>.jsonl                one line per revision, with its text

    {"type":"revision","timestamp":"2026-…","number":3,"author":"model","turn":2,"text":"# 渡口…",…}

The next text is written beside the file, then recorded as a revision, then put in the file's place.
So a file that differs from the last revision was edited by hand, unless that revision's text still
lies beside it: then a crash came before the last step, which is made up for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path

import smartwriter.files.durable as durable
import smartwriter.system.bounds as bounds
from smartwriter.errors import Invalid, RevisionNotFound, TextConflict
from smartwriter.files.utf8 import decoded
from smartwriter.files.whole import once_saved
from smartwriter.storage.interface import Journal, Transaction
from smartwriter.storage.records import from_line
from smartwriter.tasks.revisions import (
    check_text,
    current_number,
    edited_base,
    line_of,
    next_revision,
    sha256_of_bytes,
    text_of,
)
from smartwriter.tasks.values import Author, Breaks, Revision, Source
from smartwriter.text.passages import Edit, appended, edited, in_the_manner_of

_TOLD_BY = 2
"""Revisions: the one that has the text, and the one before it, for a crash between them and the file."""


@dataclass(frozen=True)
class HandEdit:
    """What the writer did to the file since the last revision."""

    revision: Revision | None = None
    """Their new text; None: it is as it was."""
    restored: bool = False
    """The file was gone, and was written again."""


class DraftText:
    """The text of one draft and its revisions. All calls block."""

    def __init__(
        self, path: Path, revisions: Journal, trash: Callable[[], Path], address: str = "The draft"
    ) -> None:
        """:param trash: where its file goes when it is put away, each time anew.
        :param address: what it is called in messages.
        """
        self.path = path
        self._address = address
        self._journal = revisions
        self._trash = trash

    @property
    def _place(self) -> Path:
        """Where the file is: a link of the writer's stays one. :raises LeadsOutside:"""
        return bounds.checked(self.path)

    @property
    def _next(self) -> Path:
        return self._place.with_name(f".{self._place.name}.next")

    # Reading ---------------------------------------------------------------------------------

    def revisions(self) -> list[Revision]:
        """Oldest first."""
        lines = self._journal.read().entries
        return [revision for line in lines if (revision := from_line(Revision, line))]

    def newest(self, back_to: int | None = None) -> list[Revision]:
        """The last revisions, oldest first: as many as tell the text, and the one before it.

        :param back_to: so far, too, that the text is among them as it was at this revision.
        """
        found, texts = list[Revision](), 0
        for line in self._journal.newest_first():
            if (revision := from_line(Revision, line)) is None:
                continue
            found.append(revision)
            texts += not revision.aside
            reached = back_to is None or (revision.number <= back_to and not revision.aside)
            if texts >= _TOLD_BY and reached:
                break
        return found[::-1]

    def revision(self, number: int) -> Revision:
        """:raises RevisionNotFound:"""
        last = 0
        for line in self._journal.newest_first():
            revision = from_line(Revision, line)
            if revision and revision.number == number:
                return revision
            last = max(last, revision.number if revision else 0)
        raise RevisionNotFound(self._address, number, last)

    def read(self) -> str:
        """The text as it is in the file now; empty before the first revision.

        :raises Invalid: when the file is not UTF-8: guessing at it would lose what it says.
        """
        revisions = self.newest()
        text = self._read_file()
        if text is None or self._is_behind(revisions, text):
            return text_of(revisions)
        return text

    def at_turn(self, turn: int) -> str:
        """The text as it was when a turn had ended."""
        return text_of(revision for revision in self.revisions() if revision.turn <= turn)

    def is_behind(self) -> bool:
        """Whether a crash came before the last revision was put in the file's place.

        Who uses the draft next makes up for it.
        """
        with contextlib.suppress(Invalid):
            return self._is_behind(self.newest(), self._read_file())
        return False

    # Writing ---------------------------------------------------------------------------------

    def write(
        self,
        text: str,
        *,
        author: Author,
        turn: int,
        base: int | None = None,
        source: Source | None = None,
        paragraphs: Sequence[int] = (),
    ) -> Revision:
        """Make a text the next revision. What the writer did to the file becomes one of its own before.

        The model's texts keep the writer's line ends and front matter.

        :param base: the revision that the author knows of, 0 for none: what the writer changed
            since is not replaced. None: it may be.
        :raises Invalid: for a text that cannot be kept.
        :raises TextConflict: with ``base``; the text is kept as a revision beside the writer's.
        """
        with self._journal.locked() as transaction:
            draft = self._catch_up(transaction, turn)
            if author == "model":
                text = in_the_manner_of(text_of(draft), text)
            check_text(text)
            revision = next_revision(draft, text, author, turn, source, paragraphs)
            if base is not None and current_number(draft) != base and text != text_of(draft):
                self._put_aside(transaction, draft, revision)
            self._append(transaction, revision, text_of(draft))
        return revision

    def edit(
        self, edits: Sequence[Edit], *, turn: int, base: int | None = None, told: int | None = None
    ) -> Revision:
        """Replace passages, all of them or none, also in what the writer changed in the meantime.

        :param base: the revision that the author of the edits knows, in which each passage stands.
        :param told: the one of which they were told what changed, if only in part: or it stands in that.
        :raises Invalid: for a passage that does not stand there exactly once, or was touched since.
        :raises TextConflict: when it did in revision ``base``; that version is kept beside the writer's.
        """
        with self._journal.locked() as transaction:
            known_to_it = [number for number in (base, told) if number is not None]
            draft = self._catch_up(transaction, turn, back_to=min(known_to_it, default=None))
            known = [
                text_of(revision for revision in draft if revision.number <= number) for number in known_to_it
            ]
            try:
                text = edited(text_of(draft), edits, known)
                check_text(text)
            except Invalid:
                if (theirs := edited_base(draft, edits, base)) is None:
                    raise
                self._put_aside(transaction, draft, next_revision(draft, theirs, "model", turn))
            revision = next_revision(draft, text, "model", turn)
            self._append(transaction, revision, text_of(draft))
        return revision

    def append(self, addition: str, after: str = "", *, turn: int) -> Revision:
        """Put more behind the text, also behind what the writer changed in the meantime.

        :param after: the heading of the section at whose end it goes; empty: the end of all.
        :raises Invalid: unless there is exactly one such heading, and for a text that cannot be kept.
        """
        if not addition.strip():
            raise Invalid("There is nothing to append: text is empty.")
        with self._journal.locked() as transaction:
            draft = self._catch_up(transaction, turn)
            text = appended(text_of(draft), addition, after)
            check_text(text)
            revision = next_revision(draft, text, "model", turn)
            self._append(transaction, revision, text_of(draft))
        return revision

    def take_hand_edit(self, turn: int, *, restore: bool = True) -> HandEdit:
        """Record what the writer changed in the file since the last revision, if anything.

        :param turn: the one that runs, or the next one.
        :param restore: write a file that is gone again.
        """
        revisions = self.newest()
        text = self._settled(text_of(revisions))
        exists = current_number(revisions) > 0
        as_recorded = text == text_of(revisions) or (text is None and not (restore and exists))
        if as_recorded and not self._next.exists():
            return HandEdit()
        with self._journal.locked() as transaction:
            before = current_number(self.newest())
            after = self._catch_up(transaction, turn)
            gone = self._read_file() is None and current_number(after) > 0
            if gone and restore:
                durable.write_document(self._place, text_of(after))
        return HandEdit(after[-1] if current_number(after) > before else None, gone and restore)

    def keep_cut_off(
        self,
        text: str,
        turn: int,
        *,
        breaks: Breaks = "at the end",
        call: str = "",
        source: Source | None = None,
    ) -> Revision | None:
        """Keep what had arrived of a call that never came to its end, as a version beside the text.

        :param source: the same in the draft that this one was forked from.
        :returns: None where there is nothing to keep, or the turn has a version of this text already, unless
            that is not known yet to be whole.
        """
        text = text.replace("\0", "")  # which no Markdown file can hold
        if not text.strip():
            return None
        with self._journal.locked() as transaction:
            revisions = self.revisions()
            text = in_the_manner_of(text_of(revisions), text)
            same = [earlier for earlier in revisions if earlier.turn == turn and earlier.text == text]
            if any(one.is_whole or not one.cut_off or breaks != "nowhere" for one in same):
                return None
            revision = next_revision(revisions, text, "model", turn, source)
            revision = revision.model_copy(update={"aside": True, "cut_off": True})
            revision = revision.model_copy(update={"breaks": breaks, "call": call})
            transaction.append([line_of(revision)])
        return revision

    def put_away(self) -> None:
        """Move the file to the trash; the revisions stay. :raises LeadsOutside:"""
        bounds.checked(self.path.parent)
        self._next.unlink(missing_ok=True)
        if self.path.exists():
            durable.move(self.path, self._trash())

    # Under the lock --------------------------------------------------------------------------

    def _catch_up(self, transaction: Transaction, turn: int, back_to: int | None = None) -> list[Revision]:
        """The newest revisions, the writer's hand edit included, with the file as the last one says."""
        revisions = self.newest(back_to)
        text = self._settled(text_of(revisions))
        if self._is_behind(revisions, text):
            durable.move(self._next, self._place)
            return revisions
        self._next.unlink(missing_ok=True)
        if text is None or text == text_of(revisions):
            return revisions
        check_text(text, f" ({self.path})")
        hand_edit = next_revision(revisions, text, "writer", turn)
        transaction.append([line_of(hand_edit)])
        return [*revisions, hand_edit]

    def _is_behind(self, revisions: list[Revision], text: str | None) -> bool:
        """Whether the last revision was recorded, but not yet put in the file's place."""
        current = [revision for revision in revisions if not revision.aside]
        if not current or text == current[-1].text or text not in (None, text_of(current[:-1])):
            return False
        try:
            waiting = bounds.read_regular(self._next)
        except FileNotFoundError:
            return False
        return sha256_of_bytes(waiting) == current[-1].sha256

    def _append(self, transaction: Transaction, revision: Revision, before: str) -> None:
        """Record a revision and put its text in the file's place. :raises TextConflict:"""
        durable.write_document(self._next, revision.text, mode=self._mode())
        transaction.append([line_of(revision)])
        slipped_in = self._settled(before)
        if slipped_in not in (None, before):  # saved by an editor since we looked
            theirs = next_revision([revision], slipped_in, "writer", revision.turn)
            transaction.append([line_of(theirs)])
            self._next.unlink()
            raise TextConflict(theirs.number, slipped_in, revision.number)
        durable.move(self._next, self._place)

    def _mode(self) -> int | None:
        """Of the file; of a new one, what its neighbours allow: a fork of a private draft is private."""
        place = self._place
        if (own := bounds.mode_of(place)) is not None:
            return own
        modes = [mode for path in place.parent.glob("*.md") if (mode := bounds.mode_of(path)) is not None]
        return reduce(and_, modes) if modes else None

    def _put_aside(self, transaction: Transaction, draft: list[Revision], revision: Revision) -> None:
        transaction.append([line_of(revision.model_copy(update={"aside": True}))])
        raise TextConflict(current_number(draft), text_of(draft), revision.number)

    def _settled(self, recorded: str) -> str | None:
        """What is in the file; where that is not what was recorded, once an editor that saves it is done."""
        return once_saved(self.path, self._read_file, recorded)

    def _read_file(self) -> str | None:
        try:
            data = bounds.read_regular(self._place)
        except FileNotFoundError:
            return None
        return decoded(data, str(self.path), errors="surrogatepass")
