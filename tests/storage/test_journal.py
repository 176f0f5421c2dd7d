from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from disks import in_place_of_os
from hypothesis import given
from hypothesis import strategies as st
from transcripts import Disk, entries, entry, fails, healthy, line, lines, numbers, writes_only

import smartwriter.files.durable as durable
import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
from smartwriter.errors import JournalBusy, JournalError
from smartwriter.storage.journal import Journal
from smartwriter.storage.salvage import Damage

FULL = OSError(errno.ENOSPC, "No space left on device")
BROKEN = OSError(errno.EIO, "Input/output error")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journals" / "one.jsonl"


@pytest.fixture
def disk() -> Iterator[Disk]:
    """The disk under the journals, to watch and to break."""
    disk = Disk()
    with in_place_of_os(disk):
        yield disk


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function returns that runs on a fresh stack, as the store runs its own."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


# --- one line ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("写第一段 🪁", '"写第一段 🪁"'),
        ("a\u0085b\u2028c\u2029d", r'"a\u0085b\u2028c\u2029d"'),
        ("‐–\u2027\u202a¢", '"‐–\u2027\u202a¢"'),
        ("a\0b\x1f\x7f", '"a\\u0000b\\u001f\x7f"'),
        ("half \ud83d, \udc9f", r'"half \ud83d, \udc9f"'),
        ("\ud83d \u2028 写", r'"\ud83d \u2028 写"'),
        ([float("inf"), -float("inf")], "[1e999,-1e999]"),
        (["Infinity", '"Infinity\\"', float("inf")], r'["Infinity","\"Infinity\\\"",1e999]'),
        (["\ud83d Infinity", float("inf")], r'["\ud83d Infinity",1e999]'),
        ({"Infinity": -float("inf")}, '{"Infinity":-1e999}'),
        (10**40, "1" + "0" * 40),
        ([0.1, 1e300, -0.0, 5e-324, True, None], "[0.1,1e+300,-0.0,5e-324,true,null]"),
    ],
)
def test_a_line_is_readable_text_with_escapes_where_a_reader_would_stumble(value: object, text: str) -> None:
    """Text stays readable; surrogates, line separators and NUL are escapes, infinity is 1e999."""
    assert encoding.encode({"v": value}) == f'{{"v":{text}}}\n'.encode()
    assert encoding.decode(encoding.encode({"v": value})[:-1]) == {"v": value}


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=()), max_size=20)
    | st.sampled_from(["Infinity", "\u2028", "\x85", "\0", "\ud800", '"uuid":"', "\r\n"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
ENTRIES = st.lists(st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=6), min_size=1, max_size=5)


@given(batch=ENTRIES)
def test_what_is_appended_is_read_back(batch: list[dict[str, Any]], tmp_path_factory: Any) -> None:
    """Any JSON object comes back as it was, from a file in which any program finds the same lines."""
    path = tmp_path_factory.mktemp("journal") / "one.jsonl"
    Journal(path, durability="os").append(batch)
    assert reading.read(path).entries == json.loads(json.dumps(batch))
    assert not reading.read(path).damage
    assert len(path.read_text("utf-8").splitlines()) == len(batch)


def test_not_a_number_stays_one(path: Path) -> None:
    """NaN, which is equal to nothing, is stored all the same."""
    Journal(path).append([{"n": float("nan")}])
    assert str(reading.read(path).entries) == "[{'n': nan}]"


def test_a_deep_entry_is_stored(path: Path) -> None:
    """An entry nested 900 deep comes back, though the fast serialiser refuses it."""
    deep: dict[str, Any] = {"x": "\ud83d"}
    for _ in range(900):
        deep = {"x": deep}
    in_thread(lambda: Journal(path).append([deep, entry(1)]))
    read = in_thread(lambda: reading.read(path))
    assert not read.damage
    assert read.entries == [deep, entry(1)]


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def too_deep() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(100_000):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (circular(), ValueError),
        (too_deep(), ValueError),
        ({"n": 10**5000}, ValueError),
        ({"n": [-(10**4300), "\ud800"]}, ValueError),
        ({"n": object()}, TypeError),
    ],
    ids=["circular", "too deep", "number too long", "number too long by one digit", "no JSON"],
)
def test_a_bad_entry_leaves_nothing_of_its_batch(
    path: Path, bad: dict[str, Any], error: type[Exception]
) -> None:
    """A batch is serialised before the file is touched: what could not be read back is refused."""
    with pytest.raises(error):
        Journal(path).append([entry(0), bad, entry(1)])
    assert not path.exists()
    Journal(path).append([entry(0)])
    before = path.read_bytes()
    with pytest.raises(error):
        Journal(path).append([entry(1), bad])
    assert path.read_bytes() == before


