"""The cache behind the listing of sessions: each session's summary, as far as it was folded.

``cache/summaries/<projectKey>.jsonl``, a journal whose last line for a session counts::

    {"session_id":"5f0c…","size":48213,"check":2774161,"last":1790000000000,"data":{"first_prompt":"写",…}}

``size`` is how many bytes of the transcript went into ``data`` (the SDK's opaque fold state) and ``last``
(when its last entry was written, of those that say so; 0: none does), ``check`` a checksum of the last of
these. A transcript only ever grows, so an entry whose size is the file's is right, and a smaller one is
completed by folding the bytes behind it. Anything else is folded anew. The whole cache can be deleted.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
from smartwriter.errors import JournalError
from smartwriter.files.names import is_session_name, original
from smartwriter.storage.interface import Journal, Storage
from smartwriter.storage.salvage import Entry

if TYPE_CHECKING:
    from claude_agent_sdk.types import (
        SessionKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

_CHECKED_BYTES = 64
_SPARE_LINES = 1000  # superseded lines that the cache may hold before it is written anew
_FOLD_ENTRIES = 512
_BLOCK_BYTES = 1 << 18


_ORDER = itemgetter(0, 1, 2)


class _Folded(NamedTuple):
    size: int
    check: object
    last: int
    data: dict[str, Any]


_NOTHING = _Folded(0, 0, 0, {})


class Summaries:
    """The summaries of one project's sessions."""

    def __init__(self, storage: Storage, project: str) -> None:
        """:param project: the name that it is kept by."""
        self._storage = storage
        self._project = project
        self._journal = storage.journal("cache", "summaries", project, durability="os", kept=True)
        self._known = _Known([], {})

    def current(self) -> list[SessionSummaryEntry]:
        """One summary a session, each as of a moment during the call, in the order of :meth:`times`."""
        return [
            {"session_id": session_id, "mtime": time_ms, "data": dict(data)}
            for time_ms, _, session_id, data in self._current()
        ]

    def times(self) -> list[SessionStoreListEntry]:
        """When each session was written to last, in Unix epoch milliseconds, the latest first.

        Its entries know it: the last one that has a ``timestamp`` counts. So a copy that loses the times
        of the files keeps the order, and a clock that was ahead for a while matters no longer once it was
        set right and the session went on. Where no entry has one, it is the time of the file.

        Of sessions of the same time, the later file comes first, then the greater id.
        """
        return [{"session_id": session_id, "mtime": time_ms} for time_ms, _, session_id, _ in self._current()]

    def _current(self) -> list[tuple[int, int, str, dict[str, Any]]]:
        """The time of each session, that of its file, its id and its data."""
        changed: dict[str, _Folded] = {}
        result: list[tuple[int, int, str, dict[str, Any]]] = []
        with reading.collector_paused():
            known = self._read()
            for name, size, changed_ms in self._storage.names("sessions", self._project):
                session_id = name[2]
                if not is_session_name(session_id):
                    continue
                if "%" in session_id:
                    session_id = original(session_id)
                folded = known.folded.get(session_id)
                if folded is None or folded.size != size:
                    transcript = _Transcript(session_id, size, self._storage.journal(*name))
                    changed[session_id], folded = _fold(transcript, folded)
                result.append((folded.last or changed_ms, changed_ms, session_id, folded.data))
            result.sort(key=_ORDER, reverse=True)
        if changed:
            self._remember(known, changed, {session_id for _, _, session_id, _ in result})
        return result

    def forget(self, session_id: str) -> None:
        """Drop a session's summary, so that a new session of this id starts anew."""
        if self._journal.exists():
            with contextlib.suppress(JournalError):  # only a cache: checked by size and sum, too
                self._journal.append(
                    [{"session_id": session_id, "size": 0, "check": 0, "last": 0, "data": {}}]
                )

    def _read(self) -> _Known:
        known = self._known
        try:
            lines = self._journal.read().entries
        except OSError:
            return known
        if lines is not known.lines:
            count = len(known.lines)
            grown = 0 < count <= len(lines) and lines[count - 1] is known.lines[-1]
            folded = known.folded | _parsed(lines[count:]) if grown else _parsed(lines)
            known = self._known = _Known(lines, folded)
        return known

    def _remember(self, known: _Known, changed: dict[str, _Folded], listed: set[str]) -> None:
        new = {id: folded for id, folded in changed.items() if folded != known.folded.get(id)}
        if not new:
            return
        try:
            if len(known.lines) + len(new) > 2 * len(listed) + _SPARE_LINES:
                kept = {id: folded for id, folded in (known.folded | new).items() if id in listed}
                self._journal.begin(b"".join(map(encoding.encode, _lines(kept))))
            else:
                self._journal.append(_lines(new))
        except OSError:
            pass  # a cache: on a full or read-only disk the next process is only slower
        self._known = _Known(known.lines, known.folded | new)


