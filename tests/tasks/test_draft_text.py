from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

import smartwriter.files.durable as durable
import smartwriter.files.whole as whole
import smartwriter.storage.journal as journal
from smartwriter.errors import Invalid, JournalError, RevisionNotFound, TextConflict
from smartwriter.storage.journal import Journal
from smartwriter.tasks.draft_text import DraftText, HandEdit
from smartwriter.tasks.revisions import MAX_TEXT_BYTES, known_after
from smartwriter.tasks.values import Turn, TurnState
from smartwriter.text.passages import Edit

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
        tmp_path / "drafts" / "main.md",
        Journal(tmp_path / "revisions.jsonl"),
        lambda: tmp_path / "trash" / "x.md",
    )


def reopened(draft: DraftText, tmp_path: Path) -> DraftText:
    return DraftText(draft.path, Journal(tmp_path / "revisions.jsonl"), lambda: tmp_path / "trash" / "y.md")


def written(draft: DraftText, *texts: str) -> None:
    for turn, text in enumerate(texts, 1):
        draft.write(text, author="model", turn=turn)


def history(draft: DraftText) -> list[tuple[str, int, str]]:
    return [(revision.author, revision.turn, revision.text) for revision in draft.revisions()]


# Writing ----------------------------------------------------------------------------------------


def test_a_new_draft_is_empty(draft: DraftText, tmp_path: Path) -> None:
    """A draft that was never written has no text and no revisions, and reading makes no file."""
    assert (draft.read(), draft.revisions(), draft.at_turn(5)) == ("", [], "")
    assert draft.take_hand_edit(1) == HandEdit()
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
    assert again.take_hand_edit(2) == HandEdit()


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
    revision = draft.edit([Edit("雾，e\u0301", "雨！")], turn=2)
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
    assert draft.edit([Edit(old, new)], turn=2).text == after


@pytest.mark.parametrize(
    ("text", "old", "why"),
    [
        ("one two", "three", "stands 0 times"),
        ("one two one", "one", "stands 2 times"),
        ("哈哈哈", "哈哈", "stands 2 times"),  # at two places that overlap
        ("one", "", "is empty"),
        ("caf\u00e9", "cafe\u0301", "stands 0 times"),
        ("one\r\ntwo\n", "one\ntwo", "stands 0 times"),
        ("one，two", "one,two", "stands 0 times"),
        ("", "one", "stands 0 times"),
    ],
)
def test_an_edit_must_fit_exactly_once(draft: DraftText, text: str, old: str, why: str) -> None:
    """A passage that is missing, ambiguous or empty changes nothing, and the refusal says which."""
    written(draft, text)
    with pytest.raises(Invalid, match=why):
        draft.edit([Edit(old, "x")], turn=2)
    assert draft.read() == text
    assert len(draft.revisions()) == 1


# By hand ----------------------------------------------------------------------------------------


def test_a_hand_edit_becomes_the_writers_revision(draft: DraftText) -> None:
    """What the writer changed in an editor is recorded as theirs, in the turn that is about to start."""
    written(draft, "fog")
    draft.path.write_bytes("雾\r\n".encode())
    revision = draft.take_hand_edit(2).revision
    assert revision is not None and (revision.number, revision.text) == (2, "雾\r\n")
    assert history(draft) == [("model", 1, "fog"), ("writer", 2, "雾\r\n")]
    assert draft.path.read_bytes() == "雾\r\n".encode()
    assert draft.take_hand_edit(3) == HandEdit()


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
    assert draft.take_hand_edit(1) == HandEdit()
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
    draft.edit([Edit("fog", "rain")], turn=2)
    assert history(draft)[1:] == [("writer", 2, "fog. Mine."), ("model", 2, "rain. Mine.")]


def test_a_file_in_another_encoding_is_refused_and_kept(draft: DraftText) -> None:
    """A file that an editor saved in GBK is never guessed at: nothing reads, edits or replaces it."""
    written(draft, "fog")
    draft.path.write_bytes("雾气很大".encode("gbk"))
    for use in (
        draft.read,
        lambda: draft.take_hand_edit(2),
        lambda: draft.edit([Edit("fog", "rain")], turn=2),
        lambda: draft.write("rain", author="model", turn=2),
    ):
        with pytest.raises(Invalid, match=r"main\.md is not UTF-8 text \(byte 0\)"):
            use()
    assert draft.path.read_bytes() == "雾气很大".encode("gbk")
    assert history(draft) == [("model", 1, "fog")]


