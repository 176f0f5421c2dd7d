"""Events: kept before they are told, and heard again after any break."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from blockbuster import BlockBuster

from smartwriter.events import Event, Finished, TextDelta, TextDropped, ToolUsed, TurnStarted
from smartwriter.tasks.values import Turn, TurnState
from smartwriter.turns.broadcast import Broadcast, follow
from smartwriter.turns.live import LiveJournal, LiveReader

pytestmark = pytest.mark.anyio


def delta(text: str, turn: int = 1) -> TextDelta:
    return TextDelta(task="k7mq", draft="main", turn=turn, text=text)


def tool(name: str) -> ToolUsed:
    return ToolUsed(task="k7mq", draft="main", turn=1, name=name)


async def new_live(path: Path) -> LiveJournal:
    return await anyio.to_thread.run_sync(LiveJournal, path)


async def heard(path: Path, after: int, count: int) -> list[Event]:
    """The first so many events after a position."""
    found: list[Event] = []
    with anyio.fail_after(10):
        async for event in follow(path, after):
            found.append(event)
            if len(found) == count:
                break
    return found


async def test_nothing_is_told_that_is_not_on_disk(tmp_path: Path, blockbuster: BlockBuster) -> None:
    """Whoever hears an event can read it from the disk at that moment."""
    blockbuster.deactivate()  # it is read right where it is told
    path = tmp_path / "live.jsonl"
    told: list[Event] = []

    def tell(event: Event) -> None:
        kept = path.read_bytes()
        assert str(event.position).encode() in kept
        told.append(event)

    broadcast = Broadcast(await new_live(path), tell)
    broadcast.publish(tool("read_draft"))
    broadcast.publish(delta("one"))
    await broadcast.flush()
    assert [event.kind for event in told] == ["tool_used", "text_delta"]


async def test_deltas_are_merged(tmp_path: Path) -> None:
    """Pieces of text that come at once are one event; anything between keeps them apart."""
    told: list[Event] = []
    broadcast = Broadcast(await new_live(tmp_path / "live.jsonl"), told.append)
    for event in (delta("a"), delta("b"), tool("x"), delta("c"), delta("d", turn=2)):
        broadcast.publish(event)
    await broadcast.flush()
    assert [getattr(event, "text", event.kind) for event in told] == ["ab", "tool_used", "c", "d"]


async def test_text_is_told_within_the_merging_time(tmp_path: Path) -> None:
    """A running broadcast tells text by itself, and ends when it is closed."""
    told: list[Event] = []
    first = anyio.Event()

    def tell(event: Event) -> None:
        told.append(event)
        first.set()

    broadcast = Broadcast(await new_live(tmp_path / "live.jsonl"), tell)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(broadcast.run)
            broadcast.publish(delta("soon"))
            await first.wait()
            broadcast.publish(delta("late"))
            await broadcast.close()
    assert [event.text for event in told if isinstance(event, TextDelta)] == ["soon", "late"]


@pytest.mark.parametrize("cut", range(0, 200, 7))
async def test_a_listener_comes_back_by_position(tmp_path: Path, cut: int) -> None:
    """Cut off after any event, in a new process too, each event is heard exactly once."""
    path = tmp_path / "live.jsonl"
    live = await new_live(path)
    await anyio.to_thread.run_sync(live.begin)
    placed = await anyio.to_thread.run_sync(live.append, [delta(str(n)) for n in range(200)])
    before = await heard(path, placed[0].position - 1, cut) if cut else []
    position = before[-1].position if before else placed[0].position - 1
    after = await heard(path, position, 200 - cut)
    assert [event.position for event in before + after] == [event.position for event in placed]


async def test_following_goes_on_over_turns(tmp_path: Path) -> None:
    """Who has heard all of a turn hears the next one without a reload."""
    path = tmp_path / "live.jsonl"
    live = await new_live(path)
    await anyio.to_thread.run_sync(live.begin)
    (first,) = await anyio.to_thread.run_sync(live.append, [delta("one")])
    reader = LiveReader(path, first.position - 1)
    assert await anyio.to_thread.run_sync(reader.read) == [first]
    await anyio.to_thread.run_sync(live.begin)
    (second,) = await anyio.to_thread.run_sync(live.append, [delta("two", turn=2)])
    assert await anyio.to_thread.run_sync(reader.read) == [second]
    assert await anyio.to_thread.run_sync(reader.read) == []


async def test_a_position_too_old_yields_one_reload(tmp_path: Path) -> None:
    """Who missed the end of an earlier turn gets one reload, then all of the present turn."""
    path = tmp_path / "live.jsonl"
    live = await new_live(path)
    await anyio.to_thread.run_sync(live.begin)
    two: list[Event] = [delta("one"), tool("x")]
    first, _ = await anyio.to_thread.run_sync(live.append, two)
    await anyio.to_thread.run_sync(live.begin)
    await anyio.to_thread.run_sync(live.append, [delta("two", turn=2)])
    assert [event.kind for event in await heard(path, first.position, 2)] == ["reload", "text_delta"]


async def test_positions_survive_a_restart_and_the_loss_of_the_file(tmp_path: Path) -> None:
    """A new writer goes on counting; where the file is gone, its count is ahead all the same."""
    path = tmp_path / "live.jsonl"
    (one,) = await anyio.to_thread.run_sync((await new_live(path)).append, [delta("a")])
    (two,) = await anyio.to_thread.run_sync((await new_live(path)).append, [delta("b")])
    await anyio.Path(path).unlink()
    await anyio.sleep(0.005)  # the clock that then gives the count has milliseconds
    (three,) = await anyio.to_thread.run_sync((await new_live(path)).append, [delta("c")])
    assert one.position < two.position < three.position


async def test_a_torn_line_is_waited_for(tmp_path: Path) -> None:
    """A reader never takes half a line, and reads it once it is whole."""
    path = tmp_path / "live.jsonl"
    (event,) = await anyio.to_thread.run_sync((await new_live(path)).append, [delta("whole")])
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    reader = LiveReader(path, 0)
    assert await anyio.to_thread.run_sync(reader.read) == []
    path.write_bytes(whole)
    assert await anyio.to_thread.run_sync(reader.read) == [event]


async def test_partial_text_and_endings(tmp_path: Path) -> None:
    """The text of a turn that did not end can be put together, and whether one ended is known."""
    path = tmp_path / "live.jsonl"
    live = await new_live(path)
    await anyio.to_thread.run_sync(live.begin)
    assert await anyio.to_thread.run_sync(LiveJournal.has_ended, path)  # nothing has started
    start = TurnStarted(task="k7mq", draft="main", turn=1, prompt="Go.")
    begun: list[Event] = [start, delta("half a "), delta("sentence")]
    await anyio.to_thread.run_sync(live.append, begun)
    assert not await anyio.to_thread.run_sync(LiveJournal.has_ended, path)
    assert await anyio.to_thread.run_sync(live.partial_text, 1) == "half a sentence"
    assert await anyio.to_thread.run_sync(live.partial_text, 2) == ""
    turn = Turn(number=1, uuid="u", session_id="s", prompt="Go.", state=TurnState.finished)
    await anyio.to_thread.run_sync(live.append, [Finished(task="k7mq", draft="main", turn=turn)])
    assert await anyio.to_thread.run_sync(LiveJournal.has_ended, path)


async def test_what_was_taken_back_is_no_part_of_the_answer(tmp_path: Path) -> None:
    """An attempt that the API broke off and makes anew leaves nothing of its words in what is kept."""
    live = await new_live(tmp_path / "live.jsonl")
    dropped = TextDropped(task="k7mq", draft="main", turn=1, characters=5)
    heard: list[Event] = [delta("one, "), delta("two, "), dropped, delta("three")]
    await anyio.to_thread.run_sync(live.append, heard)
    assert await anyio.to_thread.run_sync(live.partial_text, 1) == "one, three"


async def test_what_a_full_disk_did_not_take_is_kept_with_the_next(tmp_path: Path) -> None:
    """Events that the live journal refuses are told at once, and on the disk, in order, once it takes any."""
    live, told = await anyio.to_thread.run_sync(LiveJournal, tmp_path / "live.jsonl"), list[Event]()
    broadcast = Broadcast(live, told.append)
    await anyio.Path(live.path).mkdir()  # in the way
    broadcast.publish(TextDelta(task="k7mq", draft="main", turn=1, text="The first "))
    await broadcast.flush()
    assert len(told) == 1
    await anyio.Path(live.path).rmdir()
    broadcast.publish(TextDelta(task="k7mq", draft="main", turn=1, text="and the rest."))
    await broadcast.flush()
    assert len(told) == 2
    assert await anyio.to_thread.run_sync(live.partial_text, 1) == "The first and the rest."
