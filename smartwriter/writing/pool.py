"""A limited number of places for live CLI processes, first come first served.

A draft that is idle keeps its place, and with it its process, until somebody else needs one. Of more
than a few places one is kept free as long as others are idle, so that who comes next need not wait for
a process to end.
"""

from __future__ import annotations

from collections import OrderedDict, deque

import anyio

_FEW = 2


class Place:
    """A right to one live process."""

    def __init__(self, wanted: anyio.Event) -> None:
        self.wanted = wanted
        """Set when somebody waits for it: give it back as soon as there is nothing to do."""


class Pool:
    def __init__(self, size: int) -> None:
        self._free = size
        self._keeps_one_free = size > _FEW
        self._waiting: deque[anyio.Event] = deque()
        self._idle: OrderedDict[Place, None] = OrderedDict()  # least recently used first

    async def take(self) -> Place:
        """A place, once there is one."""
        if self._free:
            self._free -= 1
            self._ask_the_idle()
        else:
            await self._wait()
        return Place(anyio.Event())

    async def _wait(self) -> None:
        given = anyio.Event()
        self._waiting.append(given)
        self._ask_the_idle()
        try:
            await given.wait()
        except BaseException:
            if given.is_set():
                self._free += 1
                self._hand_out()
            else:
                self._waiting.remove(given)
            raise

    def give_back(self, place: Place) -> None:
        self._idle.pop(place, None)
        self._free += 1
        self._hand_out()

    def rest(self, place: Place) -> None:
        """The holder has nothing to do."""
        self._idle[place] = None
        self._ask_the_idle()

    def work(self, place: Place) -> None:
        """The holder has something to do again."""
        self._idle.pop(place, None)

    def _hand_out(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._waiting.popleft().set()

    def _ask_the_idle(self) -> None:
        needed = len(self._waiting) or int(self._keeps_one_free and not self._free)
        asked = sum(place.wanted.is_set() for place in self._idle)
        for place in self._idle:
            if asked >= needed:
                break
            if not place.wanted.is_set():
                place.wanted.set()
                asked += 1
