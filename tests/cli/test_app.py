"""The commands that need no model, and how every command fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click
import pytest
from click.testing import CliRunner
from commands import command, smartwriter
from faces import converse, data, printed, refused, run, sentence, snapshot, turn, uuid

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.cli.app import cli
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.journal import Journal
from smartwriter.tasks.values import MAIN, Draft, Origin, Task, TurnState
from smartwriter.workspace import Workspace

TORN = b'{"type":"task","id":"k7mq","ti'
ODD = "渡口\u2028“雾”\ud83d 👩‍👧"


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command of these tests may get as far as the model."""

    def converse(*_: object) -> NoReturn:
        pytest.fail("The model was started.")

    monkeypatch.setattr(ClaudeAgent, "converse", converse)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = Workspace.create(tmp_path_factory.mktemp("filled"))
    workspace.new_collection("essays")
    workspace.new_task("Harbour lights", "essays")
    workspace.new_task("Harbour walls")
    task = workspace.new_task("渡口", "essays")
    workspace.text(task, MAIN).write("# 渡口\n\n雾。\n", author="model", turn=1)
    for name in ("trial", "old"):
        workspace.tasks.add_draft(task.id, name, f"s-{name}", Origin(draft=MAIN, turn=0))
    workspace.text(task, "trial").write("雨。\n", author="fork", turn=0)
    workspace.tasks.drop(task.id, "old")
    lost = workspace.new_task("Lost")
    workspace.tasks.record(lost, MAIN, [turn(lost, 1)])
    return workspace.root


@pytest.fixture
def shelf(filled: Path, tmp_path: Path) -> Workspace:
    """A workspace with a collection and four tasks: two alike, one with drafts, one whose session is gone."""
    shutil.copytree(filled, tmp_path / "shelf")
    shelf = Workspace(tmp_path / "shelf")
    shelf.identify()  # else the first command that writes says that this is a copy
    return shelf


ON_A_TASK = {
    "show": ["show", "TASK"],
    "text": ["text", "TASK"],
    "adopt": ["adopt", "TASK"],
    "drop": ["drop", "TASK"],
    "fork": ["fork", "TASK"],
    "write": ["write", "TASK", "Go on."],
    "run": ["run", "TASK=Go on."],
}


@pytest.fixture(params=ON_A_TASK)
def on(request: pytest.FixtureRequest) -> Callable[[str], list[str]]:
    """The arguments of each command that takes a task, for a given one."""
    return lambda task: [argument.replace("TASK", task) for argument in ON_A_TASK[request.param]]


# What cannot be found ---------------------------------------------------------------------------


def test_an_unknown_task(shelf: Workspace, on: Callable[[str], list[str]]) -> None:
    """Every command refuses a task that does not exist and says how to see those that do."""
    assert refused(shelf, *on("nowhere")) == "There is no task 'nowhere'; see them with: smartwriter tasks"


@pytest.mark.parametrize("name", ["usage", "finish", "reopen"])
def test_a_draft_where_a_task_is_meant(shelf: Workspace, name: str) -> None:
    """A command for a whole task says that it was given a draft, not that the task is unknown."""
    task = shelf.tasks.all()[0]
    said = refused(shelf, name, f"{task.title}@main")
    assert said == f"'{task.title}@main' is a draft; name its task alone: {task.title}"
    assert "There is no task" in refused(shelf, name, f"{task.title}@nowhere")


def test_an_ambiguous_prefix(shelf: Workspace, on: Callable[[str], list[str]]) -> None:
    """Every command refuses a prefix of two titles and names both."""
    lights, walls = (shelf.tasks.find(title).id for title in ("Harbour lights", "Harbour walls"))
    assert refused(shelf, *on("harb")) == (
        f"'harb' fits several tasks: {lights} (Harbour lights), {walls} (Harbour walls)."
    )


def test_an_unknown_draft(shelf: Workspace, on: Callable[[str], list[str]]) -> None:
    """Every command refuses a draft that does not exist, and names those that can be had."""
    id = shelf.tasks.find("渡口").id
    assert refused(shelf, *on("渡口@nope")) == f"Task {id} has no draft 'nope'; it has: main, trial."


