from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import fold_session_summary
from hypothesis import given
from hypothesis import strategies as st
from transcripts import KEY, SESSION, as_stored, entry, healthy, line, lines

import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
from smartwriter.sessions.summaries import Summaries
from smartwriter.storage import journal
from smartwriter.storage.files import FileStorage

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionSummaryEntry


class Project:
    """A project's folder of transcripts and the cache of their summaries."""

    def __init__(self, root: Path) -> None:
        self.storage = FileStorage(root)
        self.sessions = root / "sessions" / "book"
        self.cache = root / "cache" / "summaries" / "book.jsonl"
        self.sessions.mkdir(parents=True)

    def path(self, session_id: str = SESSION) -> Path:
        return self.sessions / f"{session_id}.jsonl"

    def add(self, data: bytes, session_id: str = SESSION) -> None:
        """Bytes at the end of a transcript, however they got there."""
        with open(self.path(session_id), "ab") as file:
            file.write(data)

    def listed(self) -> dict[str, SessionSummaryEntry]:
        """What a process that has just started lists."""
        found = Summaries(self.storage, "book").current()
        return {summary["session_id"]: summary for summary in found}

    def summary(self, session_id: str = SESSION) -> dict[str, Any]:
        return self.listed()[session_id]["data"]

    def folded(self, session_id: str = SESSION) -> dict[str, Any]:
        """The summary of the whole transcript, without a cache."""
        entries = as_stored(reading.read(self.path(session_id)).entries)
        return fold_session_summary(None, {**KEY, "session_id": session_id}, entries)["data"]

    def cached(self) -> list[dict[str, Any]]:
        return reading.read(self.cache).entries


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def titled(title: str) -> bytes:
    return json.dumps({"type": "custom-title", "customTitle": title, "sessionId": SESSION}).encode() + b"\n"


CHUNKS = {
    "lines": lines(0, 1),
    "more": lines(2, 3),
    "a title": titled("渡口"),
    "another": titled("\ud83d\u2028"),
    "torn": line(4)[:130],
    "all but its LF": titled("no LF")[:-1],
    "its LF": b"\n",
    "half": titled("in two pieces")[:40],
    "the other half": titled("in two pieces")[40:],
    "NUL": b"\0" * 30,
    "a line of NUL": b"\0" * 30 + b"\n",
    "glued": line(5)[:90] + titled("glued"),
    "known by its links": b'{"message": ' + line(6, customTitle="linked"),
    "its parent": line(5),
    "its child": line(7),
    "CRLF": titled("CRLF").replace(b"\n", b"\r\n"),
    "blank": b"\n\r\n",
    "no object": b"[1]\n",
    "a mark": b"\xef\xbb\xbf",
    "unknown": b'{"type":"future-thing","customTitle":"future"}\n',
}

SEQUENCES = [
    ["lines", "more", "a title", "another"],
    ["lines", "torn", "its LF", "a title"],
    ["lines", "torn", "a title"],
    ["lines", "all but its LF", "its LF", "more"],
    ["all but its LF", "a title", "its LF"],
    ["lines", "half", "the other half", "half", "its LF", "the other half"],
    ["NUL", "lines", "NUL", "its LF", "a title", "a line of NUL", "another"],
    ["lines", "glued", "glued", "more"],
    ["lines", "its parent", "known by its links"],
    ["lines", "known by its links", "its child"],
    ["known by its links", "its child", "a title"],
    ["CRLF", "blank", "lines", "blank", "CRLF"],
    ["a mark", "a title", "a mark", "another"],
    ["no object", "unknown", "lines"],
    ["lines", "lines", "a title", "a title", "lines"],
]


@pytest.mark.parametrize("block", [7, 1 << 18], ids=["small blocks", "one block"])
@pytest.mark.parametrize("names", SEQUENCES, ids=", then ".join)
def test_a_summary_equals_a_full_fold(
    project: Project, monkeypatch: pytest.MonkeyPatch, names: list[str], block: int
) -> None:
    """After every kind of growth, the summary is that of the whole file, folded from what is new."""
    monkeypatch.setattr("smartwriter.sessions.summaries._BLOCK_BYTES", block)
    project.path().touch()
    for name in names:
        project.add(CHUNKS[name])
        assert project.summary() == project.folded(), name
        assert project.summary() == project.folded(), f"{name}, once more"


