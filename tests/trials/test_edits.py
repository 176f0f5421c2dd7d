"""Putting versions back, bringing paragraphs home, and where each paragraph comes from."""

from __future__ import annotations

import pytest
from faces import converse, printed, refused

from smartwriter.errors import (
    DraftBusy,
    DraftNotFound,
    Invalid,
    ParagraphNotFound,
    RevisionNotFound,
    SessionMissing,
    TextConflict,
    TurnNotFound,
)
from smartwriter.open_draft import OpenDraft
from smartwriter.series.renaming import rename_collection
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.values import Finished, Origin, Revision, Source, Task, TurnState
from smartwriter.trials.edits import Picked, pick, put_back, take_answer
from smartwriter.trials.provenance import Mark, provenance
from smartwriter.trials.timeline import Branch, Change, timeline
from smartwriter.trials.version import version
from smartwriter.workspace import Workspace

MINE = "# The ferry\n\nFog lay on the river.\n\nNobody waved.\n"


@pytest.fixture
def task(workspace: Workspace) -> Task:
    """A task with a main draft of three paragraphs and an empty trial draft."""
    task = workspace.new_task("The ferry")
    workspace.tasks.add_draft(task.id, "trial", "s-trial", Origin(draft="main", turn=0))
    workspace.text(task, "main").write(MINE, author="model", turn=1)
    return workspace.tasks.find(task.id)


def picked(workspace: Workspace, task: Task, theirs: str, *numbers: int, after: int | None = None) -> Picked:
    """What becomes of the main draft when paragraphs of a trial text are picked into it."""
    workspace.text(task, "trial").write(theirs, author="model", turn=1)
    origin = version(workspace, task.address("trial"))
    return pick(origin, OpenDraft(workspace, task, "main"), numbers, after)


# Versions ---------------------------------------------------------------------------------------


def test_a_version_put_back_is_a_new_one(workspace: Workspace, task: Task) -> None:
    """Nothing is rewound: the old text becomes the last revision, and says where it comes from."""
    workspace.text(task, "main").path.write_text("By hand.")
    revision = put_back(version(workspace, f"{task.id}:1"))
    assert (revision.number, revision.text, revision.author) == (3, MINE, "writer")
    assert revision.source == Source(task=task.id, draft="main", revision=1)
    assert [one.text for one in workspace.text(task, "main").revisions()] == [MINE, "By hand.", MINE]


def test_an_unknown_version_is_named(workspace: Workspace, task: Task) -> None:
    """A revision that does not exist is refused with the number of those that do."""
    with pytest.raises(RevisionNotFound, match=f"{task.id}@main has no revision 7: it has one revision"):
        version(workspace, f"{task.id}:7")
    with pytest.raises(RevisionNotFound, match="it has no revision yet"):
        version(workspace, f"{task.id}@trial:1")


def test_a_title_may_look_like_a_version(workspace: Workspace, task: Task) -> None:
    """A task whose title ends in a colon and a number is found by it."""
    other = workspace.new_task("Part:1")
    assert workspace.tasks.resolve_revision("Part:1") == (other, other.drafts["main"], None)
    assert workspace.tasks.resolve_revision("part:1:2")[2] == 2
    assert workspace.tasks.resolve_revision(f"{task.id}@trial:3")[1:] == (task.drafts["trial"], 3)


@pytest.mark.parametrize(
    "command",
    [("take", "{0}"), ("take", "{0}:1"), ("restore", "{0}:1"), ("pick", "{0}@trial", "{0}", "-p", "1")],
    ids=["take an answer", "take a version", "restore", "pick"],
)
def test_no_command_writes_into_a_finished_draft(
    workspace: Workspace, task: Task, command: tuple[str, ...]
) -> None:
    """Whatever writes a text is refused where turns are, in the same sentence, until it is reopened."""
    workspace.text(task, "trial").write("A heron.\n", author="model", turn=1)
    workspace.text(task, "main").write("Another.\n", author="writer", turn=1)
    converse(workspace, task, "An answer.")
    finished = Finished(draft="main", revision=2, article="articles/The ferry.md")
    workspace.tasks.update(task.id, lambda known: known.model_copy(update={"finished": finished}))
    words = [word.format(task.id) for word in command]
    assert f"is finished; to write on: smartwriter reopen {task.id}" in refused(workspace, *words)
    assert [one.number for one in workspace.text(task, "main").revisions()] == [1, 2]
    printed(workspace, "reopen", task.id)
    printed(workspace, *words)
    assert [one.number for one in workspace.text(task, "main").revisions()] == [1, 2, 3]


