"""A workspace from somebody else, and other users of the machine: nothing run, nothing outside."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands import command, environment, smartwriter, written

from smartwriter.agent.environment import blanked
from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.doctor.examine import examine
from smartwriter.errors import Invalid, LeadsOutside
from smartwriter.files.durable import make_folder
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.journal import Journal, rewrite
from smartwriter.storage.reading import read
from smartwriter.system.config import Config, load, own, own_path
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.workspace import Workspace


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def own_config(text: str) -> Path:
    path = own_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def kinds(workspace: Workspace) -> list[str]:
    return [finding.kind for finding in examine(workspace)]


# A workspace from somebody else ---------------------------------------------------------------


def test_a_workspace_runs_no_command(
    workspace: Workspace, task: Task, model: OfflineModel, tmp_path: Path
) -> None:
    """A command to run comes from the writer's own settings; one that a workspace brings is named, by the
    doctor too, and not run."""
    ran = tmp_path / "ran"
    program = tmp_path / "notify.py"
    program.write_text(f"import sys, pathlib; pathlib.Path({str(ran)!r}).write_text(sys.argv[1])")
    setting = f"notify = {json.dumps(shlex.join([sys.executable, str(program), '{}']))}\n"
    workspace.config_path.write_text(f"parallel = 2\n{setting}")
    done = smartwriter(workspace.root, "run", f"{task.id}=Go.", model=model)
    assert (done.returncode, ran.exists()) == (0, False)
    assert b"sets notify, which is not used" in done.stderr
    assert workspace.config().parallel == 2 and not workspace.config().notify
    assert "config" in kinds(workspace)
    own_config(setting)
    smartwriter(workspace.root, "run", f"{task.id}=On.", model=model)
    for _ in range(500):
        if ran.exists() and ran.read_text():
            break
        threading.Event().wait(0.01)
    assert ran.read_text() == "Herons: finished"


def test_settings_of_two_kinds(workspace: Workspace) -> None:
    """The workspace's settings go before the writer's own; what is wrong in either is said, with its file,
    and by the doctor; the writer's own are not taken from a file that anybody could have written."""
    path = own_config("parallel = 3\nidle_s = 5\n")
    workspace.config_path.write_text("idle_s = 7\n")
    assert workspace.config() == Config(parallel=3, idle_s=7)
    workspace.config_path.write_text("parallel = 'many'\n")
    with pytest.raises(Invalid, match=str(workspace.config_path)):
        workspace.config()
    assert "config" in kinds(workspace)
    workspace.config_path.unlink()
    path.write_text("quiet = true\n")
    with pytest.raises(Invalid, match=str(path)):
        workspace.config()
    path.write_text("parallel = 3\n")
    path.chmod(0o606)
    with pytest.raises(Invalid, match="other users can change it"):
        own()
    workspace.config_path.symlink_to("/dev/zero")
    path.chmod(0o600)
    with pytest.raises(Invalid, match="is not a regular file"):
        load(workspace.config_path)


