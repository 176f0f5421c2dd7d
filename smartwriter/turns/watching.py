"""Many live journals followed at once, at the cost of one.

The system says which files change, where it can. Where it cannot (no folder yet, more watched folders
than it allows, a file system without such messages), they are looked at in turn, seldom enough.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from smartwriter.events import Event
from smartwriter.turns.live import LiveReader

_STEP_MS = 25  # how soon a change is heard of
_MOST_MS = 50  # how long changes are gathered that do not end
_LOOK_S = 3.0  # at all of them, in case that the system kept something to itself
_POLL_S = 0.1
_LOOKS_PER_S = 1000  # at files: a percent of a processor at the very most
_AGAIN_S = 60.0  # after the system refused


async def follow_all(folder: Path, readers: Mapping[Path, LiveReader]) -> AsyncGenerator[Event, None]:
    """What happens in many drafts, each event once; for ever.

    :param folder: of the live journals.
    :param readers: one for each journal in it, by its path.
    """
    watched = {_key(path): _Watched(path, reader) for path, reader in readers.items()}
    async with aclosing(_changed(folder, len(watched))) as changes:
        async for changed in changes:
            looked_at = watched.values() if changed is None else _named(watched, changed)
            for event in await run_sync(_read, list(looked_at)):
                yield event


class _Watched:
    def __init__(self, path: Path, reader: LiveReader) -> None:
        self._path, self._reader = path, reader
        self._stamp: tuple[int, int, int] | None = None

    def read(self) -> list[Event]:
        """What is new, if the file has changed at all."""
        try:
            status = os.stat(self._path)
        except OSError:
            return []
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp == self._stamp:
            return []
        self._stamp = stamp  # of before: what is added from here on is seen the next time
        return self._reader.read()


def _read(watched: Iterable[_Watched]) -> list[Event]:
    return [event for one in watched for event in one.read()]


def _key(path: Path) -> tuple[str, str]:
    return path.parent.name, path.name  # the system may call the folder above by another name


def _named(watched: Mapping[tuple[str, str], _Watched], paths: Iterable[Path]) -> list[_Watched]:
    return [one for key in {_key(path) for path in paths} if (one := watched.get(key))]


async def _changed(folder: Path, count: int) -> AsyncGenerator[set[Path] | None, None]:
    """What has changed in a folder; None: that is not known, look at all."""
    poll_s = max(_POLL_S, count / _LOOKS_PER_S)
    refused_until_s = 0.0
    yield None
    while True:
        if anyio.current_time() >= refused_until_s and await run_sync(folder.is_dir):
            try:
                async with aclosing(_told(folder)) as told:
                    async for changed in told:
                        yield changed
            except (ImportError, OSError, RuntimeError):
                refused_until_s = anyio.current_time() + _AGAIN_S
        await anyio.sleep(poll_s)
        yield None


async def _told(folder: Path) -> AsyncGenerator[set[Path] | None, None]:
    from watchfiles import awatch

    changes = awatch(
        folder,
        watch_filter=None,
        step=_STEP_MS,
        debounce=_MOST_MS,
        rust_timeout=int(_LOOK_S * 1000),
        yield_on_timeout=True,
        ignore_permission_denied=True,
    )
    yield None  # what came before it listened
    async for changed in changes:
        yield {Path(path) for _, path in changed} or None
