from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from smartwriter.errors import AlreadyExists, DraftNotFound, Invalid, TaskAmbiguous, TaskNotFound
from smartwriter.storage.files import FileStorage
from smartwriter.tasks.manager import TaskManager
from smartwriter.tasks.values import MAIN, Origin, Task, Turn, TurnState, Usage

ORIGIN = Origin(draft=MAIN, turn=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".smartwriter"


@pytest.fixture
def tasks(root: Path) -> TaskManager:
    return TaskManager(FileStorage(root))


def make(tasks: TaskManager, title: str, collection: str = "essays") -> Task:
    return tasks.create(title, collection, "essays")


def append(root: Path, *lines: dict[str, Any] | str) -> None:
    """Write lines as another program would."""
    with (root / "tasks.jsonl").open("a", encoding="utf-8") as file:
        for line in lines:
            file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")


def last_line(root: Path) -> dict[str, Any]:
    line: dict[str, Any] = json.loads((root / "tasks.jsonl").read_bytes().splitlines()[-1])
    return line


# Finding ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("Harbour lights", "Harbour lights"),
        ("Harbour lights", "HARBOUR LIGHTS"),
        ("Harbour lights", "harb"),
        ("Harbour lights", "  harbour  "),
        ("渡口的早晨", "渡口的早晨"),
        ("渡口的早晨", "渡"),
        ("Ночь над портом", "ночь"),
        ("Große Straße", "GROSSE STRASSE"),
        ("Élan", unicodedata.normalize("NFD", "élan")),
        (unicodedata.normalize("NFD", "Élan"), "Élan"),
        ("한글 이야기", unicodedata.normalize("NFD", "한글")),
        ("🌊 tide", "🌊"),
    ],
)
def test_a_task_is_found_by_its_title(tasks: TaskManager, title: str, wanted: str) -> None:
    """A title or a prefix of it finds its task, in any script, case and Unicode form."""
    make(tasks, "Something else")
    task = make(tasks, title)
    assert tasks.find(wanted) == task


def test_a_task_is_found_by_its_id(tasks: TaskManager) -> None:
    """An id finds its task in any case, and so does its shortest prefix that is unique."""
    made = [make(tasks, f"{number} articles") for number in range(8)]
    for task in made:
        assert tasks.find(task.id) == task
        assert tasks.find(task.id.upper()) == task
        others = [other.id for other in made if other is not task]
        prefix = next(
            task.id[:length]
            for length in range(1, 5)
            if not any(id.startswith(task.id[:length]) for id in others)
        )
        assert tasks.find(prefix) == task


def test_an_exact_title_beats_a_prefix(tasks: TaskManager) -> None:
    """A task whose whole title is given is meant, though others start with it."""
    make(tasks, "Harbour lights")
    harbour = make(tasks, "Harbour")
    make(tasks, "Harbour walls")
    assert tasks.find("harbour") == harbour


def test_an_id_beats_a_title(tasks: TaskManager) -> None:
    """An id always means its own task, whatever others are called."""
    task = make(tasks, "Harbour")
    make(tasks, task.id)
    assert tasks.find(task.id) == task


def test_an_ambiguous_prefix_names_the_tasks_that_fit(tasks: TaskManager) -> None:
    """A prefix of two titles is refused, with the ids and titles to choose from."""
    lights, walls = make(tasks, "Harbour lights"), make(tasks, "Harbour walls")
    make(tasks, "Mountain")
    with pytest.raises(TaskAmbiguous) as caught:
        tasks.find("harb")
    assert caught.value.candidates == (lights.id, walls.id)
    assert str(caught.value) == (
        f"'harb' fits several tasks: {lights.id} (Harbour lights), {walls.id} (Harbour walls)."
    )


