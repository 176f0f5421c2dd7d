"""The events of one draft: merged, kept on disk, then told.

Whoever listens hears only what is on disk already, so it can be heard again after any break.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from smartwriter.errors import JournalError
from smartwriter.events import ArticleDelta, Event, TextDelta, ThinkingDelta, TurnStarted
from smartwriter.turns.live import LiveJournal, LiveReader

MERGE_S = 0.04  # a page need not be repainted more often, nor the disk be asked
_POLL_S = 0.1  # how soon another process hears of something
_TYPED = (TextDelta, ThinkingDelta, ArticleDelta)


class Broadcast:
    """The telling side, for the actor that writes the draft."""

    def __init__(self, live: LiveJournal, tell: Callable[[Event], None]) -> None:
        self._live = live
        self._tell = tell
        self._pending: list[Event] = []
        self._unkept: list[Event] = []  # told, but not on the disk
        self._news = anyio.Event()
        self._hurry = anyio.Event()
        self._lock = anyio.Lock()
        self._closed = False

    def publish(self, event: Event) -> None:
        """Never waits."""
        if not self._merged(event):
            self._pending.append(event)
        self._news.set()
        if not isinstance(event, _TYPED):
            self._hurry.set()

    def _merged(self, event: Event) -> bool:
        last = self._pending[-1] if self._pending else None
        if not isinstance(event, _TYPED) or not isinstance(last, _TYPED):
            return False
        both = event.model_copy(update={"text": last.text + event.text})
        if last.model_copy(update={"text": both.text}) != both:
            return False
        self._pending[-1] = both
        return True

    async def run(self) -> None:
        """Keep and tell, until closed."""
        next_s = anyio.current_time()  # the first piece is told at once, those that follow merged
        while not self._closed:
            await self._news.wait()
            with anyio.CancelScope(deadline=next_s):
                await self._hurry.wait()
            await self.flush()
            next_s = anyio.current_time() + MERGE_S

    async def flush(self) -> None:
        """Keep and tell all that was published until now."""
        async with self._lock:  # in order, even when called from two tasks
            self._news.set()  # `run` may wait for this one, which is about to be replaced
            self._news, self._hurry = anyio.Event(), anyio.Event()
            events, self._pending = self._pending, []
            if not events:
                return
            if any(isinstance(event, TurnStarted) for event in events):
                self._unkept = []  # of the turn before, which is over
            try:
                placed = await run_sync(self._live.append, [*self._unkept, *events])
                events, self._unkept = placed[len(self._unkept) :], []
            except JournalError:  # on a full disk they are heard all the same, and kept with the next
                self._unkept += events
            for event in events:
                self._tell(event)

    async def close(self) -> None:
        """Flush, and end :meth:`run`."""
        self._closed = True
        await self.flush()
        self._news.set()
        self._hurry.set()


async def follow(path: Path, after: int) -> AsyncGenerator[Event, None]:
    """What happens in a draft, from a position on, each event once; for ever.

    Reads the draft's live journal, so it works from any process, and nobody waits for it.

    :param after: the position of the last event that was seen.
    """
    reader = LiveReader(path, after)
    while True:
        for event in await run_sync(reader.read):
            yield event
        await anyio.sleep(_POLL_S)
