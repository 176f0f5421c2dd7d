"""What a writer does to a draft's text by command: put a version back, take an answer, bring parts home.

Each makes a new revision under the draft's lease; nothing is rewound or lost, and the model is told
with its next prompt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smartwriter.errors import Invalid, TextConflict, TurnNotFound
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.speakers import whole_answer
from smartwriter.sessions.transcript import answer_to
from smartwriter.tasks.cut_off import version_of
from smartwriter.tasks.values import Revision, Source, check_open
from smartwriter.trials.laying import laid_into
from smartwriter.trials.version import Version, version_now


def put_back(earlier: Version) -> Revision:
    """Make an earlier version the draft's text again. :raises DraftBusy:"""
    return _write(earlier.of, earlier.text, earlier.source)


def take_answer(draft: OpenDraft, turn: int | None = None) -> Revision:
    """Make what the model wrote in a turn the draft's text: an article that was cut off, or the answer.

    :param turn: None: the last one. :raises TurnNotFound, Invalid, DraftBusy:
    :raises SessionMissing: when the answer is gone with its transcript.
    """
    draft.workspace.check_folder(draft.task)
    turns = draft.turns_now()
    found = [number for number, one in enumerate(turns) if turn in (None, one.number)]
    if not found:
        raise TurnNotFound(draft.address, turn or 1, len(turns))
    wanted, later = turns[found[-1]], {one.uuid for one in turns[found[-1] + 1 :]}
    cut_off = version_of(wanted, draft.text.revisions())
    if cut_off is not None:
        return put_back(Version(draft, cut_off.number, cut_off.text))
    stored = answer_to(draft.conversation([wanted]).entries, wanted.uuid, later, whole=False) or ""
    answer = whole_answer(stored, wanted.partial)
    if not answer.strip():
        raise Invalid(f"Turn {wanted.number} of {draft.address} has no answer to take.")
    source = Source(task=draft.task.id, draft=draft.name, turn=wanted.number)
    return _write(draft, answer.strip() + "\n", source)


@dataclass(frozen=True)
class Picked:
    revision: Revision | None
    """None: all of it was there already."""
    placed: tuple[str, ...]
    """One sentence for each paragraph."""


def pick(origin: Version, target: OpenDraft, numbers: Sequence[int], after: int | None = None) -> Picked:
    """Bring paragraphs of one text into another draft.

    A paragraph takes the place of the one that it is a version of; one that is new goes behind the
    one that it follows in its own text.

    :param numbers: of the paragraphs, from 1.
    :param after: the paragraph of the draft behind which they go; 0 for its beginning.
    :raises ParagraphNotFound, Invalid, DraftBusy:
    """
    here = version_now(target.now())
    text, placed = laid_into(here, origin, sorted(set(numbers)), after)  # what is refused needs no lease
    if text == here.text:
        return Picked(None, placed)
    with _written(target) as now:
        here = version_now(now)
        text, placed = laid_into(here, origin, sorted(set(numbers)), after)
        revision = now.text.write(
            text,
            author="writer",
            turn=now.next_turn(),
            base=here.number,
            source=origin.source,
            paragraphs=numbers,
        )
    return Picked(revision, placed)


def _write(draft: OpenDraft, text: str, source: Source) -> Revision:
    with _written(draft) as now:
        return now.text.write(
            text,
            author="writer" if source.turn is None else "model",
            turn=now.next_turn(),
            source=source,
        )


@contextlib.contextmanager
def _written(draft: OpenDraft) -> Iterator[OpenDraft]:
    """The draft as it is now: it may have been dropped, or its folder moved, while the writer chose.

    :raises DraftNotFound, DraftBusy:
    :raises Invalid: also when the task was finished with it.
    """
    check_open(draft.now().task, draft.name)  # what is refused leaves no lock file
    with draft.lease():
        now = draft.now()
        check_open(now.task, now.name)
        now.workspace.check_folder(now.task)
        try:
            yield now
        except TextConflict:  # whose words are for the model
            raise Invalid(
                f"The text of {now.address} was saved by hand at this very moment; "
                "it stays as it was saved. Try again."
            ) from None