@given(names=st.lists(st.sampled_from(sorted(CHUNKS)), min_size=1, max_size=8))
def test_a_summary_equals_a_full_fold_in_any_order(names: list[str], tmp_path_factory: Any) -> None:
    """Whatever comes after whatever, listed after each step or not, the summary is right."""
    project = Project(tmp_path_factory.mktemp("project"))
    for number, name in enumerate(names):
        project.add(CHUNKS[name])
        if len(name) % 2 or number + 1 == len(names):
            assert project.summary() == project.folded()


@pytest.mark.parametrize("block", [7, 1 << 18], ids=["small blocks", "one block"])
def test_only_what_is_new_is_folded(project: Project, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """An unchanged transcript is not read again, and a longer one only behind its known part."""
    monkeypatch.setattr("smartwriter.sessions.summaries._BLOCK_BYTES", block)
    project.add(lines(0, 1))
    project.listed()
    [known] = project.cached()
    assert known["size"] == len(lines(0, 1))
    replace_cache(project, [known | {"data": {"custom_title": "from the cache"}}])
    assert project.summary() == {"custom_title": "from the cache"}
    project.add(lines(2))
    assert project.summary()["custom_title"] == "from the cache"
    assert project.cached()[-1]["size"] == len(lines(0, 1, 2))
    lines_before = len(project.cached())
    project.path().write_bytes(b"?" * len(lines(0, 1, 2)))
    assert project.summary()["custom_title"] == "from the cache"
    assert len(project.cached()) == lines_before, "nothing new, nothing written"


def test_damage_at_the_end_is_looked_at_again(project: Project) -> None:
    """What is remembered ends with a whole entry, however many damaged or empty lines follow it."""
    project.add(lines(0, 1) + b"torn\n\n\r\n[1]\n" + line(2)[:9])
    for _ in range(2):
        assert project.summary() == project.folded()
        assert [found["size"] for found in project.cached()] == [len(lines(0, 1))]


def replace_cache(project: Project, entries: Iterable[dict[str, Any]]) -> None:
    project.cache.write_bytes(b"".join(map(encoding.encode, entries)))


def test_an_old_line_of_the_cache_is_completed(project: Project) -> None:
    """A cache that was put back from an old copy is folded on from where it ends."""
    project.add(lines(0, 1) + titled("one"))
    project.listed()
    old = project.cache.read_bytes()
    project.add(titled("two") + lines(2))
    assert project.summary()["custom_title"] == "two"
    project.cache.write_bytes(old)
    assert project.summary() == project.folded()


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\0" * 100,
        b"{",
        b"null\n[]\n{}\n",
        b"\xff\xfe\n",
        b'{"session_id":"' + SESSION.encode() + b'"}\n',
        b'{"session_id":"' + SESSION.encode() + b'","size":"9","check":null,"data":[]}\n',
        b'{"session_id":"' + SESSION.encode() + b'","size":-9,"check":0,"data":{}}\n',
        b'{"session_id":"' + SESSION.encode() + b'","size":99999,"check":0,"data":{"custom_title":"x"}}\n',
        b'{"session_id":"' + SESSION.encode() + b'","size":100,"check":1,"data":{"custom_title":"x"}}\n',
    ],
)
def test_a_cache_of_garbage_is_only_slower(project: Project, garbage: bytes) -> None:
    """Whatever the cache file holds, the listing is right, and the cache is right again after it."""
    project.add(healthy() + titled("渡口"))
    project.cache.parent.mkdir(parents=True)
    project.cache.write_bytes(garbage)
    assert project.summary() == project.folded()
    assert project.cached()[-1]["size"] == project.path().stat().st_size
    assert project.summary() == project.folded()


def test_a_cache_that_cannot_be_used_is_only_slower(project: Project) -> None:
    """A folder in the place of the cache, or a file in that of its folder, costs no listing."""
    project.add(healthy())
    project.cache.mkdir(parents=True)
    assert project.summary() == project.folded()
    project.cache.rmdir()
    project.cache.parent.rmdir()
    project.cache.parent.write_bytes(b"")
    assert project.summary() == project.folded()