def test_a_dropped_draft(shelf: Workspace, on: Callable[[str], list[str]]) -> None:
    """Every command refuses a draft that was dropped, and says how to take it up again."""
    id = shelf.tasks.find("渡口").id
    assert refused(shelf, *on("渡口@old")) == (
        f"Task {id} has no draft 'old'; it has: main, trial. "
        f"To take up the dropped one: smartwriter restore {id}@old"
    )


@pytest.mark.parametrize("arguments", [["new", "雾", "-c", "nowhere"], ["collection", "show", "nowhere"]])
def test_an_unknown_collection(shelf: Workspace, arguments: list[str]) -> None:
    """A collection that does not exist is refused with the command that makes it."""
    assert refused(shelf, *arguments) == (
        "There is no collection 'nowhere'; make it with: smartwriter collection new nowhere"
    )


@pytest.mark.parametrize(
    ("turns", "has"), [(0, "no finished turn"), (1, "one finished turn"), (2, "2 finished turns")]
)
def test_an_unknown_turn(workspace: Workspace, turns: int, has: str) -> None:
    """A fork at a turn that never was is refused with how many there are."""
    task = workspace.new_task("渡口")
    converse(workspace, task, *["好。"] * turns)
    assert refused(workspace, "fork", "渡口", "--at", "9") == f"{task.id}@main has no turn 9: it has {has}."


ANYWHERE = [
    ["new", "渡口"],
    ["tasks"],
    ["collection", "new", "essays"],
    ["collection", "list"],
    ["collection", "show", "essays"],
    ["run", "渡口=Go on."],
    *([*arguments] for arguments in ON_A_TASK.values()),
]


@pytest.mark.parametrize("arguments", ANYWHERE, ids=lambda arguments: " ".join(arguments[:2]))
def test_a_folder_that_is_no_workspace(tmp_path: Path, arguments: list[str]) -> None:
    """Every command refuses a folder that is no workspace, says how to make it one, and leaves it alone."""
    (tmp_path / "plain").mkdir()
    for folder in (tmp_path / "plain", tmp_path / "missing"):
        assert refused(folder, *arguments) == (
            f"{folder} is not a SmartWriter workspace; make one with: smartwriter init {folder}"
        )


def test_a_workspace_cannot_be_made_in_a_file(tmp_path: Path) -> None:
    """A file cannot be made a workspace, and says so in one sentence."""
    (tmp_path / "file").write_text("mine")
    why = refused(tmp_path / "file", "init", str(tmp_path / "file"))
    assert why == f"Not a directory: {tmp_path / 'file' / '.smartwriter'}."


# What makes no sense ----------------------------------------------------------------------------


@pytest.mark.parametrize("title", ["", "   ", "\u3000\t"])
def test_an_empty_title(shelf: Workspace, title: str) -> None:
    """A task without a title is refused, also with a prompt at hand."""
    assert refused(shelf, "new", title) == "A task needs a title."
    assert refused(shelf, "new", title, "-p", "Begin.") == "A task needs a title."


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["write", "渡口", ""], b""),
        (["write", "渡口", " \n\t"], b""),
        (["write", "渡口", "-"], b""),
        (["write", "渡口", "-"], b" \r\n"),
        (["write", "渡口", "-"], b"\xef\xbb\xbf"),
        (["write", "渡口"], b""),
        (["new", "雾", "-p", ""], b""),
        (["new", "雾", "-p", "  "], b""),
        (["run", "渡口="], b""),
        (["run", "Harbour lights=Go on.", "渡口= "], b""),
    ],
)
def test_an_empty_prompt(shelf: Workspace, arguments: list[str], stdin: bytes) -> None:
    """A prompt without words is refused, wherever it comes from, and no task is made for it."""
    assert refused(shelf, *arguments, stdin=stdin) == "The prompt is empty."


@pytest.mark.parametrize(("stdin", "byte"), [(b"\xff", 0), ("好。".encode() + "雾".encode("gbk"), 6)])
def test_undecodable_input(shelf: Workspace, stdin: bytes, byte: int) -> None:
    """A prompt that is no UTF-8 text is refused, with the place of the first bad byte."""
    before = snapshot(shelf.root)
    done = smartwriter(shelf.root, "write", "渡口", "-", stdin=stdin)
    assert sentence(done.returncode, done.stderr.decode()) == (
        f"The prompt on standard input is not UTF-8 text (byte {byte}); nothing was sent."
    )
    assert done.stdout == b""
    assert snapshot(shelf.root) == before


