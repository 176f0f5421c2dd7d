"""Public reports of lost, damaged or mixed-up sessions, replayed against the disk layer.

Each test is named after its case, whose number is only a name, and cites the report.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import pytest
from claude_agent_sdk import (
    fork_session_via_store,
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
    rename_session_via_store,
)
from disks import in_place_of_os
from transcripts import (
    KEY,
    SESSION,
    Disk,
    as_stored,
    entries,
    entry,
    entry_uuid,
    healthy,
    line,
    lines,
    numbers,
    write_transcript,
    writes_only,
)

import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
from smartwriter.errors import JournalError, TaskAmbiguous
from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage.files import FileStorage
from smartwriter.tasks.manager import TaskManager
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey

pytestmark = pytest.mark.anyio

T = TypeVar("T")
SEPARATORS = "x\u0085y\u2028z\u2029"


@pytest.fixture
def store(tmp_path: Path) -> FileSessionStore:
    return FileSessionStore(tmp_path / ".smartwriter")


@pytest.fixture
def tasks(tmp_path: Path) -> TaskManager:
    return TaskManager(FileStorage(tmp_path / ".smartwriter"))


def done(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a call of the store gives, in a test that also does things that block."""

    async def wait() -> T:
        return await coroutine

    return anyio.run(wait)


async def check(
    store: FileSessionStore, data: bytes, wanted: list[int], damaged: Sequence[bytes] = ()
) -> None:
    """What is right for every file, whatever is wrong with it.

    Its whole entries load and stream, its damage is told to the byte, it is listed, nothing of it
    changes, and the next append is on a line of its own, once.
    """
    path = write_transcript(store, data)
    assert numbers(await store.load(KEY)) == wanted
    assert numbers([found async for found in store.entries(KEY)]) == wanted
    stretches = [data[bad.offset : bad.offset + bad.length] for bad in await store.damage(KEY)]
    assert stretches == list(damaged)
    assert [one["session_id"] for one in await store.list_sessions("book")] == [SESSION]
    [summary] = await store.list_session_summaries("book")
    assert summary["data"].get("first_prompt") == ("text 0" if 0 in wanted else None)
    assert path.read_bytes() == data
    later = FileSessionStore(store.root)
    for _ in range(2):
        await later.append(KEY, as_stored(entries(9)))
    assert path.read_bytes().startswith(data)
    assert path.read_bytes().endswith(b"\n" * (not data.endswith(b"\n")) + encoding.encode(entry(9)))
    assert numbers(await store.load(KEY)) == [*wanted, 9]


def run(code: str, *arguments: object, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        env=dict(os.environ) | environment,
    )


def output(process: subprocess.Popen[bytes]) -> bytes:
    """What a process said, once it has ended well."""
    said, _ = process.communicate()
    assert process.returncode == 0
    return said


# --- A. Damaged files -------------------------------------------------------------------------


async def test_case_001_power_loss_cuts_the_last_line(store: FileSessionStore) -> None:
    """All whole entries load and the next goes on a fresh line (anthropics/claude-code#53821)."""
    await check(store, healthy() + line(6)[:37], [0, 1, 2, 3, 4, 5], [line(6)[:37]])


async def test_case_002_a_line_of_nul_bytes(store: FileSessionStore) -> None:
    """A run of NUL on a line of its own costs no entry (anthropics/claude-code#49876)."""
    data = lines(0, 1, 2) + b"\0" * 300 + b"\n" + lines(3, 4, 5)
    await check(store, data, [0, 1, 2, 3, 4, 5], [b"\0" * 300])


async def test_case_004_nul_bytes_at_the_end(store: FileSessionStore) -> None:
    """The next entry is not glued to trailing NULs (github/copilot-cli#2217, github/copilot-cli#3593)."""
    await check(store, healthy() + b"\0" * 1728, [0, 1, 2, 3, 4, 5], [b"\0" * 1728])


@pytest.mark.parametrize(("rest", "wanted"), [((4, 5), [0, 1, 2, 4, 5]), ((3, 4, 5), [0, 1, 2, 3, 4, 5])])
async def test_case_006_torn_event_glued_to_whole_event(
    store: FileSessionStore, rest: tuple[int, ...], wanted: list[int]
) -> None:
    """What is glued to a torn event is saved whole (github/copilot-cli#4098)."""
    await check(store, lines(0, 1, 2) + line(3)[:120] + lines(*rest), wanted, [line(3)[:120]])


