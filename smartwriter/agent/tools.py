"""What the model may do: read and change the one draft that it writes, read its collection's memory, and
propose lines for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from anyio.to_thread import run_sync

from smartwriter.agent.notes import difference
from smartwriter.errors import Invalid, JournalError, TextConflict
from smartwriter.memory.proposal import DEFAULT_FILE, Proposal
from smartwriter.memory.proposals import Proposals
from smartwriter.memory.snapshot import Memory
from smartwriter.system.threads import to_the_end
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.revisions import current_number, text_of
from smartwriter.tasks.values import Revision
from smartwriter.text.passages import Edit
from smartwriter.text.wording import counted
from smartwriter.turns.keeper import Keeper

PART_CHARACTERS = 20_000


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    parameters: Mapping[str, Mapping[str, Any]]
    """The JSON schema of each parameter, by name."""
    run: Callable[[Mapping[str, Any]], Awaitable[str]]
    """What the model is told. Raises ``SmartWriterError`` with what went wrong."""
    optional: tuple[str, ...] = ()
    """Parameters that may be left out; all others are required."""


def _number(meaning: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": meaning}


def _string(meaning: str) -> dict[str, Any]:
    return {"type": "string", "description": meaning}


_EDITS: dict[str, Any] = {
    "type": "array",
    "description": "What to replace, in this order.",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "old_text": _string("The passage as it stands now, to the last character."),
            "new_text": _string("What it becomes."),
        },
        "required": ["old_text", "new_text"],
    },
}


class DraftTools:
    """The tools over one draft's text."""

    def __init__(
        self,
        text: DraftText,
        on_revision: Callable[[Revision], None],
        keeper: Keeper | None = None,
        on_conflict: Callable[[TextConflict], None] = lambda _: None,
    ) -> None:
        """:param keeper: keeps what the disk does not take; None: that is an error."""
        self.turn = 0
        """The one that revisions are written in."""
        self.known = 0
        """The last revision that the model knows, in full; 0 for none."""
        self.told = 0
        """The last one of which it was told what changed, if only in part."""
        self._text = text
        self._on_revision = on_revision
        self._parts_of, self._parts = 0, set[int]()  # of the text that is being read, those that were
        self._keeper = keeper
        self._kept_in = 0  # the turn that something was put aside in
        self._on_conflict = on_conflict

    def forget(self) -> None:
        """The model has only a summary any more of what it was told, and nothing of the text."""
        self.known = 0

    def all(self) -> list[Tool]:
        return [
            Tool(
                "read_draft",
                "The present text of the draft, or another version. A long one can be read in parts.",
                {
                    "part": _number(
                        f"Only this part, from 1; each has about {PART_CHARACTERS:,} characters."
                    ),
                    "version": _number("The number of another version, such as one that was cut off."),
                },
                self._read,
                ("part", "version"),
            ),
            Tool(
                "write_draft",
                "Replace the whole text of the draft. Use it for a first version or a rewrite.",
                {"text": _string("The new text, in Markdown.")},
                self._write,
            ),
            Tool(
                "edit_draft",
                "Replace passages of the draft, all or none. Each must stand there exactly once.",
                {"edits": _EDITS},
                self._edit,
            ),
            Tool(
                "append_draft",
                "Put more text behind the draft, as new paragraphs: so an article that is longer than one "
                "answer is written, piece by piece. Where you were cut off, name the version that was kept: "
                "the draft becomes that version, and your text follows it to the character.",
                {
                    "after": _string("The heading of the section at whose end it goes; by default the end."),
                    "version": _number("The number of a version that was cut off, to go on from it."),
                    "text": _string("What is added, in Markdown; nothing that stands there already."),
                },
                self._append,
                ("after", "version"),
            ),
        ]

    async def _read(self, arguments: Mapping[str, Any]) -> str:
        part, version = _whole_number(arguments, "part"), _whole_number(arguments, "version")
        text, number = await run_sync(self._present if version is None else lambda: self._version(version))
        parts = parts_of(text) if part is not None else [text]
        if part is not None and not 1 <= part <= len(parts):
            raise Invalid(f"There is no part {part}; the text has {len(parts)}.")
        if version is None:
            self._has_read(number, part, len(parts))
        if part is not None:
            return f"[Part {part} of {len(parts)}]\n\n{parts[part - 1]}"
        return text or "(The draft is empty.)"

    def _has_read(self, number: int, part: int | None, parts: int) -> None:
        """It knows a text when it has read every part of it."""
        if self._parts_of != number:
            self._parts_of, self._parts = number, set()
        self._parts |= set(range(1, parts + 1)) if part is None else {part}
        if len(self._parts) >= parts:
            self.known = number

    def _version(self, number: int) -> tuple[str, int]:
        return self._text.revision(number).text, number

    def _present(self) -> tuple[str, int]:
        self._text.take_hand_edit(self.turn)
        revisions = self._text.newest()
        return text_of(revisions), current_number(revisions)

    async def _write(self, arguments: Mapping[str, Any]) -> str:
        text, turn, known = str(arguments["text"]), self.turn, self.known
        return await self._revised(
            lambda: self._text.write(text, author="model", turn=turn, base=known), {"text": text}, tell=False
        )

    async def _edit(self, arguments: Mapping[str, Any]) -> str:
        edits, turn, known = _edits(arguments["edits"]), self.turn, self.known
        told = max(known, self.told)
        asked = {"edits": [[edit.old, edit.new] for edit in edits]}
        return await self._revised(
            lambda: self._text.edit(edits, turn=turn, base=known, told=told), asked, tell=True
        )

    async def _append(self, arguments: Mapping[str, Any]) -> str:
        text, after, version = (
            str(arguments["text"]),
            str(arguments.get("after") or ""),
            _whole_number(arguments, "version"),
        )
        turn, known = self.turn, self.known
        if version is None:
            append = partial(self._text.append, text, after, turn=turn)
            return await self._revised(append, {"append": text, "after": after}, tell=True)
        if after:
            raise Invalid("Name a heading or a version, not both; nothing was changed.")
        return await self._revised(
            lambda: self._text.write(
                self._text.revision(version).text + text, author="model", turn=turn, base=known
            ),
            {"append": text, "version": version},
            tell=False,
        )

    async def _revised(self, change: Callable[[], Revision], asked: Mapping[str, Any], *, tell: bool) -> str:
        """:param asked: what is to be kept of it where the disk does not take the change."""
        if self._keeper is not None and self._keeper.waits and not await self._settled(self._keeper):
            return await self._put_aside(self._keeper, asked)
        try:
            revision = await to_the_end(change)
        except JournalError:
            if self._keeper is None:
                raise
            return await self._put_aside(self._keeper, asked)
        except TextConflict as conflict:
            self.known = conflict.current
            self._on_conflict(conflict)
            raise
        theirs, whole = await run_sync(self._changed_meanwhile, revision) if tell else ("", True)
        if whole:
            self.known = revision.number
        self.told = revision.number
        self._on_revision(revision)
        return f"Saved as revision {revision.number}, {counted(len(revision.text), 'character')}.{theirs}"

    async def _settled(self, keeper: Keeper) -> bool:
        try:
            await keeper.settle()
        except OSError:
            return False
        return True

    async def _put_aside(self, keeper: Keeper, asked: Mapping[str, Any]) -> str:
        """Kept until there is room for it, behind what is kept already."""
        follows, self._kept_in = self._kept_in == self.turn, self.turn
        at = {"turn": self.turn, "base": self.known, "follows": follows}
        await keeper.write("text", [{"type": "text", **asked}], at=at)
        return (
            "The author's disk is full or gone. This is kept all the same, and becomes the text as soon as "
            "the disk takes it: do not write it again."
        )

    def _changed_meanwhile(self, revision: Revision) -> tuple[str, bool]:
        """What the writer changed between what the model was told and its own revision.

        And whether it knows the whole text now.
        """
        told, knew_all = max(self.known, self.told), self.known >= self.told
        if revision.number <= told + 1:
            return "", knew_all
        revisions = self._text.revisions()
        known = text_of(earlier for earlier in revisions if earlier.number <= told)
        before = text_of(earlier for earlier in revisions if earlier.number < revision.number)
        if known == before:
            return "", knew_all
        diff, whole = difference(known, before)
        more = "" if whole else ", of which this is a part; read it before you rewrite it"
        return f"\n\nBefore it, the author had changed the draft by hand{more}:\n\n{diff}", knew_all and whole


