"""Where each paragraph of a text comes from: who first wrote it, and who last changed it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smartwriter.tasks.values import Author, Revision
from smartwriter.text.differences.pairing import Continued, continued
from smartwriter.text.words import paragraphs


@dataclass(frozen=True)
class Mark:
    """One revision, as the maker of a paragraph."""

    task: str
    draft: str
    revision: int
    author: Author
    turn: int


@dataclass(frozen=True)
class Provenance:
    """Of one paragraph."""

    text: str
    origin: Mark
    """Who wrote it first. A paragraph that was moved or slightly edited is still the same one, and so is each
    part of one that was split; what was merged has the origin of its longest part."""
    changed: Mark
    """Who last changed it; the origin itself where nobody did."""


RevisionsOf = Callable[[str, str], Sequence[Revision]]
"""The revisions of a draft, by the task's id and the draft's name."""


def provenance(revisions_of: RevisionsOf, task: str, draft: str, number: int) -> list[Provenance]:
    """Of each paragraph of a revision, in order; through forks and picks back to where it was written."""
    return _History(revisions_of).after(task, draft, number)


class _Followed:
    """A draft, as far as its revisions have been followed."""

    def __init__(self, revisions: Sequence[Revision]) -> None:
        self.left = deque(revisions)
        self.state: list[Provenance] = []
        self.at: dict[int, list[Provenance]] = {}
        """Of each revision followed; one that was put aside is no step on the way to the next."""


class _History:
    def __init__(self, revisions_of: RevisionsOf) -> None:
        self._revisions_of = revisions_of
        self._drafts: dict[tuple[str, str], _Followed] = {}

    def after(self, task: str, draft: str, number: int) -> list[Provenance]:
        if (task, draft) not in self._drafts:
            self._drafts[task, draft] = _Followed(self._revisions_of(task, draft))
        followed = self._drafts[task, draft]
        # No further than asked for: two drafts may have taken from each other again and again.
        while followed.left and followed.left[0].number <= number:
            revision = followed.left.popleft()
            state = followed.at[revision.number] = self._next(followed.state, revision, task, draft)
            if not revision.aside:
                followed.state = state
        found = [known for known in followed.at if known <= number]
        return followed.at[max(found)] if found else []

    def _next(self, state: list[Provenance], revision: Revision, task: str, draft: str) -> list[Provenance]:
        source, turn, known = revision.source, revision.turn, state
        if source is not None and source.turn is not None:
            turn = source.turn
        elif source is not None and source.revision is not None:
            known = state + self.after(source.task, source.draft, source.revision)
        mark = Mark(task, draft, revision.number, revision.author, turn)
        texts = paragraphs(revision.text)
        return [
            _continued(text, made_of, known, mark)
            for text, made_of in zip(texts, continued([one.text for one in known], texts), strict=True)
        ]


def _continued(text: str, made_of: Continued, known: Sequence[Provenance], mark: Mark) -> Provenance:
    if not made_of.places:
        return Provenance(text, mark, mark)
    if len(made_of.places) == 1:
        before = known[made_of.places[0]]
        if made_of.whole and before.text == text:
            return before  # most paragraphs of most revisions
    else:
        before = max((known[place] for place in made_of.places), key=lambda one: len(one.text))
    return Provenance(text, before.origin, before.changed if made_of.whole else mark)
