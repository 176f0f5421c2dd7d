"""A prompt on its way: sent, on disk, taken, settled."""

from __future__ import annotations

import anyio

from smartwriter.tasks.values import Turn


class SentPrompt:
    """A prompt on its way."""

    def __init__(self, prompt: str, id: str, earlier: bool = False) -> None:
        self.prompt = prompt
        self.id = id
        """The uuid of the turn that it becomes."""
        self.earlier = earlier
        self._settled = anyio.Event()
        self._looked_at = anyio.Event()
        self._outcome: Turn | Exception

    async def kept(self) -> None:
        """Wait until it is on disk. :raises SmartWriterError, OSError: it was refused."""
        await self._looked_at.wait()
        if self._settled.is_set() and isinstance(self._outcome, Exception):
            raise self._outcome

    async def settled_on_disk(self) -> None:
        """Wait until it is on disk, or refused."""
        await self._looked_at.wait()

    def looked_at(self) -> None:
        self._looked_at.set()

    async def outcome(self) -> Turn:
        """The turn, once it has ended. :raises SmartWriterError, OSError: it could not start."""
        await self._settled.wait()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def settle(self, outcome: Turn | Exception) -> None:
        self._outcome = outcome
        self._settled.set()
