from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import entries, lines, numbers

from smartwriter.storage import growing as growing_module
from smartwriter.storage import journal, reading
from smartwriter.storage.growing import Growing
from smartwriter.storage.reading import Contents, newest_first
from smartwriter.storage.salvage import Entry


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.jsonl"


@given(st.binary(max_size=300), st.integers(0, 6), st.integers(1, 400), st.integers(0))
def test_from_its_end_a_journal_holds_what_it_holds(
    tmp_path_factory: pytest.TempPathFactory, rubbish: bytes, whole: int, block: int, seed: int
) -> None:
    """Whatever was done to a journal, and wherever the blocks end that are read."""
    data = lines(*range(whole))
    at = random.Random(seed).randrange(len(data) + 1)
    path = tmp_path_factory.mktemp("journals") / "one.jsonl"
    path.write_bytes(data[:at] + rubbish + data[at:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_BLOCK_FROM_END", block)
        assert list(newest_first(path)) == reading.read(path).entries[::-1]


def test_only_what_is_asked_for_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last entry of a long journal costs one block."""
    path.write_bytes(lines(*range(200)))
    read: list[int] = []
    whole = reading._read_between

    def noted(fd: int, start: int, end: int) -> bytes:
        read.append(end)
        return whole(fd, start, end)

    monkeypatch.setattr(reading, "_BLOCK_FROM_END", 1000)
    monkeypatch.setattr(reading, "_read_between", noted)
    assert numbers([next(newest_first(path))]) == [199]
    assert len(read) == 1


def test_what_grows_is_read_as_if_for_the_first_time(path: Path) -> None:
    """After appends, a torn line, its end, a repair, a smaller file, none: what is read is what is there."""
    kept = Growing(path)
    with pytest.raises(FileNotFoundError):
        kept.read()
    steps: list[Callable[[], object]] = [
        lambda: journal.Journal(path).append(entries(0, 1)),
        lambda: journal.Journal(path).append(entries(2)),
        lambda: path.write_bytes(path.read_bytes() + lines(3)[:-9]),
        lambda: path.write_bytes(path.read_bytes() + b"\n" + lines(4)),
        lambda: journal.rewrite(path, list),
        lambda: path.write_bytes(lines(7, 8, 9)),
        lambda: path.write_bytes(lines(7)),
        lambda: path.write_bytes(lines(8, 9)),
    ]
    for step in steps:
        step()
        assert kept.read() == reading.read(path)
        assert kept.read() == reading.read(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        kept.read()


def test_what_was_read_is_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what was added is parsed, and nothing where nothing was."""
    kept = Growing(path)
    journal.Journal(path).append(entries(0, 1))
    first = kept.read()
    assert kept.read() is first
    parsed: list[bytes] = []
    parse = reading.parse

    def noted(data: bytes, start: int, before: Entry | None) -> Contents:
        parsed.append(data)
        return parse(data, start, before)

    monkeypatch.setattr(growing_module, "parse", noted)
    journal.Journal(path).append(entries(2))
    assert numbers(kept.read().entries) == [0, 1, 2]
    assert [numbers(parse(data).entries) for data in parsed] == [[2]]