class _Transcript(NamedTuple):
    """A session's main transcript."""

    session_id: str
    size: int
    """In bytes, as it was listed."""
    journal: Journal


class _Known(NamedTuple):
    lines: list[Entry]
    """What the cache held when it was last read."""
    folded: dict[str, _Folded]
    """What these say, and what was folded since."""


def _parsed(lines: list[Entry]) -> dict[str, _Folded]:
    known = {}
    for line in lines:
        get = line.get
        id, size, check, data = get("session_id"), get("size"), get("check"), get("data")
        last = get("last")  # an earlier version's lines have none
        # Not a match statement: that takes three times as long.
        if type(id) is str and type(size) is int and size >= 0 and type(last) is int and type(data) is dict:
            known[id] = _Folded(size, check, last, data)
    return known


def _lines(folded: dict[str, _Folded]) -> Iterable[dict[str, Any]]:
    return (
        {"session_id": id, "size": size, "check": check, "last": last, "data": data}
        for id, (size, check, last, data) in folded.items()
    )


def _fold(transcript: _Transcript, known: _Folded | None) -> tuple[_Folded, _Folded]:
    """The state to remember, and the one to show.

    They differ while the transcript ends with damage or without LF: what to make of that depends
    on what comes next.
    """
    try:
        with transcript.journal.opened() as on_disk:
            # Most are short: read once, however often they are looked at.
            short = transcript.size <= _BLOCK_BYTES
            file: BinaryIO = io.BytesIO(on_disk.read()) if short else on_disk
            end = _end_of_last_entry(file, transcript.size)
            if known is None or known.size > end or _check(file, known.size) != known.check:
                known = _NOTHING
            state = _fold_entries(transcript, known, file, end) if known.size < end else known
            state = state._replace(check=_check(file, end))
            shown = _fold_entries(transcript, state, file, None) if end < transcript.size else state
            return state, shown
    except OSError:  # moved away, or not readable: listed all the same
        return _NOTHING, _NOTHING


def _fold_entries(transcript: _Transcript, state: _Folded, file: BinaryIO, stop: int | None) -> _Folded:
    """The state after the entries behind it; up to an offset, or all."""
    from claude_agent_sdk import fold_session_summary  # 0.5 s to import: only where it is used

    key: SessionKey = {"project_key": "", "session_id": transcript.session_id}
    summary: SessionSummaryEntry = {"session_id": transcript.session_id, "mtime": 0, "data": state.data}
    last = state.last
    for batch in _batches(file, state.size, stop):
        summary = fold_session_summary(summary, key, cast("list[SessionStoreEntry]", batch))
        last = next(filter(None, map(_written_ms, reversed(batch))), last)
    return _Folded(state.size if stop is None else stop, state.check, last, summary["data"])


def _written_ms(entry: Entry) -> int:
    """When an entry was written, as it says; 0 where it does not."""
    stamp = entry.get("timestamp")
    if not isinstance(stamp, str):
        return 0
    try:
        when = datetime.fromisoformat(stamp.replace("Z", "+00:00"))
        return int((when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _batches(file: BinaryIO, start: int, stop: int | None) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    # From the line before, which tells the reader what to make of damage that follows it.
    for after, entry in reading.stream(file, _end_of_last_line(file, start - 1)):
        if after <= start:
            continue
        if stop is not None and after > stop:
            break
        batch.append(entry)
        if len(batch) == _FOLD_ENTRIES:
            yield batch
            batch = []
    if batch:
        yield batch


def _check(file: BinaryIO, size: int) -> int:
    start = max(0, size - _CHECKED_BYTES)
    file.seek(start)
    return zlib.crc32(file.read(size - start))


def _end_of_last_entry(file: BinaryIO, size: int) -> int:
    """The offset after the last line, within the first ``size`` bytes, that is a whole entry."""
    end = _end_of_last_line(file, size)
    while end > 0:
        start = _end_of_last_line(file, end - 1)
        file.seek(start)
        if encoding.decode(file.read(end - 1 - start)) is not None:
            return end
        end = start
    return 0


def _end_of_last_line(file: BinaryIO, size: int) -> int:
    """The offset after the last LF within the first ``size`` bytes."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK_BYTES)
        file.seek(start)
        if (cut := file.read(end - start).rfind(b"\n")) >= 0:
            return start + cut + 1
        end = start
    return 0