def test_the_text_of_a_busy_draft_is_not_changed_by_command(workspace: Workspace, task: Task) -> None:
    """While a process writes a draft, putting back and picking are refused in one sentence."""
    with OpenDraft(workspace, task, "main").lease():
        with pytest.raises(DraftBusy):
            put_back(version(workspace, f"{task.id}:1"))
        with pytest.raises(DraftBusy):
            picked(workspace, task, "New.", 1)
    assert workspace.text(task, "main").read() == MINE


def test_a_draft_that_was_dropped_while_the_writer_chose(workspace: Workspace, task: Task) -> None:
    """Between the choice and its doing another process may drop the draft: then nothing is written."""
    trial = workspace.text(task, "trial")
    trial.write("A.", author="writer", turn=1)
    earlier = version(workspace, f"{task.id}@trial:1")
    workspace.tasks.drop(task.id, "trial")
    trial.put_away()
    with pytest.raises(DraftNotFound):
        put_back(earlier)
    assert not trial.path.exists() and len(trial.revisions()) == 1


def test_a_collection_that_was_renamed_while_the_writer_chose(workspace: Workspace) -> None:
    """The text is where the task is now; the old folder is not made again."""
    workspace.new_collection("Rivers")
    task = workspace.new_task("The ferry", "Rivers")
    workspace.text(task, "main").write(MINE, author="model", turn=1)
    workspace.text(task, "main").write("Other.", author="model", turn=1)
    earlier = version(workspace, f"{task.id}:1")
    rename_collection(workspace, "Rivers", "Streams")
    put_back(earlier)
    assert workspace.text(workspace.tasks.find(task.id), "main").path.read_text() == MINE
    assert [collection.name for collection in workspace.collections()] == ["Streams"]


def test_an_answer_that_is_not_there_is_not_taken(workspace: Workspace, task: Task) -> None:
    """A turn that was never taken, or has no answer, or one that is gone, makes no text."""
    with pytest.raises(TurnNotFound):
        take_answer(OpenDraft(workspace, task, "main"))
    converse(workspace, task, "雾。")
    assert take_answer(OpenDraft(workspace, task, "main")).text == "雾。\n"
    OpenDraft(workspace, task, "main").transcript.path.unlink()
    with pytest.raises(SessionMissing):
        take_answer(OpenDraft(workspace, task, "main"))
    (turn,) = workspace.tasks.turns(task, "main")
    workspace.tasks.record(task, "main", [turn.model_copy(update={"state": TurnState.interrupted})])
    with pytest.raises(Invalid, match="has no answer to take"):
        take_answer(OpenDraft(workspace, task, "main"))


# Picking ----------------------------------------------------------------------------------------


def test_a_picked_paragraph_replaces_its_other_version(workspace: Workspace, task: Task) -> None:
    """A paragraph that both texts have in two versions takes the other's place; nothing else changes."""
    done = picked(workspace, task, "# The ferry\n\nFog lay low on the wide river.\n\nX.\n", 2)
    assert workspace.text(task, "main").read() == MINE.replace(
        "Fog lay on the river.", "Fog lay low on the wide river."
    )
    assert done.placed == ("Paragraph 2 took the place of paragraph 2.",)
    assert done.revision is not None
    assert (done.revision.author, done.revision.paragraphs) == ("writer", (2,))
    assert done.revision.source == Source(task=task.id, draft="trial", revision=1)


