from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import entries, entry, entry_uuid, line, numbers

from smartwriter.storage.salvage import Damage, Entry, salvage


def glued(n: int, **more: Any) -> bytes:
    """An entry as a line without its LF."""
    return line(n, **more)[:-1]


def found(damaged: bytes, before: Entry | None = None, after: Entry | None = None) -> list[int]:
    """The numbers of what is saved, after a check that nothing but damage lies between."""
    saved, damage = salvage(damaged, before, after)
    kept = bytearray(damaged)
    for stretch in reversed(damage):
        assert 0 <= stretch.offset < stretch.offset + stretch.length <= len(damaged)
        del kept[stretch.offset : stretch.offset + stretch.length]
    assert _parsed(kept.decode()) == saved
    return numbers(saved)


def _parsed(text: str) -> list[Any]:
    """Values that follow one another, with nothing between them."""
    values: list[Any] = []
    text = text.strip("\0 \t\r")
    while text:
        value, stop = json.JSONDecoder().raw_decode(text)
        values.append(value)
        text = text[stop:]
    return values


# --- what is saved ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damaged", "saved", "damage"),
    [
        (b"", [], []),
        (b" \t \r", [], []),
        (b"\0" * 300, [], [(0, 300)]),
        (b"null", [], [(0, 4)]),
        (b"[1]", [], [(0, 3)]),
        (b'"{"', [], [(0, 3)]),
        (b"{", [], [(0, 1)]),
        (b"}" * 40, [], [(0, 40)]),
        (b"\xff\xfe{}", [], [(0, 4)]),
        (glued(1) + glued(2), [1, 2], []),
        (glued(1) + b"  \r", [1], []),
        (glued(1) + b"\0" * 9, [1], [(len(glued(1)), 9)]),
        (glued(1) + b"\0" * 9 + glued(2), [1, 2], [(len(glued(1)), 9)]),
        (b"\0" * 9 + glued(2), [2], [(0, 9)]),
        (b"garbage" + glued(2), [2], [(0, 7)]),
        ("写字".encode() + glued(2) + "\u2028".encode(), [], [(0, 9 + len(glued(2)))]),
        (b"\xe5\x86" + glued(2), [2], [(0, 2)]),
        (glued(1) + glued(2)[:50], [1], [(len(glued(1)), 50)]),
        (glued(1)[:50] + glued(2) + glued(3)[:60], [2], [(0, 50), (50 + len(glued(2)), 60)]),
        (glued(1)[:90] + glued(2)[:80] + glued(3), [3], [(0, 170)]),
    ],
)
def test_whole_entries_are_saved_and_the_rest_is_located(
    damaged: bytes, saved: list[int], damage: list[tuple[int, int]]
) -> None:
    """What of a line is an entry and what is not, counted in bytes."""
    assert (numbers(salvage(damaged)[0]), salvage(damaged)[1]) == (saved, damage)


@pytest.mark.parametrize(
    "torn", [glued(3), glued(3, text='a "quoted" {brace} \\ [1, tru'), glued(3, text="写é")]
)
@pytest.mark.parametrize("follower", [4, 3], ids=["the next entry", "the same again"])
def test_an_entry_glued_to_a_torn_one_is_saved(torn: bytes, follower: int) -> None:
    """Wherever the first was torn, the whole one behind it is saved, alone and with another."""
    after = entry(follower + 1)
    for cut in range(1, len(torn)):
        damaged = torn[:cut] + glued(follower)
        assert found(damaged, entry(2), after) == [follower], damaged
        assert found(damaged + glued(follower + 1), entry(2)) == [follower, follower + 1], damaged
        assert salvage(damaged, entry(2), after)[1] == [(0, cut)]


def test_rubbish_hides_no_entries() -> None:
    """What is no JSON costs nothing but itself, before an entry, behind it or between two."""
    for rubbish in (b"\0\0", b"\xff", b"{{{", b"tru", b"\\u12", b'{"', b"{\0", b"}", b'"', b'"}', b"]}]}"):
        assert found(rubbish + glued(1)) == [1], rubbish
        assert found(rubbish + glued(1) + glued(2)) == [1, 2], rubbish
    for rubbish in (b"\0\0", b"\xff", b"{{{", b"tru", b"\\u12", b'{"', b"{\0"):
        assert found(glued(1) + rubbish) == [1], rubbish
        assert found(glued(1) + rubbish + glued(2)) == [1, 2], rubbish


@pytest.mark.parametrize("rest", [b"}", b"]}", b'"}', b',"a":1}', b": 1}"])
def test_a_line_whose_start_was_lost_may_begin_with_a_nested_object(rest: bytes) -> None:
    """What goes on behind an object as only JSON does shows that it is nested."""
    assert salvage(glued(1) + rest) == ([], [(0, len(glued(1) + rest))])
    assert found(glued(1) + rest + glued(2)) == [2]


