"""Random histories of a task's drafts, each step of them held to a model without any files.

The model knows, of each draft, every revision that it must have, what lies in its file, and how each
turn left it. What the writer does by command, in an editor, or while a turn runs, and what the
model writes, comes in any order.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import anyio
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from smartwriter.errors import DraftBusy, Invalid, ParagraphNotFound, TextConflict
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.transcript import cut
from smartwriter.storage.interface import Lease
from smartwriter.storage.journal import Journal
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.values import MAIN, Author, Draft, Origin, Revision, Source, Task, Turn, TurnState
from smartwriter.text.passages import Edit
from smartwriter.text.words import front_matter, paragraphs, spans
from smartwriter.trials.edits import pick, put_back, take_answer
from smartwriter.trials.forking import fork, rewind
from smartwriter.trials.provenance import provenance
from smartwriter.trials.version import version
from smartwriter.workspace import Workspace

MOST_DRAFTS = 5

PARAGRAPHS = [
    "# 渡口",
    "The ferry left at dawn, as ever, and nobody waved.",
    "The ferry left at dusk, as ever, and nobody waved.",
    "The ferry did not leave at all; the fog had come in.",
    "雾很大，对岸看不见。",
    "雾很大，对岸看得见灯。",
    "- one\n- two",
    "```\nfog\n\nrain\n```",
    "A half of an emoji \ud83d, and a line\u2028separator.",
]
FRONT_MATTER = "---\ntags: [河]\n---\n"


@st.composite
def some_texts(draw: st.DrawFn) -> str:
    """Texts that have paragraphs in common, with all that a writer's own editor may put around them."""
    chosen = draw(st.lists(st.sampled_from(PARAGRAPHS), max_size=5))
    between = draw(st.sampled_from(["\n\n", "\n\n", "\n\n\n", "\n \n"]))
    text = between.join(chosen).replace("# 渡口\n\n", draw(st.sampled_from(["# 渡口\n\n", "# 渡口\n"])))
    text = draw(st.sampled_from(["", "", FRONT_MATTER, "\n"])) + text + draw(st.sampled_from(["\n", ""]))
    return text.replace("\n", "\r\n") if draw(st.sampled_from([False, False, True])) else text


TEXTS = some_texts()
MAYBE = st.none() | TEXTS
"""What the writer saves by hand right before."""
NUMBERS = st.integers(0, 99)
"""Of a draft, a revision, a turn or a paragraph: so many steps round the ones that there are."""


# The model --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A revision as it must be found."""

    author: Author
    turn: int
    text: str
    aside: bool = False
    source: Source | None = None
    paragraphs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Left:
    """How a turn left a draft; None: before its first revision."""

    text: str | None = None
    known: str | None = None
    """What the model knew of it."""
    finished: bool = True


