from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import smartwriter.storage.reading as reading
from smartwriter.errors import Invalid
from smartwriter.memory.collection import Collection
from smartwriter.memory.snapshot import Memory
from smartwriter.memory.versions import MemoryVersions
from smartwriter.storage.files import FileStorage
from smartwriter.storage.places import Places
from smartwriter.system.bounds import HIDDEN
from smartwriter.workspace import Workspace


@pytest.fixture
def versions(workspace: Workspace) -> MemoryVersions:
    return MemoryVersions(workspace.storage)


@pytest.fixture
def collection(workspace: Workspace) -> Collection:
    path = workspace.root / "collections" / "山城"
    path.mkdir()
    return Collection("山城", path)


def fill(collection: Collection, **files: str | bytes) -> Memory:
    for name, text in files.items():
        path = collection.path / f"{name}.md"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(path, (1, 1))
    os.utime(collection.path, (1, 1))
    return collection.memory()


def folder_of(collection: Collection) -> Path:
    """Where versions of its files are kept."""
    return Places(collection.path.parents[1] / HIDDEN).memory


def stored(collection: Collection) -> list[str]:
    return sorted(path.name for path in folder_of(collection).glob("*.md"))


def test_each_version_is_kept_once(versions: MemoryVersions, collection: Collection) -> None:
    """Every version of every file is there byte for byte, whatever became of the file; none twice."""
    first = fill(collection, profile="---\ntitle: 画像\n---\n雾\r\n", memory="m")
    second = fill(collection, profile="rain")
    for memory in (first, second, first, second):
        versions.keep(memory)
    for path in collection.path.iterdir():
        path.unlink()
    assert versions.text(first.hashes["profile.md"]) == "---\ntitle: 画像\n---\n雾\r\n"
    assert versions.text(second.hashes["profile.md"]) == "rain"
    assert versions.text(first.hashes["memory.md"]) == "m"
    assert len(stored(collection)) == 3


def test_files_on_demand_are_kept_too(versions: MemoryVersions, collection: Collection) -> None:
    """The model may have read them: their text at that time is there."""
    memory = fill(collection, people="---\ninclude: on-demand\n---\np", old="---\ninclude: never\n---\no")
    versions.keep(memory)
    assert versions.text(memory.hashes["people.md"]) == "---\ninclude: on-demand\n---\np"
    assert len(stored(collection)) == 1


def test_a_kept_version_makes_the_memory_of_then(versions: MemoryVersions, collection: Collection) -> None:
    """An old version put in place of today's gives the hash, the text and the prompt of that time."""
    before = fill(collection, profile=b"\xef\xbb\xbf---\norder: 1\n---\nold", memory="m")
    versions.keep(before)
    after = fill(collection, profile="---\norder: 1\n---\nnew")
    text = versions.text(before.hashes["profile.md"])
    assert text is not None
    assert after.replaced("profile.md", text).hashes == before.hashes
    assert after.replaced("profile.md", text).render() == before.render()


def test_the_log_has_a_line_for_each_change(versions: MemoryVersions, collection: Collection) -> None:
    """A set of files is recorded when it differs from the last one, also when it comes back or is gone."""
    first = fill(collection, profile="f", memory="m")
    second = fill(collection, profile="F")
    empty = Memory((), collection="山城")
    for memory in (empty, first, first, second, second, first, empty, empty):
        versions.keep(memory)
    log = versions.log("山城")
    assert [version.files for version in log] == [first.hashes, second.hashes, first.hashes, {}]
    assert {version.collection for version in log} == {"山城"}
    assert [version.timestamp for version in log] == sorted(version.timestamp for version in log)


def test_nothing_is_written_when_nothing_is_new(versions: MemoryVersions, collection: Collection) -> None:
    """Keeping the same memory again leaves every file as it is."""
    memory = fill(collection, profile="f")
    versions.keep(memory)
    before = {path: path.stat() for path in folder_of(collection).iterdir()}
    MemoryVersions(FileStorage(folder_of(collection).parent)).keep(collection.memory())
    assert {path: path.stat() for path in folder_of(collection).iterdir()} == before


def test_the_files_have_plain_names_and_a_plain_form(
    versions: MemoryVersions, collection: Collection
) -> None:
    """What is on disk is named in ASCII, and a line says what was there, when, of which collection."""
    memory = fill(collection, profile="f")
    versions.keep(memory)
    assert all(path.name.isascii() for path in folder_of(collection).iterdir())
    path = folder_of(collection) / f"{collection.project_key}.jsonl"
    (line,) = reading.read(path).entries
    assert set(line) == {"type", "timestamp", "collection", "files"}
    assert (line["type"], line["collection"], line["files"]) == ("memory", "山城", memory.hashes)


def test_collections_have_logs_of_their_own(versions: MemoryVersions, collection: Collection) -> None:
    """Another collection's memory is not in the log, and one never kept has an empty log."""
    versions.keep(fill(collection, profile="f"))
    inner = Collection("山城/上册", collection.path / "上册")
    inner.path.mkdir()
    versions.keep(fill(inner, scene="s"))
    assert [list(version.files) for version in versions.log("山城")] == [["profile.md"]]
    assert [list(version.files) for version in versions.log("山城/上册")] == [["profile.md", "scene.md"]]
    assert versions.log("山") == versions.log("../山城") == []


@pytest.mark.parametrize("asked", ["", "0" * 64, "../config", "x" * 64, "0" * 63 + "\n", "A" * 64])
def test_a_version_that_was_not_kept(versions: MemoryVersions, asked: str) -> None:
    """What is no hash, or is one of nothing we have, has no text, wherever it would lead."""
    assert versions.text(asked) is None


def test_a_version_that_was_changed_is_never_taken_for_the_old_one(
    versions: MemoryVersions, collection: Collection
) -> None:
    """It is a loud error with the path; and it is put right the next time the version is at hand."""
    memory = fill(collection, profile="the whole text")
    versions.keep(memory)
    path = folder_of(collection) / stored(collection)[0]
    path.write_text("the whole")
    with pytest.raises(Invalid, match=f"{path.name} is damaged"):
        versions.text(memory.hashes["profile.md"])
    versions.keep(memory)
    assert versions.text(memory.hashes["profile.md"]) == "the whole text"


def test_a_damaged_log_gives_its_whole_lines(versions: MemoryVersions, collection: Collection) -> None:
    """Lines that are torn, or that a later version wrote, are passed over and left where they are."""
    versions.keep(fill(collection, profile="f"))
    path = folder_of(collection) / f"{collection.project_key}.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type":"memory","timestamp":"2030-01-01T00:00:00Z"}\n{"type":"other"}\n{"type":"mem')
    before = path.read_bytes()
    versions.keep(fill(collection, profile="g"))
    assert [version.files["profile.md"] for version in versions.log("山城")] == [
        hashlib.sha256(text).hexdigest() for text in (b"f", b"g")
    ]
    assert path.read_bytes().startswith(before)


def test_writers_at_the_same_time_record_a_change_once(workspace: Workspace, collection: Collection) -> None:
    """However many turns start at once with a new memory, it is one line and one version."""
    memory = fill(collection, profile="f", memory="m")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: MemoryVersions(workspace.storage).keep(memory), range(24)))
    versions = MemoryVersions(workspace.storage)
    assert [version.files for version in versions.log("山城")] == [memory.hashes]
    assert len(list(folder_of(collection).iterdir())) == 3
