from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from smartwriter.drafts import MAX_TEXT_BYTES, DraftText
from smartwriter.errors import Invalid, JournalError

AWKWARD = {
    "CRLF": "one\r\ntwo\r\n",
    "mixed line ends": "one\r\ntwo\nthree\rfour",
    "tabs and trailing spaces": "\tone  \n  \n",
    "full-width punctuation": "「渡口」——“早晨”……，。！？；：（）",
    "combining letters": "e\u0301 and \u00e9, \u1100\u1161 and \uac00",
    "line separators": "a\u0085b\u2028c\u2029d\x0be\x0cf",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 1️⃣",
    "a stray half of an emoji": "\ud83d and \udc00",
    "a byte order mark": "\ufeff# 渡口",
    "no line end": "渡口",
    "only line ends": "\n\n\n",
    "nothing": "",
    "JSON": '{"type":"revision","number":9}\n',
}


@pytest.fixture
def draft(tmp_path: Path) -> DraftText:
    return DraftText(
        tmp_path / "drafts" / "main.md", tmp_path / "revisions.jsonl", tmp_path / "trash" / "x.md"
    )


def reopened(draft: DraftText, tmp_path: Path) -> DraftText:
    return DraftText(draft.path, tmp_path / "revisions.jsonl", tmp_path / "trash" / "y.md")


def written(draft: DraftText, *texts: str) -> None:
    for turn, text in enumerate(texts, 1):
        draft.write(text, author="model", turn=turn)


def history(draft: DraftText) -> list[tuple[str, int, str]]:
    return [(revision.author, revision.turn, revision.text) for revision in draft.revisions()]


# Writing ----------------------------------------------------------------------------------------


def test_a_new_draft_is_empty(draft: DraftText, tmp_path: Path) -> None:
    """A draft that was never written has no text and no revisions, and reading makes no file."""
    assert (draft.read(), draft.revisions(), draft.at_turn(5)) == ("", [], "")
    assert draft.take_hand_edit(1) is None
    draft.put_away()
    assert list(tmp_path.rglob("*.md")) == list(tmp_path.rglob("*.jsonl")) == []


def test_every_version_is_kept(draft: DraftText, tmp_path: Path) -> None:
    """The file has the last text, and the revisions have every one, for any later process."""
    draft.write("# 渡口\n", author="model", turn=1)
    revision = draft.write("# 渡口\n\n雾。\n", author="fork", turn=2)
    assert draft.path.read_bytes() == "# 渡口\n\n雾。\n".encode()
    again = reopened(draft, tmp_path)
    assert again.read() == "# 渡口\n\n雾。\n"
    assert history(again) == [("model", 1, "# 渡口\n"), ("fork", 2, "# 渡口\n\n雾。\n")]
    assert again.revisions()[-1] == revision
    assert (revision.number, revision.sha256) == (
        2,
        hashlib.sha256(draft.path.read_bytes()).hexdigest(),
    )


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_a_text_comes_back_as_it_was(draft: DraftText, tmp_path: Path, text: str) -> None:
    """Not a byte of a text changes on its way to the file, the revisions and back."""
    draft.write(text, author="model", turn=1)
    again = reopened(draft, tmp_path)
    assert again.path.read_bytes() == text.encode("utf-8", "surrogatepass")
    assert again.read() == again.revisions()[0].text == again.at_turn(1) == text
    assert again.take_hand_edit(2) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\0b", "NUL"),
        ("x" * (MAX_TEXT_BYTES + 1), "longer than 1 MB"),
        ("渡" * (MAX_TEXT_BYTES // 3 + 1), "longer than 1 MB"),
    ],
    ids=["NUL", "ASCII", "Chinese"],
)
def test_a_text_that_cannot_be_kept_is_refused(draft: DraftText, text: str, why: str) -> None:
    """A NUL, or more than 1 MB of bytes, is refused; the text before it stands."""
    draft.write("before", author="model", turn=1)
    with pytest.raises(Invalid, match=why):
        draft.write(text, author="model", turn=2)
    assert draft.read() == "before"
    assert history(draft) == [("model", 1, "before")]


def test_a_text_of_exactly_1_mb_is_kept(draft: DraftText) -> None:
    """The limit itself is allowed."""
    draft.write("x" * MAX_TEXT_BYTES, author="model", turn=1)
    assert len(draft.read()) == MAX_TEXT_BYTES


def test_a_refused_revision_leaves_the_file_alone(draft: DraftText, tmp_path: Path) -> None:
    """Where a revision cannot be recorded, the file keeps its text: it is never ahead."""
    draft.path.parent.mkdir()
    draft.path.write_text("before")
    (tmp_path / "revisions.jsonl").mkdir()
    with pytest.raises(JournalError):
        draft.write("after", author="model", turn=1)
    assert draft.path.read_text() == "before"


