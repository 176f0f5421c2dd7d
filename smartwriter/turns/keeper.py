"""What the turns of a draft write, until all of it is in its place.

What a disk refuses is put aside at once, on another disk if need be, so that no death of this process
takes it; what no disk takes stays in memory. A turn ends when nothing waits any more, or when patience
does; what is in memory then, its owner has to say in full, for it is nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio

from smartwriter.system.threads import to_the_end
from smartwriter.turns.parts import Kind, Part
from smartwriter.turns.spool import Spool

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 8.0


class Keeper:
    """Of one draft, for the one process that writes it."""

    def __init__(
        self,
        spool: Spool,
        task: str,
        draft: str,
        not_saved: Callable[[str], None],
        saved: Callable[[], None] = lambda: None,
    ) -> None:
        """
        :param not_saved: is told, in words, of what is not in its place, and of each new try.
        :param saved: is told when all of it is there after all.
        """
        self._spool = spool
        self._task, self._draft = task, draft
        self._not_saved = not_saved
        self._saved = saved
        self._lock = anyio.Lock()
        self._enough = anyio.Event()
        self._in_memory: list[Part] = []
        self._where = ""  # the folder in which something waits
        self._why = ""
        self._said = set[str]()  # since all was well

    @property
    def waits(self) -> bool:
        """Whether anything is not in its place."""
        return bool(self._in_memory or self._where)

    @property
    def all_kept(self) -> bool:
        """Whether everything is on a disk, if perhaps on another one."""
        return not self._in_memory

    @property
    def why(self) -> str:
        """Why the last part could not be written, in words."""
        return self._why

    def unkept_words(self) -> list[str]:
        """What is in memory alone, each once."""
        return list(dict.fromkeys(words for part in self._in_memory for words in part.words()))

    async def write(
        self,
        kind: Kind,
        entries: Sequence[Mapping[str, Any]],
        *,
        key: Mapping[str, Any] | None = None,
        at: Mapping[str, Any] | None = None,
    ) -> bool:
        """Write a part to its place, behind all that waits; what cannot be is kept. Whether it is there."""
        part = Part(kind, self._task, self._draft, entries, key or {}, at or {})
        async with self._lock:
            in_place = await to_the_end(self._write, part)
        if not in_place:
            self._say(f"{self._why} A part of this turn is not in its place: {self._kept()}.")
        return in_place

    async def settle(self) -> None:
        """Write what waits to its place. :raises OSError: it still cannot be."""
        if self.waits:
            async with self._lock:
                await to_the_end(self._settle)

    def hurry(self) -> None:
        """Let :meth:`settled` wait no longer."""
        self._enough.set()

    async def settled(self, patience_s: float) -> bool:
        """Try to, again and again, and say so. Whether all is in its place."""
        self._enough = anyio.Event()
        deadline = anyio.current_time() + patience_s
        pause_s = _FIRST_PAUSE_S
        waited = self.waits
        while self.waits:
            try:
                await self.settle()
            except OSError as error:
                self._why = str(error)
                left_s = deadline - anyio.current_time()
                if left_s <= 0 or self._enough.is_set():
                    return False
                pause_s = min(pause_s, left_s)
                self._say(f"{self._why} The turn is not finished until it is stored.")
                self._say(f"Tried again in {pause_s:.0f} s, for {left_s:.0f} s more; {self._kept()}.")
                with anyio.move_on_after(pause_s):
                    await self._enough.wait()
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        if waited:
            self._said.clear()
            self._saved()
        return True

    def _say(self, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            self._not_saved(words)

    def _kept(self) -> str:
        if self._in_memory:
            return "it is only in memory: do not close this program"
        return f"it is kept in {self._where} until it can be stored"

    # In a thread, one at a time ----------------------------------------------------------------

    def _write(self, part: Part) -> bool:
        try:
            self._settle()
            self._spool.place(part)
        except OSError as error:
            self._why = str(error)
            self._in_memory.append(part)
            self._put_aside()
            return False
        return True

    def _settle(self) -> None:
        try:
            if self._where:
                self._spool.replay(self._task, self._draft)
                self._where = ""
            while self._in_memory:
                self._spool.place(self._in_memory[0])
                del self._in_memory[0]
        except OSError:
            self._put_aside()
            raise

    def _put_aside(self) -> None:
        """On a disk, in order, as far as that goes."""
        try:
            while self._in_memory:
                self._where = str(self._spool.put(self._in_memory[0]).parent)
                del self._in_memory[0]
        except OSError:
            return
