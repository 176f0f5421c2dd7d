"""The values that a workspace is made of: tasks, drafts, turns and revisions.

Frozen models without I/O. A change makes a new value, which the disk layer appends as a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from smartwriter.errors import Invalid
from smartwriter.files.names import is_plain_name, is_readable_name
from smartwriter.storage.records import Moment, Value, now

MAIN = "main"
UNFILED = "unfiled"
"""The collection of tasks that were given none."""


def _plain(name: str) -> str:
    if not is_plain_name(name):
        raise ValueError("it could lead out of its folder")
    return name


def _readable(name: str) -> str:
    if not is_readable_name(name):
        raise ValueError("it could lead out of its folder, or cannot be shown")
    return name


# A value comes from a file, and that perhaps from somebody else: a name of a file means one in its folder.
PlainName = Annotated[str, AfterValidator(_plain)]
"""A name within ``.smartwriter``."""
ReadableName = Annotated[str, AfterValidator(_readable)]
"""A name within ``collections/``."""


class Origin(Value):
    """Where a fork started."""

    draft: PlainName
    turn: int
    """The last turn that it shares; 0 for none."""
    revision: int | None = None
    """Whose text it took over; None: the one that the turn left."""


class Choice(Value):
    """What the writer preferred, of two texts that were shown without their names."""

    chosen: str
    """As ``task@draft:revision``."""
    other: str
    why: str = ""
    at: Moment = Field(default_factory=now)


class WhatIf(Value):
    """Another version of a memory file, for one draft alone."""

    sha256: str
    base: str
    """The sha256 of the version that the collection had at the time."""


class Draft(Value):
    """One line of development of a task: a session and a text."""

    name: PlainName
    session_id: PlainName
    """Chosen by us, and recorded before the first token."""
    earlier_sessions: tuple[PlainName, ...] = ()
    """Ids that the session had before, oldest first."""
    origin: Origin | None = None
    created_at: Moment = Field(default_factory=now)
    dropped: bool = False
    memory: Mapping[str, WhatIf] = Field(default_factory=dict)
    """Memory files of which its sessions get another version, by name."""


class Finished(Value):
    """That a task was finished, and with what."""

    at: Moment = Field(default_factory=now)
    draft: PlainName
    revision: int
    article: str
    """The article's path, as seen from the collection."""
    state: Literal["finishing", "finished", "reopened"] = "finished"

    @property
    def closed(self) -> bool:
        """Whether the draft takes no more turns."""
        return self.state == "finished"


class Task(Value):
    """One article being written."""

    id: PlainName
    """Short, ASCII, easy to type."""
    title: str
    collection: str
    project_key: str
    """Under which its sessions are stored, for life, whatever happens to names and folders."""
    folder: ReadableName
    """The title as it names files, fixed at creation."""
    created_at: Moment = Field(default_factory=now)
    current: PlainName = MAIN
    drafts: Mapping[PlainName, Draft]
    target: int | None = None
    """How long the article is to become, in words."""
    choices: tuple[Choice, ...] = ()
    """Oldest first."""
    finished: Finished | None = None
    """None: never."""

    def address(self, draft: str) -> str:
        return f"{self.id}@{draft}"

    @property
    def live_drafts(self) -> list[str]:
        return [name for name, draft in self.drafts.items() if not draft.dropped]

    def with_draft(self, draft: Draft) -> Task:
        return self.model_copy(update={"drafts": {**self.drafts, draft.name: draft}})


def check_open(task: Task, draft: str) -> None:
    """:raises Invalid: when a draft takes no more turns, because the task was finished with it."""
    if closed := why_closed(task, draft):
        raise Invalid(closed)


def why_closed(task: Task, draft: str) -> str:
    """That a draft takes no more turns, and how it would; empty where it does."""
    finished = task.finished
    if finished is None or not finished.closed or finished.draft != draft:
        return ""
    return f"{task.title} is finished; to write on: smartwriter reopen {task.id}"


class TurnState(str, Enum):
    running = "running"
    """Started; or, when nothing writes the draft any more, cut off."""
    finished = "finished"
    failed = "failed"
    """Ended without its answer; ``detail`` says why."""
    stopped = "stopped"
    """Stopped on request; what had been written by then is in the transcript."""
    interrupted = "interrupted"
    """Its process died in it; what had been stored by then is in the transcript."""
    recovered = "recovered"
    """Its process died in it, but the CLI finished the answer, and it was taken in later."""


