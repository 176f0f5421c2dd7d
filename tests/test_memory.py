from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from smartwriter.memory import Collection, normal


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    (tmp_path / "山城").mkdir()
    return Collection("山城", tmp_path / "山城")


def fill(collection: Collection, **files: str) -> None:
    for name, text in files.items():
        (collection.path / f"{name}.md").write_bytes(text.encode())


def names(collection: Collection) -> list[str]:
    return [file.name for file in collection.memory().files]


def test_files_come_in_one_order(collection: Collection) -> None:
    """The profile comes first, then the memory, the index, and all others by name."""
    fill(collection, zoo="z", index="i", 人物="p", memory="m", apple="a", profile="f")
    assert names(collection) == ["profile.md", "memory.md", "index.md", "apple.md", "zoo.md", "人物.md"]


def test_each_file_has_its_name_above_it(collection: Collection) -> None:
    """The rendered memory has a heading for each file, and its text without blank edges."""
    fill(collection, profile="\n\n# Who reads it\n\nEveryone.\n\n", memory="雾。\n")
    assert collection.memory().render() == (
        "## profile.md\n\n# Who reads it\n\nEveryone.\n\n## memory.md\n\n雾。"
    )


def test_only_memory_files_are_memory(collection: Collection) -> None:
    """Drafts, articles, hidden files, folders and files of other kinds are not fed to the model."""
    fill(collection, memory="m")
    for file in (".hidden.md", "notes.txt", "memory.md.bak", "drafts/渡口/main.md", "articles/雾.md"):
        (collection.path / file).parent.mkdir(parents=True, exist_ok=True)
        (collection.path / file).write_text("not for the model")
    (collection.path / "folder.md").mkdir()
    memory = collection.memory()
    assert [file.name for file in memory.files] == ["memory.md"]
    assert memory.problems == ()


def test_a_file_that_cannot_be_used_is_reported(collection: Collection) -> None:
    """A file that is no UTF-8 text, or empty, is named in a sentence; the others are used all the same."""
    fill(collection, memory="雾", index=" \n\t\n", notes="")
    (collection.path / "profile.md").write_bytes("画像".encode("gbk"))
    (collection.path / "people.md").write_bytes("人物".encode("utf-16"))
    (collection.path / "places.md").write_bytes(b"har\0bour")
    memory = collection.memory()
    assert memory.render() == "## memory.md\n\n雾"
    assert memory.problems == (
        "profile.md is not UTF-8 text and was left out.",
        "index.md is empty.",
        "notes.md is empty.",
        "people.md is not UTF-8 text and was left out.",
        "places.md holds a NUL character and was left out.",
    )


def test_a_file_whose_target_is_gone_is_reported(collection: Collection) -> None:
    """A link to a disk that is not there is reported, not passed over."""
    fill(collection, memory="雾")
    (collection.path / "profile.md").symlink_to(collection.path / "nowhere")
    memory = collection.memory()
    assert [file.name for file in memory.files] == ["memory.md"]
    assert memory.problems == ("profile.md could not be read and was left out: No such file or directory.",)


def test_a_file_that_cannot_be_read_is_reported(collection: Collection) -> None:
    """A file that the system refuses to read is reported with its reason, never raised."""
    fill(collection, memory="雾", profile="secret")
    if os.geteuid() != 0:
        (collection.path / "profile.md").chmod(0)
        why = "Permission denied"
    elif Path("/proc/self/mem").exists():  # for root: a file whose first byte nobody can read
        (collection.path / "profile.md").unlink()
        (collection.path / "profile.md").symlink_to("/proc/self/mem")
        why = "Input/output error"
    else:
        pytest.skip("root may read every file here")
    memory = collection.memory()
    assert [file.name for file in memory.files] == ["memory.md"]
    assert memory.problems == (f"profile.md could not be read and was left out: {why}.",)


def test_a_byte_order_mark_is_not_text(collection: Collection) -> None:
    """A file that Windows saved with a byte order mark reads as its text; its hash is of its bytes."""
    data = b"\xef\xbb\xbf" + "雾".encode()
    (collection.path / "memory.md").write_bytes(data)
    (file,) = collection.memory().files
    assert (file.text, file.sha256) == ("雾", hashlib.sha256(data).hexdigest())


def test_unchanged_files_render_to_the_same_bytes(collection: Collection) -> None:
    """The rendered memory depends on names and texts alone, so that the prompt cache can hit."""
    fill(collection, profile="f", memory="m", 人物="p", apple="a")
    before = collection.memory()
    for name in ("apple", "profile"):  # written again, in another order, at another time
        fill(collection, **{name: (collection.path / f"{name}.md").read_text()})
        os.utime(collection.path / f"{name}.md", (0, 0))
    assert collection.memory() == before
    assert collection.memory().render().encode() == before.render().encode()


def test_hashes_tell_which_file_changed(collection: Collection) -> None:
    """Every used file has the sha256 of its bytes, and a changed byte changes that one only."""
    fill(collection, profile="f\r\n", memory="m", index="")
    before = collection.memory().hashes
    assert before == {
        "profile.md": hashlib.sha256(b"f\r\n").hexdigest(),
        "memory.md": hashlib.sha256(b"m").hexdigest(),
    }
    fill(collection, profile="f\n")
    after = collection.memory().hashes
    assert after["profile.md"] == hashlib.sha256(b"f\n").hexdigest()
    assert after["memory.md"] == before["memory.md"]


def test_a_collection_without_a_folder_has_no_memory(tmp_path: Path) -> None:
    """A collection whose folder is gone has an empty memory, and reading it makes no folder."""
    memory = Collection("gone", tmp_path / "gone").memory()
    assert (memory.files, memory.problems, memory.render()) == ((), (), "")
    assert not (tmp_path / "gone").exists()


def test_creating_keeps_what_is_there(tmp_path: Path) -> None:
    """A new collection gets the three files to fill in, and none that exists is replaced."""
    collection = Collection("essays", tmp_path / "essays")
    collection.path.mkdir()
    fill(collection, memory="mine")
    collection.create()
    assert names(collection) == ["profile.md", "memory.md", "index.md"]
    assert (collection.path / "memory.md").read_text() == "mine"


@pytest.mark.parametrize("name", ["essays", "a", "2026-essays", "x" * 40])
def test_a_plain_name_is_its_own_project_key(name: str) -> None:
    """Where a collection's name is a plain ASCII slug, its sessions lie in a folder of that name."""
    assert Collection(name, Path(name)).project_key == name


@pytest.mark.parametrize(
    "name", ["山城慢信", "小说", "散文", "Essays", "two words", "-a", "a_b", "x" * 41, "🌊"]
)
def test_any_other_name_has_a_plain_project_key(name: str) -> None:
    """Other names get a short ASCII key, the same one every time and in every Unicode form."""
    key = Collection(name, Path(name)).project_key
    assert key == Collection(name, Path("elsewhere")).project_key
    assert key.isascii() and len(key) <= 40 and key.replace("-", "").isalnum() and key == key.lower()


def test_project_keys_keep_collections_apart() -> None:
    """Collections that the SDK's own keys would mix up have different keys."""
    alike = ["小说", "散文", "a_b", "a b", "A-B", "a-b"]
    assert len({Collection(name, Path(name)).project_key for name in alike}) == len(alike)


def test_a_decomposed_name_is_the_same_name() -> None:
    """Letters in one piece and letters with combining marks make the same name and key."""
    assert normal("Cafe\u0301") == "Caf\u00e9"
    keys = {Collection(name, Path("x")).project_key for name in ("Cafe\u0301", "Caf\u00e9")}
    assert len(keys) == 1
