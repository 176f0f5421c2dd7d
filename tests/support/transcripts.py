"""Transcripts for tests, and a disk that fails."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from smartwriter.sessions.store import FileSessionStore

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStoreEntry

SESSION = "11111111-2222-4333-8444-555555555555"
KEY: SessionKey = {"project_key": "book", "session_id": SESSION}


def entry_uuid(n: int) -> str:
    return f"{n:08x}-0000-4000-8000-000000000000"


def entry(n: int, text: str | None = None, **more: Any) -> dict[str, Any]:
    role = "assistant" if n % 2 else "user"
    content = [{"type": "text", "text": f"text {n}" if text is None else text}]
    return {
        "type": role,
        "uuid": entry_uuid(n),
        "parentUuid": entry_uuid(n - 1) if n else None,
        "sessionId": SESSION,
        "timestamp": f"2026-01-01T00:{n // 60:02d}:{n % 60:02d}Z",
        "cwd": "/w/book",
        "message": {"role": role, "content": content},
        **more,
    }


def entries(*numbers: int) -> list[dict[str, Any]]:
    return [entry(n) for n in numbers]


def line(n: int, text: str | None = None, **more: Any) -> bytes:
    return json.dumps(entry(n, text, **more)).encode() + b"\n"


def lines(*numbers: int) -> bytes:
    return b"".join(map(line, numbers))


def healthy() -> bytes:
    return lines(0, 1, 2, 3, 4, 5)


def numbers(found: Iterable[Any] | None) -> list[int]:
    """The numbers of entries, as :func:`entry` made them."""
    assert found is not None
    return [int(one["uuid"][:8], 16) for one in found]


def as_stored(found: Iterable[dict[str, Any]]) -> list[SessionStoreEntry]:
    """Entries under the type that the SDK gives them."""
    return cast("list[SessionStoreEntry]", list(found))


def write_transcript(store: FileSessionStore, data: bytes, key: SessionKey = KEY) -> Path:
    """Put bytes where the store keeps a session."""
    path = store.path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# --- a disk that fails ------------------------------------------------------------------------

Act = Callable[..., Any]
"""What a call does instead: it gets the real function, then the call's arguments."""


class Disk:
    """Stands in for ``os``: it notes calls, and some of them fail. To be used with ``in_place_of_os``."""

    WATCHED = frozenset({"open", "write", "fsync", "fdatasync", "ftruncate", "stat", "pread"})

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        """Function and file name, in order."""
        self._next: dict[str, deque[Act]] = {name: deque() for name in self.WATCHED}
        self._names: dict[int, str] = {}

    def then(self, function: str, *acts: Act) -> None:
        """What the next calls of a function do; after these it works again."""
        self._next[function].extend(acts)

    def names(self, function: str) -> list[str]:
        """The files on which a function was called."""
        return [name for called, name in self.calls if called == function]

    def __getattr__(self, function: str) -> Any:
        real = getattr(os, function)
        if function not in self.WATCHED:
            return real

        def call(file: int | str | Path, *arguments: Any) -> Any:
            name = self._names.get(file, "?") if isinstance(file, int) else Path(file).name
            self.calls.append((function, name))
            waiting = self._next[function]
            result = waiting.popleft()(real, file, *arguments) if waiting else real(file, *arguments)
            if function == "open":
                self._names[result] = name
            return result

        return call


def fails(error: BaseException) -> Act:
    def act(real: Act, *arguments: Any) -> Any:
        raise error

    return act


def writes_only(count: int, error: BaseException | None = None) -> Act:
    """A write that takes the first bytes, and says so or raises."""

    def act(real: Act, fd: int, data: bytes) -> int:
        written: int = real(fd, data[:count])
        if error is not None:
            raise error
        return written

    return act