@pytest.mark.parametrize("name", ["", "Trial", "a b", "../up", "草稿", "x" * 41])
def test_a_malformed_draft_name(shelf: Workspace, name: str) -> None:
    """A fork's name must be fit for files, and a refused fork leaves nothing behind."""
    assert refused(shelf, "fork", "渡口", "--name", name) == (
        f"{name!r} cannot name a draft: use lower-case letters, digits and hyphens."
    )


@pytest.mark.parametrize("name", ["main", "trial", "old"])
def test_a_draft_name_that_is_taken(shelf: Workspace, name: str) -> None:
    """A fork never takes the name of a draft that is there, or was."""
    id = shelf.tasks.find("渡口").id
    assert refused(shelf, "fork", "渡口", "--name", name) == f"There is already a draft '{id}@{name}'."


@pytest.mark.parametrize("name", ["essays", "Essays"])
def test_a_collection_name_that_is_taken(shelf: Workspace, name: str) -> None:
    """A collection that is there is not made again, nor its twin in another case."""
    assert refused(shelf, "collection", "new", name) == f"There is already a collection '{name}'."


@pytest.mark.parametrize("name", ["", " ", "..", "../up", "a//b", ".hidden", "nul", "what?", "x" * 300])
def test_an_unusable_collection_name(shelf: Workspace, name: str) -> None:
    """A name that not every file system takes, or that leads elsewhere, makes no collection."""
    assert refused(shelf, "collection", "new", name) == (
        f"{name.strip()!r} cannot name a collection: it must be usable as a folder's name."
    )


# Drafts -----------------------------------------------------------------------------------------


def test_dropping_the_current_draft(shelf: Workspace) -> None:
    """The current draft cannot be dropped, by its name or by the task's, and keeps its text."""
    id = shelf.tasks.find("渡口").id
    for address in ("渡口", "渡口@main"):
        assert (
            refused(shelf, "drop", address) == f"main is the current draft of {id}; adopt another one first."
        )


def test_dropping_a_draft_that_is_being_written(shelf: Workspace) -> None:
    """A draft cannot be dropped under the process that writes it; the refusal names the process."""
    task = shelf.tasks.find("渡口")
    with OpenDraft(shelf, task, "trial").lease():
        why = refused(shelf, "drop", "渡口@trial")
    assert why.startswith(f"{task.id}@trial is being written by process {os.getpid()} on ")


def test_a_dropped_draft_goes_to_the_trash(shelf: Workspace) -> None:
    """Dropping puts the text in the trash and keeps its versions; the other drafts stay as they are."""
    task = shelf.tasks.find("渡口")
    main = shelf.text(task, MAIN).path.read_bytes()
    assert printed(shelf, "drop", "渡口@trial") == f"Dropped {task.id}@trial.\n"
    (trashed,) = (shelf.hidden / "trash" / "drafts").iterdir()
    assert trashed.read_text() == "雨。\n"
    assert not shelf.text(task, "trial").path.exists()
    assert [revision.text for revision in shelf.text(task, "trial").revisions()] == ["雨。\n"]
    assert shelf.text(task, MAIN).path.read_bytes() == main


def test_adopting_a_draft(shelf: Workspace) -> None:
    """After an adoption the task alone means the adopted draft, and the other one is still there."""
    task = shelf.tasks.find("渡口")
    assert printed(shelf, "text", "渡口") == "# 渡口\n\n雾。\n"
    assert printed(shelf, "adopt", "渡口@trial") == f"{task.id}@trial is now the current draft of 渡口.\n"
    assert printed(shelf, "text", "渡口") == "雨。\n"
    assert printed(shelf, "text", "渡口@main") == "# 渡口\n\n雾。\n"
    assert f"{task.id}  渡口  (essays)  [trial, 2 drafts]\n" in printed(shelf, "tasks")


