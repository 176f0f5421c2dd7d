from __future__ import annotations

import errno
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from smartwriter.errors import AlreadyExists, CollectionNotFound, Invalid, NotAWorkspace
from smartwriter.files.durable import write_document
from smartwriter.memory.collection import Collection
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import MAIN, UNFILED, Origin
from smartwriter.workspace import Workspace

NFC, NFD = (unicodedata.normalize(form, "Café Ångström") for form in ("NFC", "NFD"))


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# The folder -------------------------------------------------------------------------------------


def test_creating_twice_changes_nothing(tmp_path: Path) -> None:
    """A folder that is a workspace already stays as it is, with all that is in it."""
    workspace = Workspace.create(tmp_path / "new" / "folder")
    workspace.new_collection("山城")
    task = workspace.new_task("渡口", "山城")
    before = files(workspace.root)
    again = Workspace.create(tmp_path / "new" / "folder")
    assert files(workspace.root) == before
    assert again.tasks.all() == [task]


def test_a_folder_becomes_a_workspace_with_what_it_has(tmp_path: Path) -> None:
    """Making a folder a workspace leaves the writer's files in it alone."""
    (tmp_path / "collections" / "essays").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("mine")
    workspace = Workspace.create(tmp_path)
    assert [collection.name for collection in workspace.collections()] == ["essays"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_workspace_is_found_from_anywhere_in_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the workspace or any folder in it, also a relative one, the same workspace is meant."""
    workspace.new_collection("山城")
    inside = workspace.root / "collections" / "山城"
    for folder in (workspace.root, inside, workspace.hidden, inside / "not yet made"):
        assert Workspace.around(folder).root == workspace.root
    monkeypatch.chdir(inside)
    assert Workspace.around(Path()).root == workspace.root


def test_the_nearest_workspace_is_meant(workspace: Workspace) -> None:
    """A workspace in a workspace is one of its own."""
    inner = Workspace.create(workspace.root / "collections" / "inner")
    assert Workspace.around(inner.root / "collections").root == inner.root


@pytest.mark.parametrize("find", [Workspace, Workspace.around], ids=["itself", "around"])
def test_a_folder_that_is_no_workspace(tmp_path: Path, find: Callable[[Path], Workspace]) -> None:
    """Any other folder, missing or not, is refused, and nothing is made in it."""
    for folder in (tmp_path / "plain", tmp_path / "missing"):
        (tmp_path / "plain").mkdir(exist_ok=True)
        with pytest.raises(NotAWorkspace, match=r"is not a SmartWriter workspace; make one with") as caught:
            find(folder)
        assert caught.value.path == folder
    assert list((tmp_path / "plain").iterdir()) == []
    assert not (tmp_path / "missing").exists()


def test_a_moved_workspace_keeps_its_tasks(workspace: Workspace, tmp_path: Path) -> None:
    """A workspace that was moved has the same tasks, texts and sessions in its new place."""
    workspace.new_collection("山城")
    task = workspace.new_task("渡口", "山城")
    workspace.text(task, MAIN).write("雾。", author="model", turn=1)
    session = OpenDraft(workspace, task, MAIN).transcript.path.relative_to(workspace.root)
    workspace.root.rename(tmp_path / "搬家 🏡")
    moved = Workspace(tmp_path / "搬家 🏡")
    (same,) = moved.tasks.all()
    assert moved.text(same, MAIN).read() == "雾。"
    assert OpenDraft(moved, same, MAIN).transcript.path == moved.root / session


# Collections ------------------------------------------------------------------------------------


def test_collections_are_the_folders(workspace: Workspace) -> None:
    """Every folder in collections/ is one, sorted by name; files and hidden folders are not."""
    for name in ("山城", "essays", ".git"):
        (workspace.root / "collections" / name).mkdir()
    (workspace.root / "collections" / "README.md").touch()
    assert [collection.name for collection in workspace.collections()] == ["essays", "山城"]


def test_a_workspace_without_collections_folder_has_none(workspace: Workspace) -> None:
    """A missing collections/ is no collections, not an error."""
    (workspace.root / "collections").rmdir()
    assert workspace.collections() == []
    with pytest.raises(CollectionNotFound):
        workspace.collection("essays")


@pytest.mark.parametrize(("on_disk", "asked"), [(NFC, NFD), (NFD, NFC), (NFC, NFC), (NFD, NFD)])
def test_a_collection_is_found_in_any_unicode_form(workspace: Workspace, on_disk: str, asked: str) -> None:
    """A name that looks the same finds the folder that is there, however the disk spells it."""
    (workspace.root / "collections" / on_disk).mkdir()
    assert workspace.collection(asked).path.name == on_disk
    with pytest.raises(AlreadyExists):
        workspace.new_collection(asked)
    assert len(workspace.collections()) == 1


def test_a_new_collection_is_ready_to_fill_in(workspace: Workspace) -> None:
    """A new collection has its three memory files, and its name in one Unicode form."""
    collection = workspace.new_collection(f" {NFD} ")
    assert collection.name == collection.path.name == NFC
    assert [file.name for file in collection.memory().files] == ["profile.md", "memory.md", "index.md"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        ".",
        "..",
        "../up",
        "a/../b",
        "a/",
        "a//b",
        "a/.hidden",
        "a\\b",
        "a/b\\c",
        "/tmp/x",
        ".hidden",
        "con",
        "a:b",
        "a\0b",
        "a\nb",
        "x" * 400,
        "drafts",
        "a/Articles",
        "/".join("abcdefghi"),
    ],
)
def test_a_name_that_no_folder_can_have_is_refused(workspace: Workspace, name: str) -> None:
    """A collection's name must work on every file system, and must not lead out of the workspace."""
    before = files(workspace.root.parent)
    with pytest.raises(Invalid, match="cannot name a collection"):
        workspace.new_collection(name)
    assert workspace.collections() == []
    assert files(workspace.root.parent) == before


@pytest.mark.parametrize("again", ["Essays", "essays", "ESSAYS"])
def test_a_collection_is_made_once(workspace: Workspace, again: str) -> None:
    """A name that is taken is refused, also in another case: some disks do not tell them apart."""
    made = workspace.new_collection("Essays")
    (made.path / "memory.md").write_text("mine")
    with pytest.raises(AlreadyExists, match=f"There is already a collection '{again}'"):
        workspace.new_collection(again)
    assert (made.path / "memory.md").read_text() == "mine"


def test_a_collection_is_made_whole_or_not_at_all(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk took only some of its files, or the program died, the same call makes it later."""
    for error in (OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()):

        def fails(path: Path, text: str, error: BaseException = error) -> None:
            if path.name == "memory.md":
                raise error
            write_document(path, text)

        with monkeypatch.context() as patch, pytest.raises(type(error)):
            patch.setattr("smartwriter.memory.collection.write_document", fails)
            workspace.new_collection("Essays")
        assert workspace.collections() == []
    made = workspace.new_collection("Essays").path
    assert sorted(path.name for path in made.iterdir()) == ["index.md", "memory.md", "profile.md"]
    assert list(made.parent.iterdir()) == [made]


def test_a_sample_is_copied_once(workspace: Workspace, tmp_path: Path) -> None:
    """A collection from elsewhere is copied whole, and never over one that is there."""
    source = tmp_path / "山城慢信"
    source.mkdir()
    (source / "profile.md").write_text("画像")
    assert workspace.add_sample(source).memory().hashes == workspace.collection("山城慢信").memory().hashes
    (workspace.root / "collections" / "山城慢信" / "profile.md").write_text("mine")
    with pytest.raises(AlreadyExists):
        workspace.add_sample(source)
    assert (workspace.root / "collections" / "山城慢信" / "profile.md").read_text() == "mine"


# Collections in collections ---------------------------------------------------------------------


def nested(workspace: Workspace, *names: str) -> None:
    for name in names:
        (workspace.root / "collections" / name).mkdir(parents=True)


def test_collections_in_collections_are_listed(workspace: Workspace) -> None:
    """Each is named by its path and comes before those in it; texts and hidden folders are none."""
    nested(workspace, "series/book/part", "series 2", "essays", "drafts", "series/.git/x")
    nested(workspace, "series/drafts/渡口", "series/book/articles/x", "series/book/Drafts", "articles/x")
    names = [collection.name for collection in workspace.collections()]
    assert names == ["essays", "series", "series/book", "series/book/part", "series 2"]
    for name in names:
        assert workspace.collection(name).path == workspace.root / "collections" / name
    assert workspace.collection("series/book/").name == "series/book"


def test_links_are_no_collections_in_a_collection(workspace: Workspace) -> None:
    """A link at the top is one, with nothing in it; deeper ones may lead round in circles."""
    nested(workspace, "series/book")
    collections = workspace.root / "collections"
    (collections / "series" / "round").symlink_to(collections)
    (collections / "linked").symlink_to(collections / "series")
    assert [one.name for one in workspace.collections()] == ["linked", "series", "series/book"]
    for name in ("series/round", "series/round/series", "linked/book"):
        with pytest.raises(CollectionNotFound):
            workspace.collection(name)


@pytest.mark.parametrize(("on_disk", "asked"), [(NFC, NFD), (NFD, NFC)])
def test_a_nested_collection_is_found_in_any_unicode_form(
    workspace: Workspace, on_disk: str, asked: str
) -> None:
    """Every folder on the path may be spelled as the disk likes."""
    nested(workspace, f"{on_disk}/{on_disk}")
    found = workspace.collection(f"{asked}/{asked}")
    assert found.name == f"{on_disk}/{on_disk}"
    assert found.project_key == Collection(f"{asked}/{asked}", found.path).project_key


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        ".",
        "..",
        "../up",
        "series/../../up",
        "/etc",
        "//etc",
        "series//book",
        "series/./book",
        "series\\book",
        "..\\up",
        "series/.hidden",
        "series/drafts",
        "series/drafts/x",
        "a\0b",
        "series/none",
    ],
)
def test_no_name_leads_anywhere_else(workspace: Workspace, name: str) -> None:
    """A name that is not exactly the path of a collection means none."""
    nested(workspace, "series/book", "series/.hidden", "series/drafts/x")
    (workspace.root / "up").mkdir()
    with pytest.raises(CollectionNotFound):
        workspace.collection(name)
    with pytest.raises(CollectionNotFound):
        workspace.new_task("渡口", name or "/")


def test_a_new_collection_in_another_keeps_the_outer_memory(workspace: Workspace) -> None:
    """The outer one is made where it is missing; the inner one's files to fill in replace none of its."""
    workspace.new_collection("系列")
    (workspace.root / "collections" / "系列" / "profile.md").write_text("mine")
    made = workspace.new_collection("系列/上册/第一部")
    assert (made.name, made.path.parent.name) == ("系列/上册/第一部", "上册")
    assert (workspace.root / "collections" / "系列" / "profile.md").read_text() == "mine"
    memory = made.memory()
    assert [file.name for file in memory.files if file.origin == made.name] == ["memory.md", "index.md"]
    assert [file.origin for file in memory.files if file.path.name == "memory.md"] == [
        "系列",
        "系列/上册",
        "系列/上册/第一部",
    ]
    assert memory.problems == () and memory.files[0].text == "mine"
    with pytest.raises(AlreadyExists):
        workspace.new_collection("系列/上册")


def test_a_new_collection_uses_the_outer_one_in_any_case(workspace: Workspace) -> None:
    """Some disks do not tell cases apart: no second series is made beside the one that is there."""
    workspace.new_collection("Series")
    assert workspace.new_collection("series/book").name == "Series/book"
    with pytest.raises(AlreadyExists):
        workspace.new_collection("SERIES/BOOK")


def test_a_task_of_a_nested_collection(workspace: Workspace) -> None:
    """Its text lies in the innermost folder, its sessions under a plain key, and it has all the memory."""
    nested(workspace, "series/book")
    (workspace.root / "collections" / "series" / "profile.md").write_text("of the series")
    task = workspace.new_task("渡口", "series/book")
    assert task.collection == "series/book"
    assert task.project_key.startswith("c-") and task.project_key.isascii()
    workspace.text(task, MAIN).write("雾。", author="model", turn=1)
    assert (workspace.root / "collections/series/book/drafts/渡口/main.md").read_text() == "雾。"
    assert list(workspace.task_collection(task).memory().hashes) == ["profile.md"]
    assert [one.name for one in workspace.collections()] == ["series", "series/book"]
    shutil.rmtree(workspace.root / "collections" / "series")
    assert workspace.task_collection(task).path == workspace.root / "collections" / "series" / "book"
    assert workspace.text(task, MAIN).read() == "雾。"


@pytest.mark.parametrize(
    "name", ["../../up", "/etc", "..\\up", "a//b", "C:\\x", "a\0b", "out/x", "series/.."]
)
def test_a_tasks_collection_never_leads_out(workspace: Workspace, name: str) -> None:
    """A record that was tampered with finds a folder in the workspace, where there is nothing."""
    outside = workspace.root.parent / "outside"
    (outside / "x").mkdir(parents=True)
    (outside / "x" / "memory.md").write_text("not ours")
    (workspace.root / "collections" / "out").symlink_to(outside)
    task = workspace.new_task("渡口").model_copy(update={"collection": name})
    collection = workspace.task_collection(task)
    assert collection.path.parent == workspace.root / "collections"
    assert collection.memory().files == ()


def test_a_thousand_collections(workspace: Workspace) -> None:
    """All are listed, and drafts are not looked through for more."""
    nested(workspace, *(f"series {number}/book/drafts/a/b" for number in range(500)))
    assert len(workspace.collections()) == 1000
    assert workspace.collection("series 499/book").path.is_dir()


# Tasks ------------------------------------------------------------------------------------------


def test_a_task_of_a_chinese_collection_has_a_plain_project_key(workspace: Workspace) -> None:
    """Sessions lie in folders of ASCII names, apart for each collection, whatever they are called."""
    keys = []
    for name in ("小说", "散文", "essays"):
        workspace.new_collection(name)
        task = workspace.new_task("渡口", name)
        keys.append(task.project_key)
        path = OpenDraft(workspace, task, MAIN).transcript.path
        assert str(path.relative_to(workspace.hidden)).isascii()
        assert (
            path == workspace.hidden / "sessions" / task.project_key / f"{task.drafts[MAIN].session_id}.jsonl"
        )
    assert len(set(keys)) == 3 and keys[2] == "essays"


def test_a_task_without_a_collection_is_unfiled(workspace: Workspace) -> None:
    """A task may belong to no series; its text has a place all the same, made when there is one."""
    task = workspace.new_task("渡口")
    assert (task.collection, task.project_key) == (UNFILED, UNFILED)
    assert workspace.collections() == []
    workspace.text(task, MAIN).write("雾。", author="model", turn=1)
    assert (workspace.root / "collections/unfiled/drafts/渡口/main.md").read_text() == "雾。"


def test_a_task_needs_a_collection_that_exists(workspace: Workspace) -> None:
    """An unknown collection is refused before anything is created."""
    before = files(workspace.root)
    with pytest.raises(CollectionNotFound, match="There is no collection 'nowhere'"):
        workspace.new_task("渡口", "nowhere")
    with pytest.raises(Invalid):
        workspace.new_task(" ")
    assert files(workspace.root) == before


def test_tasks_whose_titles_make_the_same_file_name_keep_their_own_texts(workspace: Workspace) -> None:
    """A text written for one task is never that of another, though their titles look the same on disk."""
    tasks = [workspace.new_task(title) for title in ("What?", "What", "WHAT:", "..What..")]
    for task in tasks:
        workspace.text(task, MAIN).write(f"of {task.id}", author="model", turn=1)
    for task in tasks:
        assert workspace.text(task, MAIN).path.read_text() == f"of {task.id}"
        assert [revision.text for revision in workspace.text(task, MAIN).revisions()] == [f"of {task.id}"]


def test_a_task_whose_record_was_lost_keeps_its_folder(workspace: Workspace) -> None:
    """A new task never takes over the text of one whose line in tasks.jsonl is gone or damaged."""
    lost = workspace.new_task("渡口")
    workspace.text(lost, MAIN).write("the only copy", author="model", turn=1)
    (workspace.hidden / "tasks.jsonl").write_bytes(b'{"type":"task","id":"' + lost.id.encode() + b"\n")
    task = workspace.new_task("渡口")
    assert workspace.text(task, MAIN).read() == ""
    workspace.text(task, MAIN).write("new", author="model", turn=1)
    assert (workspace.root / "collections/unfiled/drafts/渡口/main.md").read_text() == "the only copy"


def test_drafts_of_a_task_have_texts_of_their_own(workspace: Workspace) -> None:
    """Each draft has its own file, revisions and lock, in folders of its task."""
    task = workspace.new_task("渡口")
    workspace.tasks.add_draft(task.id, "trial", "s-2", Origin(draft=MAIN, turn=0))
    workspace.text(task, MAIN).write("雾。", author="model", turn=1)
    workspace.text(task, "trial").write("雨。", author="model", turn=1)
    assert workspace.text(task, MAIN).read() == "雾。"
    assert workspace.text(task, "trial").path == workspace.text(task, MAIN).path.with_name("trial.md")
    with OpenDraft(workspace, task, MAIN).lease(), OpenDraft(workspace, task, "trial").lease():
        pass


def test_a_draft_that_is_put_away_goes_to_the_trash(workspace: Workspace) -> None:
    """Text that is put away is in the trash under its task's id, and twice is two files."""
    task = workspace.new_task("渡口")
    for text in ("one", "two"):
        workspace.text(task, "trial").write(text, author="model", turn=1)
        workspace.text(task, "trial").put_away()
    trash = sorted((workspace.hidden / "trash" / "drafts").iterdir(), key=lambda path: path.read_text())
    assert [path.read_text() for path in trash] == ["one", "two"]
    assert all(path.name.startswith(f"{task.id}-trial.") and path.name.isascii() for path in trash)


def test_a_task_outlives_its_collections_folder(workspace: Workspace) -> None:
    """A task whose collection was deleted is still found, with its session's place and its text."""
    workspace.new_collection("山城")
    task = workspace.new_task("渡口", "山城")
    text = workspace.text(task, MAIN)
    text.write("雾。", author="model", turn=1)
    shutil.rmtree(workspace.root / "collections" / "山城")
    again = Workspace(workspace.root)
    assert again.tasks.find("渡口") == task
    assert again.task_collection(task).memory().files == ()
    assert again.text(task, MAIN).read() == "雾。"
    assert OpenDraft(again, task, MAIN).transcript.path.parent.name == task.project_key
    assert again.collections() == []  # looking made no folder


def test_a_task_finds_its_collection_in_another_unicode_form(workspace: Workspace) -> None:
    """A sync tool that spells the collection's folder anew does not part a task from its text."""
    workspace.new_collection(NFC)
    task = workspace.new_task("渡口", NFC)
    workspace.text(task, MAIN).write("雾。", author="model", turn=1)
    (workspace.root / "collections" / NFC).rename(workspace.root / "collections" / NFD)
    assert workspace.text(task, MAIN).path.read_text() == "雾。"
    other = workspace.new_task("渡口", NFC)
    assert workspace.text(other, MAIN).path.parent != workspace.text(task, MAIN).path.parent
    assert other.project_key == task.project_key


def test_a_workspace_made_here_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However its folder is named, by a relative path too, its records are the writer's alone."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    made = [Workspace.create(Path()), Workspace.create(Path("../two"))]
    records = [path for one in made for path in (one.hidden, *one.hidden.rglob("*"))]
    assert [path for path in records if path.stat().st_mode & 0o077] == []