def test_case_006_torn_anywhere(tmp_path: Path) -> None:
    """Wherever the event was torn, the one glued to it is saved (github/copilot-cli#4098)."""
    path = tmp_path / "one.jsonl"
    for cut in range(1, len(line(3)) - 1, 5):
        for rest in ((4, 5), (3, 4, 5)):
            path.write_bytes(lines(0, 1, 2) + line(3)[:cut] + lines(*rest))
            assert numbers(reading.read(path).entries) == [0, 1, 2, *rest], cut


async def test_case_006_three_times(store: FileSessionStore) -> None:
    """Glued three times over, all whole events are saved (github/copilot-cli#4098)."""
    data = b"".join(line(n)[:120] + line(n) for n in (0, 1, 2)) + line(3)
    await check(store, data, [0, 1, 2, 3], [line(n)[:120] for n in (0, 1, 2)])


async def test_case_007_partial_record_then_the_whole_one(store: FileSessionStore) -> None:
    """A record written partly and then again whole is there once (openai/codex#24425)."""
    data = lines(0, 1, 2) + line(3)[:120] + b"\n" + lines(3, 4, 5)
    await check(store, data, [0, 1, 2, 3, 4, 5], [line(3)[:120]])


def big_file(path: Path, size: int) -> int:
    """Fill a transcript with lines of 2 KB; returns how many."""
    before, after = line(0, "x" * 1700).split(entry_uuid(0).encode())
    count = size // len(line(0, "x" * 1700))
    with open(path, "wb") as file:
        file.writelines(before + entry_uuid(n).encode() + after for n in range(count))
    return count


STREAM = """
import anyio, sys, tracemalloc
from smartwriter.sessions.store import FileSessionStore

async def main():
    store = FileSessionStore(sys.argv[1])
    key = {"project_key": "book", "session_id": sys.argv[2]}
    tracemalloc.start()
    count = 0
    async for entry in store.entries(key):
        count += 1
    print(count, tracemalloc.get_traced_memory()[1] >> 20)

anyio.run(main)
"""


async def test_case_009_a_transcript_too_big_for_one_string(store: FileSessionStore) -> None:
    """A big transcript loads, line by line (anthropics/claude-code#80379; 24 MB here, not 400)."""
    count = big_file(write_transcript(store, b""), 24 << 20)
    loaded = await store.load(KEY)
    assert loaded is not None and len(loaded) == count
    assert numbers([loaded[-1]]) == [count - 1]


async def test_case_010_line_separators_in_a_text(store: FileSessionStore) -> None:
    """Raw U+2028 and U+2029 end no line (github/copilot-cli#2012, github/copilot-cli#2490)."""
    raw = json.dumps(entry(3, "a\u2028b\u2029c"), ensure_ascii=False).encode() + b"\n"
    await check(store, lines(0, 1, 2) + raw + lines(4, 5), [0, 1, 2, 3, 4, 5])
    loaded = await store.load(KEY)
    assert loaded is not None and loaded[3] == entry(3, "a\u2028b\u2029c")


async def test_case_011_line_separators_through_append(store: FileSessionStore) -> None:
    """What was appended with separators loads equal, and its uuid is known (bytedance/deer-flow#5420)."""
    await store.append(KEY, as_stored([entry(0), entry(3, SEPARATORS), entry(4)]))
    later = FileSessionStore(store.root)
    await later.append(KEY, as_stored([entry(3, SEPARATORS), entry(5)]))
    assert await later.load(KEY) == [entry(0), entry(3, SEPARATORS), entry(4), entry(5)]
    assert len(store.path(KEY).read_text("utf-8").splitlines()) == 4


def test_case_012_line_separators_in_every_other_file(store: FileSessionStore, tasks: TaskManager) -> None:
    """Tasks, turns and the index stand the same letters as transcripts (volcengine/OpenViking#3984)."""
    task = tasks.create(f"渡口 {SEPARATORS}!", "book", "book")
    turn = Turn(number=1, uuid="u", session_id=SESSION, prompt=SEPARATORS, state=TurnState.finished)
    tasks.record(task, "main", [turn])
    later = TaskManager(FileStorage(store.root))
    assert [found.title for found in later.all()] == [task.title]
    assert "\u2028z" in task.title
    assert later.turns(task, "main") == [turn]
    done(store.append(KEY, as_stored([entry(0) | {"customTitle": SEPARATORS}])))
    for _ in range(2):
        [summary] = done(FileSessionStore(store.root).list_session_summaries("book"))
        assert summary["data"]["custom_title"] == SEPARATORS
    for file in store.root.rglob("*.jsonl"):
        assert len(file.read_text("utf-8").splitlines()) == file.read_bytes().count(b"\n")