@pytest.mark.parametrize(
    ("theirs", "number", "after", "place"),
    [
        ("# The ferry\n\nBrand new sentence here.\n\nFog lay on the river.\n", 2, None, 1),
        ("Brand new sentence here.\n\n# The ferry\n", 1, None, 0),
        ("Nobody waved.\n\nBrand new sentence here.\n", 2, None, 3),
        ("Brand new sentence here.\n", 1, None, 3),
        ("Brand new sentence here.\n", 1, 0, 0),
        ("Brand new sentence here.\n", 1, 2, 2),
    ],
    ids=["behind its predecessor", "first", "last", "of a stranger", "asked first", "asked behind"],
)
def test_a_new_paragraph_goes_where_it_belongs(
    workspace: Workspace, task: Task, theirs: str, number: int, after: int | None, place: int
) -> None:
    """A paragraph without a version here goes behind the one it follows there, or where it is told to."""
    done = picked(workspace, task, theirs, number, after=after)
    paragraphs = MINE.rstrip("\n").split("\n\n")
    paragraphs.insert(place, "Brand new sentence here.")
    assert workspace.text(task, "main").read() == "\n\n".join(paragraphs) + "\n"
    assert len(done.placed) == 1


def test_several_paragraphs_are_picked_in_their_order(workspace: Workspace, task: Task) -> None:
    """However they are named, paragraphs come in the order of their own text, once each."""
    picked(workspace, task, "# The ferry\n\nAlpha one two.\n\nBeta three four.\n", 3, 2, 3)
    assert workspace.text(task, "main").read() == MINE.replace(
        "# The ferry\n", "# The ferry\n\nAlpha one two.\n\nBeta three four.\n"
    )


def test_what_is_there_already_makes_no_revision(workspace: Workspace, task: Task) -> None:
    """Picking a paragraph that stands there changes nothing and says so."""
    done = picked(workspace, task, MINE, 3)
    assert done == Picked(None, ("Paragraph 3 is there already, as paragraph 3.",))
    assert len(workspace.text(task, "main").revisions()) == 1


def test_picking_keeps_line_ends_and_front_matter(workspace: Workspace, task: Task) -> None:
    """A text of CRLF lines with front matter stays one."""
    before = "---\r\na: 1\r\n---\r\n# The ferry\r\n"
    workspace.text(task, "main").path.write_bytes(before.encode())
    picked(workspace, task, "# The ferry\n\nTwo\nlines.\n", 2)
    after = workspace.text(task, "main").path.read_bytes().decode()
    assert after == "---\r\na: 1\r\n---\r\n# The ferry\r\n\r\nTwo\r\nlines.\r\n"


def test_picking_into_an_empty_draft(workspace: Workspace, task: Task) -> None:
    """The first picked paragraph is the text."""
    origin = version(workspace, task.id)
    pick(origin, OpenDraft(workspace, task, "trial"), [3])
    assert workspace.text(task, "trial").read() == "Nobody waved.\n"


@pytest.mark.parametrize(("numbers", "after"), [([0], None), ([4], None), ([1], 9), ([], None)])
def test_a_paragraph_out_of_range_is_refused(
    workspace: Workspace, task: Task, numbers: list[int], after: int | None
) -> None:
    """A number that no paragraph has, or none at all, changes nothing."""
    with pytest.raises((ParagraphNotFound, Invalid)):
        picked(workspace, task, "One.\n\nTwo.\n\nThree.\n", *numbers, after=after)
    assert workspace.text(task, "main").read() == MINE


