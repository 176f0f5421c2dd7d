"""Places for live processes: fair, and idle ones give way."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from smartwriter.writing.pool import Place, Pool

pytestmark = pytest.mark.anyio


async def test_first_come_first_served() -> None:
    """Who waits longest gets the next place."""
    pool = Pool(1)
    place = await pool.take()
    order: list[int] = []

    async def want(number: int) -> None:
        mine = await pool.take()
        order.append(number)
        pool.give_back(mine)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(want, number)
            await checkpoint()
        pool.give_back(place)
    assert order == [0, 1, 2, 3, 4]


async def test_the_least_recently_used_idle_place_is_asked() -> None:
    """Who waits makes exactly one idle holder give way, the one that was idle longest."""
    pool = Pool(3)
    places = [await pool.take() for _ in range(3)]
    pool.rest(places[1])
    pool.rest(places[0])
    async with anyio.create_task_group() as group:
        group.start_soon(pool.take)
        await anyio.wait_all_tasks_blocked()
        assert [place.wanted.is_set() for place in places] == [False, True, False]
        pool.give_back(places[1])


async def test_who_becomes_idle_while_others_wait_is_asked_at_once() -> None:
    """A busy holder is never asked; as soon as it rests, it is."""
    pool = Pool(1)
    place = await pool.take()
    async with anyio.create_task_group() as group:
        group.start_soon(pool.take)
        await anyio.wait_all_tasks_blocked()
        assert not place.wanted.is_set()
        pool.rest(place)
        assert place.wanted.is_set()
        pool.give_back(place)


async def test_a_cancelled_waiter_loses_no_place() -> None:
    """Whoever gives up waiting neither holds a place nor takes one with it."""
    pool = Pool(1)
    place = await pool.take()
    with anyio.move_on_after(0):
        await pool.take()
    got: list[Place] = []

    async def want() -> None:
        got.append(await pool.take())

    async with anyio.create_task_group() as group:
        group.start_soon(want)
        await anyio.wait_all_tasks_blocked()
        pool.give_back(place)
    assert len(got) == 1


async def test_one_place_is_kept_free() -> None:
    """Of several places, the one that was idle longest is given up as soon as none is free."""
    pool = Pool(3)
    places = [await pool.take() for _ in range(3)]
    pool.rest(places[2])
    pool.rest(places[0])
    assert [place.wanted.is_set() for place in places] == [False, False, True]
    pool.give_back(places[2])
    pool.rest(places[1])
    assert [place.wanted.is_set() for place in places[:2]] == [False, False]
    another = await pool.take()  # at once; now the next one makes room
    assert [place.wanted.is_set() for place in places[:2]] == [True, False]
    pool.give_back(another)
