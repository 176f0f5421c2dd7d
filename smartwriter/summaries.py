"""The cache behind the listing of sessions: each session's summary, as far as it was folded.

``cache/summaries/<projectKey>.jsonl``, a journal whose last line for a session counts::

    {"session_id":"5f0c…","size":48213,"check":2774161,"data":{"first_prompt":"写第一段",…}}

``size`` is how many bytes of the transcript went into ``data`` (the SDK's opaque fold state) and
``check`` a checksum of the last of these. A transcript only ever grows, so an entry whose size is
the file's is right, and a smaller one is completed by folding the bytes behind it. Anything else
is folded anew. The whole cache can be deleted.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import smartwriter.journal as journal
from smartwriter.damage import Entry
from smartwriter.errors import JournalError
from smartwriter.names import original

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry, SessionSummaryEntry

_CHECKED_BYTES = 64
_SPARE_LINES = 1000  # superseded lines that the cache may hold before it is written anew
_FOLD_ENTRIES = 512


@dataclass(frozen=True)
class Transcript:
    """A session's main transcript, as its folder lists it."""

    session_id: str
    path: str
    size: int
    """In bytes."""
    mtime_ms: int
    """Unix epoch milliseconds, from the file."""


def transcripts(folder: Path) -> list[Transcript]:
    """The sessions of a project, in no order; none where there is no such folder."""
    found = []
    try:
        with os.scandir(folder) as listing:
            for item in listing:
                name = item.name
                if not name.endswith(".jsonl") or name.startswith("."):
                    continue
                with contextlib.suppress(FileNotFoundError):  # deleted a moment ago
                    status = item.stat()
                    found.append(
                        Transcript(
                            original(name[:-6]), item.path, status.st_size, status.st_mtime_ns // 1_000_000
                        )
                    )
    except (FileNotFoundError, NotADirectoryError):
        return []
    return found


@dataclass(frozen=True)
class _Folded:
    size: int
    check: int
    data: dict[str, Any]


class Summaries:
    """The summaries of one project's sessions."""

    def __init__(self, cache: Path, sessions: Path) -> None:
        """
        :param cache: the journal that holds them.
        :param sessions: the project's folder of transcripts.
        """
        self._journal = journal.Journal(cache, durability="os")
        self._sessions = sessions

    def current(self) -> list[SessionSummaryEntry]:
        """One summary a session, each as of a moment during the call."""
        with journal.collector_paused():
            known, lines = self._read()
            listed = transcripts(self._sessions)
            changed: dict[str, _Folded] = {}
            result: list[SessionSummaryEntry] = []
            for transcript in listed:
                folded = known.get(transcript.session_id)
                data = folded.data if folded else {}
                if folded is None or folded.size != transcript.size:
                    folded, data = _fold(transcript, folded)
                    changed[transcript.session_id] = folded
                result.append(
                    {"session_id": transcript.session_id, "mtime": transcript.mtime_ms, "data": data}
                )
        self._remember(known, changed, lines, {transcript.session_id for transcript in listed})
        return result

    def forget(self, session_id: str) -> None:
        """Drop a session's summary, so that a new session of this id starts anew."""
        if self._journal.path.exists():
            with contextlib.suppress(JournalError):  # only a cache: checked by size and sum, too
                self._journal.append([{"session_id": session_id, "size": 0, "check": 0, "data": {}}])

    def _read(self) -> tuple[dict[str, _Folded], int]:
        try:
            lines = self._journal.read().entries
        except OSError:
            return {}, 0
        known = {}
        for line in lines:
            match line:
                case {"session_id": str(id), "size": int(size), "check": int(check), "data": dict(data)}:
                    known[id] = _Folded(size, check, data)
        return known, len(lines)

    def _remember(
        self, known: dict[str, _Folded], changed: dict[str, _Folded], lines: int, listed: set[str]
    ) -> None:
        new = {id: folded for id, folded in changed.items() if folded != known.get(id)}
        if not new:
            return
        try:
            if lines + len(new) > 2 * len(listed) + _SPARE_LINES:
                kept = {id: folded for id, folded in (known | new).items() if id in listed}
                journal.write_document(self._journal.path, b"".join(map(journal.encode, _lines(kept))))
            else:
                self._journal.append(_lines(new))
        except OSError:
            pass  # a cache: on a full or read-only disk the listing is only slower


def _lines(folded: dict[str, _Folded]) -> Iterable[dict[str, Any]]:
    return (
        {"session_id": id, "size": state.size, "check": state.check, "data": state.data}
        for id, state in folded.items()
    )


def _fold(transcript: Transcript, known: _Folded | None) -> tuple[_Folded, dict[str, Any]]:
    """The state to remember, and the data to show.

    They differ while the last line lacks its LF: it is shown, but may still be a torn one.
    """
    path = Path(transcript.path)
    try:
        if known is None or known.size > transcript.size or _check(path, known.size) != known.check:
            known = _Folded(0, 0, {})
        end = _end_of_last_line(path, transcript.size)
        data = known.data
        if known.size < end:
            data = _fold_entries(transcript, data, path, known.size, end)
        state = _Folded(end, _check(path, end), data)
        if end < transcript.size:
            data = _fold_entries(transcript, data, path, end, None)
        return state, data
    except OSError:  # moved away, or not readable: listed all the same
        return _Folded(0, 0, {}), {}


def _fold_entries(
    transcript: Transcript, data: dict[str, Any], path: Path, start: int, stop: int | None
) -> dict[str, Any]:
    from claude_agent_sdk import fold_session_summary  # 0.5 s to import: only where it is used

    key: SessionKey = {"project_key": "", "session_id": transcript.session_id}
    summary: SessionSummaryEntry = {"session_id": transcript.session_id, "mtime": 0, "data": data}
    for batch in _batches(path, start, stop):
        summary = fold_session_summary(summary, key, cast("list[SessionStoreEntry]", batch))
    return summary["data"]


def _batches(path: Path, start: int, stop: int | None) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    for after, entry in journal.stream(path, start):
        if stop is not None and after > stop:
            break
        batch.append(entry)
        if len(batch) == _FOLD_ENTRIES:
            yield batch
            batch = []
    if batch:
        yield batch


def _check(path: Path, size: int) -> int:
    start = max(0, size - _CHECKED_BYTES)
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        return zlib.crc32(file.read(size - start))


def _end_of_last_line(path: Path, size: int) -> int:
    """The offset after the last LF within the first ``size`` bytes."""
    with open(path, "rb", buffering=0) as file:
        end, block = size, b""
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            block = file.read(end - start)
            if (cut := block.rfind(b"\n")) >= 0:
                return start + cut + 1
            end = start
    return 0