class MemoryTools:
    """The tools over a collection's memory: it is read, and lines for it are proposed to the writer."""

    def __init__(
        self,
        proposals: Proposals,
        task: str,
        draft: str,
        on_proposal: Callable[[Proposal], None],
        keeper: Keeper | None = None,
    ) -> None:
        """:param keeper: as for the draft's tools."""
        self.turn = 0
        self.memory = Memory(())
        """As the turn's prompt has it."""
        self._proposals = proposals
        self._task, self._draft = task, draft
        self._on_proposal = on_proposal
        self._keeper = keeper

    def all(self) -> list[Tool]:
        """None where there is no memory."""
        return [*self._reading(), *self._proposing()]

    def _reading(self) -> list[Tool]:
        if not self.memory.hashes:
            return []
        return [
            Tool(
                "read_memory",
                "The whole text of one of the author's notes about the series.",
                {"file": _string("Its name or title, as the system prompt lists it.")},
                self._read,
            )
        ]

    def _proposing(self) -> list[Tool]:
        """Lines are proposed for the collection's own file of facts, where it has one."""
        files = (*self.memory.files, *self.memory.on_demand)
        if not any(file.path.name == DEFAULT_FILE for file in files if file.origin == self.memory.collection):
            return []
        return [
            Tool(
                "propose_memory",
                "Propose one line for the series' memory: a fact, claim or term that later articles need, "
                "that the author has stated or decided. The author decides; nothing is remembered before.",
                {
                    "line": _string("One sentence, in the language of the memory."),
                    "replaces": _string(
                        "A line of the memory that is not true any more because of it, word for word."
                    ),
                },
                self._propose,
                optional=("replaces",),
            ),
        ]

    async def _read(self, arguments: Mapping[str, Any]) -> str:
        wanted = str(arguments["file"])
        file = self.memory.find(wanted)
        if file is None:
            raise Invalid(f"There is no memory file {wanted!r}; there are: {', '.join(self.memory.hashes)}.")
        return file.text.strip()

    async def _propose(self, arguments: Mapping[str, Any]) -> str:
        line, replaces, turn = str(arguments["line"]), str(arguments.get("replaces") or ""), self.turn
        try:
            proposal = await run_sync(
                lambda: self._proposals.propose(
                    line, task=self._task, draft=self._draft, turn=turn, replaces=replaces
                )
            )
        except Invalid:  # also of a memory file that leads elsewhere
            raise
        except JournalError:
            if self._keeper is None:
                raise
            kept = {"type": "proposal", "line": line, "replaces": replaces}
            await self._keeper.write("proposal", [kept], at={"turn": turn})
            return (
                "The author's disk is full or gone. This is kept all the same, and proposed as soon as the "
                "disk takes it: do not propose it again."
            )
        self._on_proposal(proposal)
        return "Proposed; the author will decide."


def parts_of(text: str) -> list[str]:
    """A text in pieces that can be read one by one; each ends where a paragraph does, if it can."""
    parts, at = [], 0
    while len(text) - at > PART_CHARACTERS:
        end = text.rfind("\n\n", at + PART_CHARACTERS // 2, at + PART_CHARACTERS)
        end = at + PART_CHARACTERS if end < 0 else end + 2
        parts.append(text[at:end])
        at = end
    return [*parts, text[at:]]


def _whole_number(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise Invalid(f"{name} must be a whole number; nothing was changed.") from None


def _edits(given: Any) -> list[Edit]:
    try:
        return [Edit(str(edit["old_text"]), str(edit["new_text"])) for edit in given]
    except (TypeError, KeyError):
        raise Invalid(
            "edits must be a list of objects with old_text and new_text; nothing was changed."
        ) from None