def test_two_tasks_of_one_title_are_told_apart_by_id_only(tasks: TaskManager) -> None:
    """The same title twice is ambiguous, never the newest one."""
    first, second = make(tasks, "渡口"), make(tasks, "渡口")
    with pytest.raises(TaskAmbiguous) as caught:
        tasks.find("渡口")
    assert caught.value.candidates == (first.id, second.id)
    assert tasks.find(first.id) == first
    assert tasks.find(second.id) == second


def test_a_long_list_of_candidates_is_cut(tasks: TaskManager) -> None:
    """The sentence on an ambiguity names five tasks and counts the rest."""
    for number in range(7):
        make(tasks, f"渡口 {number}")
    with pytest.raises(TaskAmbiguous, match=r"渡口 4\) and 2 more\.$") as caught:
        tasks.find("渡口")
    assert "渡口 5" not in str(caught.value)
    assert len(caught.value.candidates) == 7


@pytest.mark.parametrize("wanted", ["nowhere", "arbour", "", "   ", "@", "@main", "nowhere@main"])
def test_a_task_that_does_not_exist(tasks: TaskManager, wanted: str) -> None:
    """What fits no task is refused, and an empty name fits none."""
    make(tasks, "Harbour")
    with pytest.raises(TaskNotFound) as caught:
        tasks.resolve(wanted)
    assert not isinstance(caught.value, TaskAmbiguous)


def test_looking_creates_nothing(root: Path, tasks: TaskManager) -> None:
    """Reading where nothing was ever written finds nothing and leaves no file."""
    assert tasks.all() == [] and tasks.damage() == []
    with pytest.raises(TaskNotFound):
        tasks.find("渡口")
    assert not root.exists()


# Addresses --------------------------------------------------------------------------------------


def test_an_address_means_the_named_draft_or_the_current_one(tasks: TaskManager) -> None:
    """``task@draft`` is that draft; ``task`` alone is the current one, also after an adoption."""
    task = make(tasks, "渡口")
    tasks.add_draft(task.id, "trial", "s-2", ORIGIN)
    assert tasks.resolve("渡口")[1].name == MAIN
    assert tasks.resolve("渡@trial")[1].session_id == "s-2"
    tasks.adopt(task.id, "trial")
    assert tasks.resolve("渡口")[1].name == "trial"
    assert tasks.resolve(f"{task.id}@main")[1].name == MAIN
    assert tasks.resolve(f"{task.id}@")[1].name == "trial"


def test_an_unknown_draft_is_refused_with_those_there_are(tasks: TaskManager) -> None:
    """The refusal names the drafts that can be had, so not the dropped ones, and how to get one back."""
    task = make(tasks, "渡口")
    for name in ("old", "trial"):
        tasks.add_draft(task.id, name, f"s-{name}", ORIGIN)
    tasks.drop(task.id, "old")
    for name in ("nope", "old", "Main"):
        with pytest.raises(DraftNotFound) as caught:
            tasks.resolve(f"渡口@{name}")
        said = f"Task {task.id} has no draft {name!r}; it has: main, trial."
        if name == "old":
            said += f" To take up the dropped one: smartwriter restore {task.id}@old"
        assert str(caught.value) == said
        assert (caught.value.task, caught.value.draft) == (task.id, name)


def test_a_title_may_hold_an_at_sign(tasks: TaskManager) -> None:
    """A title with "@" finds its task, whole, as a prefix and with a draft behind it."""
    task = make(tasks, "me@home")
    tasks.add_draft(task.id, "trial", "s-2", ORIGIN)
    assert tasks.resolve("me@home")[1].name == MAIN
    assert tasks.resolve("ME@H")[0].id == task.id
    assert tasks.resolve("me@home@trial")[1].name == "trial"


def test_an_exact_address_beats_a_title_that_starts_with_it(tasks: TaskManager) -> None:
    """``渡口@main`` is the draft of 渡口, though another title starts with these letters."""
    task = make(tasks, "渡口")
    other = make(tasks, "渡口@main 改")
    assert tasks.resolve("渡口@main")[0] == task
    assert tasks.resolve("渡口@main 改")[0] == other
    assert tasks.resolve("渡口@main 改@main")[0] == other