def test_forking_a_draft_without_turns(shelf: Workspace) -> None:
    """A draft that was never sent to the model can be forked with its text, any number of times."""
    id = shelf.tasks.find("渡口").id
    before = snapshot(shelf.root)
    assert printed(shelf, "fork", "渡口@trial") == f"{id}@draft-4 shares {id}@trial up to turn 0.\n"
    assert data(shelf, "fork", "渡口", "--name", "again")["origin"] == {
        "draft": "main",
        "turn": 0,
        "revision": None,
    }
    assert printed(shelf, "text", "渡口@draft-4") == "雨。\n"
    assert printed(shelf, "text", "渡口@again") == "# 渡口\n\n雾。\n"
    after = snapshot(shelf.root)
    tasks = ".smartwriter/tasks.jsonl"
    assert {path for path in before if before[path] != after.get(path)} == {tasks}
    assert (after[tasks] or b"").startswith(before[tasks] or b"-")


def test_forking_at_a_turn(workspace: Workspace) -> None:
    """A fork shares the conversation and text up to its turn, and leaves its origin as it is."""
    task = workspace.new_task("渡口")
    converse(workspace, task, "第一段。", "第二段。", "第三段。")
    for number in (1, 2, 3):
        workspace.text(task, MAIN).write(f"{number} 段", author="model", turn=number)
    before = snapshot(workspace.root)
    made = data(workspace, "fork", "渡口", "--at", "2", "--name", "trial")
    after = snapshot(workspace.root)
    assert {path for path in before if before[path] != after.get(path)} == {".smartwriter/tasks.jsonl"}
    assert (made["name"], made["origin"]) == (
        "trial",
        {"draft": "main", "turn": 2, "revision": None},
    )
    shown = data(workspace, "show", "渡口@trial")
    assert [message["text"] for message in shown["messages"]] == ["写 1", "第一段。", "写 2", "第二段。"]
    assert [(turn["number"], turn["inherited"]) for turn in shown["turns"]] == [(1, True), (2, True)]
    assert printed(workspace, "text", "渡口@trial") == "2 段\n"
    assert printed(workspace, "text", "渡口") == "3 段\n"
    assert "[turn 2] 写 2" in printed(workspace, "show", "渡口@trial")


# A session that is gone -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "Lost"],
        ["show", "Lost", "--json"],
        ["take", "Lost"],
        ["write", "Lost", "Go on."],
        ["fork", "Lost"],
    ],
)
@pytest.mark.parametrize("left", [None, b"", b"\x00\x00\x00\n"], ids=["no file", "empty", "garbage"])
def test_a_session_missing_on_disk(shelf: Workspace, arguments: list[str], left: bytes | None) -> None:
    """Where turns were finished but their transcript is gone, nothing is shown, taken or begun anew."""
    task = shelf.tasks.find("Lost")
    path = OpenDraft(shelf, task, MAIN).transcript.path
    if left is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(left)
    assert refused(shelf, *arguments) == (
        f"The transcript of {task.id}@main is missing; put {path} back to go on (nothing was changed)."
    )


@pytest.mark.parametrize(
    "arguments", [["show"], ["show", "--json"], ["export", "--history"], ["write", "--", "Go on."]]
)
def test_a_session_of_a_recovered_turn_missing_on_disk(shelf: Workspace, arguments: list[str]) -> None:
    """Where the only answer came from the CLI after a crash, its loss is said just the same."""
    task = shelf.tasks.find("Lost")
    shelf.tasks.record(task, MAIN, [turn(task, 1, TurnState.recovered)])
    assert all(turn.state is TurnState.recovered for turn in shelf.tasks.turns(task, MAIN))
    name, *rest = arguments
    assert "is missing; put" in refused(shelf, name, task.id, *rest)


def test_a_damaged_transcript_is_shown_with_a_warning(workspace: Workspace) -> None:
    """Damage in a transcript is named on stderr with its place; all the rest is shown."""
    task = workspace.new_task("渡口")
    converse(workspace, task, "第一段。")
    path = OpenDraft(workspace, task, MAIN).transcript.path
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"type":"assist')
    result = run(workspace, "show", "渡口")
    assert result.exit_code == 0
    assert result.stderr == f"Damaged at byte {size}, 15 bytes: {path}\n"
    assert result.stdout == f"渡口  {task.id}@main\n\n[turn 1] 写 1\n\n第一段。\n"