async def test_case_014_half_an_emoji(store: FileSessionStore) -> None:
    """A lone surrogate loads, streams and is appended as it is (anthropics/claude-code#56064)."""
    await check(store, lines(0, 1, 2) + line(3, "fire\ud83d…") + lines(4, 5), [0, 1, 2, 3, 4, 5])
    await store.append(KEY, as_stored([entry(6, "fire\ud83d…")]))
    loaded = await store.load(KEY)
    assert loaded is not None
    assert loaded[3] == entry(3, "fire\ud83d…")
    assert loaded[-1] == entry(6, "fire\ud83d…")
    assert store.path(KEY).read_bytes().decode("utf-8").endswith("\n")


async def test_case_015_half_an_emoji_deep_in_a_tool_input(store: FileSessionStore) -> None:
    """A lone surrogate is kept wherever it stands (anthropics/claude-code#68325, #61301)."""
    options = [{"description": "좋은"}, {"description": "나쁜 \ud83d"}]
    call = {"type": "tool_use", "id": "toolu_1", "name": "Ask", "input": {"options": options}}
    deep = entry(1) | {"message": {"role": "assistant", "content": [call]}}
    batch = [entry(0), deep, *entries(*range(2, 40))]
    await store.append(KEY, as_stored(batch))
    assert await FileSessionStore(store.root).load(KEY) == batch


def test_case_016_an_undecodable_prompt(store: FileSessionStore, tasks: TaskManager) -> None:
    """A prompt with a stray byte is stored whole, in every file (Aider-AI/aider#1636, #1663)."""
    prompt = "hi \udc9f"
    done(store.append(KEY, as_stored([entry(0, prompt), entry(1)])))
    assert done(store.load(KEY)) == [entry(0, prompt), entry(1)]
    task = tasks.create(prompt, "book", "book")
    turn = Turn(number=1, uuid="u", session_id=SESSION, prompt=prompt, state=TurnState.running)
    tasks.record(task, "main", [turn])
    assert TaskManager(FileStorage(store.root)).turns(task, "main") == [turn]
    assert TaskManager(FileStorage(store.root)).find(prompt).id == task.id


async def test_case_018_nul_in_a_tools_output(store: FileSessionStore) -> None:
    """NUL in a text is stored as an escape, never as the byte (anthropics/claude-code#94408)."""
    await store.append(KEY, as_stored([entry(3, "a\0b")]))
    assert await store.load(KEY) == [entry(3, "a\0b")]
    data = store.path(KEY).read_bytes()
    assert b"\\u0000" in data and b"\0" not in data


