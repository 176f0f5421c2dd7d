"""What any storage promises: the fixture ``storage`` has a parameter for each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from smartwriter.errors import DraftBusy, Invalid
from smartwriter.storage.encoding import decode, encode
from smartwriter.storage.files import FileStorage
from smartwriter.storage.interface import Overtaken, Storage

NAME = ("turns", "k7mq", "main")


def line(n: int) -> dict[str, Any]:
    return {"type": "x", "uuid": f"u-{n}", "n": n}


def numbers(storage: Storage, *name: str) -> list[int]:
    return [entry["n"] for entry in storage.journal(*name).read().entries]


def test_what_was_never_written_is_empty(storage: Storage) -> None:
    """Nothing is an error only because nobody has written yet, and looking makes nothing."""
    journal = storage.journal(*NAME)
    assert journal.read().entries == [] and journal.read().size == 0
    assert list(journal.newest_first()) == []
    assert journal.after(0) == ([], 0) and list(journal.stream()) == [] and not journal.exists()
    with journal.opened() as file:
        assert file.read() == b""
    assert list(storage.groups("turns")) == [] == list(storage.names("turns", deep=True))
    assert list(storage.names("turns", "k7mq")) == []
    assert storage.kept("0" * 64) is None and storage.kept("../x") is None
    assert not storage.put_away(*NAME)
    assert not storage.asked("stop", "k7mq", "main")
    assert not storage.lease(*NAME, address="k7mq@main").is_held()
    journal.update(lambda _: [])
    assert list(storage.names("turns", "k7mq")) == []


@pytest.mark.parametrize("kept", [False, True])
def test_what_is_appended_is_read(storage: Storage, kept: bool) -> None:
    """In order, from the beginning, from the end and from any place that was told."""
    journal = storage.journal(*NAME, kept=kept)
    first = journal.append([line(0), line(1)])
    assert journal.read().size == first
    second = storage.journal(*NAME).append([line(2)])
    assert [entry["n"] for entry in journal.read().entries] == [0, 1, 2]
    assert [entry["n"] for entry in journal.newest_first()] == [2, 1, 0]
    assert list(journal.stream()) == journal.read().entries and journal.exists()
    with journal.opened() as file:
        file.seek(first)
        assert decode(file.read(second - first)) == line(2)
    assert journal.after(first) == ([line(2)], second)
    assert journal.after(second) == ([], second)
    assert journal.append([]) == second


def test_an_append_can_depend_on_what_its_author_saw(storage: Storage) -> None:
    """Where somebody was faster nothing is stored, and whoever was not can look again."""
    journal = storage.journal(*NAME)
    seen = journal.append([line(0)], at=0)
    with pytest.raises(Overtaken):
        journal.append([line(1)], at=0)
    assert journal.append([line(1)], at=seen) > seen
    assert numbers(storage, *NAME) == [0, 1]


def test_many_who_read_and_append_never_miss_each_other(storage: Storage) -> None:
    """Each of many updates sees all before it: no number is given twice, and none is left out."""
    storage.journal(*NAME).append([line(0)])

    def add_one(_: int) -> None:
        storage.journal(*NAME).update(lambda contents: [line(contents.entries[-1]["n"] + 1)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add_one, range(24)))
    assert numbers(storage, *NAME) == list(range(25))


def test_an_update_that_fails_leaves_nothing(storage: Storage) -> None:
    """What raises while it is computed is raised, and what stood there stands."""
    storage.journal(*NAME).append([line(0)])
    with pytest.raises(ZeroDivisionError):
        storage.journal(*NAME).update(lambda _: [line(1 // 0)])
    assert numbers(storage, *NAME) == [0]


def test_an_entry_is_stored_once(storage: Storage) -> None:
    """Where a journal is told so, by its uuid, from whatever object it comes."""
    for _ in range(2):
        storage.journal(*NAME, unique=True).append([line(0), line(1)])
    assert numbers(storage, *NAME) == [0, 1]


def test_journals_are_listed_by_name(storage: Storage) -> None:
    """Those directly under a name, each with its size and when it was changed."""
    size = storage.journal(*NAME).append([line(0)])
    storage.journal("turns", "k7mq", "trial").append([line(0), line(1)])
    storage.journal("turns", "other", "main").append([line(0)])
    found = {listed.name: listed for listed in storage.names("turns", "k7mq")}
    assert sorted(found) == [NAME, ("turns", "k7mq", "trial")]
    assert found[NAME].size == size and found[NAME].changed_ms > 10**12
    storage.journal(*NAME, "deeper", "still").append([line(0)])
    assert {listed.name for listed in storage.names("turns", "k7mq")} == set(found)
    everything = {listed.name for listed in storage.names("turns", deep=True)}
    assert everything == {*found, ("turns", "other", "main"), (*NAME, "deeper", "still")}
    assert sorted(storage.groups("turns")) == ["k7mq", "other"]


def test_what_is_put_away_is_gone_and_can_begin_anew(storage: Storage) -> None:
    """A journal that was put away is as one that was never written."""
    storage.journal(*NAME).append([line(0)])
    assert storage.put_away(*NAME) and not storage.put_away(*NAME)
    assert numbers(storage, *NAME) == [] and not list(storage.names("turns", "k7mq"))
    storage.journal(*NAME).append([line(1)])
    assert numbers(storage, *NAME) == [1]


def test_what_is_under_a_name_goes_with_it(storage: Storage) -> None:
    """When that is asked for, be there a journal of the name itself or not; what has a similar name stays."""
    similar = (*NAME[:-1], "main2")
    for name in (NAME, (*NAME, "a"), (*NAME, "b", "c"), similar):
        storage.journal(*name).append([line(0)])
    assert storage.put_away(*NAME)
    assert numbers(storage, *NAME, "a") == [0]
    assert storage.put_away(*NAME, deep=True) and not storage.put_away(*NAME, deep=True)
    assert [listed.name for listed in storage.names("turns", deep=True)] == [similar]


@pytest.mark.parametrize("kept", [False, True])
def test_a_journal_can_begin_anew(storage: Storage, kept: bool) -> None:
    """What it held is gone, also for who has read it; it is appended to as before."""
    journal = storage.journal(*NAME, kept=kept)
    journal.append([line(0), line(1)])
    assert len(journal.read().entries) == 2
    storage.journal(*NAME).begin(encode(line(2)))
    assert journal.read().entries == [line(2)]
    journal.append([line(3)])
    assert numbers(storage, *NAME) == [2, 3]


@pytest.mark.parametrize("name", [NAME, ("forks", "k7mq")])
def test_one_at_a_time_has_a_lease(storage: Storage, name: tuple[str, ...]) -> None:
    """Whoever has it keeps others out, by name, until it is released."""
    lease = partial(storage.lease, *name, address="k7mq@main")
    with lease() as held:
        assert held.is_held() and lease().is_held() and not held.is_wanted()
        with pytest.raises(DraftBusy, match="k7mq@main"):
            lease().acquire()
    assert not lease().is_held()
    with lease():
        pass


def test_bytes_are_kept_for_good(storage: Storage) -> None:
    """By what they are: the same ones twice are kept once, and come back as they were."""
    data = b"\xff\0\r\nprofile"
    name = storage.keep(data)
    assert storage.keep(data) == name and storage.kept(name) == data
    assert name in storage.where_kept(name)


def test_a_request_is_heeded_once(storage: Storage) -> None:
    """Of all who look, one takes it; asking twice is asking once."""
    request = ("stop", "k7mq", "main")
    for _ in range(2):
        storage.ask(*request)
    assert storage.asked(*request) and not storage.asked("stop", "k7mq", "trial")
    assert storage.heed(*request) and not storage.heed(*request)
    assert not storage.asked(*request)


def test_bytes_that_changed_are_not_handed_out(tmp_path: Path) -> None:
    """A file of another content than its name says is reported; one that was cut is put right."""
    storage = FileStorage(tmp_path)
    path = Path(storage.where_kept(storage.keep(b"profile")))
    path.write_bytes(b"PROFILE")
    with pytest.raises(Invalid, match="damaged"):
        storage.kept(path.stem)
    path.write_bytes(b"prof")
    storage.keep(b"profile")
    assert storage.kept(path.stem) == b"profile"