REWRITTEN = [
    (
        "what was rewritten",
        "A one.\n\nNew words here.\n\nC three.",
        "A one.\n\nOld and other.\n\nC three.",
        (2,),
        None,
    ),
    (
        "a renamed heading",
        "# T\n\n## By night\n\nFog lay low.",
        "# T\n\n## At dawn\n\nFog lay low.",
        (2,),
        None,
    ),
    (
        "what was merged",
        "A one.\n\nFog lay low on it. Nobody waved at us.\n\nC.",
        "A one.\n\nFog lay low on it.\n\nNobody waved at us.\n\nC.",
        (2,),
        None,
    ),
    (
        "what was split",
        "A one.\n\nFog lay low on it.\n\nNobody waved at us.\n\nC.",
        "A one.\n\nFog lay low on it. Nobody waved at us.\n\nC.",
        (2,),
        None,
    ),
    (
        "before the one that follows",
        "A one.\n\nUnknown here too.\n\nBrand new.\n\nB two.",
        "A one.\n\nC was cut.\n\nD as well.\n\nE too.\n\nB two.",
        (3,),
        "A one.\n\nC was cut.\n\nD as well.\n\nE too.\n\nBrand new.\n\nB two.",
    ),
    (
        "a footnote",
        "A one.\n\nNew words.[^n]\n\n[^n]: So it was.",
        "A one.",
        (2,),
        "A one.\n\nNew words.[^n]\n\n[^n]: So it was.",
    ),
    (
        "a footnote of the same name",
        "A one.\n\nNew words.[^1]\n\n[^1]: So it was.",
        "A one.[^1]\n\n[^1]: Another.",
        (2,),
        "A one.[^1]\n\nNew words.[^2]\n\n[^1]: Another.\n\n[^2]: So it was.",
    ),
]


@pytest.mark.parametrize(
    ("theirs", "ours", "numbers", "expected"),
    [one[1:] for one in REWRITTEN],
    ids=[one[0] for one in REWRITTEN],
)
def test_what_is_picked_never_stands_there_twice(
    workspace: Workspace, task: Task, theirs: str, ours: str, numbers: tuple[int, ...], expected: str | None
) -> None:
    """A paragraph takes the place of what it was written instead of, goes beside the neighbour that is
    known, and brings its footnotes along."""
    workspace.text(task, "main").write(ours, author="writer", turn=2)
    picked(workspace, task, theirs, *numbers)
    assert workspace.text(task, "main").read().strip() == (expected or theirs)


# Provenance -------------------------------------------------------------------------------------


def test_each_paragraph_keeps_its_origin(workspace: Workspace, task: Task) -> None:
    """Moved and slightly edited paragraphs keep who wrote them first; a new one is its writer's."""
    text = workspace.text(task, "main")
    text.write(
        "# The ferry\n\nNobody waved.\n\nFog lay low on the river.\n\nA heron stood.\n",
        author="writer",
        turn=2,
    )
    model = Mark(task.id, "main", 1, "model", 1)
    writer = Mark(task.id, "main", 2, "writer", 2)
    found = provenance(lambda *_: text.revisions(), task.id, "main", 2)
    assert [(one.origin, one.changed) for one in found] == [
        (model, model),
        (model, model),
        (model, writer),
        (writer, writer),
    ]
    assert [one.origin for one in provenance(lambda *_: text.revisions(), task.id, "main", 1)] == [model] * 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("One came home. Two stayed.", "One came home.\n\nTwo stayed."),
        ("One came home.\n\nTwo stayed.", "One came home. Two stayed."),
        ("雾散了。船来了。", "雾散了。\n\n船来了。"),
    ],
)
def test_pressing_enter_makes_nobody_the_author(
    workspace: Workspace, task: Task, before: str, after: str
) -> None:
    """Where only breaks between paragraphs came or went, both halves, or the whole, keep their author."""
    text = workspace.text(task, "main")
    text.write(before, author="model", turn=2)
    revision = text.write(after, author="writer", turn=3)
    found = provenance(lambda *_: text.revisions(), task.id, "main", 3)
    assert {(one.origin.author, one.changed.author) for one in found} == {("model", "model")}
    assert (revision.gained, revision.lost) == (0, 0)