async def test_case_019_one_byte_that_is_no_text(store: FileSessionStore) -> None:
    """One bad byte costs one entry, in any locale (ebibibi/ebi-agent-chat-relay PR 302)."""
    bad = line(3, "caf?").replace(b"?", b"\xff")
    data = lines(0, 1, 2) + bad + lines(4, 5)
    await check(store, data, [0, 1, 2, 4, 5], [bad[:-1]])
    write_transcript(store, data)
    said = output(run(STREAM, store.root, SESSION, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"))
    assert said.split()[0] == b"5"


async def test_case_020_a_file_of_no_bytes(store: FileSessionStore) -> None:
    """An empty transcript and an empty index hide no session (anomalyco/opencode#7607)."""
    for number in range(5):
        write_transcript(store, healthy(), {**KEY, "session_id": f"s{number}"})
    write_transcript(store, b"")
    cache = store.root / "cache" / "summaries" / "book.jsonl"
    cache.parent.mkdir(parents=True)
    cache.touch()
    listed = {one["session_id"] for one in await store.list_sessions("book")}
    assert listed == {SESSION, "s0", "s1", "s2", "s3", "s4"}
    summaries = {one["session_id"]: one["data"] for one in await store.list_session_summaries("book")}
    assert summaries.keys() == listed
    assert summaries[SESSION] == {}
    assert summaries["s3"]["first_prompt"] == "text 0"
    assert await store.load(KEY) == []


def test_case_022_a_bad_line_in_the_tasks(tasks: TaskManager, tmp_path: Path) -> None:
    """A bad line among tasks or turns costs only itself (anomalyco/opencode#4277)."""
    task = tasks.create("渡口", "book", "book")
    turns = [
        Turn(number=n, uuid=f"u{n}", session_id=SESSION, prompt="p", state=TurnState.finished) for n in (1, 2)
    ]
    tasks.record(task, "main", turns[:1])
    files = [tmp_path / ".smartwriter" / "tasks.jsonl"]
    files += (tmp_path / ".smartwriter" / "turns").rglob("*.jsonl")
    assert len(files) == 2
    for file in files:
        with open(file, "ab") as torn:
            torn.write(b'{"type":"task","id":"x","ti\0\0\xff')
    later = TaskManager(FileStorage(tmp_path / ".smartwriter"))
    later.record(task, "main", turns[1:])
    other = later.create("Second", "book", "book")
    assert [found.id for found in later.all()] == [task.id, other.id]
    assert later.turns(task, "main") == turns
    assert len(later.damage()) == 1


BAD_STATES = [b"", b"  \n", b"{", b"null", b"[]", b"\0" * 40, b'{"id":7}\n{"id":"x"}\n']


@pytest.mark.parametrize("bad", BAD_STATES)
def test_case_023_a_state_file_of_rubbish(tasks: TaskManager, tmp_path: Path, bad: bytes) -> None:
    """Whatever tasks.jsonl holds, tasks can be listed and made (anomalyco/opencode#29628)."""
    file = tmp_path / ".smartwriter" / "tasks.jsonl"
    file.parent.mkdir()
    file.write_bytes(bad)
    assert tasks.all() == []
    assert file.read_bytes() == bad
    task = tasks.create("渡口", "book", "book")
    assert TaskManager(FileStorage(file.parent)).all() == [task]


@pytest.mark.parametrize("bad", BAD_STATES)
def test_case_024_what_cannot_be_read_is_never_overwritten(
    tasks: TaskManager, tmp_path: Path, bad: bytes
) -> None:
    """A store that cannot be parsed is not empty: its bytes stay, and are told (octos-org/octos#2013)."""
    old = tasks.create("old", "book", "book")
    file = tmp_path / ".smartwriter" / "tasks.jsonl"
    with open(file, "ab") as torn:
        torn.write(bad)
    before = file.read_bytes()
    later = TaskManager(FileStorage(file.parent))
    new = later.create("new", "book", "book")
    assert file.read_bytes().startswith(before)
    assert later.all() == [old, new]
    assert bool(later.damage()) == bool(bad.strip() and not bad.startswith(b'{"id"'))


async def test_case_026_a_file_that_starts_with_a_service_entry(store: FileSessionStore) -> None:
    """A session is found whatever its first entry is (anthropics/claude-code#62851)."""
    link = {"type": "pr-link", "sessionId": SESSION}
    write_transcript(store, encoding.encode(link) + healthy())
    assert await store.load(KEY) == [link, *entries(0, 1, 2, 3, 4, 5)]
    assert [one["session_id"] for one in await store.list_sessions("book")] == [SESSION]
    [summary] = await store.list_session_summaries("book")
    assert summary["data"]["first_prompt"] == "text 0"


async def test_case_027_entries_without_the_usual_fields(store: FileSessionStore) -> None:
    """No field is needed and none is dropped (openai/codex#45150, openai/codex#38341)."""
    bare = [
        {k: v for k, v in one.items() if k not in ("timestamp", "cwd", "sessionId")} for one in entries(0, 1)
    ]
    future: list[dict[str, Any]] = [
        {"type": "future-thing", "ordinal": 3, "new": {"a": [1, {}]}},
        {"no": "type"},
        {},
    ]
    write_transcript(store, b"".join(encoding.encode(one) for one in [*bare, *future, entry(2)]))
    assert await store.load(KEY) == [*bare, *future, entry(2)]
    assert await store.damage(KEY) == []
    assert len(await store.list_session_summaries("book")) == 1


# --- B. Two writers ---------------------------------------------------------------------------


async def test_case_031_three_tool_results_at_once(store: FileSessionStore) -> None:
    """Three appends at the same moment are all there, each once (anthropics/claude-code#45286)."""
    await store.append(KEY, as_stored(entries(0, 1)))
    async with anyio.create_task_group() as group:
        for number in (2, 3, 4):
            group.start_soon(store.append, KEY, as_stored(entries(number)))
    assert sorted(numbers(await store.load(KEY))) == [0, 1, 2, 3, 4]


UPDATES = """
import sys
from pathlib import Path
from smartwriter.storage.files import FileStorage
from smartwriter.tasks.manager import TaskManager

tasks = TaskManager(FileStorage(Path(sys.argv[1])))
for number in range(int(sys.argv[4])):
    tasks.update(sys.argv[2], lambda task: task.model_copy(update={"title": task.title + sys.argv[3]}))
"""


def test_case_032_many_processes_change_one_file(tasks: TaskManager, tmp_path: Path) -> None:
    """Every update of every process counts, and a reader sees no damage (anthropics/claude-code#28922)."""
    task = tasks.create("t", "book", "book")
    root = tmp_path / ".smartwriter"
    running = [run(UPDATES, root, task.id, letter, 15) for letter in "abcd"]
    while any(process.poll() is None for process in running):
        assert len(tasks.all()) == 1
        assert tasks.damage() == []
    for process in running:
        output(process)
    title = tasks.find(task.id).title
    assert len(title) == 1 + 4 * 15
    assert all(title.count(letter) == 15 for letter in "abcd")
    assert (root / "tasks.jsonl").read_bytes().count(b"\n") == 1 + 4 * 15
    assert [file.name for file in root.iterdir()] == ["tasks.jsonl"]


async def test_case_033_many_appends_at_once(store: FileSessionStore) -> None:
    """Thirty-two appends at once to one and to many sessions all count (langchain-ai/langgraph#8136)."""
    async with anyio.create_task_group() as group:
        for number in range(32):
            own: SessionKey = {**KEY, "session_id": f"s{number}"}
            group.start_soon(store.append, KEY, as_stored(entries(number)))
            group.start_soon(store.append, own, as_stored(entries(number)))
    assert sorted(numbers(await store.load(KEY))) == list(range(32))
    assert len(await store.list_sessions("book")) == 33
    assert await store.damage(KEY) == []


async def test_case_034_two_stores_on_one_folder(store: FileSessionStore) -> None:
    """The lock is on the file, not on the object (UiPath/uipath-langchain-python#222)."""
    other = FileSessionStore(store.root)
    async with anyio.create_task_group() as group:
        for number in range(40):
            writer = other if number % 2 else store
            group.start_soon(writer.append, KEY, as_stored(entries(number)))
            group.start_soon(writer.append, KEY, as_stored(entries(39 - number)))
    assert sorted(numbers(await store.load(KEY))) == list(range(40))
    assert store.path(KEY).read_bytes().count(b"\n") == 40


CREATES = """
import sys
from pathlib import Path
from smartwriter.storage.journal import Journal
from smartwriter.sessions.store import FileSessionStore
from smartwriter.workspace import Workspace

workspace = Workspace.create(Path(sys.argv[1]))
path = workspace.store.path({"project_key": "book", "session_id": "s", "subpath": "a/b/c"})
Journal(path, unique=True).append([{"uuid": sys.argv[2]}])
"""


def test_case_035_many_processes_create_one_project(tmp_path: Path) -> None:
    """Setting up the same folders at once fails for nobody (langchain-ai/langgraph PR 382)."""
    root = tmp_path / "workspace"
    for process in [run(CREATES, root, number) for number in range(6)]:
        output(process)
    path = Workspace(root).store.path({**KEY, "session_id": "s", "subpath": "a/b/c"})
    assert sorted(found["uuid"] for found in reading.read(path).entries) == list("012345")


def test_case_036_a_task_never_gets_the_newest_session(tasks: TaskManager) -> None:
    """A task has its own session for life, whatever is newer beside it (anthropics/claude-code#87902)."""
    first = tasks.create("First", "book", "book")
    second = tasks.create("Second", "book", "book")
    tasks.update(second.id, lambda task: task.model_copy(update={"title": "Second, renamed"}))
    sessions = {first.drafts["main"].session_id, second.drafts["main"].session_id}
    assert len(sessions) == 2
    for wanted in (first.id, "First", "fir"):
        task, draft = tasks.resolve(wanted)
        assert (task.id, draft.session_id) == (first.id, first.drafts["main"].session_id)


async def test_case_038_the_same_uuids_in_two_sessions(store: FileSessionStore) -> None:
    """A fork copies uuids into a new session: both keep all (anthropics/claude-code#81290, #92089)."""
    keys: list[SessionKey] = [
        KEY,
        {**KEY, "session_id": "fork"},
        {**KEY, "subpath": "subagents/agent-1"},
        {**KEY, "project_key": "other"},
    ]
    for key in keys:
        await store.append(key, as_stored(entries(0, 1, 2, 3, 4, 5)))
    for key in keys:
        assert numbers(await store.load(key)) == [0, 1, 2, 3, 4, 5]


# --- C. Wrong place, wrong session ------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("新聞", "暫存"), ("a-b", "a b"), ("My_Book", "My-Book"), ("é", "e\u0301x")]
)
def test_case_039_names_that_the_sdk_takes_for_the_same(workspace: Workspace, names: tuple[str, str]) -> None:
    """Collections whose folders have one SDK key keep their sessions apart (anthropics/claude-code#40946,
    #69245, #70076)."""
    stores = []
    for number, name in enumerate(names):
        workspace.new_collection(name)
        task = workspace.new_task("essay", name)
        bound = workspace.store.bind(task.project_key)
        done(bound.append(KEY, as_stored(entries(number))))
        stores.append(bound)
    for number, bound in enumerate(stores):
        assert numbers(done(bound.load(KEY))) == [number]
        assert len(done(bound.list_sessions("ignored"))) == 1
    assert len(done(workspace.store.projects())) == 2


def test_case_039_the_sdks_own_key_is_lossy() -> None:
    """Why stores are bound: these folders share one key in the SDK (anthropics/claude-code#40946)."""
    assert project_key_for_directory("/w/新聞") == project_key_for_directory("/w/暫存")
    assert project_key_for_directory("/w/a-b") == project_key_for_directory("/w/a/b")
    assert project_key_for_directory("/w/My_Book") == project_key_for_directory("/w/My.Book")


def written(workspace: Workspace) -> Task:
    """A task whose session has six entries."""
    workspace.new_collection("散文")
    task = workspace.new_task("渡口", "散文")
    key: SessionKey = {**KEY, "session_id": task.drafts["main"].session_id}
    done(workspace.store.bind(task.project_key).append(key, as_stored(entries(0, 1, 2, 3, 4, 5))))
    return task


def said(workspace: Workspace, wanted: str) -> list[int]:
    """The entries of the session of a task that is found by its title."""
    task, draft = workspace.tasks.resolve(wanted)
    bound = workspace.store.bind(task.project_key)
    return numbers(done(bound.load({**KEY, "session_id": draft.session_id})))


def test_case_043_a_renamed_folder(workspace: Workspace, tmp_path: Path) -> None:
    """After the workspace moved, its tasks and their sessions are there (anthropics/claude-code#91735)."""
    written(workspace)
    moved = tmp_path / "新的 place 🪁"
    workspace.root.rename(moved)
    assert said(Workspace(moved), "渡口") == [0, 1, 2, 3, 4, 5]
    assert [one.name for one in Workspace(moved).collections()] == ["散文"]


def test_case_044_a_link_to_the_folder(workspace: Workspace, tmp_path: Path) -> None:
    """Through a link there is the same list and the same lock (anthropics/claude-code#24271)."""
    task = written(workspace)
    (tmp_path / "link").symlink_to(workspace.root)
    linked = Workspace(tmp_path / "link")
    assert linked.tasks.all() == [task]
    assert said(linked, "渡口") == [0, 1, 2, 3, 4, 5]
    key: SessionKey = {"project_key": task.project_key, "session_id": task.drafts["main"].session_id}

    async def append() -> None:
        async with anyio.create_task_group() as group:
            for number in range(20):
                for place in (workspace, linked):
                    group.start_soon(place.store.append, key, as_stored(entries(number)))

    done(append())
    assert sorted(said(workspace, "渡口")) == list(range(20))


async def test_case_048_a_path_of_262_letters(store: FileSessionStore) -> None:
    """Long paths with the same start are told apart by the SDK's own key (Digital-Process-Tools/
    claude-remember#157)."""
    paths = ["/w/" + "x" * 258 + ending for ending in "ab"]
    assert len(paths[0]) == 262
    keys: list[SessionKey] = [{**KEY, "project_key": project_key_for_directory(path)} for path in paths]
    for number, key in enumerate(keys):
        await store.append(key, as_stored(entries(number)))
    assert [numbers(await store.load(key)) for key in keys] == [[0], [1]]
    assert len(await store.projects()) == 2


def test_case_051_two_sessions_with_one_title(store: FileSessionStore, tasks: TaskManager) -> None:
    """One title twice is asked about, and an id always finds its own (anthropics/claude-code#30606)."""
    made = [tasks.create("渡口", "book", "book") for _ in range(2)]
    with pytest.raises(TaskAmbiguous) as caught:
        tasks.find("渡口")
    assert set(caught.value.candidates) == {task.id for task in made}
    for number, task in enumerate(made):
        key: SessionKey = {**KEY, "session_id": task.drafts["main"].session_id}
        done(store.append(key, as_stored([entry(number) | {"customTitle": "渡口"}])))
    for number, task in enumerate(made):
        _, draft = tasks.resolve(task.id)
        assert numbers(done(store.load({**KEY, "session_id": draft.session_id}))) == [number]
    listed = done(store.list_session_summaries("book"))
    assert [one["data"]["custom_title"] for one in listed] == ["渡口", "渡口"]


# --- D. Broken chains -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kept", [(0, 1, 2, 4, 5), (5, 3, 1), tuple(n for n in range(100) if n % 20)], ids=["56", "order", "57"]
)
async def test_case_056_a_parent_that_was_never_written(
    store: FileSessionStore, kept: tuple[int, ...]
) -> None:
    """All entries load whose parents are missing, in the order of the file (anthropics/claude-code#22526,
    #24304, #58554)."""
    write_transcript(store, lines(*kept))
    assert numbers(await store.load(KEY)) == list(kept)