def test_a_whole_title_beats_a_task_and_draft(tasks: TaskManager) -> None:
    """Where an address is exactly a title, the task of that title is meant."""
    make(tasks, "渡口")
    other = make(tasks, "渡口@main")
    assert tasks.resolve("渡口@main")[0] == other


# Creating ---------------------------------------------------------------------------------------


def test_a_new_task_has_one_draft(root: Path, tasks: TaskManager) -> None:
    """A task starts with its main draft, with a session id of its own, and is on disk at once."""
    task = make(tasks, "  渡口 ")
    assert (task.title, task.folder, task.current, list(task.drafts)) == ("渡口", "渡口", MAIN, [MAIN])
    assert re.fullmatch(r"[0-9a-f-]{36}", task.drafts[MAIN].session_id)
    assert TaskManager(FileStorage(root)).all() == [task]
    assert "渡口" in (root / "tasks.jsonl").read_text("utf-8")


def test_ids_are_short_ascii_and_unlike(tasks: TaskManager) -> None:
    """An id is easy to type: a letter first, no vowels, nothing that could be misread."""
    ids = [make(tasks, "渡口").id for _ in range(30)]
    assert len(set(ids)) == 30
    assert all(re.fullmatch(r"[bcdfghjkmnpqrstvwxz][bcdfghjkmnpqrstvwxz2-9]{3}", id) for id in ids)


@pytest.mark.parametrize("title", ["", "   ", "\n\t", "\u3000"])
def test_a_task_needs_a_title(root: Path, tasks: TaskManager, title: str) -> None:
    """An empty title is refused, and nothing is created."""
    with pytest.raises(Invalid, match=r"^A task needs a title\.$"):
        make(tasks, title)
    assert not root.exists()


def test_a_title_is_one_line(tasks: TaskManager) -> None:
    """Line ends, escape sequences and NULs in a title become spaces; all else stays as it is."""
    assert make(tasks, "a\r\nb\tc\x1b[2Jd\0e\x85").title == "a b c [2Jd e"
    assert make(tasks, "渡口\u2028“雾” \ud83d 👩‍👧").title == "渡口\u2028“雾” \ud83d 👩‍👧"


def test_titles_that_make_the_same_file_name_get_folders_of_their_own(tasks: TaskManager) -> None:
    """Two tasks of a collection never share a folder, not even where case does not count."""
    titles = ["What?", "What", "what:", "WHAT"]
    assert [make(tasks, title).folder for title in titles] == ["What", "What 2", "what 3", "WHAT 4"]
    assert make(tasks, "What", collection="letters").folder == "What"


def test_a_collection_in_another_unicode_form_is_the_same(tasks: TaskManager) -> None:
    """A sync tool that decomposes a folder's name does not make two tasks share a folder in it."""
    assert make(tasks, "Port", collection="Café").folder == "Port"
    assert make(tasks, "Port", collection=unicodedata.normalize("NFD", "Café")).folder == "Port 2"


def test_tasks_made_at_the_same_time_share_nothing(root: Path) -> None:
    """Eight managers that create the same title at once make eight ids and eight folders."""
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: make(TaskManager(FileStorage(root)), "渡口"), range(8)))
    assert len({task.id for task in made}) == len({task.folder for task in made}) == 8
    assert sorted(task.id for task in TaskManager(FileStorage(root)).all()) == sorted(
        task.id for task in made
    )


# Changing ---------------------------------------------------------------------------------------

_COUNTER = """
import sys
from pathlib import Path
from smartwriter.storage.files import FileStorage
from smartwriter.tasks.manager import TaskManager

tasks = TaskManager(FileStorage(Path(sys.argv[1])))
for _ in range(25):
    tasks.update(
        sys.argv[2], lambda task: task.model_copy(update={"title": str(int(task.title) + 1)})
    )
"""