def test_a_cache_that_grew_too_big_is_written_anew(project: Project) -> None:
    """Superseded lines, and those of sessions that are gone, do not pile up for ever."""
    project.add(healthy())
    project.add(titled("other"), "other")
    project.listed()
    one, other = project.cached()
    gone = {"session_id": "gone", "size": 1, "check": 1, "data": {}}
    replace_cache(project, [one, other, *[gone] * 2000])
    project.listed()
    assert len(project.cached()) == 2002, "nothing to write, nothing to tidy"
    project.add(titled("渡口"))
    assert project.summary() == project.folded()
    assert sorted(found["session_id"] for found in project.cached()) == sorted([SESSION, "other"])
    assert project.summary("other") == project.folded("other")
    assert [item.name for item in project.cache.parent.iterdir()] == [project.cache.name]


def test_a_session_that_starts_anew_has_a_new_summary(project: Project) -> None:
    """A transcript that was replaced by a shorter or longer one is folded anew."""
    project.add(healthy() + titled("old"))
    project.listed()
    for new in (line(9, "new"), healthy() + titled("a new and longer title") * 3):
        project.path().unlink()
        project.add(new)
        assert project.summary() == project.folded()


def test_a_forgotten_session_has_a_new_summary_whatever_its_length(project: Project) -> None:
    """After a session was deleted, not even a new one of the same length gets its summary."""
    project.add(titled("old"))
    project.listed()
    project.path().unlink()
    Summaries(project.storage, "book").forget(SESSION)
    assert project.listed() == {}
    project.add(titled("new"))
    assert project.summary() == project.folded()
    assert project.summary()["custom_title"] == "new"


def test_forgetting_makes_no_cache(project: Project) -> None:
    """Where there is no cache, there is nothing to forget."""
    Summaries(project.storage, "book").forget(SESSION)
    assert not project.cache.exists()


def test_an_empty_transcript_is_listed(project: Project) -> None:
    """A session whose file has 0 bytes is listed, without data, beside the others."""
    project.add(b"")
    project.add(healthy(), "other")
    listed = project.listed()
    assert listed[SESSION]["data"] == {}
    assert listed["other"]["data"] == project.folded("other")
    project.add(healthy())
    assert project.summary() == project.folded()


def test_no_folder_no_sessions(tmp_path: Path) -> None:
    """A project that was never written has no sessions and gets no cache."""
    storage = FileStorage(tmp_path / "store")
    (tmp_path / "store" / "sessions").mkdir(parents=True)
    (tmp_path / "store" / "sessions" / "file").write_bytes(b"")
    for project in ("missing", "file"):
        assert Summaries(storage, project).current() == []
    assert not (tmp_path / "store" / "cache").exists()


def test_what_is_listed(project: Project) -> None:
    """Files that end like transcripts, by the ids they stand for, with the times of the files where no entry
    says when."""
    project.add(titled("no time"))
    project.add(titled("no time"), "%E5%86%99")
    for other in ("notes.md", ".hidden.jsonl", "x.jsonl.tmp"):
        (project.sessions / other).write_bytes(b"2")
    (project.sessions / "folder").mkdir()
    (project.sessions / "folder.jsonl").mkdir()
    (project.sessions / "dangling.jsonl").symlink_to("nowhere")
    os.utime(project.path(), ns=(1, 1_700_000_000_123_456_789))
    found = project.listed()
    assert sorted(found) == sorted([SESSION, "写"])
    assert found[SESSION]["mtime"] == 1_700_000_000_123


def at(hour: int, minute: int) -> bytes:
    return line(0, uuid=f"{hour}:{minute}", timestamp=f"2026-05-01T{hour:02d}:{minute:02d}:00.000Z")


def listed_in_order(project: Project) -> list[str]:
    times = Summaries(project.storage, "book").times()
    shown = Summaries(project.storage, "book").current()
    assert times == [{"session_id": one["session_id"], "mtime": one["mtime"]} for one in shown]
    assert [one["mtime"] for one in times] == sorted((one["mtime"] for one in times), reverse=True)
    return [one["session_id"] for one in times]