# Editing ----------------------------------------------------------------------------------------


def test_an_edit_changes_one_passage_only(draft: DraftText) -> None:
    """An edit replaces its passage and leaves every other character as it is."""
    written(draft, "一\r\n\t雾，e\u0301。\r\n二\n")
    revision = draft.edit("雾，e\u0301", "雨！", turn=2)
    assert draft.read() == revision.text == "一\r\n\t雨！。\r\n二\n"
    assert history(draft)[-1] == ("model", 2, draft.read())


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        (".*", "!", "a!b"),
        ("a.*b", r"\1\g<0>", r"\1\g<0>"),
        ("b", "", "a.*"),
        ("a.*b", "a.*b and a.*b", "a.*b and a.*b"),
    ],
)
def test_an_edit_takes_its_words_literally(draft: DraftText, old: str, new: str, after: str) -> None:
    """Neither passage is a pattern, and a passage may be deleted or hold itself."""
    written(draft, "a.*b")
    assert draft.edit(old, new, turn=2).text == after


@pytest.mark.parametrize(
    ("text", "old", "why"),
    [
        ("one two", "three", "stands 0 times"),
        ("one two one", "one", "stands 2 times"),
        ("哈哈哈", "哈哈", "stands 2 times"),  # at two places that overlap
        ("one", "", "is empty"),
        ("caf\u00e9", "cafe\u0301", "stands 0 times"),
        ("one\r\ntwo", "one\ntwo", "stands 0 times"),
        ("one，two", "one,two", "stands 0 times"),
        ("", "one", "stands 0 times"),
    ],
)
def test_an_edit_must_fit_exactly_once(draft: DraftText, text: str, old: str, why: str) -> None:
    """A passage that is missing, ambiguous or empty changes nothing, and the refusal says which."""
    written(draft, text)
    with pytest.raises(Invalid, match=why):
        draft.edit(old, "x", turn=2)
    assert draft.read() == text
    assert len(draft.revisions()) == 1


# By hand ----------------------------------------------------------------------------------------


def test_a_hand_edit_becomes_the_writers_revision(draft: DraftText) -> None:
    """What the writer changed in an editor is recorded as theirs, in the turn that is about to start."""
    written(draft, "fog")
    draft.path.write_bytes("雾\r\n".encode())
    revision = draft.take_hand_edit(2)
    assert revision is not None
    assert history(draft) == [("model", 1, "fog"), ("writer", 2, "雾\r\n")]
    assert draft.path.read_bytes() == "雾\r\n".encode()
    assert draft.take_hand_edit(3) is None


def test_a_text_that_the_writer_began_is_theirs(draft: DraftText) -> None:
    """A file that was there before the first turn is the writer's first revision."""
    draft.path.parent.mkdir()
    draft.path.write_text("My own beginning.")
    draft.take_hand_edit(1)
    assert history(draft) == [("writer", 1, "My own beginning.")]


def test_an_empty_file_is_no_beginning(draft: DraftText) -> None:
    """A file that the writer only created is not taken for an edit."""
    draft.path.parent.mkdir()
    draft.path.touch()
    assert draft.take_hand_edit(1) is None
    assert draft.revisions() == []


def test_emptying_the_file_is_an_edit(draft: DraftText) -> None:
    """A writer may throw the whole text away; the versions before stay."""
    written(draft, "fog")
    draft.path.write_text("")
    draft.take_hand_edit(2)
    assert history(draft) == [("model", 1, "fog"), ("writer", 2, "")]
    assert draft.read() == ""


def test_a_hand_edit_in_the_middle_of_a_turn_is_not_lost(draft: DraftText) -> None:
    """What the writer saves while the model writes becomes a revision before the model's next one."""
    written(draft, "fog")
    draft.path.write_text("fog, and my best sentence")
    draft.write("rain", author="model", turn=2)
    assert history(draft) == [
        ("model", 1, "fog"),
        ("writer", 2, "fog, and my best sentence"),
        ("model", 2, "rain"),
    ]
    assert [revision.number for revision in draft.revisions()] == [1, 2, 3]
    assert draft.read() == "rain"


def test_an_edit_works_on_what_the_writer_saved(draft: DraftText) -> None:
    """The model's edit keeps the writer's unrecorded words around its passage."""
    written(draft, "fog")
    draft.path.write_text("fog. Mine.")
    draft.edit("fog", "rain", turn=2)
    assert history(draft)[1:] == [("writer", 2, "fog. Mine."), ("model", 2, "rain. Mine.")]