def test_an_entry_with_bytes_that_are_no_text_is_not_saved() -> None:
    """An entry with invalid UTF-8 in it is damage; its neighbours on the line are saved."""
    bad = glued(2, text="caf?").replace(b"?", b"\xff")
    assert found(bad) == []
    assert found(glued(1) + bad + glued(3)) == [1, 3]


def test_a_half_surrogate_is_saved_as_it_is() -> None:
    """An escaped half surrogate is no damage, nor is one that somebody encoded as it was."""
    saved, damage = salvage(b"\0" + glued(1, text="fire\ud83d"))
    assert (saved, damage) == ([entry(1, "fire\ud83d")], [(0, 1)])


def test_any_object_that_starts_a_line_is_saved() -> None:
    """At the start of a line nothing can be nested, so no marks of an entry are needed there."""
    assert salvage(b'{"a":1}{"torn') == ([{"a": 1}], [(7, 6)])
    assert salvage(b'{"a":1}\0\0') == ([{"a": 1}], [(7, 2)])
    assert salvage(b'{"torn{"a":1}') == ([], [(0, 13)])


@pytest.mark.parametrize("mark", ["uuid", "sessionId", "timestamp", "leafUuid"])
def test_what_marks_an_entry(mark: str) -> None:
    """Behind damage an entry is known by its type and one more field that only entries have."""
    marked, unmarked = {"type": "x", mark: "v"}, {"kind": "x", mark: "v"}
    assert salvage(b'{"torn' + json.dumps(marked).encode())[0] == [marked]
    assert salvage(b'{"torn' + json.dumps(unmarked).encode())[0] == []
    assert salvage(b'{"torn{"type":"text","text":"a"}')[0] == []


# --- what is never invented -------------------------------------------------------------------

NESTED = [
    {"type": "progress", "uuid": "p", "parentUuid": entry_uuid(8), "data": {"message": entry(3)}},
    {"type": "progress", "data": {"message": entry(3)}, "uuid": "p", "parentUuid": entry_uuid(8)},
    {"type": "summary", "quoted": entries(0, 1, 2), "uuid": "p", "parentUuid": entry_uuid(8)},
    {"uuid": "p", "data": {"uuid": "q", "type": "x", "inner": entry(4) | {"parentUuid": "q"}}},
    {"type": "x", "uuid": "p", "a": [[entry(3) | {"inner": entry(4) | {"inner": entry(5)}}], entry(6)]},
    {"type": "x", "uuid": "p", "a": {"type": "y", "uuid": "q", "sessionId": "s", "timestamp": "t"}},
    {"type": "user", "uuid": "p", "text": json.dumps(entry(3)), "more": json.dumps(json.dumps(entry(4)))},
]


@pytest.mark.parametrize("outer", NESTED)
@pytest.mark.parametrize(
    ("before", "after"), [(None, None), (entry(8), entry(10))], ids=["alone", "between others"]
)
def test_a_nested_object_is_never_taken_for_an_entry(
    outer: Entry, before: Entry | None, after: Entry | None
) -> None:
    """However a line is torn, objects within it that look like entries are not promoted."""
    whole = json.dumps(outer).encode()
    for cut in range(len(whole)):
        saved, damage = salvage(whole[:cut], before, after)
        assert saved == [], whole[:cut]
        assert damage == ([(0, cut)] if cut else [])
        assert salvage(whole[:cut] + b"\0\0", before, after)[0] == [], whole[:cut]


@pytest.mark.parametrize("outer", [NESTED[0], NESTED[1], NESTED[2], NESTED[5], NESTED[6]])
def test_a_nested_object_is_not_promoted_by_damage_elsewhere(outer: Entry) -> None:
    """A broken byte makes no entry of what still stands in the place of a value."""
    whole = json.dumps(outer).encode()
    for cut in (number + 1 for number, byte in enumerate(whole) if byte == ord("}")):
        for hole in range(cut):
            if b"{" not in whole[hole + 1 : hole + 3]:  # no colon or comma is left before it
                assert salvage(whole[:hole] + b"\0" + whole[hole + 1 : cut])[0] == [], (hole, cut)


@pytest.mark.parametrize("outer", NESTED)
def test_the_end_of_a_line_holds_no_entry(outer: Entry) -> None:
    """Where the start of a line was lost, what stands nested in its rest is not promoted."""
    whole = json.dumps(outer).encode()
    for start in range(1, len(whole)):
        assert salvage(whole[start:])[0] == [], whole[start:]
        assert salvage(b"\0" + whole[start:])[0] == [], whole[start:]


def test_an_entry_in_the_place_of_a_value_is_known_by_its_links() -> None:
    """A head torn just before a value could still go on: only its neighbours tell a glued entry."""
    head = json.dumps(entry(3)).encode()
    for cut in (head.index(b'{"role"'), head.index(b'[{"type"'), head.index(b'"text 3"')):
        torn = head[:cut]
        assert found(torn + glued(4)) == [4]  # the torn one's child
        assert found(b'{"message": ' + glued(4), entry(3)) == [4]  # the child of the one before
        assert found(b'{"message": ' + glued(4), None, entry(5)) == [4]  # the parent of the next
        assert found(torn + glued(4) + glued(5)) == [4, 5]
        assert found(torn + glued(6), entry(2), entry(8)) == []  # a stranger might be a value
        assert found(b'{"message": ' + glued(4), entry(2), entry(6)) == []