ANSWERED = (TurnState.finished, TurnState.recovered)
"""The states of turns that have their whole answer."""
DIED = (TurnState.running, TurnState.interrupted, TurnState.recovered)
"""The states of turns whose process died, where none runs: it did not tell all that happened in them."""


class Usage(Value):
    """Of one turn."""

    input_tokens: int = 0
    cached_tokens: int = 0
    """Read from or written to the prompt cache; not in ``input_tokens``."""
    output_tokens: int = 0
    cost_usd: float = 0.0
    duration_ms: int = 0

    def __add__(self, other: Usage) -> Usage:
        mine, theirs = self.model_dump(), other.model_dump()
        return Usage(**{name: mine[name] + theirs[name] for name in mine})


class Turn(Value):
    """One prompt and all that happens until its result."""

    number: int
    """From 1 within its draft; a fork starts with the numbers it shares."""
    uuid: str
    """Of the prompt's transcript entry, known before the turn starts."""
    session_id: PlainName
    prompt: str
    state: TurnState
    started_at: Moment = Field(default_factory=now)
    ended_at: Moment | None = None
    detail: str = ""
    partial: str = ""
    """What was heard of an answer that did not come to its end."""
    stop_reason: str = ""
    """Why the model ended its answer, where it was not because it was done: ``refusal``, ``max_tokens``,
    ``pause_turn``, ``model_context_window_exceeded``, ``empty``, or another one of the API's."""
    left_out: bool = False
    """Its prompt got no answer, and the conversation goes on as if it had not been sent."""
    memory: Mapping[str, str] = Field(default_factory=dict)
    """The sha256 of each memory file that the turn had, by name."""
    revision: int | None = None
    """The last revision of the text that the model knew of when the turn ended."""
    usage: Usage = Usage()
    model: str = ""
    inherited: bool = False
    """It was written in the draft that this one was forked from."""


def usage_of(turns: Iterable[Turn]) -> Usage:
    """What turns used, those left out that were written in another draft: they count there."""
    return sum((turn.usage for turn in turns if not turn.inherited), Usage())


Author = Literal["model", "writer", "fork"]
Breaks = Literal["at the end", "within", "nowhere"]
"""Where a text breaks off that a call would have made: within it, if a passage was being replaced or put in;
nowhere, if all of the call had arrived."""


class Source(Value):
    """Where a revision's text, or a part of it, comes from."""

    task: str
    draft: str
    revision: int | None = None
    turn: int | None = None
    """The answer of this turn was taken."""

    def __str__(self) -> str:
        address = f"{self.task}@{self.draft}"
        if self.turn is not None:
            return f"the answer of turn {self.turn} of {address}"
        return f"{address}:{self.revision}"


class CutOff(Value):
    """What a text would have become by calls that never came to their end."""

    text: str
    breaks: Breaks = "at the end"
    call: str = ""
    """Its id; empty: unknown. What comes to light of it later makes another version."""


class Revision(Value):
    """One version of a draft's text."""

    number: int
    """From 1 within its draft."""
    author: Author
    turn: int
    """During which turn, or since the one before, it was written."""
    at: Moment = Field(default_factory=now)
    sha256: str
    text: str
    source: Source | None = None
    paragraphs: tuple[int, ...] = ()
    """Of the source's text, from 1, that were taken over; none: all."""
    gained: int | None = None
    """Words, to the text before it; with ``lost``. None: recorded by a version that did not count."""
    lost: int | None = None
    aside: bool = False
    """Kept, but never the draft's text: it did not fit to what the writer had changed meanwhile, or is
    ``cut_off``."""
    cut_off: bool = False
    """What had arrived of a call that never came to its end; always ``aside``."""
    breaks: Breaks = "at the end"
    call: str = ""
    """Of one that is ``cut_off``, with ``breaks``: as in :class:`CutOff`."""

    @property
    def is_whole(self) -> bool:
        """Of one that is ``cut_off``: all of the call had arrived, and only its doing was missing."""
        return self.breaks == "nowhere"
