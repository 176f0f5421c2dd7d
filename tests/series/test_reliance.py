from __future__ import annotations

from collections.abc import Mapping

import pytest

from smartwriter.memory.collection import Collection
from smartwriter.memory.versions import MemoryVersions
from smartwriter.open_draft import OpenDraft
from smartwriter.series.changes import MemoryChange, memory_changes
from smartwriter.series.reliance import reliance, relied_on
from smartwriter.tasks.values import Task
from smartwriter.workspace import Workspace

SLACK = "- Slack hour: forty minutes.\n"


@pytest.fixture
def rivers(workspace: Workspace) -> Collection:
    """A collection whose memory is two files of a line each."""
    made = workspace.new_collection("rivers")
    for path in made.path.glob("*.md"):
        path.unlink()
    remember(made, "memory.md", SLACK)
    remember(made, "people.md", "- Anselm rows.\n")
    return made


def remember(collection: Collection, name: str, text: str) -> None:
    (collection.path / name).write_text(text)


def kept(workspace: Workspace, collection: Collection) -> Mapping[str, str]:
    """The memory as a turn had it."""
    memory = collection.memory()
    MemoryVersions(workspace.storage).keep(memory)
    return memory.hashes


def changes(workspace: Workspace, before: Mapping[str, str], collection: Collection) -> list[MemoryChange]:
    found = memory_changes(MemoryVersions(workspace.storage), before, collection.memory())
    return [change for change in found if change.removed or change.added]


def test_lines_that_are_gone_or_new(workspace: Workspace, rivers: Collection) -> None:
    """Changed, new and deleted files are all compared line by line, without their bullets."""
    before = kept(workspace, rivers)
    remember(rivers, "memory.md", "* Slack hour: fifty minutes.\n")
    (rivers.path / "people.md").unlink()
    remember(rivers, "terms.md", "White hour: dawn.\n")
    assert changes(workspace, before, rivers) == [
        MemoryChange("memory.md", ("Slack hour: forty minutes.",), ("Slack hour: fifty minutes.",)),
        MemoryChange("terms.md", (), ("White hour: dawn.",)),
        MemoryChange("people.md", ("Anselm rows.",), ()),
    ]


def test_a_line_that_only_moved_did_not_change(workspace: Workspace, rivers: Collection) -> None:
    """Within its file, into another, into a new one, or with its file's name: it still stands there."""
    before = kept(workspace, rivers)
    remember(rivers, "memory.md", "- Nobody waved.\n")
    remember(rivers, "people.md", f"- Anselm rows.\n{SLACK}")
    assert changes(workspace, before, rivers) == [MemoryChange("memory.md", (), ("Nobody waved.",))]
    (rivers.path / "people.md").rename(rivers.path / "terms.md")
    assert changes(workspace, before, rivers) == [MemoryChange("memory.md", (), ("Nobody waved.",))]


def test_a_file_that_gets_another_name_in_the_prompt_did_not_change(
    workspace: Workspace, rivers: Collection
) -> None:
    """A file of the same name further in takes over the name; the lines of the outer one still stand."""
    inner = workspace.new_collection("rivers/delta")
    before = kept(workspace, inner)
    assert "people.md" in before
    remember(inner, "people.md", "---\nextends: true\n---\n- Iris waits.\n")
    assert changes(workspace, before, inner) == [MemoryChange("people.md", (), ("Iris waits.",))]


def test_what_is_no_statement_is_no_change(workspace: Workspace, rivers: Collection) -> None:
    """Neither front matter, nor headings, nor an index's date, file and links can be relied on."""
    before = kept(workspace, rivers)
    remember(rivers, "people.md", "---\ntitle: The people\norder: 5\n---\n# People\n\n- Anselm rows.\n")
    remember(
        rivers,
        "index.md",
        "## Fog\n- date: 2026-03-14\n- file: articles/Fog.md\n- gist: Wet.\n- links: Tide\n",
    )
    assert changes(workspace, before, rivers) == [MemoryChange("index.md", (), ("gist: Wet.",))]


def test_a_version_that_is_lost_fails_no_turn(workspace: Workspace, rivers: Collection, task: Task) -> None:
    """Where the version that a turn had is damaged or gone, nothing is said of that file."""
    before = kept(workspace, rivers)
    remember(rivers, "memory.md", "- Slack hour: fifty minutes.\n")
    version = workspace.hidden / "memory" / f"{before['memory.md']}.md"
    version.write_text("- Slack hour: an age....\n")
    draft = task.drafts["main"]
    assert reliance(OpenDraft(workspace, task, draft.name), before, rivers.memory()) == []
    version.unlink()
    assert reliance(OpenDraft(workspace, task, draft.name), before, rivers.memory()) == []


@pytest.fixture
def task(workspace: Workspace, rivers: Collection) -> Task:
    task = workspace.new_task("Fog", "rivers")
    workspace.text(task, "main").write("The slack hour came early.\n", author="writer", turn=1)
    return task


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("Slack hour: forty minutes.", "slack hour"),
        ("terms: white hour; slack hour", "slack hour"),
        ("claims: It rained.; The slack hour came early.", "The slack hour came early."),
        ("claims: Slack hour is a term.; It rained.", "slack hour"),
        ("gist: A date with a gist.", ""),
        ("gist: Slack hour is a term.", ""),
        ("terms: tide", ""),
        ("Nobody is told the date.", ""),
        ("What is early is counted.", ""),
    ],
)
def test_what_a_text_relies_on(line: str, used: str) -> None:
    """A term that a line defines, or a claim that it states; the names of an index's fields are neither."""
    text = "The slack hour came early. What nobody saw: a gist, terms and claims have a date."
    assert relied_on(text, line) == used
