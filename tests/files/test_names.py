from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartwriter.errors import SmartWriterError, UnsafeName
from smartwriter.files.names import MAX_NAME_BYTES, original, project_name, readable_name, session_name

PLAIN = set(string.ascii_letters + string.digits + "_-.%~")
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
TRICKY = st.lists(
    st.sampled_from([*'.%~/\\: "', "2E", ".jsonl", "CON", "a", "A", "写", "\ud800", "\0"]), max_size=8
).map("".join)


# --- names inside .smartwriter ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"),
        (".", "folder"),
        ("..", "folder"),
        ("a/b", "separator"),
        ("../../etc/passwd", "separator"),
        ("/", "separator"),
        ("a\\b", "separator"),
        ("C:\\x", "separator"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("\x7f", "control"),
        ("CON", "device"),
        ("con", "device"),
        ("nul.txt", "device"),
        ("COM1", "device"),
        ("lpt9.tar.gz", "device"),
        ("a" * (MAX_NAME_BYTES + 1), "longer"),
        ("写" * 14, "longer"),
    ],
)
def test_unsafe_session_ids_are_refused_with_a_reason(name: str, why: str) -> None:
    """An id that could leave its folder, hide, or mean a device is refused, in one plain sentence."""
    with pytest.raises(UnsafeName) as caught:
        session_name(name)
    assert why in str(caught.value)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    assert caught.value.name == name
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, SmartWriterError)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("11111111-2222-4333-8444-555555555555", "11111111-2222-4333-8444-555555555555"),
        ("sess", "sess"),
        ("agent-a_b.c", "agent-a_b.c"),
        ("a" * MAX_NAME_BYTES, "a" * MAX_NAME_BYTES),
        (".hidden", "%2Ehidden"),
        ("...", "%2E.%2E"),
        ("dot.", "dot%2E"),
        ("a.jsonl", "a%2Ejsonl"),
        (".jsonl", "%2Ejsonl"),
        ("a b", "a%20b"),
        ("50%", "50%25"),
        ("%2E", "%252E"),
        ("a~b", "a%7Eb"),
        ("C:x", "C%3Ax"),
        ("con_", "con_"),
        ("COM10", "COM10"),
        ("写", "%E5%86%99"),
        ("\u2028", "%E2%80%A8"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_other_ids_become_plain_names_and_come_back(name: str, file: str) -> None:
    """Every other id is a plain ASCII file name, nearly always itself, and can be told from it."""
    assert session_name(name) == file
    assert original(file) == name


@given(name=ANY_TEXT | TRICKY)
def test_a_name_is_refused_or_comes_back(name: str) -> None:
    """Whatever an id is, it is refused with a reason or becomes a safe name that maps back to it."""
    try:
        plain = session_name(name)
    except UnsafeName:
        return
    assert set(plain) <= PLAIN - {"~"}
    assert not plain.startswith(".") and not plain.endswith((".", ".jsonl"))
    assert len(plain) <= MAX_NAME_BYTES
    assert original(plain) == name


@given(names=st.lists(TRICKY | ANY_TEXT.filter(bool), min_size=2, max_size=2, unique=True))
def test_project_keys_have_folders_of_their_own(names: list[str]) -> None:
    """Every project key, however unsafe, has one safe folder, and no two share it."""
    folders = []
    for key in filter(None, names):
        plain = project_name(key)
        assert set(plain) <= PLAIN and not plain.startswith(".") and not plain.endswith(".")
        assert len(plain) <= MAX_NAME_BYTES
        assert original(plain) == (plain if "~" in plain else key)
        folders.append(plain)
    assert len(set(folders)) == len(folders)


@pytest.mark.parametrize(
    ("key", "folder"),
    [
        ("-w-book", "-w-book"),
        ("..", "%2E%2E"),
        ("a/b", "%61%2F%62"),
        ("/\ud800", "%2F%ED%A0%80"),
        ("con", "%63%6F%6E"),
        ("文集", "%E6%96%87%E9%9B%86"),
    ],
)
def test_project_keys_are_never_refused(key: str, folder: str) -> None:
    """The SDK derives keys from paths, so what could not be a session id is escaped instead."""
    assert project_name(key) == folder
    assert original(folder) == key


def test_an_empty_project_key_is_refused() -> None:
    """No key is no project."""
    with pytest.raises(UnsafeName, match="empty"):
        project_name("")


@pytest.mark.parametrize("stem", ["-home-writer-" * 30, "写" * 100, "../" * 100, "%" * 50, "x" * 300])
def test_long_project_keys_are_shortened_uniquely(stem: str) -> None:
    """Keys of any length, also with the same first 300 characters, get folders of their own."""
    folders = {project_name(stem + ending) for ending in ("", "a", "b", "写")}
    assert len(folders) == 4
    for folder in folders:
        assert len(folder) == MAX_NAME_BYTES
        assert set(folder) <= PLAIN
        assert original(folder) == folder
        assert project_name(folder) == folder, "a listed key leads to its folder"


def test_a_long_key_that_looks_shortened_is_shortened_too() -> None:
    """A key that only ends like a shortened one still fits into a folder's name."""
    key = "x" * 300 + "~0123456789abcdef"
    assert len(project_name(key)) == MAX_NAME_BYTES
    assert project_name(key) != project_name("y" + key)


def test_names_of_other_programs_stand_for_themselves() -> None:
    """A file name that this module would not have made is listed as it is, and breaks nothing."""
    assert original("50%FF") == "50%FF"
    assert original("写") == "写"
    assert original("caf\udce9") == "caf\udce9"


# --- names for people -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("渡口", "渡口"),
        ("  Two   words\n", "Two words"),
        ("a/b\\c:d*e?f\"g<h>i|j", "a b c d e f g h i j"),
        ("../..", "untitled"),
        ("...", "untitled"),
        ("???", "untitled"),
        ("", "untitled"),
        (".hidden", "hidden"),
        ("End.", "End"),
        ("e\u0301te\u0301", "été"),
        ("half \ud83d", "half"),
        ("a\0b\x7fc", "a b c"),
        ("🪁", "🪁"),
    ],
)  # fmt: skip
def test_a_title_as_a_file_name(title: str, name: str) -> None:
    """A title keeps its script and loses only what a file system cannot take."""
    assert readable_name(title) == name


