"""What a writer does to a draft's text by command: put a version back, take an answer, bring parts home.

Each makes a new revision under the draft's lease; nothing is rewound or lost, and the model is told
with its next prompt.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from smartwriter.errors import Invalid, ParagraphNotFound, TextConflict, TurnNotFound
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.speakers import whole_answer
from smartwriter.sessions.transcript import answer_to
from smartwriter.tasks.cut_off import version_of
from smartwriter.tasks.revisions import current_number, text_of
from smartwriter.tasks.values import Draft, Revision, Source, Task, check_open
from smartwriter.text.passages import line_end_of, with_line_ends
from smartwriter.text.words import paragraphs, spans
from smartwriter.trials.placing import behind, counterparts, with_notes
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Version:
    """One version of a draft's text."""

    task: Task
    draft: Draft
    number: int
    """Of the revision; 0 for a draft that has none yet."""
    text: str

    def __str__(self) -> str:
        return f"{self.task.address(self.draft.name)}:{self.number}"

    @property
    def source(self) -> Source:
        return Source(task=self.task.id, draft=self.draft.name, revision=self.number)


def version(workspace: Workspace, address: str) -> Version:
    """The version that ``TASK[@DRAFT][:REVISION]`` names; without a revision the text as it is now.

    What the writer has changed in the file is recorded first. Blocking.
    :raises TaskNotFound, DraftNotFound, RevisionNotFound, Invalid:
    """
    task, draft, number = workspace.tasks.resolve_revision(address)
    workspace.check_folder(task)
    text = workspace.text(task, draft.name)
    if number is not None:
        return Version(task, draft, number, text.revision(number).text)
    OpenDraft(workspace, task, draft.name).take_hand_edit()
    revisions = text.revisions()
    return Version(task, draft, current_number(revisions), text_of(revisions))


def put_back(workspace: Workspace, earlier: Version) -> Revision:
    """Make an earlier version the draft's text again. :raises DraftBusy:"""
    return _write(workspace, earlier.task, earlier.draft, earlier.text, earlier.source)


def take_answer(workspace: Workspace, task: Task, draft: Draft, turn: int | None = None) -> Revision:
    """Make what the model wrote in a turn the draft's text: an article that was cut off, or the answer.

    :param turn: None: the last one. :raises TurnNotFound, Invalid, DraftBusy:
    :raises SessionMissing: when the answer is gone with its transcript.
    """
    workspace.check_folder(task)
    turns = OpenDraft(workspace, task, draft.name).turns_now()
    found = [number for number, one in enumerate(turns) if turn in (None, one.number)]
    if not found:
        raise TurnNotFound(task.address(draft.name), turn or 1, len(turns))
    wanted, later = turns[found[-1]], {one.uuid for one in turns[found[-1] + 1 :]}
    cut_off = version_of(wanted, workspace.text(task, draft.name).revisions())
    if cut_off is not None:
        return put_back(workspace, Version(task, draft, cut_off.number, cut_off.text))
    entries = OpenDraft(workspace, task, draft.name).conversation([wanted]).entries
    stored = answer_to(entries, wanted.uuid, later, whole=False) or ""
    answer = whole_answer(stored, wanted.partial)
    if not answer.strip():
        raise Invalid(f"Turn {wanted.number} of {task.address(draft.name)} has no answer to take.")
    source = Source(task=task.id, draft=draft.name, turn=wanted.number)
    return _write(workspace, task, draft, answer.strip() + "\n", source)


@dataclass(frozen=True)
class Picked:
    revision: Revision | None
    """None: all of it was there already."""
    placed: tuple[str, ...]
    """One sentence for each paragraph."""


def pick(
    workspace: Workspace,
    origin: Version,
    task: Task,
    draft: Draft,
    numbers: Sequence[int],
    after: int | None = None,
) -> Picked:
    """Bring paragraphs of one text into another draft.

    A paragraph takes the place of the one that it is a version of; one that is new goes behind the
    one that it follows in its own text.

    :param numbers: of the paragraphs, from 1.
    :param after: the paragraph of the draft behind which they go; 0 for its beginning.
    :raises ParagraphNotFound, Invalid, DraftBusy:
    """
    here = version(workspace, task.address(draft.name))
    text, placed = _placed(origin, here, sorted(set(numbers)), after)  # what is refused needs no lease
    if text == here.text:
        return Picked(None, placed)
    with _written(workspace, task, draft) as task:
        here = version(workspace, task.address(draft.name))
        text, placed = _placed(origin, here, sorted(set(numbers)), after)
        revision = workspace.text(task, draft.name).write(
            text,
            author="writer",
            turn=OpenDraft(workspace, task, draft.name).next_turn(),
            base=here.number,
            source=origin.source,
            paragraphs=numbers,
        )
    return Picked(revision, placed)


def _write(workspace: Workspace, task: Task, draft: Draft, text: str, source: Source) -> Revision:
    with _written(workspace, task, draft) as task:
        return workspace.text(task, draft.name).write(
            text,
            author="writer" if source.turn is None else "model",
            turn=OpenDraft(workspace, task, draft.name).next_turn(),
            source=source,
        )