def test_a_number_too_long_is_found_wherever_it_stands() -> None:
    """A number that could not be read back is refused at any place in an entry of any length."""
    for length in range(0, 5000, 100):
        with pytest.raises(ValueError, match="too long"):
            encoding.encode({"text": "x" * length, "n": 10**4300, "more": "y" * 9000})


def test_the_longest_number_is_stored(path: Path) -> None:
    """A number of as many digits as Python reads comes back, and digits in a text have no limit."""
    batch = [{"n": 10**4299, "text": "7" * 10_000}, {"n": -(10**4299), "text": "word " * 2000}]
    Journal(path).append(batch)
    assert reading.read(path).entries == batch


# --- reading ----------------------------------------------------------------------------------


def short(n: int, **more: Any) -> bytes:
    found = {"type": "user", "uuid": f"{n:08x}", "parentUuid": f"{n - 1:08x}", "v": n, **more}
    return json.dumps(found, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


DAMAGED = b"".join(
    [
        b"\xef\xbb\xbf",  # as some editors begin a file
        short(0),
        b"\n",
        short(1).replace(b"\n", b"\r\n"),
        b"\r\n",
        b"\0\0\0\n",
        short(2, v="写 é\u2028\ud83d"),
        b'{"type":"user","uuid":"to' + short(3),
        b'{"cafe":"\xff"}\n',
        b"[1,2]\n",
        b'{"uuid":"00000004","nested":' + short(9)[:-1] + b"}\n",
        b'{"message":' + short(5),  # known only by the entry before it
        short(6),
        b'{"type":"user","uu',
    ]
)


def streamed(path: Path, start: int = 0) -> tuple[list[Any], list[Any]]:
    damage: list[Any] = []
    return [found for _, found in reading.stream(path, start, damage.append)], damage


def test_damage_is_located_to_the_byte(path: Path) -> None:
    """Offset and length of damage say which bytes of the file hold no entry, and no others."""
    read = reading.read(write(path, DAMAGED))
    stretches = [DAMAGED[bad.offset : bad.offset + bad.length] for bad in read.damage]
    assert stretches == [
        b"\0\0\0",
        b'{"type":"user","uuid":"to',
        b'{"cafe":"\xff"}',
        b"[1,2]",
        b'{"message":',
        b'{"type":"user","uu',
    ]
    assert numbers(read.entries) == [0, 1, 2, 3, 4, 5, 6]
    assert read.entries[2]["v"] == "写 é\u2028\ud83d"
    assert read.size == len(DAMAGED)


def test_streaming_equals_reading_at_every_cut(path: Path) -> None:
    """However a file ends, entries and damage are the same when it is streamed."""
    for cut in range(len(DAMAGED) + 1):
        read = reading.read(write(path, DAMAGED[:cut]))
        assert streamed(path) == (read.entries, read.damage), cut


def test_streaming_equals_reading_whatever_the_blocks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a block of the file ends changes nothing."""
    read = reading.read(write(path, DAMAGED))
    for size in range(1, 60):
        monkeypatch.setattr(reading, "BLOCK_BYTES", size)
        assert streamed(path) == (read.entries, read.damage), size


def test_streaming_can_go_on_later(path: Path) -> None:
    """The offset that comes with an entry is where the next line starts."""
    write(path, healthy())
    for number, (after, found) in enumerate(reading.stream(path)):
        assert numbers([found]) == [number]
        assert after == len(lines(*range(number + 1)))
        assert streamed(path, after) == (entries(*range(number + 1, 6)), [])


def test_a_byte_order_mark_counts_only_at_the_start(path: Path) -> None:
    """An editor's mark before the first line is passed over; elsewhere it is damage."""
    mark = b"\xef\xbb\xbf"
    assert reading.read(write(path, mark)).damage == []
    read = reading.read(write(path, mark + b"torn\n" + lines(0, 1) + mark + line(2) + line(3)))
    assert numbers(read.entries) == [0, 1, 2, 3]
    assert read.damage == [(3, 4), (8 + len(lines(0, 1)), 3)]


def test_neighbours_tell_an_entry_from_a_nested_object(path: Path) -> None:
    """An entry glued to a head that could go on is found by the line before it or the one behind."""
    glued = b'{"message":' + line(3)
    for data, wanted in [
        (glued, []),
        (line(2) + glued, [2, 3]),
        (line(2) + b"\n\n" + glued, [2, 3]),
        (glued + line(4), [3, 4]),
        (line(1) + glued + line(5), [1, 5]),
    ]:
        assert numbers(reading.read(write(path, data)).entries) == wanted
        assert numbers(streamed(path)[0]) == wanted


def test_a_missing_journal_is_not_an_empty_one(path: Path) -> None:
    """Reading what does not exist raises; an empty file is empty."""
    with pytest.raises(FileNotFoundError):
        reading.read(path)
    with pytest.raises(FileNotFoundError):
        next(reading.stream(path))
    write(path, b"")
    assert reading.read(path) == reading.Contents([], [], 0)
    assert list(reading.stream(path)) == []


def test_reading_changes_nothing(path: Path) -> None:
    """Bytes and times of a damaged journal are the same after it was read in every way."""
    write(path, DAMAGED)
    os.utime(path, ns=(1_600_000_000_000_000_000, 1_600_000_000_000_000_000))
    before = os.stat(path)
    reading.read(path)
    list(reading.stream(path))
    Journal(path, unique=True).read()
    after = os.stat(path)
    assert (after.st_mtime_ns, after.st_ctime_ns, after.st_ino) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_ino,
    )
    assert path.read_bytes() == DAMAGED