@pytest.mark.parametrize("device", ["con", "NUL", "com1.notes", "aux.a.b"])
def test_a_title_that_means_a_device_does_not_name_one(device: str) -> None:
    """A title such as "con" becomes a name that Windows takes for a file."""
    assert not session_name_is_device(readable_name(device))


def session_name_is_device(name: str) -> bool:
    try:
        session_name(name)
    except UnsafeName as error:
        return "device" in str(error)
    return False


def test_long_titles_are_cut_between_letters() -> None:
    """A name fits with its suffix, ends with a whole letter, and not with a space or dot."""
    for title in ("写" * 100, "🪁" * 100, "a" * 500, "a" * 115 + " b", "a" * 115 + ".b", "é" * 100):
        name = readable_name(title)
        assert len(name.encode()) <= MAX_NAME_BYTES - 4
        assert title.startswith(name)
        assert name == name.rstrip(" .")


def test_a_taken_name_gets_a_number() -> None:
    """Names differ from all taken ones also where a file system ignores case."""
    assert readable_name("Essay", frozenset({"essay"})) == "Essay 2"
    assert readable_name("Essay", frozenset({"ESSAY", "Essay 2", "essay 3"})) == "Essay 4"
    assert readable_name("?", frozenset({"untitled"})) == "untitled 2"


@given(title=ANY_TEXT | TRICKY | st.text(max_size=300))
def test_any_title_names_a_file(title: str) -> None:
    """Whatever a title is, its name is safe, stable and no longer than a file system takes."""
    name = readable_name(title)
    assert name and name == name.strip(" .")
    assert not set(name) & set('/\\:*?"<>|\0\n')
    assert len(name.encode()) < MAX_NAME_BYTES
    assert readable_name(name) == name
    assert not session_name_is_device(name)