@contextlib.contextmanager
def _written(workspace: Workspace, task: Task, draft: Draft) -> Iterator[Task]:
    """The task as it is now: the draft may have been dropped, or its folder moved, while the writer chose.

    :raises DraftNotFound, DraftBusy:
    :raises Invalid: also when the task was finished with it.
    """
    check_open(workspace.tasks.find(task.id), draft.name)  # what is refused leaves no lock file
    with OpenDraft(workspace, task, draft.name).lease():
        task = workspace.tasks.find(task.id)
        workspace.tasks.draft(task, draft.name)
        check_open(task, draft.name)
        workspace.check_folder(task)
        try:
            yield task
        except TextConflict:  # whose words are for the model
            raise Invalid(
                f"The text of {task.address(draft.name)} was saved by hand at this very moment; "
                "it stays as it was saved. Try again."
            ) from None


# Placing paragraphs ---------------------------------------------------------------------------


@dataclass
class _Laid:
    """A paragraph of the new text, and what stands between it and the next one."""

    paragraph: str
    after: str


def _placed(
    origin: Version, here: Version, numbers: Sequence[int], after: int | None
) -> tuple[str, tuple[str, ...]]:
    theirs, ours = paragraphs(origin.text), paragraphs(here.text)
    if not numbers:
        raise Invalid("Name the paragraphs to pick.")
    for number in numbers:
        if not 1 <= number <= len(theirs):
            raise ParagraphNotFound(str(origin), number, len(theirs))
    if after is not None and not 0 <= after <= len(ours):
        raise ParagraphNotFound(str(here), after, len(ours))
    line_end = line_end_of(here.text)
    versions = counterparts(ours, theirs) if after is None else [()] * len(theirs)
    wanted = {index: theirs[index] for index in _with_parts(versions, [number - 1 for number in numbers])}
    notes = with_notes(ours, theirs, wanted)
    replaced: dict[int, list[str]] = {}
    put: dict[int, list[str]] = {}
    """By the number of our paragraph that they go behind; 0 for the beginning."""
    said = []
    for index, text in notes.paragraphs.items():
        paragraph = with_line_ends(text, line_end)
        places = versions[index]
        if len(places) == 1 and ours[places[0]] == paragraph:
            said.append(f"Paragraph {index + 1} is there already, as paragraph {places[0] + 1}.")
        elif places:
            said.append(f"Paragraph {index + 1} took the place of {_named(places)}.")
            replaced.setdefault(places[0], []).append(paragraph)
            replaced |= {place: [] for place in places[1:]}
        else:
            place = behind(versions, index) if after is None else after
            said.append(f"Paragraph {index + 1} went in {_in_words(place)}.")
            put.setdefault(len(ours) if place < 0 else place, []).append(paragraph)
    if notes.added:
        put.setdefault(len(ours), []).extend(with_line_ends(note, line_end) for note in notes.added)
    return _laid_out(here.text, replaced, put, line_end), (*said, *notes.said)


def _with_parts(versions: Sequence[tuple[int, ...]], picked: Sequence[int]) -> list[int]:
    """Where a part of what was split is picked, all of its parts: they take the place of one."""
    places = {place for index in picked for place in versions[index]}
    parts = {
        index
        for index, held in enumerate(versions)
        if places.intersection(held) and any(held == versions[one] and abs(one - index) < 2 for one in picked)
    }
    return sorted({*picked, *parts})


def _named(places: Sequence[int]) -> str:
    named = [str(place + 1) for place in places]
    return f"paragraph {named[0]}" if len(named) == 1 else f"paragraphs {named[0]} to {named[-1]}"


def _in_words(behind: int) -> str:
    return {-1: "at the end", 0: "at the beginning"}.get(behind, f"behind paragraph {behind}")


def _laid_out(text: str, replaced: dict[int, list[str]], put: dict[int, list[str]], line_end: str) -> str:
    """A text with paragraphs replaced and put in; all that stands between its own ones stays."""
    where = spans(text)
    if not (replaced or put):
        return text
    head = text[: where[0][0]] if where else text
    if not where and head and not head.endswith(("\n", "\r")):
        head += line_end
    laid = [_Laid(new, line_end * 2) for new in put.get(0, [])]
    if laid and not where:
        laid[-1].after = line_end
    ends = [*(start for start, _ in where), len(text)][1:]
    for index, ((start, end), next_start) in enumerate(zip(where, ends, strict=True)):
        for paragraph in replaced.get(index, [text[start:end]]):
            laid.append(_Laid(paragraph, line_end * 2))
        if laid:
            laid[-1].after = text[end:next_start]
        for new in put.get(index + 1, []):
            laid.append(_Laid(new, laid[-1].after))
            laid[-2].after = line_end * 2
    for this, following in pairwise(laid):
        # A heading may stand right above its text, but what took its place may not.
        if paragraphs(this.paragraph + this.after + following.paragraph) != [
            this.paragraph,
            following.paragraph,
        ]:
            this.after += line_end
    return head + "".join(one.paragraph + one.after for one in laid)