# Jobs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "Nothing to run: name TASK=PROMPT, or a file of jobs with -f."),
        (["渡口"], "'渡口' is no job: write TASK=PROMPT."),
        (["渡口=Go on.", "Go on."], "'Go on.' is no job: write TASK=PROMPT."),
        (["=Go on."], "There is no task ''; see them with: smartwriter tasks"),
        (["渡口=Go on.", "nowhere=Go on."], "There is no task 'nowhere'; see them with: smartwriter tasks"),
        (["-f", "missing.yaml"], "No such file or directory: missing.yaml."),
    ],
)
def test_jobs_that_make_no_sense(shelf: Workspace, arguments: list[str], why: str) -> None:
    """A run without jobs, or with one that cannot be done, starts none of them."""
    assert refused(shelf, "run", *arguments) == why


NEW = "- title: 雾\n  prompt: 写\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- [1", "is not YAML: while parsing a flow sequence"),
        ("- 'a\n", "is not YAML: "),
        ("\x00", "is not YAML: "),
        ("", "is no list of jobs."),
        ("title: 雾\nprompt: 写\n", "is no list of jobs."),
        (NEW + "- 写\n", "line 3: a job must have a prompt and a task or title, all of them text."),
        (
            NEW + "- task: 渡口\n  prompt: 7\n",
            "line 3: a job must have a prompt and a task or title, all of them text.",
        ),
        (NEW + "- task: 渡口\n  promt: 写\n", "line 3: a job has no field 'promt'."),
        (NEW + "- task: 渡口\n", "line 3: The prompt is empty."),
        (NEW + "- prompt: 写\n", "line 3: a job needs either a task or, for a new one, a title."),
        (
            NEW + "- title: ' '\n  prompt: 写\n",
            "line 3: a job needs either a task or, for a new one, a title.",
        ),
        (NEW + "- {task: 渡口, title: 雾, prompt: 写}\n", "line 3: a job needs either a task or"),
        (NEW + "- task: nowhere\n  prompt: 写\n", "line 3: There is no task 'nowhere'"),
        (NEW + "- {title: 雨, draft: main, prompt: 写}\n", "line 3: only a task that is there already"),
        (NEW + "- {task: 渡口, draft: nowhere, prompt: 写}\n", "line 3: Task "),
        (NEW + "- task: harb\n  prompt: 写\n", "line 3: 'harb' fits several tasks"),
        (NEW + "- task: 渡口@old\n  prompt: 写\n", "line 3: Task "),
        (
            NEW + "- {title: 雨, collection: nowhere, prompt: 写}\n",
            "line 3: There is no collection 'nowhere'",
        ),
    ],
)
def test_a_file_of_jobs_that_makes_no_sense(shelf: Workspace, tmp_path: Path, text: str, why: str) -> None:
    """One bad job in a file is named by its line, and nothing of the others is created or started."""
    file = tmp_path / "jobs.yaml"
    file.write_text(text, encoding="utf-8")
    told = refused(shelf, "run", "-f", str(file))
    assert told.startswith(str(file)) and why in told


def test_a_file_of_jobs_in_another_encoding(shelf: Workspace, tmp_path: Path) -> None:
    """A file of jobs that is not UTF-8 is refused in one sentence."""
    (tmp_path / "jobs.yaml").write_bytes(NEW.encode("gbk"))
    assert "is not YAML: 'utf-8' codec can't decode" in refused(
        shelf, "run", "-f", str(tmp_path / "jobs.yaml")
    )


def test_a_job_in_the_arguments_waits_for_those_in_the_file(shelf: Workspace, tmp_path: Path) -> None:
    """All jobs are checked before any of them is started, wherever they come from."""
    (tmp_path / "jobs.yaml").write_text("- task: nowhere\n  prompt: 写\n")
    assert "line 1: There is no task" in refused(
        shelf, "run", "渡口=Go on.", "-f", str(tmp_path / "jobs.yaml")
    )


# A workspace that cannot be written ---------------------------------------------------------------