async def test_case_059_a_parent_in_a_deleted_session(store: FileSessionStore) -> None:
    """A logical parent that no longer exists breaks nothing (anthropics/claude-code#40027)."""
    boundary = line(3, parentUuid=None, logicalParentUuid="99999999-0000-4000-8000-000000000000")
    await check(store, lines(0, 1, 2) + boundary + lines(4, 5), [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}},
        {"type": "tool_result", "tool_use_id": "toolu_gone", "content": "x"},
    ],
    ids=["call without result", "result without call"],
)
async def test_case_061_half_of_a_tool_call(store: FileSessionStore, block: dict[str, Any]) -> None:
    """A call without result or a result without call loads as it is (anthropics/claude-code#1894,
    #11042)."""
    half = entry(3) | {"message": {"role": "assistant", "content": [block]}}
    await check(store, lines(0, 1, 2) + encoding.encode(half), [0, 1, 2, 3])
    loaded = await store.load(KEY)
    assert loaded is not None and loaded[3] == half


async def test_case_064_the_same_rows_again(store: FileSessionStore) -> None:
    """Rows appended a second time count once, however they came (anthropics/claude-code#92089)."""
    await check(store, healthy() + healthy() + line(6), [0, 1, 2, 3, 4, 5, 6])
    other: SessionKey = {**KEY, "session_id": "s"}
    for last in (6, 7, 8):
        await store.append(other, as_stored(entries(*range(last))))
    assert numbers(await store.load(other)) == list(range(8))
    assert store.path(other).read_bytes().count(b"\n") == 8


