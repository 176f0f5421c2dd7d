"""The turn in flight: what happens in a draft, on disk before anybody hears of it.

``live/<task>/<draft>.jsonl``, one line per event, begun anew with each turn::

    {"type":"begin","timestamp":"2026-…","position":1801}
    {"type":"text_delta","timestamp":"2026-…","position":1802,"task":"k7mq","turn":3,"text":"渡口…",…}

An event's position only grows, over turns and restarts. Who has seen everything up to some position
gets all that came later, once each; if that has been begun anew since, one ``reload`` first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

import smartwriter.files.durable as durable
import smartwriter.storage.encoding as encoding
import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading
import smartwriter.system.bounds as bounds
from smartwriter.events import Event, OfTurn, Reload, ending, ends_turn, from_dict
from smartwriter.storage.records import now
from smartwriter.storage.salvage import Entry
from smartwriter.tasks.values import Turn
from smartwriter.turns.calls import Calls
from smartwriter.turns.heard import Heard


class LiveJournal:
    """The writing side, for the one process that holds the draft's lease. Calls block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A power cut may take the last of it: the transcript has what counts.
        self._journal = journal.Journal(path, durability="os")
        self._last = _last_position(path)

    def begin(self) -> None:
        """Start a turn: what came before is in the transcript by now."""
        line = {"type": "begin", "timestamp": now().isoformat(), "position": self._last}
        durable.write_document(self.path, encoding.encode(line))

    def end(self, task: str, draft: str, turns: Sequence[Turn]) -> None:
        """Tell how turns ended whose process died."""
        if turns:
            self.append([ending(turn, task, draft) for turn in turns])

    @staticmethod
    def start_of_flight(path: Path) -> int:
        """The position behind which the turn in flight begins; that of the last event when none is."""
        return _last_position(path) if LiveJournal.has_ended(path) else 0

    @staticmethod
    def has_ended(path: Path) -> bool:
        """Whether the last turn that was begun there came to an end."""
        events = _events(path)
        return any(map(ends_turn, events)) or not events

    def append(self, events: Sequence[Event]) -> list[Event]:
        """Give events their positions and store them."""
        placed = []
        for event in events:
            self._last += 1
            placed.append(event.model_copy(update={"position": self._last}))
        self._journal.append(
            {"type": event.kind, "timestamp": now().isoformat()} | event.model_dump(mode="json")
            for event in placed
        )
        return placed

    def calls(self, turn: int) -> Calls:
        """What was being typed into the draft in a turn that did not end."""
        return Calls(turn, _events(self.path))

    def partial_text(self, turn: int) -> str:
        """What was heard of the answer of a turn that did not end."""
        own = (event for event in _events(self.path) if isinstance(event, OfTurn) and event.turn == turn)
        return Heard(own).text


@dataclass
class LiveReader:
    """The reading side, in any process: what came after a position, again and again. Calls block."""

    path: Path
    position: int
    """Up to which everything has been seen."""
    _file: tuple[int, int] = (0, 0)  # device and inode
    _offset: int = field(default=0)

    def read(self) -> list[Event]:
        """What has come since the last call."""
        try:
            with open(bounds.open_record(self.path), "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) != self._file:
                    self._file, self._offset = (status.st_dev, status.st_ino), 0
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return self._new(whole)

    def _new(self, lines: bytes) -> list[Event]:
        found: list[Event] = []
        for line in lines.split(b"\n"):
            entry = encoding.decode(line)
            if entry is None or not isinstance(entry.get("position"), int):
                continue
            if entry.get("type") == "begin":
                if entry["position"] > self.position:
                    found.append(Reload(task="", draft="", position=entry["position"]))
                    self.position = entry["position"]
            elif entry["position"] > self.position and (event := _event(entry)):
                found.append(event)
                self.position = event.position
        return found


def _events(path: Path) -> list[Event]:
    try:
        entries = reading.read(path).entries
    except FileNotFoundError:
        return []
    return [event for entry in entries if (event := _event(entry))]


def _event(entry: Entry) -> Event | None:
    try:
        event = from_dict(entry)
    except ValidationError:
        return None
    return event if event.task else None  # else it is not known of which draft it is


def _last_position(path: Path) -> int:
    try:
        entries = reading.read(path).entries
    except FileNotFoundError:
        entries = []
    positions = [entry["position"] for entry in entries if isinstance(entry.get("position"), int)]
    # Where the file is gone, the clock is ahead of any count that was in it.
    return max(positions, default=time.time_ns() // 1_000_000)