@dataclass
class Line:
    """What one draft must be."""

    name: str
    made: list[Made] = field(default_factory=list)
    file: str | None = None
    """What lies in the folder; None: there is no file."""
    ended: list[Left] = field(default_factory=lambda: [Left()])
    """By number of the turn; the first is how the draft was before any."""
    known: int = 0
    """The revision that the model goes on from, in the turn that runs."""
    own: int = 0
    """The last revision that it made in this turn with all before it in sight; at first what it was told."""
    lease: Lease | None = None
    """Held while a turn runs."""
    dropped: bool = False

    @property
    def turn(self) -> int:
        """The one that runs, or the next one."""
        return len(self.ended)

    @property
    def text(self) -> str:
        """What the revisions say."""
        return self.text_at(len(self.made)) or ""

    @property
    def shown(self) -> str:
        return self.text if self.file is None else self.file

    @property
    def current(self) -> int:
        return max((number for number, one in enumerate(self.made, 1) if not one.aside), default=0)

    def text_at(self, number: int) -> str | None:
        texts = [one.text for one in self.made[:number] if not one.aside]
        return texts[-1] if texts else None

    def catch_up(self) -> None:
        """The writer's hand edit becomes a revision."""
        if self.file is not None and self.file != self.text:
            self.made.append(Made("writer", self.turn, self.file))

    def put(self, made: Made) -> None:
        self.catch_up()
        self.made.append(made)
        self.file = made.text

    def put_aside(self, text: str) -> None:
        self.catch_up()
        self.made.append(Made("model", self.turn, text, aside=True))
        self.known = self.current

    def written_by_model(self, text: str) -> None:
        self.catch_up()
        in_sight = self.current <= self.own
        self.put(Made("model", self.turn, text))
        self.known = len(self.made)
        if in_sight:
            self.own = self.known

    def shared_turn(self, number: int) -> int:
        """The last turn that a fork of a revision may share."""
        made = self.made[number - 1]
        in_it = made.author == "fork" or (made.author == "model" and made.source is None)
        return min(made.turn if in_it else made.turn - 1, self.turn - 1)

    def forked(self, name: str, at: int | None, revision: int | None) -> Line:
        """What a fork must be."""
        if at is None:
            at = len(self.ended) - 1 if revision is None else self.shared_turn(revision)
        latest = at == self.turn - 1 and self.lease is None
        new = Line(name)
        known = self.ended[at].known if at else None
        if known is not None:
            new.made.append(Made("fork", at, known))
        if revision is not None:
            start: str | None = self.made[revision - 1].text
        elif latest:
            start = self.shown if self.made or self.shown else None
        else:
            start = self.ended[at].text
        if start is not None and start != known:
            by_hand = revision is None and latest and self.shown != self.text
            new.made.append(Made("writer", at + 1, start) if by_hand else Made("fork", at, start))
        new.file = new.text if new.made else None
        forks = [one.text for one in new.made if one.turn <= at]
        left = Left(forks[-1] if forks else None, known, self.ended[at].finished)
        new.ended = [*self.ended[:at], left]
        return new


def in_manner_of(before: str, after: str) -> str:
    """A text of the model's with the writer's line ends and front matter."""
    after = with_line_ends(after, before)
    return after if front_matter(after) else before[: front_matter(before)] + after


def with_line_ends(text: str, like: str) -> str:
    return re.sub("\r?\n", "\r\n", text) if like.count("\r\n") == like.count("\n") > 0 else text


# The workspace next to it -----------------------------------------------------------------------