@given(data=st.data())
def test_zeroed_blocks_cost_only_what_they_hit(data: st.DataObject, tmp_path_factory: Any) -> None:
    """After any stretches became NUL, every entry outside them is read, and no other."""
    parts = [line(n, "写" * n, cwd='a{"b":') for n in range(6)]
    damaged = bytearray(b"".join(parts))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(damaged) - 1))
        stop = min(len(damaged), start + data.draw(st.integers(1, 400)))
        damaged[start:stop] = bytes(stop - start)
    path = write(tmp_path_factory.mktemp("journal") / "one.jsonl", bytes(damaged))
    whole, offset = [], 0
    for number, part in enumerate(parts):
        if damaged[offset : offset + len(part) - 1] == part[:-1]:
            whole.append(number)
        offset += len(part)
    assert numbers(reading.read(path).entries) == whole
    assert numbers(streamed(path)[0]) == whole


@given(data=st.data())
def test_reading_never_raises(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Whatever bytes a file holds, it is read, streamed alike, and can be appended to."""
    pieces = st.sampled_from([*DAMAGED.split(b"\n"), b"\n", b"{", b'"uuid":"', b"\0", b"]"])
    noise = data.draw(st.lists(st.binary(max_size=30) | pieces, max_size=12).map(b"".join))
    path = write(tmp_path_factory.mktemp("journal") / "one.jsonl", noise)
    read = reading.read(path)
    assert streamed(path) == (read.entries, read.damage)
    for bad in read.damage:
        assert 0 <= bad.offset < bad.offset + bad.length <= len(noise)
    Journal(path, durability="os", unique=True).append([entry(99)])
    assert path.read_bytes().startswith(noise)
    assert reading.read(path).entries[-1] == entry(99)


# --- appending --------------------------------------------------------------------------------


def test_entries_are_stored_in_order(path: Path) -> None:
    """Appends in several batches give one line an entry, in the order of the calls."""
    one = Journal(path)
    one.append(entries(0, 1))
    one.append([])
    one.append(entries(2))
    assert path.read_bytes().count(b"\n") == 3
    assert one.read().entries == entries(0, 1, 2)


def test_an_empty_batch_makes_no_file(path: Path) -> None:
    """Appending nothing touches nothing."""
    Journal(path).append([])
    assert not path.parent.exists()


@pytest.mark.parametrize("unique", [False, True])
def test_a_whole_last_line_gets_its_line_feed(path: Path, unique: bool) -> None:
    """A last entry that lacks its LF is kept, and the next one starts on a line of its own."""
    old = lines(0, 1)[:-1]
    Journal(write(path, old), unique=unique).append(entries(2))
    assert path.read_bytes() == old + b"\n" + encoding.encode(entry(2))
    assert reading.read(path).damage == []
    assert numbers(reading.read(path).entries) == [0, 1, 2]


@pytest.mark.parametrize("unique", [False, True])
def test_a_torn_last_line_is_closed_off(path: Path, unique: bool) -> None:
    """Wherever the last line was torn, nothing is glued to it and the old bytes stay a prefix."""
    torn = line(2)[:-1]
    for cut in range(1, len(torn)):
        old = lines(0, 1) + torn[:cut]
        Journal(write(path, old), unique=unique, durability="os").append(entries(3, 4))
        assert path.read_bytes() == old + b"\n" + b"".join(map(encoding.encode, entries(3, 4)))
        read = reading.read(path)
        assert numbers(read.entries) == [0, 1, 3, 4]
        assert read.damage == [(len(lines(0, 1)), cut)]


# --- each uuid once ---------------------------------------------------------------------------


def test_a_uuid_is_stored_once(path: Path) -> None:
    """A batch that comes again adds only what is new, in its order."""
    one = Journal(path, unique=True)
    one.append(entries(0, 1, 2))
    one.append(entries(1, 3, 2, 4))
    assert numbers(one.read().entries) == [0, 1, 2, 3, 4]
    assert path.read_bytes().count(b"\n") == 5


def test_a_uuid_is_stored_once_in_a_batch(path: Path) -> None:
    """Within one batch, too, the first of a uuid counts."""
    Journal(path, unique=True).append([entry(0), entry(1), entry(0, "again"), entry(1)])
    assert Journal(path).read().entries == entries(0, 1)


def test_another_object_knows_the_uuids_of_a_file(path: Path) -> None:
    """What an earlier process stored is not stored again, nor what another one adds later."""
    first, second = Journal(path, unique=True), Journal(path, unique=True)
    first.append(entries(0, 1))
    second.append(entries(1, 2))
    first.append(entries(0, 1, 2, 3))
    second.append(entries(3))
    assert numbers(reading.read(path).entries) == [0, 1, 2, 3]
    assert path.read_bytes().count(b"\n") == 4


def test_a_nested_uuid_is_no_duplicate(path: Path) -> None:
    """An entry is new though its uuid stands inside another entry, or in a text."""
    one = Journal(path, unique=True)
    quoting: list[dict[str, Any]] = [
        {"type": "progress", "uuid": "a", "data": {"message": entry(1)}},
        {"type": "progress", "data": {"uuid": entry(2)["uuid"]}},
        {"type": "user", "uuid": "b", "text": json.dumps(entry(3))},
    ]
    one.append(quoting)
    one.append(entries(1))
    Journal(path, unique=True).append(entries(1, 2, 3))  # which has to look into the file
    one.append(entries(1, 2, 3, 4))
    assert one.read().entries == quoting + entries(1, 2, 3, 4)


def test_entries_without_uuid_are_never_dropped(path: Path) -> None:
    """Service entries that are equal are all kept, as are those whose uuid is no name."""
    nameless: list[dict[str, Any]] = [
        {"type": "mode"},
        {"type": "x", "uuid": ""},
        {"uuid": None},
        {"uuid": 7},
    ]
    one = Journal(path, unique=True)
    for _ in range(2):
        one.append([*nameless, entry(0), *nameless])
    assert one.read().entries == [*nameless, entry(0), *nameless * 3]


def test_without_unique_everything_is_kept(path: Path) -> None:
    """A journal of states, where the last one counts, keeps equal lines."""
    Journal(path).append(entries(0, 0))
    Journal(path).append(entries(0))
    assert numbers(reading.read(path).entries) == [0, 0, 0]


@pytest.mark.parametrize("uuid", ["写", 'quo"te', "back\\slash", "\u2028", "\ud83d", "a\nb", "\0"])
def test_any_text_can_be_a_uuid(path: Path, uuid: str) -> None:
    """A uuid of unusual letters is stored once."""
    Journal(path, unique=True).append([{"uuid": uuid}])
    Journal(path, unique=True).append([{"uuid": uuid}, entry(0)])
    assert reading.read(path).entries == [{"uuid": uuid}, entry(0)]


@pytest.mark.parametrize("between", [b"\n", b""], ids=["next line", "same line"])
@pytest.mark.parametrize("torn", [b'{"type":"user","uuid":"', b'{"type":"user","uuid":"0000', b'{"uuid":"\\'])
def test_a_uuid_behind_a_torn_one_is_known(path: Path, torn: bytes, between: bytes) -> None:
    """A line torn within its uuid does not hide the uuid that follows it."""
    found = {"uuid": entry(1)["uuid"], **entry(1)}
    old = line(0) + torn + between + json.dumps(found).encode() + b"\n"
    assert reading.read(write(path, old)).entries == entries(0, 1)
    Journal(path, unique=True).append(entries(1, 2))
    assert path.read_bytes() == old + encoding.encode(entry(2))


def test_the_uuid_of_a_torn_entry_is_not_known(path: Path) -> None:
    """An entry whose first write was torn is stored when it comes again."""
    old = lines(0, 1) + line(2)[:150]
    assert entry(2)["uuid"].encode() in old
    Journal(write(path, old), unique=True).append(entries(1, 2))
    assert reading.read(path).entries == entries(0, 1, 2)


def test_uuids_are_found_whatever_the_blocks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a block of the file ends hides no uuid, also with a torn line at the end."""
    old = lines(0, 1, 2) + line(3)[:100]
    for size in range(1, 40):
        monkeypatch.setattr(reading, "BLOCK_BYTES", size)
        one = Journal(write(path, old), unique=True, durability="os")
        one.append(entries(0, 1, 2, 3))
        one.append(entries(0, 1, 2, 3, 4))
        assert numbers(reading.read(path).entries) == [0, 1, 2, 3, 4], size
        assert path.read_bytes().count(b"\n") == 6


def test_a_journal_that_starts_anew_forgets(path: Path) -> None:
    """When the file was moved away, or became shorter, its old uuids count no longer."""
    one = Journal(path, unique=True)
    one.append(entries(0, 1, 2))
    path.rename(path.with_suffix(".old"))
    one.append(entries(0, 1))
    assert numbers(one.read().entries) == [0, 1]
    os.truncate(path, len(encoding.encode(entry(0))))
    one.append(entries(0, 1))
    assert numbers(one.read().entries) == [0, 1]


def test_what_others_began_anew_is_known(path: Path) -> None:
    """After another process moved the file away or made it shorter, its new uuids count."""
    one, other = Journal(path, unique=True), Journal(path, unique=True)
    one.append(entries(0, 1, 2))
    path.rename(path.with_suffix(".old"))
    other.append(entries(3, 4, 5, 6))
    one.append(entries(3, 4, 0))
    assert numbers(one.read().entries) == [3, 4, 5, 6, 0]
    os.truncate(path, len(b"".join(map(encoding.encode, entries(3, 4)))))
    Journal(path, unique=True).append(entries(7))
    one.append(entries(7, 4))
    assert numbers(one.read().entries) == [3, 4, 7]


# --- when the disk fails ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "act"),
    [
        ("write", fails(FULL)),
        ("write", writes_only(0, FULL)),
        ("write", writes_only(40, FULL)),
        ("write", writes_only(10_000, BROKEN)),
        ("write", writes_only(40)),
        ("fdatasync", fails(BROKEN)),
    ],
    ids=["refused", "nothing", "a part", "all, then an error", "short", "not synced"],
)
@pytest.mark.parametrize("old", [b"", lines(0), lines(0)[:-1], lines(0) + b'{"torn'])
def test_a_failed_append_leaves_the_old_bytes(
    path: Path, disk: Disk, function: str, act: Any, old: bytes
) -> None:
    """Whatever fails, the file has its old bytes, and the same append then stores each entry once."""
    one = Journal(write(path, old), unique=True)
    disk.then(function, act)
    with pytest.raises(JournalError) as caught:
        one.append(entries(1, 2))
    assert caught.value.errno in (errno.ENOSPC, errno.EIO)
    assert caught.value.path == path
    assert path.read_bytes() == old
    one.append(entries(1, 2))
    assert reading.read(path).entries[-2:] == entries(1, 2)
    assert len(reading.read(path).entries) == old.count(b'"text 0"') + 2
    assert path.read_bytes().startswith(old)