def _hostile(field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        if field in line["drafts"]["main"]:
            line["drafts"]["main"][field] = value
        else:
            line[field] = value

    return change


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "../../outside"),
        ("id", "/tmp/outside"),
        ("id", "-x"),
        ("folder", "../../../outside"),
        ("folder", ".git"),
        ("folder", "a\x1b[2Jb"),
        ("name", "../outside"),
        ("session_id", "../outside"),
        ("session_id", "--dangerously-skip-permissions"),
        ("earlier_sessions", ["../outside"]),
        ("current", "../outside"),
        ("drafts", {"../outside": {"name": "main", "session_id": "s"}}),
    ],
)
def test_values_that_lead_outside(workspace: Workspace, task: Task, field: str, value: Any) -> None:
    """A value that a file names a file by means one in its folder; else the task is passed over, the doctor
    says so, and nothing outside is read or made, whatever is asked for."""
    line = json.loads((workspace.hidden / "tasks.jsonl").read_text())
    _hostile(field, value)(line)
    with open(workspace.hidden / "tasks.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    before = sorted(workspace.root.parent.rglob("*"))
    wanted = value if field == "id" else task.id
    assert wanted not in [one.id for one in workspace.tasks.all()]
    assert workspace.tasks.refused().keys() == {wanted}
    assert "task" in kinds(workspace)
    for finding in examine(workspace):
        if finding.repair is not None:
            finding.repair()
    after = [path for path in workspace.root.parent.rglob("*") if workspace.root not in path.parents]
    assert sorted(after) == [path for path in before if workspace.root not in path.parents]


def test_links_in_the_records(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """No link within ``.smartwriter`` is followed, to a file or through a folder, for reading or writing,
    unless the writer's own settings allow where it leads; the doctor names each."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "main.jsonl").write_text('{"a": 1}\n')
    (outside / "main.lock").write_text("precious")
    before = {path: path.read_bytes() for path in outside.iterdir()}
    (workspace.hidden / "turns").mkdir()
    (workspace.hidden / "turns" / task.id).symlink_to(outside)
    (workspace.hidden / "locks" / task.id).mkdir(parents=True)
    (workspace.hidden / "locks" / task.id / "main.lock").symlink_to(outside / "main.lock")
    (workspace.hidden / "revisions").symlink_to(outside)
    journal = Journal(workspace.hidden / "turns" / task.id / "main.jsonl")
    for refused in (
        lambda: journal.append([{"b": 2}]),
        lambda: read(journal.path),
        lambda: workspace.tasks.turns(task, "main"),
        lambda: OpenDraft(workspace, task, "main").lease().acquire(),
        lambda: workspace.text(task, "main").write("New.", author="writer", turn=1),
    ):
        with pytest.raises(LeadsOutside, match=r"leads out of the workspace, to .*allow = \["):
            refused()
    assert {path: path.read_bytes() for path in outside.iterdir()} == before
    assert kinds(workspace).count("link") == 3
    own_config(f'allow = ["{outside}"]\n')
    assert read(journal.path).entries == [{"a": 1}]
    assert "link" not in kinds(workspace)


def test_a_record_that_is_no_file(workspace: Workspace) -> None:
    """A pipe in the place of any record is waited for by no command that reads, and by no doctor: each ends,
    in a sentence where it needs that record."""
    (workspace.new_collection("series").path / "memory.md").write_text("- A fact.\n")
    task = workspace.new_task("Herons", "series")
    text = workspace.text(task, "main")
    text.write("They stand.", author="writer", turn=1)
    OpenDraft(workspace, task, "main").memory()
    turn = Turn(number=1, uuid="u", session_id="s", prompt="P", state=TurnState.finished)
    workspace.tasks.record(task, "main", [turn])
    journals = [
        OpenDraft(workspace, task, "main").live_path,
        OpenDraft(workspace, task, "main").transcript.path,
    ]
    for path in (*journals, workspace.hidden / "cache" / "summaries" / "series.jsonl"):
        Journal(path).append([{"a": 1}])
    workspace.identify()
    records = [path for path in workspace.hidden.rglob("*") if path.is_file()]
    assert len(records) >= 8
    program = _READS.format(root=str(workspace.root), task=task.id, paths=[str(path) for path in records])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=workspace.root)
    assert (done.stderr, done.returncode) == ("", 0)


_READS = """
import contextlib, faulthandler, io, os, sys
from pathlib import Path
from smartwriter.open_draft import OpenDraft
faulthandler.dump_traceback_later(50, exit=True)
import anyio
from smartwriter.doctor.examine import examine
from smartwriter.errors import SmartWriterError
from smartwriter.storage.journal import Journal
from smartwriter.turns.live import LiveReader
from smartwriter.workspace import Workspace

root, id = Path({root!r}), {task!r}
def task():
    return Workspace(root).tasks.find(id)
for path in map(Path, {paths!r}):
    path.rename("kept")
    os.mkfifo(path)
    workspace = Workspace(root)
    for read in (
        lambda: workspace.tasks.turns(task(), "main"),
        lambda: workspace.text(task(), "main").revisions(),
        lambda: OpenDraft(workspace, task(), "main").conversation([]),
        lambda: OpenDraft(workspace, task(), "main").memory(),
        lambda: LiveReader(OpenDraft(workspace, task(), "main").live_path, 0).read(),
        lambda: anyio.run(workspace.store.list_session_summaries, "series"),
        lambda: list(examine(workspace)),
        lambda: Journal(path).append([{{"b": 2}}]),
    ):
        with contextlib.suppress(SmartWriterError):
            read()
    Path("kept").replace(path)
"""


def test_a_repair_changes_nothing_outside(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """A repair of the doctor's never reaches through a link: what lies there is not the workspace's."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes.md").write_text("Precious.")
    (workspace.hidden / "locks").symlink_to(outside)
    text = workspace.text(task, "main")
    text.write("Mine.", author="writer", turn=1)
    text.put_away()
    text.path.parent.rmdir()
    text.path.parent.symlink_to(outside)
    assert "text" in kinds(workspace)
    for finding in examine(workspace):
        if finding.repair is not None:
            finding.repair()
    assert (outside / "notes.md").read_text() == "Precious."
    assert len(list(outside.iterdir())) == 1


def test_a_draft_that_is_no_file_of_the_workspace(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """A draft, an article or a collection that leads out of the workspace or into its records, and one that
    is a pipe, is refused in a sentence, at once, as a memory file is."""
    text = workspace.text(task, "main")
    text.write("Mine.", author="writer", turn=1)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("Precious.")
    for place, why in (
        (outside / "secret", "leads out of the workspace"),
        (workspace.hidden / "tasks.jsonl", "where the workspace keeps its records"),
    ):
        text.path.unlink()
        text.path.symlink_to(place)
        kept = place.read_bytes()
        for refused in (text.read, lambda: text.write("New.", author="writer", turn=1)):
            with pytest.raises(Invalid, match=why):
                refused()
        assert place.read_bytes() == kept
    text.path.unlink()
    os.mkfifo(text.path)
    with pytest.raises(Invalid, match="is not a regular file"):
        text.read()
    text.path.unlink()
    (workspace.root / "collections" / "linked").symlink_to(outside)
    with pytest.raises(Invalid, match="leads out of the workspace"):
        workspace.new_collection("linked/inner")
    linked = workspace.new_task("Elsewhere", "linked")
    with pytest.raises(Invalid, match="leads out of the workspace"):
        workspace.text(linked, "main").write("New.", author="writer", turn=1)
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]


@pytest.mark.parametrize(
    "place", [".smartwriter", "collections", "collections/series", "collections/series/drafts/Herons"]
)
def test_a_link_to_another_workspace(workspace: Workspace, tmp_path: Path, place: str) -> None:
    """What is a workspace itself is outside, too: a link to another one of the writer's is not followed, in
    the place of any folder; a workspace that really lies in another is its own."""
    other = Workspace.create(tmp_path / "other")
    before = sorted(other.root.rglob("*"))
    workspace.new_collection("series")
    task = workspace.new_task("Herons", "series")
    link = workspace.root / place
    if link.exists():
        link.rename(tmp_path / "kept")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(other.root)
    with pytest.raises(LeadsOutside, match="leads out of the workspace"):
        Workspace(workspace.root).text(task, "main").write("New.", author="writer", turn=1)
    assert sorted(other.root.rglob("*")) == before
    inner = Workspace.create(other.root / "collections" / "inner")
    inner.text(inner.new_task("Fog"), "main").write("New.", author="writer", turn=1)


def test_the_workspace_of_another_user(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace that another user made, perhaps in a folder above, is only used if the writer says so."""
    inner = workspace.root / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    own_config("").unlink()
    with pytest.raises(Invalid, match="is the workspace of another user"):
        Workspace.around(inner)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(workspace.root.parent / "config"))
    own_config(f'allow = ["{workspace.root}"]\n')
    assert Workspace.around(inner).root == workspace.root


def test_a_text_that_no_memory_holds(workspace: Workspace, task: Task) -> None:
    """A file of a terabyte, which takes no room on a disk, in the place of a draft or of the settings is
    refused in a sentence before it is read."""
    text = workspace.text(task, "main")
    text.write("Mine.", author="writer", turn=1)
    for path in (text.path, workspace.config_path):
        os.truncate(path, 1 << 40)
    for refused in (text.read, lambda: text.write("New.", author="writer", turn=1), workspace.config):
        with pytest.raises(Invalid, match="is too large"):
            refused()
    os.truncate(workspace.config_path, 0)
    done = smartwriter(workspace.root, "text", task.id)
    assert (done.returncode, b"is too large" in done.stderr) == (1, True)
    assert kinds(workspace) == ["text"]


@pytest.mark.parametrize("kind", ["not text", "pipe", "folder"])
def test_a_draft_that_cannot_be_read_is_found(workspace: Workspace, task: Task, kind: str) -> None:
    """Whatever stands in a draft's place and is no text of it, the doctor tells, and no repair touches it."""
    path = workspace.text(task, "main").path
    workspace.text(task, "main").write("Mine.", author="writer", turn=1)
    path.unlink()
    if kind == "not text":
        path.write_bytes(b"\xff\xfe\x00")
    else:
        (os.mkfifo if kind == "pipe" else os.mkdir)(path)
    before = path.lstat()
    assert kinds(workspace) == ["text"]
    assert smartwriter(workspace.root, "doctor", "--repair").returncode == 1
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)


# Private stays private ------------------------------------------------------------------------


def _open_ones(hidden: Path) -> list[Path]:
    return [
        path
        for path in (hidden, *hidden.rglob("*"))
        if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]


@contextlib.contextmanager
def being_written(
    workspace: Workspace, task: Task, model: OfflineModel, gate: threading.Event
) -> Iterator[int]:
    """The process that writes a draft, in the middle of an answer that goes on when the gate is open."""
    with subprocess.Popen(
        command(workspace.root, "write", task.id, "Wait.", "--offline"),
        env=environment(model),
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        heard = b""
        while b"A while" not in heard and (piece := process.stdout.read(1)):
            heard += piece
        try:
            yield process.pid
        finally:
            gate.set()


def _while_written(request: Request) -> Reply:
    if request.tool_results:
        return [Text("It is there.")]
    return [ToolUse("write_draft", {"text": "# Herons\n\nThey stand.\n"})]


def test_what_is_kept_is_nobody_elses(tmp_path: Path) -> None:
    """Under any umask nothing in ``.smartwriter`` is open to other users: not what is written while a turn
    runs, nor locks, versions, trash, what a repair writes; a private draft's article and forks are, too."""
    gate = threading.Event()

    def reply(request: Request) -> Reply:
        return [Text("A while"), Wait(gate)] if request.prompt == "Wait." else _while_written(request)

    before = os.umask(0)
    try:
        workspace = Workspace.create(tmp_path / "open")
        collection = workspace.new_collection("series")
        (collection.path / "memory.md").write_text("- A secret.\n")
        (collection.path / "memory.md").chmod(0o600)
        task = workspace.new_task("Herons", "series")
        with OfflineModel(reply) as model:
            written(workspace.root, task.id, "Begin.", model=model)
            with being_written(workspace, task, model, gate):
                assert list((workspace.hidden / "live").rglob("*.prompt.md"))
                assert _open_ones(workspace.hidden) == []
            draft = workspace.text(task, "main").path
            draft.chmod(0o600)
            smartwriter(workspace.root, "fork", task.id, "--name", "trial", model=model)
            smartwriter(workspace.root, "finish", task.id, "--no-model")
        transcript = OpenDraft(workspace, task, "main").transcript.path
        with open(transcript, "ab") as file:
            file.write(b"\x00\x00\n")
        rewrite(transcript, list)
        smartwriter(workspace.root, "drop", f"{task.id}@trial")
        assert _open_ones(workspace.hidden) == []
        articles = list((collection.path / "articles").glob("*.md"))
        assert [stat.S_IMODE(path.stat().st_mode) for path in articles] == [0o600]
        forks = list(draft.parent.glob("*.md"))
        assert {stat.S_IMODE(path.stat().st_mode) for path in forks} == {0o600}
    finally:
        os.umask(before)


def test_an_open_workspace_is_closed_by_the_doctor(workspace: Workspace, task: Task) -> None:
    """What an earlier version left open to other users is found, and closed by a repair."""
    for path in (workspace.hidden, *workspace.hidden.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert kinds(workspace) == ["permissions"]
    assert smartwriter(workspace.root, "doctor", "--repair").returncode == 0
    assert _open_ones(workspace.hidden) == []
    assert kinds(workspace) == []


def test_the_cli_gets_what_it_needs(
    workspace: Workspace, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CLI's process has what it runs and logs in with, and no value of anything else that is in ours."""
    gate = threading.Event()
    monkeypatch.setenv("BANK_PASSWORD", "hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter3")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with (
        OfflineModel(lambda request: [Text("A while"), Wait(gate)]) as model,
        being_written(workspace, task, model, gate) as process,
    ):
        (cli,) = psutil.Process(process).children()
        has = cli.environ()
    assert not any("hunter" in value for value in has.values())
    assert has["LC_ALL"] == "C.UTF-8" and has["ANTHROPIC_BASE_URL"] == model.url and has["PATH"]


def test_the_environment_of_a_cloud() -> None:
    """A cloud's keys are passed on where the API is reached through it, and what the writer names."""
    ours = {"PATH": "/bin", "https_proxy": "p", "AWS_PROFILE": "me", "AZURE_X": "x", "MY": "m", "SECRET": "s"}
    assert blanked(ours) == dict.fromkeys(("AWS_PROFILE", "AZURE_X", "MY", "SECRET"), "")
    ours["CLAUDE_CODE_USE_BEDROCK"] = "1"
    assert blanked(ours, also=["MY"]) == dict.fromkeys(("AZURE_X", "SECRET"), "")


def test_no_folder_is_made_where_a_link_leads(workspace: Workspace, tmp_path: Path) -> None:
    """Whatever needs a folder of records makes none outside: a link on the way is refused."""
    outside, turns = tmp_path / "outside", workspace.hidden / "turns"
    outside.mkdir()
    shutil.rmtree(turns, ignore_errors=True)
    turns.symlink_to(outside)
    task = workspace.new_task("Fog")
    with pytest.raises(LeadsOutside):
        OpenDraft(workspace, task, "main").lease().acquire()
    with pytest.raises(LeadsOutside):
        make_folder(turns / "x" / "y")
    assert list(outside.iterdir()) == []