# --- E. Vanished sessions ---------------------------------------------------------------------


@pytest.mark.parametrize("age", ["400 days", "the epoch"])
def test_case_068_nothing_is_cleaned_up(workspace: Workspace, age: str) -> None:
    """However old files are, nothing is deleted that nobody asked for (anthropics/claude-code#86730,
    #74798)."""
    task = written(workspace)
    for number in range(30):
        write_transcript(workspace.store, healthy(), {**KEY, "session_id": f"s{number}"})
    write_transcript(workspace.store, healthy(), {**KEY, "session_id": "s0", "subpath": "subagents/agent-1"})
    before = {path: path.read_bytes() for path in workspace.root.rglob("*") if path.is_file()}
    when = time.time() - 400 * 86400 if age == "400 days" else 0
    for path in before:
        os.utime(path, (when, when))
    later = Workspace(workspace.root)
    for project in done(later.store.projects()):
        assert len(done(later.store.list_sessions(project))) == len(
            done(later.store.list_session_summaries(project))
        )
    done(later.store.append({**KEY, "session_id": "new"}, as_stored(entries(0))))
    later.tasks.adopt(task.id, "main")
    assert said(later, "渡口") == [0, 1, 2, 3, 4, 5]
    assert len(done(later.store.list_sessions("book"))) == 31
    for path, data in before.items():
        assert path.read_bytes().startswith(data)
    assert not (later.hidden / "trash").exists()


