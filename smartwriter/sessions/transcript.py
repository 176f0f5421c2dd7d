"""Reading what a transcript says: the conversation in it, and where its turns end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from smartwriter.sessions.compaction import is_compaction, of_entry
from smartwriter.sessions.speakers import prompt_and_notes, speaker, words
from smartwriter.storage.interface import Journal
from smartwriter.storage.reading import Contents
from smartwriter.storage.salvage import Entry
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.values import ANSWERED, Turn

_CHAINED = frozenset({"user", "assistant", "attachment", "system", "progress"})


@dataclass(frozen=True)
class Message:
    """One thing that was said."""

    role: str
    """``user`` or ``assistant``; ``compaction``: nobody said it, the model goes on from a summary here."""
    uuid: str
    text: str
    tools: tuple[str, ...]
    """Names of the tools that it used."""
    gap: bool = False
    """Something is missing before it: an entry that it goes back to is not in the file."""
    notes: str = ""
    """What the program told the model before this prompt of the writer's."""


@dataclass(frozen=True)
class Transcript:
    """What a session has said. Calls block."""

    journal: Journal

    @property
    def path(self) -> Path:
        """For messages, and for who looks at the file itself."""
        return Path(self.journal.where)

    def has_entries(self) -> bool:
        return next(self.journal.stream(), None) is not None

    def has(self, uuid: str) -> bool:
        """Whether there is an entry of this uuid."""
        return any(entry.get("uuid") == uuid for entry in self.journal.stream())

    def has_told(self, turn: Turn) -> bool:
        """Whether the model has got the prompt of a turn, and knows of it still."""
        return turn.state in ANSWERED or (not turn.left_out and self.has(turn.uuid))

    def entries(self) -> Iterator[Entry]:
        """One after the other; none where nothing was said yet."""
        return self.journal.stream()

    def read(self) -> Contents:
        return self.journal.read()


def messages(entries: Iterable[Entry], prompts: Mapping[str, str] | None = None) -> list[Message]:
    """The conversation, as a writer would read it: no tool results, and only what somebody said.

    As the SDK's own reader, it goes back from the last thing said from parent to parent, so that
    a line of the conversation that was abandoned is not shown. Unlike it, it gets past entries
    that are missing, parents that lead in a circle, and compactions.

    :param prompts: what the writer said in each turn, by uuid: notes were sent with it.
    """
    chain, broken = _line_of_conversation(_in_chain(entries))
    found: list[Message] = []
    gap = False
    for entry in chain:
        gap = gap or entry["uuid"] in broken
        if (prompt := (prompts or {}).get(entry["uuid"])) is not None:
            prompt, notes = prompt_and_notes(words(entry)[0], prompt)
            command = is_command(prompt) and bool(found) and found[-1].role == "compaction"
            # The CLI notes a command after what it did.
            place = len(found) - 1 if command else len(found)
            found.insert(place, Message("user", entry["uuid"], prompt, (), gap, notes))
        elif role := speaker(entry):
            text, tools = words(entry)
            found.append(Message(role, entry["uuid"], text, tools, gap))
        elif is_compaction(entry):
            found.append(Message("compaction", entry["uuid"], str(of_entry(entry)), (), gap))
        else:
            continue
        gap = False
    return found


def answer_to(
    entries: Iterable[Entry], prompt: str, later: Collection[str] = (), *, whole: bool = True
) -> str | None:
    """The answer to the prompt of this uuid; None when it did not come to its end.

    :param later: the uuids of later prompts.
    :param whole: False: as much of it as there is.
    """
    texts: list[str] = []
    ended = False
    for entry in of_turn(entries, prompt, later):
        if speaker(entry) == "assistant":
            texts.append(words(entry)[0])
            ended = entry["message"].get("stop_reason") == "end_turn"
    return "\n\n".join(text for text in texts if text) if ended or not whole else None


def of_turn(entries: Iterable[Entry], prompt: str, later: Collection[str]) -> Iterator[Entry]:
    """The entries from the prompt of this uuid to the next of some later prompts."""
    after = False
    for entry in entries:
        if entry.get("uuid") in later:
            break
        after = after or entry.get("uuid") == prompt
        if after:
            yield entry


def descendants(entries: Iterable[Entry], prompts: Collection[str]) -> Iterator[Entry]:
    """The prompts of some uuids, and the entries that go back to one of them, in file order."""
    found = set[str]()
    for entry in entries:
        uuid, parent = entry.get("uuid"), entry.get("parentUuid") or entry.get("logicalParentUuid")
        if isinstance(uuid, str) and (uuid in prompts or (isinstance(parent, str) and parent in found)):
            found.add(uuid)
            yield entry