class Histories(RuleBasedStateMachine):
    folder: ClassVar[Path]

    def __init__(self) -> None:
        super().__init__()
        self.workspace = Workspace.create(Path(tempfile.mkdtemp(dir=self.folder)))
        self.id = self.workspace.new_task("渡口").id
        self.lines = {MAIN: Line(MAIN)}
        self.current = MAIN
        self.journals: dict[str, bytes] = {}
        self.touched: set[str] = set()
        self.uuids = 0
        self.steps = 0

    @initialize(text=TEXTS, theirs=MAYBE)
    def begin(self, text: str, theirs: str | None) -> None:
        self.write(0, text, theirs, last=True)

    def teardown(self) -> None:
        for line in self.lines.values():
            if line.lease is not None:
                line.lease.release()

    # By hand ---------------------------------------------------------------------------------

    @rule(which=NUMBERS, text=TEXTS)
    def save_by_hand(self, which: int, text: str) -> None:
        line = self.line(which)
        path = self.text(line).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        line.file = text

    def edited_line(self, which: int, theirs: str | None) -> Line:
        """A draft, perhaps with a hand edit that nothing has recorded."""
        if theirs is not None:
            self.save_by_hand(which, theirs)
        return self.line(which)

    @rule(which=NUMBERS)
    def delete_the_file(self, which: int) -> None:
        line = self.line(which)
        self.text(line).path.unlink(missing_ok=True)
        line.file = None

    @rule(which=NUMBERS)
    def look(self, which: int) -> None:
        """As most commands do, before they show anything."""
        line = self.line(which)
        found = OpenDraft(self.workspace, self.task, line.name).take_hand_edit()
        before = len(line.made)
        line.catch_up()
        assert (found.revision is not None, found.restored) == (len(line.made) > before, False)

    # Turns -----------------------------------------------------------------------------------

    @rule(which=NUMBERS, text=TEXTS, theirs=MAYBE, last=st.booleans())
    def write(self, which: int, text: str, theirs: str | None, last: bool) -> None:
        line = self.in_turn(which)
        self.edited_line(which, theirs)
        self.model_writes(line, text)
        if last:
            self.end_turn(which, True)

    @rule(which=NUMBERS, passage=NUMBERS, theirs=MAYBE)
    def edit(self, which: int, passage: int, theirs: str | None) -> None:
        line = self.in_turn(which)
        known = line.text_at(line.known) or ""
        there = [one for one in paragraphs(known) if "\n" not in one]
        if not there:
            return
        self.edited_line(which, theirs)
        self.model_edits(line, known, there[passage % len(there)])

    def model_writes(self, line: Line, text: str) -> None:
        expected = in_manner_of(line.shown, text)
        with self.conflict(line) as conflict:
            self.text(line).write(text, author="model", turn=line.turn, base=line.known)
        line.catch_up()
        if line.current != line.known and expected != line.text:
            line.put_aside(expected)
        else:
            line.written_by_model(expected)
        self.said(line, conflict)

    def model_edits(self, line: Line, known: str, passage: str) -> None:
        new = f"The model's own words, number {len(line.made)}."
        refused = False
        with self.conflict(line) as conflict:
            try:
                self.text(line).edit([Edit(passage, new)], turn=line.turn, base=line.known)
            except Invalid:
                refused = True
        line.catch_up()
        if line.text.count(passage) == 1:
            line.written_by_model(line.text.replace(passage, new))
        elif line.current != line.known and known.count(passage) == 1:
            line.put_aside(known.replace(passage, new))
        else:
            assert refused
            return
        assert not refused
        self.said(line, conflict)

    @rule(which=NUMBERS, finished=st.sampled_from([True, True, True, False]))
    def end_turn(self, which: int, finished: bool) -> None:
        """Its answer is there; or its process died before it could say what the model had learnt."""
        line = self.in_turn(which)
        self.say(line, "assistant", f"Answer {line.turn}.\n\nThe ferry left.", ended=finished)
        state = TurnState.finished if finished else TurnState.interrupted
        (turn,) = [turn for turn in self.turns(line) if turn.state is TurnState.running]
        known = line.known if finished else turn.revision
        self.workspace.tasks.record(
            self.task, line.name, [turn.model_copy(update={"state": state, "revision": known})]
        )
        assert line.lease is not None and known is not None
        line.lease.release()
        line.lease = None
        told = max(known, line.own)
        line.ended.append(Left(line.text_at(len(line.made)), line.text_at(told) if told else None, finished))

    def in_turn(self, which: int) -> Line:
        """A draft in which a turn runs, with what the model is told when it starts."""
        line = self.line(which)
        if line.lease is not None:
            return line
        line.lease = OpenDraft(self.workspace, self.task, line.name).lease()
        line.lease.acquire()
        self.text(line).take_hand_edit(line.turn)
        line.catch_up()
        line.file = line.text if line.file is None and line.made else line.file
        line.known = line.own = line.current
        uuid = self.say(line, "user", f"Prompt {line.turn}")
        session = self.draft(line).session_id
        turn = Turn(
            number=line.turn,
            uuid=uuid,
            session_id=session,
            prompt="go on",
            state=TurnState.running,
            revision=line.known,
        )
        self.workspace.tasks.record(self.task, line.name, [turn])
        return line

    def say(self, line: Line, role: str, text: str, *, ended: bool = False) -> str:
        transcript = OpenDraft(self.workspace, self.task, self.draft(line).name).transcript
        parent = cut(transcript.read().entries, ()) if transcript.has_entries() else None
        self.uuids += 1
        entry = {
            "type": role,
            "uuid": str(UUID(int=self.uuids, version=4)),
            "parentUuid": parent,
            "sessionId": self.draft(line).session_id,
            "timestamp": "2026-01-01T00:00:00Z",
            "message": {
                "role": role,
                "content": [{"type": "text", "text": text}],
                **({"stop_reason": "end_turn"} if ended else {}),
            },
        }
        Journal(transcript.path).append([entry])
        return str(entry["uuid"])

    @property
    def has_room(self) -> bool:
        """For another fork: not all of them at the beginning, when there is little to share."""
        return len(self.lines) < min(MOST_DRAFTS, 1 + self.steps // 5)

    # By command ------------------------------------------------------------------------------

    @precondition(lambda self: self.has_room)
    @rule(which=NUMBERS, at=st.none() | NUMBERS, theirs=MAYBE)
    def fork(self, which: int, at: int | None, theirs: str | None) -> None:
        line = self.edited_line(which, theirs)
        self.forked(line, None if at is None else at % line.turn)

    @precondition(lambda self: self.has_room)
    @rule(which=NUMBERS, revision=NUMBERS)
    def fork_revision(self, which: int, revision: int) -> None:
        line = self.line(which)
        if line.made:
            self.forked(line, None, 1 + revision % len(line.made))

    @precondition(lambda self: self.has_room)
    @rule(which=NUMBERS, to=NUMBERS)
    def rewind(self, which: int, to: int) -> None:
        line = self.line(which)
        self.forked(line, to % line.turn, back=True)
        self.current = list(self.lines)[-1]

    def forked(self, line: Line, at: int | None, revision: int | None = None, *, back: bool = False) -> None:
        before = self.bytes_of(line)
        expected = line.forked(f"draft-{len(self.lines) + 1}", at, revision)
        act: Callable[[], Any] = partial(
            fork, OpenDraft(self.workspace, self.task, self.draft(line).name), at=at, revision=revision
        )
        if back:
            assert at is not None
            act = partial(rewind, OpenDraft(self.workspace, self.task, self.draft(line).name), at)
        draft = anyio.run(act)
        assert draft.name == expected.name
        assert draft.origin == Origin(draft=line.name, turn=expected.turn - 1, revision=revision)
        assert self.bytes_of(line) == before
        self.lines[draft.name] = expected
        for source, text in [(one.source, one.text) for one in self.text(expected).revisions()]:
            if source is not None:
                assert source.revision is not None
                assert self.lines[source.draft].made[source.revision - 1].text == text
        inherited = self.turns(expected)
        assert [turn.number for turn in inherited] == list(range(1, expected.turn))
        assert all(turn.inherited and turn.session_id == draft.session_id for turn in inherited)
        self.touched.add(draft.name)

    @rule(which=NUMBERS, number=NUMBERS, theirs=MAYBE)
    def put_back(self, which: int, number: int, theirs: str | None) -> None:
        line = self.edited_line(which, theirs)
        if not line.made:
            return
        number = 1 + number % len(line.made)
        earlier = version(self.workspace, f"{self.address(line)}:{number}")
        made = Made("writer", line.turn, line.made[number - 1].text, source=earlier.source)
        with self.unless_busy(line):
            put_back(earlier)
            line.put(made)

    @rule(which=NUMBERS, turn=NUMBERS, theirs=MAYBE)
    def take_answer(self, which: int, turn: int, theirs: str | None) -> None:
        line = self.edited_line(which, theirs)
        turn = 1 + turn % line.turn
        if turn == line.turn or not line.ended[turn].finished:
            return
        text = in_manner_of(line.shown, f"Answer {turn}.\n\nThe ferry left.\n")
        source = Source(task=self.id, draft=line.name, turn=turn)
        with self.unless_busy(line):
            take_answer(OpenDraft(self.workspace, self.task, self.draft(line).name), turn)
            line.put(Made("model", line.turn, text, source=source))

    @rule(
        which=NUMBERS,
        source=NUMBERS,
        revision=st.none() | NUMBERS,
        numbers=st.lists(NUMBERS, min_size=1, max_size=3),
        after=st.none() | NUMBERS,
        theirs=MAYBE,
    )
    def pick(
        self,
        which: int,
        source: int,
        revision: int | None,
        numbers: list[int],
        after: int | None,
        theirs: str | None,
    ) -> None:
        line, other = self.edited_line(which, theirs), self.line(source)
        address = self.address(other)
        if revision is not None and other.made:
            address += f":{1 + revision % len(other.made)}"
        origin = version(self.workspace, address)
        if ":" not in address:
            other.catch_up()
        there, ours = paragraphs(origin.text), paragraphs(line.shown)
        if not there:
            with pytest.raises(ParagraphNotFound):
                pick(origin, OpenDraft(self.workspace, self.task, self.draft(line).name), [1])
            line.catch_up()
            return
        numbers = [1 + number % len(there) for number in numbers]
        after = None if after is None else after % (len(ours) + 1)
        before = line.shown
        line.catch_up()
        with self.unless_busy(line, unchanged_is_free=True):
            picked = pick(
                origin,
                OpenDraft(self.workspace, self.task, self.draft(line).name),
                numbers,
                after,
            )
            if picked.revision is None:
                assert self.text(line).read() == before
                return
            text = self.text(line).read()
            check_picked(before, text, there, sorted(set(numbers)), picked.placed)
            made = Made("writer", line.turn, text, source=origin.source, paragraphs=tuple(numbers))
            line.put(made)

    @rule(which=NUMBERS)
    def adopt(self, which: int) -> None:
        line = self.line(which)
        self.workspace.tasks.adopt(self.id, line.name)
        self.current = line.name

    @rule(which=NUMBERS, theirs=MAYBE)
    def drop(self, which: int, theirs: str | None) -> None:
        line = self.edited_line(which, theirs)
        if line.name == self.current:
            with pytest.raises(Invalid, match="adopt another one first"):
                self.workspace.tasks.drop(self.id, line.name)
            return
        with self.unless_busy(line), OpenDraft(self.workspace, self.task, line.name).lease():
            OpenDraft(self.workspace, self.task, line.name).take_hand_edit()
            self.workspace.tasks.drop(self.id, line.name)
            self.text(line).put_away()
            line.catch_up()
            if line.file is not None:
                trash = (self.workspace.hidden / "trash" / "drafts").glob(f"{self.id}-{line.name}.*.md")
                assert line.file.encode("utf-8", "surrogatepass") in [path.read_bytes() for path in trash]
            line.file, line.dropped = None, True

    @precondition(lambda self: any(line.dropped for line in self.lines.values()))
    @rule(which=NUMBERS)
    def take_up(self, which: int) -> None:
        dropped = [line for line in self.lines.values() if line.dropped]
        line = dropped[which % len(dropped)]
        self.workspace.tasks.take_up(self.id, line.name)
        OpenDraft(self.workspace, self.task, line.name).take_hand_edit(restore=True)
        line.dropped, line.file = False, line.text if line.made else None
        self.touched.add(line.name)

    # What must hold ----------------------------------------------------------------------------

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        """Also after a step that only read: of every draft, dropped ones too."""
        task = self.task
        assert task.current == self.current
        assert {name: draft.dropped for name, draft in task.drafts.items()} == {
            name: line.dropped for name, line in self.lines.items()
        }
        for line in self.lines.values():
            self.check_bytes(line)
            if line.name not in self.touched:
                continue
            text = self.text(line)
            assert [as_made(one) for one in text.revisions()] == list(enumerate(line.made, 1))
            assert text.read() == line.shown
            self.check_provenance(line)
        self.touched.clear()
        self.steps += 1

    def check_bytes(self, line: Line) -> None:
        """Old revisions stay where they are, and no file but those touched has changed."""
        journal, file = self.bytes_of(line)
        old = self.journals.get(line.name, b"")
        assert journal.startswith(old)
        assert journal == old or line.name in self.touched
        self.journals[line.name] = journal
        shown = None if line.file is None else line.file.encode("utf-8", "surrogatepass")
        assert file == shown

    def check_provenance(self, line: Line) -> None:
        def revisions_of(task: str, draft: str) -> Sequence[Revision]:
            assert task == self.id
            return self.workspace.text(self.task, draft).revisions()

        found = provenance(revisions_of, self.id, line.name, line.current)
        assert [one.text for one in found] == paragraphs(line.text)
        for mark in [mark for one in found for mark in (one.origin, one.changed)]:
            made = self.lines[mark.draft].made[mark.revision - 1]
            assert (mark.task, mark.author) == (self.id, made.author)

    # Access ------------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        return self.workspace.tasks.find(self.id)

    def line(self, which: int) -> Line:
        live = [line for line in self.lines.values() if not line.dropped]
        line = live[which % len(live)]
        self.touched.add(line.name)
        return line

    def draft(self, line: Line) -> Draft:
        return self.task.drafts[line.name]

    def text(self, line: Line) -> DraftText:
        return self.workspace.text(self.task, line.name)

    def turns(self, line: Line) -> list[Turn]:
        return self.workspace.tasks.turns(self.task, line.name)

    def address(self, line: Line) -> str:
        return f"{self.id}@{line.name}"

    def bytes_of(self, line: Line) -> tuple[bytes, bytes | None]:
        """Of the revisions and of the file."""
        revisions = self.workspace.hidden / "revisions" / self.id / f"{line.name}.jsonl"
        path = self.text(line).path
        return (
            revisions.read_bytes() if revisions.exists() else b"",
            path.read_bytes() if path.exists() else None,
        )

    @contextlib.contextmanager
    def conflict(self, line: Line) -> Iterator[list[TextConflict]]:
        """Those that the block met."""
        found: list[TextConflict] = []
        try:
            yield found
        except TextConflict as conflict:
            found.append(conflict)

    def said(self, line: Line, found: list[TextConflict]) -> None:
        """A conflict was raised if, and only if, the model put something aside; and it names both."""
        aside = len(line.made) if line.made[-1].aside else None
        got = [(one.current, one.text, one.aside) for one in found]
        assert got == ([(line.current, line.text, aside)] if aside else [])

    @contextlib.contextmanager
    def unless_busy(self, line: Line, *, unchanged_is_free: bool = False) -> Iterator[None]:
        """While a turn runs, what would write the draft is refused."""
        if line.lease is None:
            yield
            return
        try:
            yield
        except DraftBusy:
            return
        assert unchanged_is_free


def as_made(revision: Revision) -> tuple[int, Made]:
    """The source of a fork's text was held to its text when it was made."""
    source = None if revision.author == "fork" else revision.source
    return revision.number, Made(
        revision.author, revision.turn, revision.text, revision.aside, source, revision.paragraphs
    )


def check_picked(
    before: str, after: str, theirs: list[str], numbers: list[int], said: tuple[str, ...]
) -> None:
    """The text has its own paragraphs, with the picked ones where it was said, and not a byte else new."""
    ours: list[tuple[str, int | None]] = [(one, index) for index, one in enumerate(paragraphs(before))]
    put: dict[int, list[tuple[str, int | None]]] = {}
    for number, sentence in zip(numbers, said, strict=True):
        assert sentence.startswith(f"Paragraph {number} ")
        picked = with_line_ends(theirs[number - 1], before)
        place = int(found[1]) if (found := re.search(r"paragraph (\d+)\.", sentence)) else None
        if "is there already" in sentence:
            assert place is not None and ours[place - 1][0] == picked
        elif "took the place" in sentence:
            assert place is not None
            ours[place - 1] = (picked, place - 1)
        else:
            behind = len(ours) if sentence.endswith("at the end.") else place or 0
            put.setdefault(behind, []).append((picked, None))
    expected = [
        one
        for index, own in enumerate([("", None), *ours])
        for one in [*([own] if index else []), *put.get(index, [])]
    ]
    assert paragraphs(after) == [text for text, _ in expected]
    places, kept = spans(after), spans(before)
    if not kept:
        assert after.startswith(before)
        return
    own = [(place, index) for place, (_, index) in zip(places, expected, strict=True) if index is not None]
    for ((_, end), index), ((start, _), following) in pairwise(own):
        if (index + 1) not in put:
            assert after[end:start] == before[kept[index][1] : kept[following][0]]
    assert after[: places[0][0]] == before[: kept[0][0]]
    assert after[places[-1][1] :] == before[kept[-1][1] :]


def test_no_history_of_a_draft_loses_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is done to drafts, every revision stays, and every text is what its revisions make it."""
    for sync in ("fsync", "fdatasync"):  # no power is cut here, and they would take most of the time
        monkeypatch.setattr(os, sync, lambda _: None, raising=False)

    class Here(Histories):
        folder = tmp_path

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=max(8, settings().max_examples // 4),
            stateful_step_count=40,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