async def test_case_070_an_index_that_stopped(store: FileSessionStore) -> None:
    """An index that knows nine of forty sessions, and those not fully, hides none
    (anthropics/claude-code#28587, #22114)."""
    keys: list[SessionKey] = [{**KEY, "session_id": f"s{number}"} for number in range(40)]
    for key in keys[:9]:
        write_transcript(store, lines(0, 1), key)
    await store.list_session_summaries("book")
    cache = store.root / "cache" / "summaries" / "book.jsonl"
    known = cache.read_bytes()
    assert known.count(b"\n") == 9
    for key in keys:
        write_transcript(store, healthy() + encoding.encode({"customTitle": key["session_id"]}), key)
        os.utime(store.path(key), (1, 1))
    cache.write_bytes(known)
    os.utime(cache)
    listed = await store.list_session_summaries("book")
    titles = {one["session_id"]: one["data"]["custom_title"] for one in listed}
    assert titles == {key["session_id"]: key["session_id"] for key in keys}
    assert len(await store.list_sessions("book")) == 40


def test_case_072_old_bytes_stay_a_prefix(store: FileSessionStore, tasks: TaskManager) -> None:
    """Opening, adding, renaming and forking leave all old bytes in place (anthropics/claude-code#58361)."""
    directory = "/w/book"
    key: SessionKey = {**KEY, "project_key": project_key_for_directory(directory)}
    task = tasks.create("渡口", "book", key["project_key"])
    done(store.append(key, as_stored(entries(*range(114)))))
    watched = [store.path(key), store.root / "tasks.jsonl"]
    sums = {path: (path.stat().st_size, hashlib.sha256(path.read_bytes()).digest()) for path in watched}
    later = FileSessionStore(store.root)
    assert len(done(later.load(key)) or []) == 114
    done(list_sessions_from_store(later, directory=directory))
    done(later.append(key, as_stored(entries(112, 113, 114))))
    done(rename_session_via_store(later, SESSION, "renamed", directory=directory))
    fork = done(fork_session_via_store(later, SESSION, up_to_message_id=entry_uuid(57), directory=directory))
    assert len(done(get_session_messages_from_store(later, fork.session_id, directory=directory))) == 58
    tasks.update(task.id, lambda task: task.model_copy(update={"title": "renamed"}))
    for path, (size, digest) in sums.items():
        assert path.stat().st_size > size
        assert hashlib.sha256(path.read_bytes()[:size]).digest() == digest