def relinked(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with links past those that are missing, so that any reader reaches them all."""
    parents, broken = _parents(_in_chain(entries))
    return [
        entry | {_link(entry): parents[entry["uuid"]]} if entry.get("uuid") in broken else entry
        for entry in entries
    ]


def _link(entry: Entry) -> str:
    """What names the entry before: with a parent of its own, a compaction would be none any more."""
    return "logicalParentUuid" if is_compaction(entry) else "parentUuid"


def stretches(entries: Sequence[Entry]) -> list[Sequence[Entry]]:
    """The entries up to the first compaction, from there to the second, and so on.

    A reader that starts with what the model is sent, as the SDK's, sees only the last.
    """
    starts = [number for number, entry in enumerate(entries) if is_compaction(entry)]
    return [entries[start:end] for start, end in pairwise([0, *starts, len(entries)])]


def cut(entries: Sequence[Entry], later_prompts: Collection[str]) -> str | None:
    """The uuid of the last entry before the first of some later turns: where a turn's fork is cut.

    Cutting anywhere earlier, at a tool call say, makes the CLI invent a result for it.

    :param later_prompts: the uuids of the later turns' prompts.
    """
    first = next((number for number, entry in enumerate(entries) if entry.get("uuid") in later_prompts), None)
    shared = entries if first is None else entries[: _start_of_turn(entries, first)]
    for entry in reversed(shared):
        uuid = entry.get("uuid")
        if isinstance(uuid, str) and entry.get("type") in _CHAINED and not entry.get("isSidechain"):
            return uuid
    return None


def resume_point(entries: Sequence[Entry], turns: Sequence[Turn]) -> tuple[bool, str | None]:
    """Where the conversation goes on when its last turns are left out.

    :returns: whether any of them is in the transcript, and the last entry before them; None where they
        are all that there is.
    """
    stored = {uuid for entry in entries if isinstance(uuid := entry.get("uuid"), str)}
    dropped = set()
    for turn in reversed(turns):
        if turn.left_out:
            dropped.add(turn.uuid)
        elif turn.uuid in stored:
            break
    if stored.isdisjoint(dropped):
        return False, None
    return True, cut(entries, dropped)


def compacted_since(entries: Sequence[Entry], prompt: str, later: Collection[str] = ()) -> bool:
    """Whether there is a compaction from the beginning of the turn of this prompt on.

    :param later: the uuids of the prompts of turns that do not count any more.
    """
    numbers = {entry["uuid"]: number for number, entry in enumerate(entries) if "uuid" in entry}
    if prompt not in numbers:
        return False
    end = min((numbers[uuid] for uuid in later if uuid in numbers), default=len(entries))
    end = _start_of_turn(entries, end) if end < len(entries) else end
    return any(map(is_compaction, entries[_start_of_turn(entries, numbers[prompt]) : end]))


def _start_of_turn(entries: Sequence[Entry], prompt: int) -> int:
    """The number of a turn's first entry.

    That is its prompt, but for a command: the CLI writes down what it was after what it did, a
    compaction's boundary and summary included.
    """
    numbers = {entry["uuid"]: number for number, entry in enumerate(entries[:prompt]) if "uuid" in entry}
    start, of_command = prompt, _is_command(entries[prompt])
    while of_command:
        parent = numbers.get(entries[start].get("parentUuid"))
        if parent is None or parent >= start:
            break
        entry = entries[parent]
        summarised = any(map(_is_summary, entries[start:prompt]))
        own = entry.get("promptId") == entries[prompt].get("promptId")
        if not (summarised or (own and (entry.get("isMeta") or _is_summary(entry)))):
            break
        start = parent
    return start


def _is_command(entry: Entry) -> bool:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, str) and content.startswith("<command-name>")


def _is_summary(entry: Entry) -> bool:
    return bool(entry.get("isCompactSummary"))


# The line of a conversation -------------------------------------------------------------------


def _in_chain(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The entries that have a place in the conversation, each once, by uuid in file order."""
    found: dict[str, Entry] = {}
    for entry in entries:
        uuid = entry.get("uuid")
        # A type that is not known yet is in the chain if it has a parent.
        if isinstance(uuid, str) and uuid and (entry.get("type") in _CHAINED or "parentUuid" in entry):
            found.setdefault(uuid, entry)
    return found


def _line_of_conversation(entries: dict[str, Entry]) -> tuple[list[Entry], set[str]]:
    """The entries from the first to the last thing said, and which of them follow a gap."""
    parents, broken = _parents(entries)
    leaf = _last_said(entries, parents)
    line: list[Entry] = []
    while leaf is not None:
        line.append(entries[leaf])
        leaf = parents[leaf]
    line.reverse()
    return _with_parallel_calls(line, entries), broken


def _parents(entries: dict[str, Entry]) -> tuple[dict[str, str | None], set[str]]:
    """The parent of each entry, without circles. One that is missing or leads in a circle is
    replaced by the entry before it in the file; those entries are the second result."""
    forest = _Forest(entries)
    broken: set[str] = set()
    placed: set[str] = set()
    later: list[tuple[str, str]] = []  # links to what comes later: shuffled lines, or a circle
    for uuid, entry in entries.items():
        # A compaction starts a new chain, and remembers where the old one ended.
        parent = entry.get("parentUuid") or entry.get("logicalParentUuid")
        placed.add(uuid)
        if not parent:
            continue
        if not isinstance(parent, str) or parent not in entries:
            broken.add(uuid)
        elif parent in placed and parent != uuid:
            forest.link(uuid, parent)
        else:
            later.append((uuid, parent))
    broken.update(uuid for uuid, parent in later if not forest.link(uuid, parent))
    before: dict[bool, str] = {}  # in the main line, and in side lines
    for uuid, entry in entries.items():
        side = bool(entry.get("isSidechain"))
        if uuid in broken and side in before:
            forest.link(uuid, before[side])
        before[side] = uuid
    return forest.parents, broken


class _Forest:
    """Entries and their parents, kept free of circles."""

    def __init__(self, uuids: Iterable[str]) -> None:
        self.parents: dict[str, str | None] = dict.fromkeys(uuids)
        self._up: dict[str, str] = {uuid: uuid for uuid in self.parents}  # shortcuts to the first

    def link(self, uuid: str, parent: str) -> bool:
        """Give an entry its parent, unless that would close a circle."""
        if self._first(parent) == uuid:
            return False
        self.parents[uuid] = self._up[uuid] = parent
        return True

    def _first(self, uuid: str) -> str:
        first = uuid
        while self._up[first] != first:
            first = self._up[first]
        while self._up[uuid] != first:  # the next search takes one step
            self._up[uuid], uuid = first, self._up[uuid]
        return first


def _last_said(entries: dict[str, Entry], parents: dict[str, str | None]) -> str | None:
    """Where the conversation stands: of the ends of all its lines, the last one in the file."""
    followed = set(parents.values())
    ends: set[str] = set()
    seen: set[str] = set()
    for end in entries:
        uuid: str | None = None if end in followed else end
        # Behind the last thing said there may be service entries that hang on it.
        while uuid is not None and uuid not in seen:
            seen.add(uuid)
            if _is_said(entries[uuid]):
                ends.add(uuid)
                break
            uuid = parents[uuid]
    return next((uuid for uuid in reversed(entries) if uuid in ends), None)


def _is_said(entry: Entry) -> bool:
    return entry.get("type") in ("user", "assistant") and not any(
        entry.get(mark) for mark in ("isSidechain", "teamName", "isMeta")
    )


def _with_parallel_calls(line: list[Entry], entries: dict[str, Entry]) -> list[Entry]:
    """Put back the calls of an answer that made several at once.

    The CLI writes each as an entry of its own, and going from parent to parent meets only those
    before the one whose result the conversation went on from.
    """
    on_line = {entry["uuid"] for entry in line}
    missing: dict[str, list[Entry]] = {}
    for uuid, entry in entries.items():
        if uuid not in on_line and (answer := _answer(entry)):
            missing.setdefault(answer, []).append(entry)
    if not missing:
        return line
    last = {answer: entry["uuid"] for entry in line if (answer := _answer(entry))}
    whole: list[Entry] = []
    for entry in line:
        whole.append(entry)
        answer = _answer(entry)
        if answer and last[answer] == entry["uuid"]:
            whole += missing.get(answer, [])
    return whole


def _answer(entry: Entry) -> str | None:
    """The id that all entries of one answer of the model share."""
    message = entry.get("message")
    if entry.get("type") != "assistant" or not isinstance(message, dict):
        return None
    id = message.get("id")
    return id if isinstance(id, str) and id else None