def test_provenance_goes_through_forks_picks_and_answers(workspace: Workspace, task: Task) -> None:
    """A paragraph that came from another draft, or was put back, is still of the turn that wrote it."""
    source = Source(task=task.id, draft="main", revision=1)
    workspace.text(task, "trial").write(MINE, author="fork", turn=1, source=source)
    workspace.text(task, "trial").write(MINE + "\nThe heron stood still.\n", author="model", turn=2)
    workspace.text(task, "main").write("Away.\n", author="writer", turn=2)
    pick(version(workspace, task.address("trial")), OpenDraft(workspace, task, "main"), [2, 4])
    answer = Source(task=task.id, draft="main", turn=7)
    text = workspace.text(task, "main").read() + "\nAn answer of the model.\n"
    workspace.text(task, "main").write(text, author="model", turn=9, source=answer)

    def revisions(_: str, draft: str) -> list[Revision]:
        return workspace.text(task, draft).revisions()

    found = {one.text: one.origin for one in provenance(revisions, task.id, "main", 4)}
    assert found["Fog lay on the river."] == Mark(task.id, "main", 1, "model", 1)
    assert found["The heron stood still."] == Mark(task.id, "trial", 2, "model", 2)
    assert found["An answer of the model."] == Mark(task.id, "main", 4, "model", 7)


# The timeline -----------------------------------------------------------------------------------


def test_provenance_of_a_version_kept_beside_the_text(workspace: Workspace, task: Task) -> None:
    """What the model wrote too late is the model's, also when the writer puts it back later."""
    text = workspace.text(task, "main")
    with pytest.raises(TextConflict):
        text.write("Quite another text, of snow.\n", author="model", turn=4, base=0)
    beside = text.revisions()[-1]
    assert beside.aside
    put_back(version(workspace, f"{task.id}:{beside.number}"))
    for number in (beside.number, beside.number + 1):
        (one,) = provenance(lambda _, draft: workspace.text(task, draft).revisions(), task.id, "main", number)
        assert (one.text, one.origin.author) == ("Quite another text, of snow.", "model")
        assert one.origin.revision == beside.number


def test_provenance_of_drafts_that_took_from_each_other(workspace: Workspace, task: Task) -> None:
    """A paragraph that went to another draft and came back is still the one that it was."""
    main, trial = workspace.text(task, "main"), workspace.text(task, "trial")
    trial.write("Beta in the trial alone.\n", author="model", turn=1)
    main.write("Alpha in main alone.\n", author="model", turn=1)

    def take_over(theirs: str, ours: DraftText, of: str, number: int) -> None:
        source = Source(task=task.id, draft=of, revision=number)
        ours.write(ours.read() + f"\n{theirs}\n", author="writer", turn=9, source=source)

    take_over("Beta in the trial alone.", main, "trial", trial.revisions()[-1].number)
    main.write(main.read() + "\nGamma came late.\n", author="model", turn=5)
    written = main.revisions()[-1].number
    take_over("Gamma came late.", trial, "main", written)
    main.write("Alpha in main alone.\n", author="model", turn=6)
    take_over("Gamma came late.", main, "trial", trial.revisions()[-1].number)
    found = provenance(lambda _, draft: workspace.text(task, draft).revisions(), task.id, "main", 99)
    assert [(one.origin.draft, one.origin.revision) for one in found][-1] == ("main", written)


def test_the_timeline_draws_forks_where_they_start(workspace: Workspace) -> None:
    """Turns and revisions are in their order, and each fork comes behind the last thing that it shares."""
    task = workspace.new_task("Fog")
    converse(workspace, task, "one", "two")
    text = workspace.text(task, "main")
    text.write("one", author="model", turn=1)
    text.write("one two", author="model", turn=2)
    for name, turn in (("early", 1), ("late", 2), ("empty", 0), ("early-too", 1)):
        workspace.tasks.add_draft(task.id, name, f"s-{name}", Origin(draft="main", turn=turn))
    task = workspace.tasks.find(task.id)
    (main,) = timeline(workspace, task)
    drawn = [
        item.draft.name if isinstance(item, Branch) else type(item).__name__.lower() for item in main.items
    ]
    assert drawn[0] == "empty" and drawn[-1] == "late"
    assert drawn.index("early") + 1 == drawn.index("early-too")
    changes = [item for item in main.items if isinstance(item, Change)]
    assert [(change.gained, change.lost) for change in changes] == [(1, 0), (1, 0)]