def test_odd_links_are_no_links() -> None:
    """Uuids that are no text, or not there, link nothing and break nothing."""
    values: list[Any] = [None, [], {}, 7]
    for odd in values:
        child = json.dumps(entry(4) | {"parentUuid": odd}).encode()
        assert found(b'{"message": ' + child, {"uuid": odd}, {"parentUuid": odd}) == []
        assert found(b'{"message": ' + child, None, {"parentUuid": entry_uuid(4)}) == [4]


def test_links_are_those_of_the_torn_head_itself() -> None:
    """Two objects nested side by side may be linked to one another: that makes them no entries."""
    quoted = json.dumps({"type": "x", "quoted": entries(0, 1)}).encode()[:-2]
    assert salvage(quoted)[0] == []
    own = json.dumps({"uuid": entry_uuid(0), "deep": {"uuid": "other"}, "message": 0}).encode()[:-2]
    assert found(own + glued(1)) == [1]
    other = own.replace(b'"other"', b'"' + entry_uuid(0).encode() + b'"').replace(b"00-0000", b"ff-0000", 1)
    assert found(other + glued(1)) == []


# --- however long, however odd ----------------------------------------------------------------


@pytest.mark.parametrize(
    "damaged",
    [
        b"{" * 20_000,
        b"[" * 20_000,
        b'{"a":"b" ' * 10_000,
        b'{"a":1} ' * 10_000,
        b'{"a":' * 10_000,
        b'{"uuid":"a" ' * 10_000,
        b'"uuid":"a"' * 10_000,
        json.dumps({"type": "x", "quoted": [entry(n) for n in range(2000)]}).encode()[:-2],
        b"".join(glued(n)[:120] for n in range(2000)),
    ],
    ids=["braces", "brackets", "objects", "whole", "nested", "uuids", "loose uuids", "quotes", "torn"],
)
def test_long_rubbish_takes_no_long_time(damaged: bytes) -> None:
    """Megabytes of damage on one line are passed over at once: the time does not grow with the square."""
    rubbish = b"x" * 3_000_000
    started = time.process_time()
    assert salvage(rubbish + damaged + rubbish)[0] == []
    assert time.process_time() - started < 1.5


def test_a_long_torn_line_gives_up_its_entries() -> None:
    """Entries of many sizes are found behind torn ones of many sizes."""
    sizes = [0, 10, 3900, 4000, 4096, 4100, 33_000, 300_000]
    parts = []
    for n, size in enumerate(sizes):
        parts += [glued(99, text="写" * size)[: size + 150], glued(n, text="x" * size)]
    assert found(b"".join(parts)) == list(range(len(sizes)))


def test_no_length_of_an_entry_is_special() -> None:
    """An entry behind damage is found whichever of its letters is the 4096th."""
    values: list[Any] = [True, False, None, -1.5e10, "写\ud83d\n", {"a": []}]
    for length in range(3850, 4100):
        long = {"type": "x", "uuid": "y" * length, "values": values}
        assert salvage(b"\0" + json.dumps(long).encode()) == ([long], [(0, 1)]), length


@given(data=st.data())
def test_all_whole_entries_behind_torn_ones_are_saved(data: st.DataObject) -> None:
    """Any sequence of torn and whole entries of a chain, glued together, gives all the whole ones."""
    parts, whole = [], []
    for n in range(data.draw(st.integers(2, 6))):
        text = data.draw(st.text(max_size=10))
        if data.draw(st.booleans()):
            parts.append(glued(n, text=text)[: data.draw(st.integers(1, 200))])
        else:
            parts.append(glued(n, text=text))
            whole.append(n)
    saved = found(b"".join(parts))
    assert set(saved) <= set(whole)
    if parts and whole and not _ends_before_a_value(parts):
        assert saved == whole


def _ends_before_a_value(parts: list[bytes]) -> bool:
    return any(part.rstrip().endswith((b":", b"[", b",")) for part in parts)


@given(
    damaged=st.lists(st.binary(max_size=20) | st.sampled_from([glued(1), glued(2)[:99], b"{"])).map(b"".join)
)
def test_salvage_never_raises(damaged: bytes) -> None:
    """Any bytes are taken apart into entries and damage, which do not overlap."""
    saved, damage = salvage(damaged)
    assert all(type(one) is dict for one in saved)
    ends = [0]
    for stretch in damage:
        assert isinstance(stretch, Damage)
        assert ends[-1] <= stretch.offset < stretch.offset + stretch.length <= len(damaged)
        ends.append(stretch.offset + stretch.length)
