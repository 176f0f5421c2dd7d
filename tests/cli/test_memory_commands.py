"""The commands over a collection's memory, and finish and reopen, as a writer types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import smartwriter, written
from conftest import SAMPLES
from faces import data, printed, refused, run, sentence, snapshot

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import Task
from smartwriter.workspace import Workspace

SUMMARY = {"gist": "The ferry waits.", "claims": ["It left at six."], "terms": ["slack hour"], "links": ["?"]}
STALE_NOTHING = "Everything was last written under the memory as it is now.\n"


@pytest.fixture
def rivers(workspace: Workspace) -> Path:
    """A collection whose memory is one line."""
    folder = workspace.new_collection("rivers").path
    for path in folder.glob("*.md"):
        path.unlink()
    (folder / "memory.md").write_text("- Anselm rows.\n")
    return folder


@pytest.fixture
def task(workspace: Workspace, rivers: Path, model: OfflineModel) -> Task:
    """A task of this collection, with a text that the writer brought."""
    model.script = writes
    task = workspace.new_task("Fog", "rivers")
    workspace.text(task, "main").write("It is foggy.\n", author="writer", turn=1)
    return task


@pytest.fixture
def begun(workspace: Workspace, task: Task, model: OfflineModel) -> Task:
    """The same after a turn, which had this memory."""
    written(workspace.root, task.id, "Begin.", model=model)
    return workspace.tasks.find(task.id)


def writes(request: Request) -> Reply:
    """Adds its prompt to the draft; asked for a summary, it gives one."""
    if not request.tool("write_draft"):
        return [Text(f"Here it is:\n{json.dumps(SUMMARY)}")]
    return [Text("Done.")] if request.tool_results else [ToolUse("write_draft", {"text": "It is foggy."})]


def memory(request: Request) -> list[str]:
    """The text of each memory file in a prompt."""
    found: list[str] = re.findall(r"<memory-file[^>]*>\n(.*?)\n</memory-file>", request.system, re.DOTALL)
    return found


def closed(workspace: Workspace, address: str, model: OfflineModel) -> str:
    """Why a draft is not written on."""
    asked = len(model.requests)
    done = smartwriter(workspace.root, "write", address, "On.", model=model)
    assert len(model.requests) == asked
    return sentence(done.returncode, done.stderr.decode())


# Versions ---------------------------------------------------------------------------------------


def test_stale_names_the_sentence_and_the_value(workspace: Workspace, rivers: Path, begun: Task) -> None:
    """What in the text relies on a changed line is shown with its place, and in JSON, so that a list of
    articles can be worked off."""
    workspace.text(begun, "main").write("# Fog\n\nIt was early. Anselm rows.\n", author="writer", turn=2)
    (rivers / "memory.md").write_text("- Anton rows.\n")
    (stale,) = data(workspace, "memory", "stale", "rivers")
    (use,) = stale["uses"]
    assert (use["used"], use["value"], use["paragraph"]) == ("Anselm", "Anton", 2)
    assert (use["old"], use["new"], use["sentence"]) == ("Anselm rows.", "Anton rows.", "Anselm rows.")
    assert printed(workspace, "memory", "stale", "rivers").splitlines()[1] == (
        "  paragraph 2: “Anselm rows.” has 'Anselm'; memory.md says: Anton"
    )


def test_log_diff_and_stale_follow_the_memory(workspace: Workspace, rivers: Path, begun: Task) -> None:
    """An edit is a version of its own, is shown word for word, and makes stale what was written before."""
    assert printed(workspace, "memory", "stale", "rivers") == STALE_NOTHING
    assert "has only one version, or none" in refused(workspace, "memory", "diff", "rivers")
    (rivers / "memory.md").write_text("- Anselm sleeps.\n")
    (rivers / "people.md").write_text("- Iris waits.\n")
    first, second = printed(workspace, "memory", "log", "rivers").splitlines()
    assert first.startswith("1  ") and first.endswith("  new memory.md")
    assert second.startswith("2  ") and second.endswith("  new people.md, changed memory.md")
    shown = printed(workspace, "memory", "diff", "rivers")
    assert "[-rows-]" in shown and "{+sleeps+}" in shown and "{+- Iris waits.+}" in shown
    assert shown == printed(workspace, "memory", "diff", "rivers", "1", "2")
    assert printed(workspace, "memory", "diff", "rivers", "2") == "Nothing differs.\n"
    assert "has no version 3: it has 2." in refused(workspace, "memory", "diff", "rivers", "1", "3")
    (stale,) = data(workspace, "memory", "stale", "rivers")
    assert (stale["task"], stale["draft"], stale["turn"]) == (begun.id, "main", 1)
    assert (stale["changed"], stale["added"], stale["removed"]) == (["memory.md"], ["people.md"], [])
    assert printed(workspace, "memory", "stale", "rivers") == (
        f"{begun.id}@main  Fog, turn 1: an older memory.md, without people.md\n"
    )
    (rivers / "people.md").unlink()
    (rivers / "memory.md").write_text("- Anselm rows.\n")
    assert printed(workspace, "memory", "stale", "rivers") == STALE_NOTHING
    assert [version["files"].keys() for version in data(workspace, "memory", "log", "rivers")] == [
        {"memory.md"},
        {"memory.md", "people.md"},
        {"memory.md"},
    ]


def test_a_memory_that_no_turn_had(workspace: Workspace, rivers: Path) -> None:
    """Before the first turn there is no version, and looking for one makes none."""
    before = snapshot(workspace.root)
    assert printed(workspace, "memory", "log", "rivers") == "No turn has had this memory yet.\n"
    assert printed(workspace, "memory", "stale", "rivers") == STALE_NOTHING
    assert data(workspace, "memory", "log", "rivers") == data(workspace, "memory", "stale", "rivers") == []
    assert snapshot(workspace.root) == before
    for command in ("log", "diff", "stale"):
        assert "There is no collection 'seas'" in refused(workspace, "memory", command, "seas")


# What if ----------------------------------------------------------------------------------------


def test_a_what_if_is_forked_written_and_adopted(
    workspace: Workspace, rivers: Path, begun: Task, model: OfflineModel, tmp_path: Path
) -> None:
    """The fork alone is written with the other version, until that becomes the collection's own."""
    other = tmp_path / "bolder.md"
    other.write_text("- Iris rows.\n")
    said = printed(workspace, "fork", begun.id, "--name", "bold", "--memory", f"memory.md={other}")
    assert said == f"{begun.id}@bold shares {begun.id}@main up to turn 1.\n"
    written(workspace.root, f"{begun.id}@bold", "On.", model=model)
    assert memory(model.requests[-1]) == ["- Iris rows."]
    assert (rivers / "memory.md").read_text() == "- Anselm rows.\n"
    assert printed(workspace, "memory", "stale", "rivers") == STALE_NOTHING
    adopted = printed(workspace, "memory", "adopt", f"{begun.id}@bold")
    assert adopted == f"{rivers / 'memory.md'} has the text of {begun.id}@bold's version now.\n"
    assert (rivers / "memory.md").read_text() == "- Iris rows.\n"
    assert [one["draft"] for one in data(workspace, "memory", "stale", "rivers")] == ["main"]
    assert "there is nothing to adopt" in refused(workspace, "memory", "adopt", f"{begun.id}@bold")