@pytest.mark.parametrize("cached", [False, True])
def test_a_copy_without_file_times_keeps_the_order(project: Project, cached: bool) -> None:
    """The entries know their own order: no times of files change it, lost, reversed or hours ahead."""
    for number, name in enumerate("bdac"):
        project.add(at(9, number) + titled("said without a time"), name)
    if cached:
        assert listed_in_order(project) == list("cadb")
    for hours in (lambda _: 0, lambda number: -number, lambda number: number % 2):
        for number, name in enumerate("bdac"):
            os.utime(project.path(name), (hours(number) * 3600 + 1_800_000_000,) * 2)
        assert listed_in_order(project) == list("cadb")


def test_a_clock_that_was_ahead_for_a_while(project: Project) -> None:
    """What a session says last counts, not its greatest time: a clock that was set right is believed."""
    project.add(at(15, 0), "a")  # an hour ahead
    assert listed_in_order(project) == ["a"]
    project.add(at(14, 5), "b")
    project.add(at(14, 10), "a")
    assert listed_in_order(project) == ["a", "b"]
    project.add(at(14, 20), "b")
    assert listed_in_order(project) == ["b", "a"]


def test_equal_times_have_an_order(project: Project) -> None:
    """Of sessions of one time, as a fork is of its origin's, the later file comes first, then the greater id;
    one whose entries tell no time has that of its file."""
    for name, seconds in (("a", 5), ("b", 9), ("c", 5), ("without", 7)):
        project.add(titled("no time") if name == "without" else at(9, 0), name)
        os.utime(project.path(name), (seconds, seconds))
    assert listed_in_order(project) == ["b", "c", "a", "without"]


@pytest.mark.parametrize(
    "stamp", [None, 5, "", "yesterday", "0001-01-01T00:00:00", "9999-12-31T23:59:59-14:00", ["x"], "\ud800"]
)
def test_a_time_that_is_none(project: Project, stamp: Any) -> None:
    """Whatever stands where an entry's time should: it is listed, by the entry before where that has one."""
    project.add(at(9, 0) + line(1, timestamp=stamp))
    [summary] = project.listed().values()
    assert summary["mtime"] == 1_777_626_000_000 or str(stamp).startswith(("0001", "9999"))


def test_a_cache_of_an_earlier_version(project: Project) -> None:
    """A cached summary that does not say when its session was written is made anew."""
    project.add(at(9, 0) + titled("kept"))
    project.listed()
    [known] = project.cached()
    del known["last"]
    replace_cache(project, [known])
    assert project.listed()[SESSION]["mtime"] == 1_777_626_000_000
    assert project.cached()[-1]["last"] == 1_777_626_000_000


def test_listing_changes_no_transcript(project: Project) -> None:
    """Bytes and times of transcripts, damaged ones too, are the same after they were listed."""
    project.add(healthy() + line(6)[:50])
    os.utime(project.path(), ns=(1_600_000_000_000_000_000, 1_600_000_000_000_000_000))
    before = project.path().stat()
    project.listed()
    project.listed()
    after = project.path().stat()
    assert (before.st_mtime_ns, before.st_ctime_ns, before.st_size) == (
        after.st_mtime_ns,
        after.st_ctime_ns,
        after.st_size,
    )


def test_a_transcript_that_cannot_be_read_is_listed(project: Project) -> None:
    """One file that the system refuses costs only its own summary."""
    (project.sessions / "folder.jsonl").mkdir()
    project.add(healthy())
    listed = project.listed()
    assert listed[SESSION]["data"] == project.folded()
    assert set(listed) <= {SESSION, "folder"}


@pytest.mark.slow
def test_processes_list_while_another_writes(project: Project) -> None:
    """Listings in several processes at once agree with the file when it is at rest again."""
    code = """
import sys
from pathlib import Path
from smartwriter.sessions.summaries import Summaries
from smartwriter.storage.files import FileStorage
for _ in range(20):
    Summaries(FileStorage(Path(sys.argv[1])), "book").current()
"""
    arguments = [sys.executable, "-c", code, str(project.sessions.parent.parent)]
    writer = journal.Journal(project.path(), durability="os")
    running = [subprocess.Popen(arguments) for _ in range(2)]
    for number in range(200):
        writer.append([entry(number) | {"customTitle": f"title {number}"}])
    assert [process.wait() for process in running] == [0, 0]
    assert project.summary() == project.folded()
    assert project.summary()["custom_title"] == "title 199"
    assert not reading.read(project.cache).damage