def test_a_crash_between_revision_and_file_is_no_hand_edit(
    draft: DraftText, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that still has the text before is brought up to the last revision, as the model wrote it."""
    written(draft, "fog")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(durable, "move", _interrupted)  # the last step
        draft.write("fog and rain", author="model", turn=2)
    assert draft.path.read_text() == "fog"
    assert draft.read() == "fog and rain"
    assert draft.take_hand_edit(3) == HandEdit()
    assert draft.path.read_text() == "fog and rain"
    assert [author for author, _, _ in history(draft)] == ["model", "model"]
    assert [path.name for path in draft.path.parent.iterdir()] == ["main.md"]


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_crash_before_the_revision_leaves_no_trace(
    draft: DraftText, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that was never recorded is not the draft's, whatever lies beside it."""
    written(draft, "fog")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(journal.Transaction, "append", _interrupted)
        draft.write("rain", author="model", turn=2)
    assert draft.read() == "fog"
    assert draft.take_hand_edit(3) == HandEdit()
    assert history(draft) == [("model", 1, "fog")]
    assert [path.name for path in draft.path.parent.iterdir()] == ["main.md"]


def test_going_back_in_an_editor_is_an_edit(draft: DraftText) -> None:
    """A writer who puts an earlier text back by hand means it: it is no crash, and becomes the text."""
    written(draft, "fog", "rain")
    draft.path.write_text("fog")
    assert draft.take_hand_edit(3).revision is not None
    assert history(draft)[-1] == ("writer", 3, "fog")
    assert draft.read() == "fog"


def test_an_edit_by_hand_after_a_crash_is_kept(draft: DraftText, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the writer saved before the crash was made good for is neither lost nor overwritten."""
    written(draft, "fog")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(durable, "move", _interrupted)
        draft.write("rain", author="model", turn=2)
    draft.path.write_text("my sun")
    draft.take_hand_edit(3)
    assert history(draft) == [("model", 1, "fog"), ("model", 2, "rain"), ("writer", 3, "my sun")]
    assert draft.path.read_text() == "my sun"


def test_a_crash_before_the_first_file_is_made_good(draft: DraftText) -> None:
    """A revision whose file never came to be is the draft's text all the same."""
    written(draft, "fog")
    draft.path.unlink()
    draft.path.parent.rmdir()
    assert draft.read() == "fog"
    assert draft.take_hand_edit(2) == HandEdit(restored=True)
    assert draft.path.read_text() == "fog"


def test_a_deleted_file_is_restored(draft: DraftText) -> None:
    """Deleting the file deletes no words: the next turn starts from the last revision."""
    written(draft, "fog", "rain")
    draft.path.unlink()
    assert draft.read() == "rain"
    assert draft.take_hand_edit(3, restore=False) == HandEdit()
    assert not draft.path.exists()
    assert draft.take_hand_edit(3) == HandEdit(restored=True)
    assert draft.path.read_text() == "rain"
    assert len(draft.revisions()) == 2


# Two at once ------------------------------------------------------------------------------------


def test_a_rewrite_does_not_replace_what_its_author_never_saw(draft: DraftText) -> None:
    """The writer's text stands, the rewrite is kept beside it, and the refusal has the text to go on from."""
    written(draft, "fog")
    draft.path.write_text("fog, mine")
    with pytest.raises(TextConflict, match="fog, mine") as conflict:
        draft.write("rain", author="model", turn=2, base=1)
    assert (conflict.value.current, conflict.value.text, conflict.value.aside) == (2, "fog, mine", 3)
    assert [(one.text, one.aside) for one in draft.revisions()] == [
        ("fog", False),
        ("fog, mine", False),
        ("rain", True),
    ]
    assert draft.read() == draft.path.read_text() == draft.at_turn(9) == "fog, mine"
    assert draft.write("both", author="model", turn=2, base=2).number == 4
    assert draft.read() == "both"


def test_an_edit_that_still_fits_is_made_in_the_newer_text(draft: DraftText) -> None:
    """An edit changes its own passage, and keeps what the writer did elsewhere meanwhile."""
    written(draft, "one two")
    draft.path.write_text("one two three")
    assert draft.edit([Edit("one", "1")], turn=2, base=1).text == "1 two three"
    assert [author for author, _, _ in history(draft)] == ["model", "writer", "model"]


def test_an_edit_that_fits_no_more_is_a_conflict(draft: DraftText) -> None:
    """Where the writer changed the very passage, theirs stands and the edited older text is kept."""
    written(draft, "one two")
    draft.path.write_text("eins two")
    with pytest.raises(TextConflict, match="eins two"):
        draft.edit([Edit("one", "1")], turn=2, base=1)
    assert [(one.text, one.aside) for one in draft.revisions()][1:] == [("eins two", False), ("1 two", True)]
    assert draft.read() == "eins two"


@pytest.mark.parametrize(
    ("known", "by_hand", "old", "new", "after"),
    [
        ("He paid 12 pounds.", "He paid 15 pounds in 1912.", "12", "14", None),
        ("The cat sat. It rained.", "The cats sat. It rained.", "cat", "dog", None),
        ("A red door and a wall.", "A green door and a red wall.", "red", "blue", None),
        (
            "The fog.\n\nA dog.",
            "A dog.\n\nThe fog. It stayed.",
            "dog",
            "cat",
            "A cat.\n\nThe fog. It stayed.",
        ),
        ("He paid 12 pounds.", "In 1912, he said: he paid 12 pounds.", "12 pounds", "14 pounds", ...),
        ("One ferry. Two boats.", "One ferry.\n\nTwo boats.", "Two", "Three", "One ferry.\n\nThree boats."),
        ("One two three.", "One two two three.", "two", "2", None),
        (
            "雾很大。船没有来。",
            "雾很大，雨也大。船没有来。",
            "船没",
            "渡船没",
            "雾很大，雨也大。渡船没有来。",
        ),
    ],
)
def test_an_edit_lands_where_it_was_meant_or_not_at_all(
    draft: DraftText, known: str, by_hand: str, old: str, new: str, after: Any
) -> None:
    """A passage is the one that the model knew, carried through what the writer changed: what only reads
    like it elsewhere, or inside another word, is never taken for it."""
    written(draft, known)
    draft.path.write_text(by_hand)
    if after is None:
        with pytest.raises(TextConflict):
            draft.edit([Edit(old, new)], turn=2, base=1)
        assert draft.read() == by_hand
    else:
        expected = by_hand.replace(old, new) if after is ... else after
        assert draft.edit([Edit(old, new)], turn=2, base=1).text == expected


def test_what_the_model_was_told_it_may_edit(draft: DraftText) -> None:
    """A passage of the writer's that the model was told of can be edited, one that it never saw cannot."""
    written(draft, "Fog. Rain came late.")
    draft.write("Fog. Snow came late.", author="writer", turn=2)
    with pytest.raises(Invalid, match="read it first"):
        draft.edit([Edit("Snow", "Hail")], turn=2, base=1)
    assert draft.edit([Edit("Snow", "Hail")], turn=2, base=1, told=2).text == "Fog. Hail came late."


def test_a_save_at_the_very_last_moment_is_kept(draft: DraftText, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that saves between the look at the file and its replacement wins, and both are kept."""
    written(draft, "fog")
    append = journal.Transaction.append

    def saved_meanwhile(transaction: journal.Transaction, entries: Any) -> None:
        append(transaction, entries)
        draft.path.write_text("at the last moment")

    monkeypatch.setattr(journal.Transaction, "append", saved_meanwhile)
    with pytest.raises(TextConflict, match="at the last moment"):
        draft.write("rain", author="model", turn=2, base=1)
    monkeypatch.undo()
    assert draft.read() == draft.path.read_text() == "at the last moment"
    assert [text for _, _, text in history(draft)] == ["fog", "rain", "at the last moment"]


# Edits ------------------------------------------------------------------------------------------


def test_several_edits_are_made_all_or_none(draft: DraftText) -> None:
    """Each edit works on what the one before made; when one does not fit, none is made."""
    written(draft, "one two three")
    assert draft.edit([Edit("one", "1"), Edit("1 two", "12")], turn=2).text == "12 three"
    with pytest.raises(Invalid, match="passage of edit 2 stands 0 times"):
        draft.edit([Edit("three", "3"), Edit("four", "4")], turn=2)
    with pytest.raises(Invalid, match="edits is empty"):
        draft.edit([], turn=2)
    assert draft.read() == "12 three"


def test_a_refused_edit_shows_what_is_nearest(draft: DraftText) -> None:
    """A passage that is not there to the letter is answered with the one that was probably meant."""
    written(draft, "# Fog\n\nThe ferry left at dawn, as ever.\n\nNobody waved.\n")
    with pytest.raises(Invalid, match=r"nearest to it there is:\n\nThe ferry left at dawn, as ever\.$"):
        draft.edit([Edit("The ferry leaves at dawn, as always", "x")], turn=2)
    with pytest.raises(Invalid, match=r"Nothing was changed\.$"):
        draft.edit([Edit("12345678", "x")], turn=2)


def test_the_writers_line_ends_stay(draft: DraftText) -> None:
    """A text of CRLF lines keeps them when a model that says LF rewrites or edits it."""
    draft.write("one\r\n\r\ntwo\r\n", author="writer", turn=1)
    assert draft.edit([Edit("one\n\ntwo", "1\n\n2")], turn=1).text == "1\r\n\r\n2\r\n"
    assert draft.write("a\nb\n", author="model", turn=1).text == "a\r\nb\r\n"


def test_the_writers_front_matter_stays(draft: DraftText) -> None:
    """Front matter that the writer put before the text is still there after the model rewrote it."""
    draft.write("---\ntags: [河]\n---\n# Fog\n", author="writer", turn=1)
    assert draft.write("# Rain\n", author="model", turn=2).text == "---\ntags: [河]\n---\n# Rain\n"
    again = "---\ntags: [雨]\n---\n# Sun\n"
    assert draft.write(again, author="model", turn=3).text == again


def test_a_hand_edit_that_a_dead_turn_wrote_over_is_not_known(draft: DraftText) -> None:
    """What the model wrote itself it knows, but not what the writer slipped in before it."""
    turn = Turn(number=2, uuid="u", session_id="s", prompt="p", state=TurnState.interrupted, revision=1)
    draft.write("One. Two.", author="model", turn=1)
    draft.edit([Edit("One", "1")], turn=2, base=1)
    assert known_after(turn, draft.revisions()) == 2
    draft.path.write_text("1. Two. Mine.")
    draft.edit([Edit("Two", "2")], turn=2, base=2)
    assert draft.read() == "1. 2. Mine."
    assert known_after(turn, draft.revisions()) == 2
    assert known_after(turn.model_copy(update={"revision": 4}), draft.revisions()) == 4


def test_a_summary_holds_no_text(draft: DraftText) -> None:
    """After a compaction the model knows no version; after one that failed, what it knew before."""
    draft.write("One.", author="model", turn=1)
    turn = Turn(number=2, uuid="u", session_id="s", prompt="/compact", state=TurnState.finished, revision=1)
    assert known_after(turn, draft.revisions()) == 0
    failed = turn.model_copy(update={"state": TurnState.failed})
    assert known_after(failed, draft.revisions()) == 1


def test_a_link_and_the_permissions_of_the_file_stay(draft: DraftText, tmp_path: Path) -> None:
    """Who keeps the text elsewhere, or from other people's eyes, keeps doing so."""
    elsewhere = tmp_path / "notes" / "ferry.md"
    elsewhere.parent.mkdir()
    elsewhere.write_text("Mine.")
    elsewhere.chmod(0o600)
    draft.path.parent.mkdir(parents=True)
    draft.path.symlink_to(elsewhere)
    draft.write("New.", author="model", turn=1)
    assert draft.path.is_symlink()
    assert (elsewhere.read_text(), elsewhere.stat().st_mode & 0o777) == ("New.", 0o600)
    elsewhere.unlink()
    assert draft.take_hand_edit(2).restored
    assert elsewhere.read_text() == "New."
    assert sorted(path.name for path in elsewhere.parent.iterdir()) == ["ferry.md"]


def test_an_unknown_revision_is_named(draft: DraftText) -> None:
    """Asking for a version that does not exist says how many there are."""
    written(draft, "fog")
    assert draft.revision(1).text == "fog"
    with pytest.raises(RevisionNotFound, match="has no revision 2: it has one revision"):
        draft.revision(2)


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


# Beside an editor that saves ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "half", [b"", "渡口的".encode()[:-1], "渡口".encode()], ids=["emptied", "cut", "half"]
)
@pytest.mark.parametrize("recorded", ["written", "taken"])
def test_an_editor_that_saves_is_waited_for(
    draft: DraftText, monkeypatch: pytest.MonkeyPatch, half: bytes, recorded: str
) -> None:
    """One that empties the file and then writes is not taken for having deleted the text, or half of it,
    and nothing is put in the place of a file that it still writes to."""
    written(draft, "One.")
    pause = time.sleep

    with open(draft.path, "wb", buffering=0) as editor:
        editor.write(half)

        def goes_on(seconds: float) -> None:
            editor.write("渡口的早晨。".encode()[editor.tell() :])
            pause(seconds)

        monkeypatch.setattr(time, "sleep", goes_on)
        if recorded == "written":
            draft.write("Two.", author="writer", turn=2)
        else:
            draft.take_hand_edit(2)
    texts = ["One.", "渡口的早晨。", "Two."]
    assert [revision.text for revision in draft.revisions()] == texts[: 3 if recorded == "written" else 2]


def test_a_file_that_never_rests_is_taken_as_it_is(draft: DraftText, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that writes on and on holds up a turn for a moment, not for ever."""
    written(draft, "One.")
    monkeypatch.setattr(whole, "GIVE_UP_S", 0.1)
    pause = time.sleep

    def writes_on(seconds: float) -> None:
        draft.path.write_text(draft.path.read_text() + "More.")
        pause(seconds)

    draft.path.write_text("More.")
    monkeypatch.setattr(time, "sleep", writes_on)
    assert draft.take_hand_edit(2).revision is not None