APPENDS = """
import anyio, sys
from smartwriter.sessions.store import FileSessionStore

async def main():
    store = FileSessionStore(sys.argv[1])
    key = {"project_key": "book", "session_id": sys.argv[2]}
    number = 0
    while True:
        await store.append(key, [{"type": "assistant", "uuid": f"{number:08x}", "text": "x" * 500}])
        print(number, flush=True)
        number += 1

anyio.run(main)
"""


async def test_case_075_killed_in_the_middle_of_a_turn(store: FileSessionStore) -> None:
    """Of 300 frames that append acknowledged, kill -9 takes none (anthropics/claude-code#26519)."""

    def kill_after_300() -> int:
        process = run(APPENDS, store.root, SESSION)
        assert process.stdout is not None
        acknowledged = -1
        for said in process.stdout:
            acknowledged = int(said)
            if acknowledged == 299:
                process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        return acknowledged + 1

    acknowledged = await anyio.to_thread.run_sync(kill_after_300)
    assert acknowledged >= 300
    found = numbers(await store.load(KEY))
    assert found == list(range(len(found)))
    assert len(found) >= acknowledged


# --- F. Size, memory, full disk ---------------------------------------------------------------


async def test_case_076_memory_does_not_grow_with_the_file(store: FileSessionStore) -> None:
    """Streaming 32 MB takes the memory of a few hundred entries (anthropics/claude-code#79196)."""
    count = big_file(write_transcript(store, b""), 32 << 20)
    seen, megabytes = map(int, output(run(STREAM, store.root, SESSION)).split())
    assert seen == count
    assert megabytes < 8


async def test_case_077_one_line_of_twelve_million_letters(store: FileSessionStore) -> None:
    """A line of 12.8 million letters is stored, loaded and listed at once (anthropics/claude-code#24118)."""
    long = entry(3, "x" * 12_800_000)
    started = time.process_time()
    await store.append(KEY, as_stored([entry(0), long, entry(4)]))
    loaded = await FileSessionStore(store.root).load(KEY)
    await store.list_session_summaries("book")
    assert time.process_time() - started < 1
    assert loaded == [entry(0), long, entry(4)]


async def test_case_077_a_torn_line_of_millions_of_letters(store: FileSessionStore) -> None:
    """Such a line that was torn, and one glued to it, costs no long search (anthropics/claude-code#24118)."""
    long = line(3, 'a "quoted" {word} ' * 200_000)[:-200]
    started = time.process_time()
    write_transcript(store, lines(0, 1, 2) + long + lines(4, 5))
    assert numbers(await store.load(KEY)) == [0, 1, 2, 4, 5]
    assert await store.damage(KEY) == [(len(lines(0, 1, 2)), len(long))]
    assert time.process_time() - started < 2


async def test_case_079_the_disk_fills_at_any_byte(tmp_path: Path) -> None:
    """After any byte that still fitted, the old length is back and a retry is exact
    (anthropics/claude-code#8575)."""
    store = FileSessionStore(tmp_path / "store", durability="os")
    await store.append(KEY, as_stored(entries(0)))
    old = store.path(KEY).read_bytes()
    batch = as_stored(entries(1, 2))
    payload = b"".join(map(encoding.encode, entries(1, 2)))
    disk = Disk()
    for fitted in range(len(payload)):
        disk.then("write", writes_only(fitted, OSError(errno.ENOSPC, "No space left on device")))
        with in_place_of_os(disk), pytest.raises(JournalError, match="No space left on device"):
            await store.append(KEY, batch)
        assert store.path(KEY).read_bytes() == old
    await store.append(KEY, batch)
    assert store.path(KEY).read_bytes() == old + payload