def test_a_file_in_another_encoding_is_refused_and_kept(draft: DraftText) -> None:
    """A file that an editor saved in GBK is never guessed at: nothing reads, edits or replaces it."""
    written(draft, "fog")
    draft.path.write_bytes("雾气很大".encode("gbk"))
    for use in (
        draft.read,
        lambda: draft.take_hand_edit(2),
        lambda: draft.edit("fog", "rain", turn=2),
        lambda: draft.write("rain", author="model", turn=2),
    ):
        with pytest.raises(Invalid, match=r"main\.md is not UTF-8 text \(byte 0\)"):
            use()
    assert draft.path.read_bytes() == "雾气很大".encode("gbk")
    assert history(draft) == [("model", 1, "fog")]


def test_a_crash_between_revision_and_file_is_no_hand_edit(draft: DraftText) -> None:
    """A file that still has an earlier text is brought up to the last revision, as the model wrote it."""
    written(draft, "fog")
    old_file = draft.path.read_bytes()
    draft.write("fog and rain", author="model", turn=2)
    draft.path.write_bytes(old_file)  # as if the process had died between the two
    assert draft.take_hand_edit(3) is None
    assert draft.read() == "fog and rain"
    assert [author for author, _, _ in history(draft)] == ["model", "model"]


def test_a_crash_before_the_first_file_is_made_good(draft: DraftText) -> None:
    """A revision whose file never came to be is the draft's text all the same."""
    written(draft, "fog")
    draft.path.unlink()
    draft.path.parent.rmdir()
    assert draft.read() == "fog"
    assert draft.take_hand_edit(2) is None
    assert draft.path.read_text() == "fog"


def test_a_deleted_file_is_restored(draft: DraftText) -> None:
    """Deleting the file deletes no words: the next turn starts from the last revision."""
    written(draft, "fog", "rain")
    draft.path.unlink()
    assert draft.read() == "rain"
    assert draft.take_hand_edit(3) is None
    assert draft.path.read_text() == "rain"
    assert len(draft.revisions()) == 2


# Versions ---------------------------------------------------------------------------------------


def test_the_text_at_a_turn(draft: DraftText) -> None:
    """Going back to a turn brings back the text as that turn left it, also where it wrote nothing."""
    draft.write("1a", author="model", turn=1)
    draft.write("1b", author="model", turn=1)
    draft.write("3", author="writer", turn=3)
    draft.write("5", author="model", turn=5)
    assert [draft.at_turn(turn) for turn in range(7)] == ["", "1b", "1b", "3", "3", "5", "5"]


def test_putting_a_draft_away_keeps_its_versions(draft: DraftText, tmp_path: Path) -> None:
    """The file goes to the trash as it is, hand edits included; the revisions stay where they are."""
    written(draft, "fog")
    draft.path.write_text("fog, and my best sentence")
    draft.put_away()
    assert not draft.path.exists()
    assert (tmp_path / "trash" / "x.md").read_text() == "fog, and my best sentence"
    assert history(draft) == [("model", 1, "fog")]
    draft.put_away()  # nothing is left to put away
    assert (tmp_path / "trash" / "x.md").exists()


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"revision","number":2,"author":"mod',
        b'{"type":"revision","number":2,"author":"ghost","turn":2,"sha256":"","text":"boo"}',
        b'{"type":"remark","text":"good"}',
    ],
    ids=["torn", "of a later version", "of another kind"],
)
def test_a_line_that_is_no_revision_is_left_alone(draft: DraftText, tmp_path: Path, line: bytes) -> None:
    """A damaged line, or one that this version does not know, hides no version of the text."""
    written(draft, "fog")
    with (tmp_path / "revisions.jsonl").open("ab") as file:
        file.write(line)
    draft.write("rain", author="model", turn=3)
    assert history(draft) == [("model", 1, "fog"), ("model", 3, "rain")]
    assert line in (tmp_path / "revisions.jsonl").read_bytes()


def test_newer_fields_of_a_revision_are_ignored(draft: DraftText, tmp_path: Path) -> None:
    """A revision with fields of a later version is read, and its line stays as it is."""
    written(draft, "fog")
    line: dict[str, Any] = json.loads((tmp_path / "revisions.jsonl").read_bytes())
    (tmp_path / "revisions.jsonl").write_text(json.dumps(line | {"mood": "grey"}) + "\n")
    written(draft, "rain")
    assert [text for _, _, text in history(draft)] == ["fog", "rain"]
    assert '"mood": "grey"' in (tmp_path / "revisions.jsonl").read_text()