def test_updates_by_many_processes_lose_nothing(root: Path, tasks: TaskManager) -> None:
    """Eight processes that count a task up 25 times each, at once, arrive at 200."""
    task = make(tasks, "0")
    processes = [
        subprocess.Popen([sys.executable, "-c", _COUNTER, str(root), task.id], stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    assert tasks.find(task.id).title == "200"
    assert tasks.damage() == []
    assert (root / "tasks.jsonl").read_bytes().count(b"\n") == 201


def test_an_update_sees_what_others_did(root: Path, tasks: TaskManager) -> None:
    """A change starts from the task as it is now, not from the copy that the caller has."""
    task = make(tasks, "渡口")
    TaskManager(FileStorage(root)).add_draft(task.id, "trial", "s-2", ORIGIN)
    changed = tasks.update(task.id, lambda task: task.model_copy(update={"title": "山"}))
    assert list(changed.drafts) == [MAIN, "trial"]


def test_an_update_only_appends(root: Path, tasks: TaskManager) -> None:
    """The old bytes of the file are a prefix of the new ones, whatever is changed."""
    task = make(tasks, "渡口")
    changes: list[Callable[[], object]] = [
        lambda: tasks.add_draft(task.id, "trial", "s-2", ORIGIN),
        lambda: tasks.adopt(task.id, "trial"),
        lambda: tasks.drop(task.id, MAIN),
    ]
    for change in changes:
        before = (root / "tasks.jsonl").read_bytes()
        change()
        after = (root / "tasks.jsonl").read_bytes()
        assert after.startswith(before) and len(after) > len(before)


def test_an_unknown_id_cannot_be_updated(root: Path, tasks: TaskManager) -> None:
    """An update goes by the exact id, and a refused one writes nothing."""
    task = make(tasks, "渡口")
    before = (root / "tasks.jsonl").read_bytes()
    with pytest.raises(TaskNotFound):
        tasks.update(task.id[:2], lambda task: task)
    assert (root / "tasks.jsonl").read_bytes() == before


def test_several_tasks_are_changed_all_or_none(tasks: TaskManager) -> None:
    """Where one of them is not there, none is changed."""
    ids = [make(tasks, title).id for title in ("one", "two")]
    with pytest.raises(TaskNotFound):
        tasks.update_each([*ids, "none"], lambda task: task.model_copy(update={"title": "x"}))
    assert [task.title for task in tasks.all()] == ["one", "two"]
    changed = tasks.update_each(ids, lambda task: task.model_copy(update={"title": task.title * 2}))
    assert [task.title for task in changed] == ["oneone", "twotwo"] and changed == tasks.all()


def test_a_change_that_fails_writes_nothing(root: Path, tasks: TaskManager) -> None:
    """An error in the change itself leaves the file as it was, and unlocked."""
    task = make(tasks, "渡口")
    before = (root / "tasks.jsonl").read_bytes()
    with pytest.raises(ZeroDivisionError):
        tasks.update(task.id, lambda task: task.model_copy(update={"title": str(1 / 0)}))
    assert (root / "tasks.jsonl").read_bytes() == before
    assert tasks.update(task.id, lambda task: task) == task


# Drafts -----------------------------------------------------------------------------------------


def test_drafts_get_names_in_turn(tasks: TaskManager) -> None:
    """A draft without a wanted name is draft-2, draft-3, …, passing over names that are taken."""
    task = make(tasks, "渡口")
    tasks.add_draft(task.id, "draft-3", "s-1", ORIGIN)
    assert tasks.add_draft(task.id, None, "s-2", ORIGIN).name == "draft-4"
    assert tasks.add_draft(task.id, None, "s-3", ORIGIN).name == "draft-5"


def test_a_fork_is_recorded_with_its_origin(tasks: TaskManager) -> None:
    """A new draft says where it came from, and does not become the current one."""
    task = make(tasks, "渡口")
    draft = tasks.add_draft(task.id, "trial", "s-2", Origin(draft=MAIN, turn=3))
    assert tasks.find(task.id).drafts["trial"] == draft
    assert (draft.session_id, draft.origin) == ("s-2", Origin(draft=MAIN, turn=3))
    assert tasks.find(task.id).current == MAIN


@pytest.mark.parametrize("taken", [MAIN, "trial", "old"])
def test_a_draft_name_is_used_once(tasks: TaskManager, taken: str) -> None:
    """A name that a draft has or had is refused, because its files are still there."""
    task = make(tasks, "渡口")
    for name in ("trial", "old"):
        tasks.add_draft(task.id, name, "s-2", ORIGIN)
    tasks.drop(task.id, "old")
    with pytest.raises(AlreadyExists, match=f"There is already a draft '{task.id}@{taken}'"):
        tasks.add_draft(task.id, taken, "s-3", ORIGIN)


@pytest.mark.parametrize(
    "name", ["", "Trial", "a b", "-a", "a/b", "..", "a.b", "草稿", "a\n", "a@b", "a_b", "x" * 41]
)
def test_a_malformed_draft_name_is_refused(tasks: TaskManager, name: str) -> None:
    """A draft's name is lower-case letters, digits and hyphens, so that it can name files."""
    task = make(tasks, "渡口")
    with pytest.raises(Invalid, match="cannot name a draft"):
        tasks.add_draft(task.id, name, "s-2", ORIGIN)
    assert list(tasks.find(task.id).drafts) == [MAIN]


def test_the_current_draft_cannot_be_dropped(tasks: TaskManager) -> None:
    """Dropping the current draft is refused until another one is adopted."""
    task = make(tasks, "渡口")
    tasks.add_draft(task.id, "trial", "s-2", ORIGIN)
    with pytest.raises(Invalid, match="main is the current draft"):
        tasks.drop(task.id, MAIN)
    tasks.adopt(task.id, "trial")
    assert tasks.drop(task.id, MAIN).live_drafts == ["trial"]


def test_a_dropped_draft_is_put_away_for_good(tasks: TaskManager) -> None:
    """A dropped draft can be neither adopted nor dropped again, but its record stays."""
    task = make(tasks, "渡口")
    draft = tasks.add_draft(task.id, "trial", "s-2", ORIGIN)
    tasks.drop(task.id, "trial")
    for again in (tasks.adopt, tasks.drop):
        with pytest.raises(DraftNotFound):
            again(task.id, "trial")
    assert tasks.find(task.id).drafts["trial"] == draft.model_copy(update={"dropped": True})


# What others wrote ------------------------------------------------------------------------------


def test_unknown_lines_are_left_alone(root: Path, tasks: TaskManager) -> None:
    """Lines of a later version or another program hide no task, even with a task's id."""
    task = make(tasks, "渡口")
    append(
        root,
        {"type": "note", "timestamp": "2026-01-01T00:00:00Z", "id": task.id, "text": "not a task"},
        {"type": "task", "timestamp": "2026-01-01T00:00:00Z", "id": "future", "shape": "unheard of"},
        {"type": "task", "id": 7},
        {},
    )
    before = (root / "tasks.jsonl").read_bytes()
    assert tasks.all() == [task]
    assert tasks.damage() == []
    tasks.add_draft(task.id, "trial", "s-2", ORIGIN)
    assert (root / "tasks.jsonl").read_bytes().startswith(before)


def test_newer_fields_survive_an_update(root: Path, tasks: TaskManager) -> None:
    """Fields that this version does not know are still on a task's last line after a change."""
    task = make(tasks, "渡口")
    line = last_line(root)
    line["stars"] = 5
    line["drafts"][MAIN]["colour"] = "red"
    append(root, line)
    tasks.add_draft(task.id, "trial", "s-2", ORIGIN)
    tasks.update(task.id, lambda task: task.model_copy(update={"title": "山"}))
    assert last_line(root)["stars"] == 5
    assert last_line(root)["title"] == "山"
    assert last_line(root)["drafts"][MAIN]["colour"] == "red"
    assert "colour" not in last_line(root)["drafts"]["trial"]


def test_the_last_line_of_a_task_wins_and_keeps_its_place(root: Path, tasks: TaskManager) -> None:
    """A task is as its last line says, in the order in which the tasks were created."""
    first, second = make(tasks, "one"), make(tasks, "two")
    tasks.update(first.id, lambda task: task.model_copy(update={"title": "eins"}))
    assert [task.title for task in TaskManager(FileStorage(root)).all()] == ["eins", "two"]
    assert [task.id for task in tasks.all()] == [first.id, second.id]


@pytest.mark.parametrize("garbage", [b"{", b"\x00\x00\x00", b"\xff\xfe", b'{"type":"task","id":"k7', b"[]"])
def test_damage_hides_no_other_task(root: Path, tasks: TaskManager, garbage: bytes) -> None:
    """A damaged line is reported with its place; the tasks around it are there, and so are its bytes."""
    first = make(tasks, "one")
    offset = (root / "tasks.jsonl").stat().st_size
    with (root / "tasks.jsonl").open("ab") as file:
        file.write(garbage)  # torn: without an LF
    second = make(tasks, "two")
    assert tasks.all() == [first, second]
    assert [tuple(stretch) for stretch in tasks.damage()] == [(offset, len(garbage))]
    assert garbage in (root / "tasks.jsonl").read_bytes()


# Turns ------------------------------------------------------------------------------------------


def turn(number: int, state: TurnState = TurnState.running, **more: Any) -> Turn:
    return Turn(number=number, uuid=f"u-{number}", session_id="s", prompt=f"写 {number}", state=state, **more)


def test_the_last_state_of_a_turn_wins(tasks: TaskManager) -> None:
    """A turn that was recorded running and then finished is one finished turn, with all it has."""
    task = make(tasks, "渡口")
    finished = turn(1, TurnState.finished, usage=Usage(output_tokens=7), memory={"profile.md": "ab"})
    tasks.record(task, MAIN, [turn(1)])
    tasks.record(task, MAIN, [finished, turn(2)])
    assert tasks.turns(task, MAIN) == [finished, tasks.turns(task, MAIN)[1]]
    assert [turn.state for turn in tasks.turns(task, MAIN)] == [TurnState.finished, TurnState.running]


def test_turns_come_in_order(tasks: TaskManager) -> None:
    """Turns come by number, whatever the order of their lines."""
    task = make(tasks, "渡口")
    tasks.record(task, MAIN, [turn(number) for number in (3, 1, 10, 2)])
    assert [turn.number for turn in tasks.turns(task, MAIN)] == [1, 2, 3, 10]


def test_each_draft_has_turns_of_its_own(root: Path, tasks: TaskManager) -> None:
    """Turns of one draft or task are never shown in another, and a draft may have none."""
    one, two = make(tasks, "one"), make(tasks, "two")
    tasks.record(one, MAIN, [turn(1)])
    assert [turn.number for turn in tasks.turns(one, MAIN)] == [1]
    assert tasks.turns(one, "trial") == tasks.turns(two, MAIN) == []
    assert [path.relative_to(root).as_posix() for path in root.glob("turns/*/*")] == [
        f"turns/{one.id}/main.jsonl"
    ]


def test_unknown_lines_among_turns_are_left_alone(root: Path, tasks: TaskManager) -> None:
    """A torn line and one of a later version hide no turn."""
    task = make(tasks, "渡口")
    tasks.record(task, MAIN, [turn(1)])
    with (root / "turns" / task.id / "main.jsonl").open("ab") as file:
        file.write(b'{"type":"remark","uuid":"u-1","text":"good"}\n{"type":"turn","uuid":"u-2","num')
    tasks.record(task, MAIN, [turn(3)])
    assert [turn.number for turn in tasks.turns(task, MAIN)] == [1, 3]