def test_what_can_be_no_what_if_is_refused(
    workspace: Workspace, rivers: Path, task: Task, tmp_path: Path
) -> None:
    """A file that is not there, one that the memory does not have, and no text are each a sentence."""
    (tmp_path / "empty.md").write_text("\n")
    OpenDraft(workspace, task, "main").memory()  # its version is kept already: nothing is written below
    for given, why in {
        "memory.md": "write FILE=OTHER",
        f"memory.md={tmp_path / 'none.md'}": "There is no file",
        f"memory.md={tmp_path / 'empty.md'}": "holds no text",
        f"people.md={rivers / 'memory.md'}": "There is no memory file 'people.md'; there are: memory.md.",
    }.items():
        assert why in refused(workspace, "fork", task.id, "--memory", given)


def test_adopting_overwrites_no_edit(workspace: Workspace, rivers: Path, task: Task, tmp_path: Path) -> None:
    """Where the writer changed the file since the fork, theirs stays."""
    (tmp_path / "other.md").write_text("- Iris rows.\n")
    printed(workspace, "fork", task.id, "--name", "bold", "--memory", f"memory.md={tmp_path / 'other.md'}")
    (rivers / "memory.md").write_text("- Mine.\n")
    run(workspace, "memory", "log", "rivers")  # the edit is a version already: nothing else is written below
    assert "was changed since the fork" in refused(workspace, "memory", "adopt", f"{task.id}@bold")
    assert (rivers / "memory.md").read_text() == "- Mine.\n"


# Samples ----------------------------------------------------------------------------------------