def read_only(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command where nothing under a folder can be written, not even by root."""
    if os.geteuid() != 0:
        everything = [root, *root.rglob("*")]
        modes = [path.stat().st_mode for path in everything]
        for path, mode in zip(everything, modes, strict=True):
            path.chmod(mode & ~0o222)
        try:
            return subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        finally:
            for path, mode in zip(everything, modes, strict=True):
                path.chmod(mode)
    if not shutil.which("unshare"):
        pytest.skip("root may write everywhere, and there is no unshare to mount it read-only")
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" || exit 99; exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, str(root), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"root may write everywhere, and nothing can be mounted here: {done.stderr}")
    return done


@pytest.mark.parametrize(
    "arguments",
    [
        ["new", "雾"],
        ["adopt", "渡口@trial"],
        ["drop", "渡口@trial"],
        ["fork", "渡口"],
        ["write", "渡口", "Go on."],
        ["collection", "new", "letters"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_read_only_workspace(shelf: Workspace, arguments: list[str]) -> None:
    """A command that cannot write says which file, in one sentence, and has changed nothing."""
    before = snapshot(shelf.root)
    done = read_only(shelf.root, sys.executable, "-m", "smartwriter", *arguments, "-w", str(shelf.root))
    why = sentence(done.returncode, done.stderr)
    assert str(shelf.root) in why and ("Read-only file system" in why or "Permission denied" in why)
    assert done.stdout == ""
    assert snapshot(shelf.root) == before


def test_reading_needs_no_right_to_write(shelf: Workspace) -> None:
    """What only shows works in a workspace that cannot be written."""
    done = read_only(shelf.root, *command(shelf.root, "text", "渡口"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "# 渡口\n\n雾。\n", "")


# Showing ----------------------------------------------------------------------------------------


def test_making_a_workspace_and_its_first_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From nothing to a listed task in a collection; making the workspace twice harms nothing."""
    root = tmp_path / "写作"
    for _ in range(2):
        assert run(root, "init", str(root)).stdout == f"{root} is a workspace.\n"
    workspace = Workspace(root)
    assert printed(workspace, "tasks") == 'No tasks yet; start one with: smartwriter new "Its title"\n'
    assert f"Made {root / 'collections' / '山城'};" in printed(workspace, "collection", "new", "山城")
    made = printed(workspace, "new", "渡口", "-c", "山城")
    assert made == f"{workspace.tasks.find('渡口').id}  渡口  (山城)\n"
    monkeypatch.chdir(root / "collections" / "山城")  # a command finds the workspace around it
    assert CliRunner().invoke(cli, ["tasks"]).stdout == made
    assert printed(workspace, "collection", "list") == "山城  (1 task)\n"
    assert printed(workspace, "text", "渡口") == "\n"
    assert printed(workspace, "show", "渡口") == f"渡口  {made[:4]}@main\n"


def test_showing_changes_nothing(shelf: Workspace) -> None:
    """Commands that show leave every file as it is."""
    before = snapshot(shelf.root)
    for arguments in (
        ["tasks"],
        ["show", "渡口"],
        ["text", "渡口@trial"],
        ["collection", "list"],
        ["collection", "show", "essays"],
    ):
        assert printed(shelf, *arguments)
        assert data(shelf, *arguments)
    assert snapshot(shelf.root) == before
    assert not (shelf.hidden / "locks").exists()


def test_tasks_as_json(shelf: Workspace) -> None:
    """The list of tasks as JSON has every task whole, as it is recorded."""
    listed = data(shelf, "tasks")
    assert [Task.model_validate(task) for task in listed] == shelf.tasks.all()
    assert [task["title"] for task in listed] == ["Harbour lights", "Harbour walls", "渡口", "Lost"]


def test_a_conversation_as_json(workspace: Workspace) -> None:
    """A conversation as JSON has its turns and what was said."""
    task = workspace.new_task("渡口")
    converse(workspace, task, "第一段。")
    workspace.tasks.record(task, MAIN, [turn(task, 2, TurnState.interrupted)])
    shown = data(workspace, "show", "渡口")
    assert (shown["task"], shown["draft"]) == (task.id, "main")
    assert [(turn["number"], turn["state"]) for turn in shown["turns"]] == [
        (1, "finished"),
        (2, "interrupted"),
    ]
    said = [{key: message[key] for key in ("role", "uuid", "text", "tools")} for message in shown["messages"]]
    assert said == [
        {"role": "user", "uuid": uuid(1), "text": "写 1", "tools": []},
        {"role": "assistant", "uuid": uuid(1, "assistant"), "text": "第一段。", "tools": []},
    ]


def test_a_text_as_json(shelf: Workspace) -> None:
    """A text as JSON says where its file is, and has every line end that the file has."""
    task = shelf.tasks.find("渡口")
    assert data(shelf, "text", "渡口@trial") == {
        "task": task.id,
        "draft": "trial",
        "path": str(shelf.text(task, "trial").path),
        "text": "雨。\n",
    }


def test_collections_as_json(shelf: Workspace) -> None:
    """Collections as JSON say how many tasks they have, and their memory with hashes and problems."""
    assert data(shelf, "collection", "list") == [{"name": "essays", "tasks": 2}]
    (shelf.root / "collections" / "essays" / "index.md").write_bytes(b"\xff")
    memory = shelf.collection("essays").memory()
    assert data(shelf, "collection", "show", "essays") == {
        "name": "essays",
        "files": [{"name": file.name, "sha256": file.sha256, "text": file.text} for file in memory.files],
        "problems": ["index.md is not UTF-8 text (byte 0) and was left out."],
    }


def test_a_collection_counts_its_tasks_in_any_unicode_form(workspace: Workspace) -> None:
    """A folder that a sync tool spells anew still has the tasks that were made in it."""
    workspace.new_collection("Café")
    workspace.new_task("渡口", "Café")
    decomposed = unicodedata.normalize("NFD", "Café")
    (workspace.root / "collections" / "Café").rename(workspace.root / "collections" / decomposed)
    assert printed(workspace, "collection", "list") == f"{decomposed}  (1 task)\n"


def test_a_collections_memory_is_shown_as_sessions_get_it(shelf: Workspace) -> None:
    """The memory is printed as it is rendered for the model; what was left out is named on stderr."""
    (shelf.root / "collections" / "essays" / "index.md").write_bytes(b"\xff")
    result = run(shelf, "collection", "show", "essays")
    assert result.stdout == shelf.collection("essays").memory().render() + "\n"
    assert result.stderr == "index.md is not UTF-8 text (byte 0) and was left out.\n"


def test_a_thousand_tasks(workspace: Workspace) -> None:
    """Every one of a thousand tasks is listed, on a line of its own, oldest first."""
    tasks = thousand_tasks(workspace)
    assert printed(workspace, "tasks") == "".join(f"{task.id}  {task.title}  (essays)\n" for task in tasks)
    assert [task["id"] for task in data(workspace, "tasks")] == [task.id for task in tasks]


def thousand_tasks(workspace: Workspace) -> list[Task]:
    tasks = [
        Task(
            id=f"t{number:03}",
            title=f"渡口 {number}",
            collection="essays",
            project_key="essays",
            folder=f"渡口 {number}",
            drafts={MAIN: Draft(name=MAIN, session_id=f"s-{number}")},
        )
        for number in range(1000)
    ]
    lines = [{"type": "task", "timestamp": "2026-01-01", **task.model_dump(mode="json")} for task in tasks]
    Journal(workspace.hidden / "tasks.jsonl").append(lines)
    return tasks


def test_a_reader_that_leaves_early(workspace: Workspace) -> None:
    """A pipe that is closed after the first line ends the command without a word."""
    thousand_tasks(workspace)
    with subprocess.Popen(
        command(workspace.root, "tasks", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == b"[\n"
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize("arguments", [["tasks"], ["text", "渡口"], ["new", "雾"]], ids=lambda a: a[0])
def test_damaged_tasks_are_warned_of(shelf: Workspace, arguments: list[str]) -> None:
    """Damage in tasks.jsonl is named on stderr with its place; every other task is there, and every byte."""
    path = shelf.hidden / "tasks.jsonl"
    before = path.read_bytes()
    first, rest = before.split(b"\n", 1)
    path.write_bytes(first + b"\n" + TORN + b"\n" + rest)
    result = run(shelf, *arguments)
    assert result.exit_code == 0
    assert result.stderr == (
        f"Warning: {path} is damaged at byte {len(first) + 1}; "
        "the other lines are used, and nothing in it is deleted.\n"
    )
    assert path.read_bytes().startswith(first + b"\n" + TORN + b"\n" + rest)
    assert [task.title for task in shelf.tasks.all()][:4] == [
        "Harbour lights",
        "Harbour walls",
        "渡口",
        "Lost",
    ]


# Any text, anywhere -----------------------------------------------------------------------------


@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0"}], ids=["UTF-8", "C"])
def test_any_text_goes_through(workspace: Workspace, locale: dict[str, str]) -> None:
    """Chinese, emoji, line separators and halves of an emoji pass through every command, in any locale."""

    def ran(name: str, *arguments: str | bytes) -> str:
        done = subprocess.run(
            [*command(workspace.root, name), *arguments],
            env={**os.environ, "PYTHONIOENCODING": "", **locale},
            capture_output=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
        return done.stdout.decode()

    ran("new", "渡口\u2028“雾” 👩‍👧".encode() + b"\xff")  # a stray byte, as a terminal may send it
    (task,) = workspace.tasks.all()
    assert task.title == "渡口\u2028“雾” 👩‍👧\udcff"
    workspace.text(task, MAIN).write(ODD, author="model", turn=1)
    converse(workspace, task, ODD)
    assert "渡口" in ran("tasks")
    assert "“雾”" in ran("text", "渡口".encode())
    assert "“雾”" in ran("show", task.id)
    assert json.loads(ran("show", task.id, "--json"))["messages"][1]["text"] == ODD


def test_any_text_as_json(workspace: Workspace) -> None:
    """JSON gives back every character, halves of an emoji included."""
    task = workspace.new_task(ODD)
    workspace.text(task, MAIN).write(ODD, author="model", turn=1)
    assert [task["title"] for task in data(workspace, "tasks")] == [ODD]
    assert data(workspace, "text", ODD)["text"] == ODD


# The command itself -----------------------------------------------------------------------------


def test_help_lists_every_command() -> None:
    """The help has each command with its own first sentence, and each command has help."""
    result = CliRunner().invoke(cli, ["--help"], terminal_width=200)
    assert result.exit_code == 0
    context = cli.make_context("smartwriter", ["tasks"])
    names = cli.list_commands(context)
    assert {
        "init",
        "collection",
        "new",
        "tasks",
        "show",
        "text",
        "adopt",
        "drop",
        "fork",
        "write",
        "run",
    } <= set(names)
    for name in names:
        found = cli.get_command(context, name)
        assert found is not None and found.help
        assert f"  {name:<10}  {found.get_short_help_str(limit=200)}\n" in result.stdout
        assert CliRunner().invoke(cli, [name, "--help"]).exit_code == 0


@pytest.mark.parametrize("arguments", [["-m", "smartwriter", "--help"], ["-c", "import smartwriter"]])
def test_starting_is_light(arguments: list[str]) -> None:
    """Neither the help nor the package imports what is slow to import."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "smartwriter" in imported
    assert not imported & {"claude_agent_sdk", "pydantic", "anyio", "rich", "yaml", "starlette"}


def test_showing_needs_no_sdk(shelf: Workspace) -> None:
    """Listing tasks does not wait for the SDK, which takes most of a second to import."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command(shelf.root, "tasks")[1:]],
        capture_output=True,
        text=True,
    )
    assert done.stdout.count("\n") == 4
    assert "smartwriter.workspace" in done.stderr and "claude_agent_sdk" not in done.stderr


@pytest.mark.parametrize("group", ["collection", "memory"])
def test_help_of_a_group(group: str) -> None:
    """The help of a group has the whole first sentence of each command, however narrow the terminal."""
    result = CliRunner().invoke(cli, [group, "--help"], terminal_width=60)
    assert result.exit_code == 0
    context = cli.make_context("smartwriter", ["tasks"])
    found = cli.get_command(context, group)
    assert isinstance(found, click.Group)
    said = " ".join(result.stdout.split())
    for name in found.list_commands(context):
        command = found.get_command(context, name)
        assert command is not None and f"{name} {command.get_short_help_str(1000)}" in said
    assert "..." not in said.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["wirte"], "No such command 'wirte'. Did you mean 'write'?"),
        (["collection", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["xyzzy"], "No such command 'xyzzy'."),
    ],
)
def test_an_unknown_command(arguments: list[str], said: str) -> None:
    """A command that does not exist is a usage error, which names the one that may be meant."""
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"Error: {said}\n")