def test_every_partial_write_is_undone(path: Path, disk: Disk) -> None:
    """A disk that fills after any byte of a batch costs nothing but the batch."""
    old = lines(0)[:-1]
    one = Journal(write(path, old), unique=True)
    for count in range(len(b"\n" + encoding.encode(entry(1)))):
        disk.then("write", writes_only(count, FULL if count % 2 else None))
        with pytest.raises(JournalError):
            one.append(entries(1))
        assert path.read_bytes() == old
    one.append(entries(1))
    assert path.read_bytes() == old + b"\n" + encoding.encode(entry(1))


def test_an_interrupted_write_is_undone(path: Path, disk: Disk) -> None:
    """Also what is no disk error, Ctrl-C say, leaves the old bytes and comes through as it is."""
    one = Journal(write(path, lines(0)))
    disk.then("write", writes_only(20, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        one.append(entries(1))
    assert path.read_bytes() == lines(0)


@pytest.mark.parametrize(("function", "act"), [("write", writes_only(9, FULL)), ("fdatasync", fails(BROKEN))])
def test_a_failed_first_append_leaves_no_file(path: Path, disk: Disk, function: str, act: Any) -> None:
    """A journal whose first entries could not be stored does not exist."""
    disk.then(function, act)
    with pytest.raises(JournalError):
        Journal(path).append(entries(0))
    assert not path.exists()


def test_a_failed_sync_is_answered_by_writing_again(path: Path, disk: Disk) -> None:
    """The kernel drops what it could not write: a second sync alone would report a lie."""
    one = Journal(path, unique=True)
    one.append(entries(0))
    disk.then("fdatasync", fails(BROKEN))
    with pytest.raises(JournalError):
        one.append(entries(1))
    disk.calls.clear()
    one.append(entries(1))
    order = [function for function, _ in disk.calls if function in ("write", "fdatasync")]
    assert order == ["write", "fdatasync"]
    assert numbers(one.read().entries) == [0, 1]


def test_a_rollback_that_fails_is_made_up_for(path: Path, disk: Disk) -> None:
    """What could neither be written nor cut off again is cut off by the next append."""
    one = Journal(write(path, lines(0)), unique=True)
    disk.then("write", writes_only(50, FULL))
    disk.then("ftruncate", *[fails(BROKEN)] * 3)  # once, then twice in the next append
    for _ in range(2):
        with pytest.raises(JournalError):
            one.append(entries(1, 2))
        assert path.stat().st_size == len(lines(0)) + 50
    one.append(entries(1, 2))
    assert path.read_bytes() == lines(0) + b"".join(map(encoding.encode, entries(1, 2)))


def test_a_late_rollback_never_takes_what_another_wrote(path: Path, disk: Disk) -> None:
    """When somebody has appended behind the remains of a failed write, they stay, closed off."""
    one = Journal(write(path, lines(0)), unique=True)
    disk.then("write", writes_only(50, FULL))
    disk.then("ftruncate", fails(BROKEN))
    with pytest.raises(JournalError):
        one.append(entries(1))
    Journal(path, unique=True).append(entries(2))
    before = path.read_bytes()
    one.append(entries(1))
    assert path.read_bytes() == before + encoding.encode(entry(1))
    assert numbers(one.read().entries) == [0, 2, 1]


def test_a_late_rollback_never_takes_another_file(path: Path, disk: Disk) -> None:
    """A journal that was moved away and begun anew, by chance to the same length, stays whole."""
    one = Journal(write(path, lines(0)), unique=True)
    disk.then("write", writes_only(50, FULL))
    disk.then("ftruncate", fails(BROKEN))
    with pytest.raises(JournalError):
        one.append(entries(1))
    size = path.stat().st_size
    path.rename(path.with_suffix(".old"))
    fresh = encoding.encode({"type": "fresh", "v": ""})
    fresh = encoding.encode({"type": "fresh", "v": "x" * (size - len(fresh))})
    assert len(fresh) == size
    write(path, fresh)
    one.append(entries(1))
    assert path.read_bytes() == fresh + encoding.encode(entry(1))


@pytest.mark.parametrize("function", ["open", "stat", "write", "fdatasync", "fsync", "pread"])
def test_a_timeout_of_the_disk_is_no_timeout_error(path: Path, disk: Disk, function: str) -> None:
    """A network disk's ETIMEDOUT comes as a JournalError: what timed out the SDK never tries again."""
    timeout = OSError(errno.ETIMEDOUT, "Connection timed out")
    assert isinstance(timeout, TimeoutError)
    disk.then(function, fails(timeout))
    with pytest.raises(JournalError) as caught:
        Journal(write(path, lines(0)), unique=True).append(entries(1))
    assert not isinstance(caught.value, TimeoutError)
    assert caught.value.errno == errno.ETIMEDOUT
    assert str(caught.value) == f"Could not write {path}: Connection timed out."
    assert path.read_bytes() == lines(0)


def test_a_path_that_cannot_be_a_file_is_a_journal_error(tmp_path: Path) -> None:
    """A file in the place of a folder is reported as what it is."""
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file" / "one.jsonl", tmp_path):
        with pytest.raises(JournalError):
            Journal(path).append(entries(0))


# --- what is synced ---------------------------------------------------------------------------


def test_an_append_is_synced_before_it_returns(path: Path, disk: Disk) -> None:
    """Data, and for a new file its name in its folders, are on the disk when append returns."""
    one = Journal(path)
    one.append(entries(0))
    functions = [function for function, name in disk.calls if name == path.name]
    assert functions.index("write") < functions.index("fdatasync")
    assert {path.parent.name, path.parent.parent.name} <= set(disk.names("fsync"))
    disk.calls.clear()
    one.append(entries(1))
    assert disk.names("fdatasync") == [path.name]
    assert disk.names("fsync") == []


def test_the_name_of_a_file_begun_anew_is_synced(path: Path, disk: Disk) -> None:
    """A file that takes the place of one that was moved away gets its folder synced, too."""
    one = Journal(path)
    one.append(entries(0))
    path.rename(path.with_suffix(".old"))
    disk.calls.clear()
    one.append(entries(1))
    assert path.parent.name in disk.names("fsync")


def test_a_batch_known_already_is_synced_all_the_same(path: Path, disk: Disk) -> None:
    """Whoever wrote it may have died before the sync: it is acknowledged only after one."""
    Journal(write(path, b"".join(map(encoding.encode, entries(0)))), unique=True).append(entries(0))
    assert disk.names("write") == []
    assert disk.names("fdatasync") == [path.name]


def test_durability_os_never_syncs(path: Path, disk: Disk) -> None:
    """With durability "os" an append leaves it to the operating system when the disk has it."""
    one = Journal(path, durability="os", unique=True)
    one.append(entries(0))
    one.append(entries(0, 1))
    assert numbers(one.read().entries) == [0, 1]
    assert disk.names("fsync") == disk.names("fdatasync") == []


# --- many writers -----------------------------------------------------------------------------


def test_a_lock_held_too_long_is_reported(path: Path) -> None:
    """An append that got no lock in time says so, writes nothing, then or later, and is no timeout."""
    holder = Journal(write(path, lines(0)))
    with holder.locked():
        for timeout_s in (0.03, 0):
            with pytest.raises(JournalBusy) as caught:
                Journal(path, lock_timeout_s=timeout_s).append(entries(1))
            assert isinstance(caught.value, JournalError)
            assert not isinstance(caught.value, TimeoutError)
            assert caught.value.waited_s == timeout_s
            assert str(path) in str(caught.value)
    holder.append(entries(2))
    assert numbers(reading.read(path).entries) == [0, 2]


def test_a_lock_held_by_another_thread_is_reported(path: Path) -> None:
    """Also within one object an append waits no longer than it should."""
    one = Journal(write(path, lines(0)), lock_timeout_s=0.03)

    def append() -> str:
        try:
            one.append(entries(1))
        except JournalBusy:
            return "busy"
        return "written"

    with one.locked():
        assert in_thread(append) == "busy"
    assert in_thread(append) == "written"


def test_reading_and_appending_can_be_one_step(path: Path) -> None:
    """Under the lock, what was read is still all there when the answer to it is appended."""
    one = Journal(path)
    with one.locked() as transaction:
        assert transaction.size == 0
        transaction.append(entries(0))
        assert one.read().size == transaction.size
        transaction.append(entries(1))
        assert one.read().size == transaction.size
    assert numbers(one.read().entries) == [0, 1]


def test_a_lock_alone_leaves_no_file(path: Path) -> None:
    """Who only looks under the lock, or fails there, leaves nothing that passes for a journal."""
    with Journal(path).locked() as transaction:
        assert transaction.size == 0
    assert not path.exists()
    with pytest.raises(ZeroDivisionError), Journal(path).locked():
        _ = 1 / 0
    assert not path.exists()


def test_a_file_moved_away_while_an_append_waits(path: Path, disk: Disk) -> None:
    """An append that waited while the file went to the trash begins a new one."""
    holder = Journal(write(path, lines(0)))
    opened = threading.Event()
    trash = path.parent / "trash.jsonl"

    def opens(real: Any, *arguments: Any) -> Any:
        fd = real(*arguments)
        opened.set()
        return fd

    with holder.locked():
        disk.then("open", opens)
        thread = threading.Thread(target=Journal(path).append, args=[entries(1)])
        thread.start()
        assert opened.wait(10)
        path.rename(trash)
    thread.join()
    assert trash.read_bytes() == lines(0)
    assert reading.read(path).entries == entries(1)


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "an object each"])
def test_threads_append_side_by_side(path: Path, shared: bool) -> None:
    """Batches of many threads come whole, each in its order, none lost and none twice."""
    one = Journal(path, unique=True, durability="os")

    def append(writer: int) -> None:
        mine = one if shared else Journal(path, unique=True, durability="os")
        for number in range(0, 40, 2):
            batch = [{"uuid": f"{writer}-{number + i}", "writer": writer, "n": number + i} for i in (0, 1)]
            mine.append(batch)

    threads = [threading.Thread(target=append, args=[writer]) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = reading.read(path)
    assert not read.damage
    for writer in range(6):
        assert [found["n"] for found in read.entries if found["writer"] == writer] == list(range(40))
    pairs = zip(read.entries[::2], read.entries[1::2], strict=True)
    assert all(first["writer"] == second["writer"] for first, second in pairs)


@pytest.mark.slow
def test_processes_append_side_by_side(path: Path) -> None:
    """Eight processes with fifty appends each give four hundred entries, each once, in order."""
    code = """
import sys
from pathlib import Path
from smartwriter.storage.journal import Journal
one = Journal(Path(sys.argv[1]), unique=True)
for n in range(50):
    one.append([{"uuid": f"{sys.argv[2]}-{n}", "writer": int(sys.argv[2]), "n": n, "text": "x" * 300}])
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), str(writer)]) for writer in range(8)]
    assert [process.wait() for process in running] == [0] * 8
    read = reading.read(path)
    assert not read.damage
    assert len(read.entries) == 400
    for writer in range(8):
        assert [found["n"] for found in read.entries if found["writer"] == writer] == list(range(50))


# --- documents --------------------------------------------------------------------------------


def test_a_document_is_replaced_as_a_whole(tmp_path: Path, disk: Disk) -> None:
    """The new text stands, synced before it got its name, and nothing else is left in the folder."""
    path = tmp_path / "folder" / "profile.md"
    durable.write_document(path, "old\r\n")
    durable.write_document(path, "写 \ud83d\n")
    assert path.read_bytes() == "写 \ud83d\n".encode("utf-8", "surrogatepass")
    durable.write_document(path, b"\xff")
    assert path.read_bytes() == b"\xff"
    assert [item.name for item in path.parent.iterdir()] == ["profile.md"]
    data, folder = [function for function, _ in disk.calls][-3:], disk.calls[-1]
    assert data == ["fsync", "open", "fsync"]
    assert folder == ("fsync", "folder")


@pytest.mark.parametrize(
    ("function", "acts"),
    [
        ("write", [fails(FULL)]),
        ("write", [writes_only(2), fails(FULL)]),
        ("fsync", [fails(BROKEN)]),
        ("open", [fails(FULL)]),
        ("fsync", [fails(KeyboardInterrupt())]),
    ],
)
def test_a_failed_document_leaves_the_old_one(
    tmp_path: Path, disk: Disk, function: str, acts: list[Any]
) -> None:
    """Whatever fails while a document is written, the old text stands and no temporary file is left."""
    path = tmp_path / "folder" / "profile.md"
    durable.write_document(path, "old")
    disk.then(function, *acts)
    with pytest.raises((OSError, KeyboardInterrupt)):
        durable.write_document(path, "new text")
    assert path.read_text() == "old"
    assert [item.name for item in path.parent.iterdir()] == ["profile.md"]


def test_a_short_write_of_a_document_goes_on(tmp_path: Path, disk: Disk) -> None:
    """A disk that takes a document piece by piece still gets all of it."""
    disk.then("write", writes_only(3), writes_only(1), writes_only(2))
    durable.write_document(tmp_path / "index.md", "0123456789")
    assert (tmp_path / "index.md").read_text() == "0123456789"


def test_a_document_with_a_long_name(tmp_path: Path) -> None:
    """The temporary file's name fits the file system when the document's own just does."""
    path = tmp_path / ("写" * 84 + ".md")
    durable.write_document(path, "text")
    assert path.read_text() == "text"


def test_a_folder_in_the_place_of_a_document(tmp_path: Path) -> None:
    """What cannot be replaced is not, and no temporary file is left."""
    (tmp_path / "docs" / "index.md").mkdir(parents=True)
    with pytest.raises(OSError):
        durable.write_document(tmp_path / "docs" / "index.md", "text")
    assert [item.name for item in (tmp_path / "docs").iterdir()] == ["index.md"]


def test_moving_is_durable(tmp_path: Path, disk: Disk) -> None:
    """A file moves to a folder that is made for it, and both folders are synced."""
    source = write(tmp_path / "from" / "a", b"1")
    durable.move(source, tmp_path / "to" / "new" / "a")
    assert (tmp_path / "to" / "new" / "a").read_bytes() == b"1"
    assert not source.exists()
    assert disk.names("fsync")[-2:] == ["new", "from"]
    assert "to" in disk.names("fsync")


def test_a_move_to_another_disk(tmp_path: Path, other_disk: Path) -> None:
    """Files, folders and links are moved to a disk that no rename reaches, whole and under no other name."""
    write(tmp_path / "from" / "in" / "a", b"1")
    (tmp_path / "from" / "link").symlink_to("in/a")
    alone = write(tmp_path / "alone", b"2")
    durable.move(tmp_path / "from", other_disk / "new" / "to")
    durable.move(alone, other_disk / "new" / "alone")
    assert (other_disk / "new" / "to" / "link").is_symlink()
    assert (other_disk / "new" / "to" / "link").read_bytes() == b"1"
    assert (other_disk / "new" / "alone").read_bytes() == b"2"
    assert sorted(item.name for item in (other_disk / "new").iterdir()) == ["alone", "to"]
    assert not (tmp_path / "from").exists() and not alone.exists()


def test_a_move_to_another_disk_that_is_full(
    tmp_path: Path, other_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be copied whole stays where it was, and nothing of it lies at the other end."""
    source = write(tmp_path / "a", b"1")

    def full(*_: Any) -> None:
        raise FULL

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        durable.move(source, other_disk / "a")
    assert source.read_bytes() == b"1" and list(other_disk.iterdir()) == []


# --- read while it is written ---------------------------------------------------------------


@pytest.fixture
def caught(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A journal that is first looked at in the middle of a write."""
    Journal(path).append(entries(0, 1))
    whole = path.read_bytes()
    writer = Journal(path)
    holding = writer.locked()
    holding.__enter__()
    path.write_bytes(whole[:-20])
    pause = time.sleep

    def the_writer_goes_on(_: float) -> None:
        path.write_bytes(whole)
        pause(0)

    monkeypatch.setattr(time, "sleep", the_writer_goes_on)
    yield path
    holding.__exit__(None, None, None)


def test_a_line_that_is_being_written_is_no_damage(caught: Path) -> None:
    """A write may be seen in pieces: who reads in its middle looks again, and gets the whole line."""
    contents = in_thread(lambda: reading.read(caught))
    assert contents.damage == []
    assert numbers(contents.entries) == [0, 1]


def test_a_stream_waits_for_a_line_that_is_being_written(caught: Path) -> None:
    """As when it is read at once."""
    damage: list[Damage] = []
    read = in_thread(lambda: [entry for _, entry in reading.stream(caught, on_damage=damage.append)])
    assert (numbers(read), damage) == ([0, 1], [])


def test_a_torn_line_is_damage_at_once_to_the_one_who_may_write(path: Path) -> None:
    """Who holds the lock, or finds it free, need not wait to know that nobody will end the line."""
    torn = write(path, lines(0, 1)[:-20])
    assert len(reading.read(torn).damage) == 1
    with Journal(torn).locked():
        assert len(reading.read(torn).damage) == 1