def test_init_with_the_samples(tmp_path: Path) -> None:
    """The sample collections are copied byte for byte; again, what the writer made of them stays."""
    names = sorted(path.name for path in SAMPLES.iterdir())
    first = run(tmp_path, "init", str(tmp_path / "w"), "--sample")
    copied = [line.removeprefix("Copied the collection ") for line in first.stdout.splitlines()[1:]]
    assert copied == [f"{name}." for name in names]
    made = Workspace(tmp_path / "w")
    assert snapshot(made.root / "collections") == snapshot(SAMPLES)
    for name in names:
        assert data(made, "collection", "check", name)["problems"] == []
        assert printed(made, "memory", "log", name) == "No turn has had this memory yet.\n"
    (made.root / "collections" / names[0] / "memory.md").write_text("Mine.")
    before = snapshot(made.root)
    again = run(tmp_path, "init", str(made.root), "--sample")
    assert again.stdout.count("is there already, and stays as it is.") == len(names)
    assert snapshot(made.root) == before


# Finishing --------------------------------------------------------------------------------------


def test_finish_asks_the_model_and_leaves_nothing_else_behind(
    workspace: Workspace, rivers: Path, task: Task, model: OfflineModel, tmp_path: Path
) -> None:
    """The text is the article and the model's summary its entry; the question was asked with no tools,
    no memory, and in no session that anything keeps. Then the draft is closed until it is reopened."""
    sessions, asked = snapshot(workspace.hidden / "sessions"), len(model.requests)
    done = smartwriter(workspace.root, "finish", "fog", "--date", "2026-03-14", model=model)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (
        f"Fog is finished: {rivers / 'articles' / 'Fog.md'}\nIn the index: The ferry waits.\n"
    )
    (request,) = model.requests[asked:]
    assert "It is foggy." in request.said and not request.body.get("tools")
    assert "Anselm" not in json.dumps(request.body)
    assert snapshot(workspace.hidden / "sessions") == sessions
    assert list((tmp_path / "home").iterdir()) == list((tmp_path / "tmp").iterdir()) == []
    text = workspace.text(task, "main").read()
    assert (rivers / "articles" / "Fog.md").read_text() == text
    entry = (
        "## Fog\n- date: 2026-03-14\n- file: articles/Fog.md\n"
        "- gist: The ferry waits.\n- claims: It left at six.\n- terms: slack hour\n"
    )
    assert entry in (rivers / "index.md").read_text()
    assert closed(workspace, task.id, model) == f"Fog is finished; to write on: smartwriter reopen {task.id}"
    again = smartwriter(workspace.root, "finish", "fog", model=model)
    assert (again.returncode, again.stdout) == (0, done.stdout) and len(model.requests) == asked + 1


def test_reopened_a_draft_is_written_on_and_finished_anew(
    workspace: Workspace, rivers: Path, task: Task, model: OfflineModel
) -> None:
    """The article stays until then; the next session of the series is told what the index says of it."""
    assert refused(workspace, "reopen", "fog") == "Fog is not finished."
    printed(workspace, "finish", "fog", "--no-model", "--date", "2026-03-14")
    old = (rivers / "articles" / "Fog.md").read_text()
    assert printed(workspace, "reopen", "fog") == f"Fog can be written again: {task.id}@main\n"
    model.script = lambda request: [Text("Fine.")]
    written(workspace.root, "fog", "On.", model=model)
    assert any("- gist: It is foggy. (first sentence)" in text for text in memory(model.requests[-1]))
    workspace.text(task, "main").path.write_text("It cleared up.\n")
    assert (rivers / "articles" / "Fog.md").read_text() == old
    printed(workspace, "finish", "fog", "--no-model")
    assert (rivers / "articles" / "Fog.md").read_text() == "It cleared up.\n"
    index = (rivers / "index.md").read_text()
    assert index.count("## Fog") == 1 and "- date: 2026-03-14\n" in index and "It cleared up." in index
    (kept,) = (workspace.hidden / "trash" / "articles").iterdir()
    assert kept.read_text() == old


def test_a_what_if_draft_is_finished_like_any_other(
    workspace: Workspace, rivers: Path, task: Task, model: OfflineModel, tmp_path: Path
) -> None:
    """What is finished is the current draft; its other memory stays its own."""
    (tmp_path / "other.md").write_text("- Iris rows.\n")
    printed(workspace, "fork", task.id, "--name", "bold", "--memory", f"memory.md={tmp_path / 'other.md'}")
    workspace.text(task, "bold").path.write_text("Bolder.\n")
    printed(workspace, "adopt", f"{task.id}@bold")
    printed(workspace, "finish", task.id, "--no-model")
    assert (rivers / "articles" / "Fog.md").read_text() == "Bolder.\n"
    assert (rivers / "memory.md").read_text() == "- Anselm rows.\n"
    finished = workspace.tasks.find(task.id).finished
    assert finished is not None and finished.draft == "bold"
    assert "is finished; to write on" in closed(workspace, f"{task.id}@bold", model)
