"""Public failures of others, as far as they need a running session.

Each test is named after the case and cites its report.
"""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import anyio
import fake_cli
import pytest
from commands import command, environment, smartwriter, written
from transcripts import entry
from turns import make_fork, take_turn, take_turns

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Reply, Request, Text, Wait
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.cli.interrupts import kill_tree
from smartwriter.events import TextDelta, parse
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.store import FileSessionStore
from smartwriter.sessions.transcript import messages
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task, TurnState, usage_of
from smartwriter.turns.live import LiveReader
from smartwriter.workspace import Workspace
from smartwriter.writing.engine import Engine


@pytest.fixture
def task(workspace: Workspace) -> Task:
    return workspace.new_task("Herons")


def chatty(request: Request) -> Reply:
    return [Text("".join(f"word{n} " for n in range(60)), chunk_chars=8, pause_s=0.004)]


def test_case_030_two_processes_resume_one_draft(workspace: Workspace, task: Task) -> None:
    """Exactly one of two processes writes a draft, the other is told who, since when, and how to
    fork; the chain stays whole (anthropics/claude-code#39151)."""
    gate = threading.Event()
    with OfflineModel(lambda request: [Text("One"), Wait(gate), Text(" two.")]) as model:
        with subprocess.Popen(
            command(workspace.root, "run", "--json", "--offline", f"{task.id}=First."),
            env=environment(model),
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            while parse(process.stdout.readline()).kind != "text_delta":
                pass
            refused = smartwriter(workspace.root, "write", task.id, "Second.", model=model)
            gate.set()
            process.stdout.read()
        assert process.returncode == 0 and refused.returncode == 1
        sentence = refused.stderr.decode()
        assert f"process {process.pid} on " in sentence and f"smartwriter fork {task.id}@main" in sentence
        assert written(workspace.root, task.id, "Third.", model=model)["number"] == 2
        said = model.requests[-1].said
        assert "First." in said and "Third." in said and "Second." not in said


def test_case_049_resume_from_another_folder(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """A task is found from any folder when its workspace is named (anthropics/claude-code#68525)."""
    with OfflineModel() as model:
        written(workspace.root, task.id, "First.", model=model)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        done = subprocess.run(
            command(workspace.root, "write", task.id, "Second.", "--offline"),
            cwd=elsewhere,
            env=environment(model),
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
        assert "First." in model.requests[-1].said


def _fake(workspace: Workspace, tmp_path: Path, **how: str) -> tuple[ClaudeAgent, Path]:
    program, record = fake_cli.write(tmp_path, **how)
    config = tmp_path / "cli-home"
    config.mkdir()
    return ClaudeAgent(env={"CLAUDE_CONFIG_DIR": str(config)}, cli_path=program), record


def test_case_052_a_session_id_that_changes(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """When resuming reports a new session id, the draft follows it and keeps the chain
    (anthropics/claude-code#4926)."""
    other = "22222222-2222-4333-8444-555555555555"
    claude, record = _fake(workspace, tmp_path, session=other)
    old = task.drafts["main"].session_id
    assert take_turn(workspace, claude, task.id, "First.").state is TurnState.finished
    draft = workspace.tasks.find(task.id).drafts["main"]
    assert draft.session_id == other and draft.earlier_sessions == (old,)
    take_turn(workspace, claude, task.id, "Second.")
    last = json.loads(record.read_text().splitlines()[-1])
    assert any(word in (f"--resume={other}", other) for word in last)


def test_case_053_create_once_then_resume(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """The session id is given to create once, and from then on only to resume
    (phenobarbital/ai-parrot PR 1195)."""
    claude, record = _fake(workspace, tmp_path)
    for prompt in ("First.", "Second.", "Third."):
        assert take_turn(workspace, claude, task.id, prompt).state is TurnState.finished
    calls = [json.loads(line) for line in record.read_text().splitlines()]
    created = [any(word.startswith("--session-id") for word in call) for call in calls]
    resumed = [any(word.startswith("--resume") for word in call) for call in calls]
    assert created == [True, False, False] and resumed == [False, True, True]


def test_case_055_the_clis_own_words(workspace: Workspace, task: Task, tmp_path: Path) -> None:
    """What a CLI that fails prints reaches the writer, and the task keeps its session
    (RichardAtCT/claude-code-telegram PR 94)."""
    claude, _ = _fake(workspace, tmp_path)
    take_turn(workspace, claude, task.id, "First.")
    program, _ = fake_cli.write(tmp_path, complaint="No conversation found with session ID")
    turn = take_turn(workspace, claude, task.id, "Second.")
    assert turn.state is TurnState.failed
    assert "No conversation found with session ID" in turn.detail
    session_id = task.drafts["main"].session_id
    assert workspace.tasks.find(task.id).drafts["main"].session_id == session_id
    assert program.exists()


def test_case_057_many_dangling_parents() -> None:
    """With every twentieth of 100 entries gone, all 95 are reached (anthropics/claude-code#58554)."""
    entries = [entry(n) for n in range(100) if n % 20 != 7]
    assert len(messages(entries)) == 95


def test_case_066_a_fork_counts_what_it_inherits_once(workspace: Workspace, claude: ClaudeAgent) -> None:
    """A task's total counts the turns that a fork inherited only where they were written
    (TarekAwwad/checkyouragent#41)."""
    task = workspace.new_task("Herons")
    take_turn(workspace, claude, task.id, "First.")
    forked = make_fork(workspace, task, "main")
    take_turn(workspace, claude, task.address(forked.name), "Second.")
    drafts = [workspace.tasks.turns(task, name) for name in ("main", forked.name)]
    written = [turn for turns in drafts for turn in turns if not turn.inherited]
    assert len(written) == 2 and len(drafts[1]) == 2
    total = sum((usage_of(turns) for turns in drafts[1:]), usage_of(drafts[0]))
    assert total.output_tokens == sum(turn.usage.output_tokens for turn in written)


def test_case_081_switching_tasks_while_one_streams(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Looking at another task while one streams loses nothing of it (open-webui/open-webui#7884)."""
    model.script = chatty
    one, two = workspace.new_task("One"), workspace.new_task("Two")
    take_turns(workspace, claude, [(one.id, "Go."), (two.id, "Go.")])
    for task in (one, two):
        entries = OpenDraft(workspace, task, "main").transcript.read().entries
        assert messages(entries)[-1].text.split()[-1] == "word59"


def test_case_082_the_client_goes(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """A listener that goes after three events stops nothing; the answer is stored whole
    (danny-avila/LibreChat#13335)."""
    model.script = chatty

    async def go() -> None:
        async with Engine(workspace, claude, Config()) as engine:
            async with engine.events() as events:
                sent = engine.send(task, task.drafts["main"], "Go.")
                for _ in range(3):
                    await events.receive()
            assert (await sent.outcome()).state is TurnState.finished

    anyio.run(go)
    entries = OpenDraft(workspace, task, "main").transcript.read().entries
    assert messages(entries)[-1].text.split() == [f"word{n}" for n in range(60)]


def test_case_084_085_087_coming_back_mid_stream(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, task: Task
) -> None:
    """Coming fresh or back after any event, everything is heard in order, once
    (open-webui/open-webui#29596, anomalyco/opencode#25657, Hy4ri/hermes-mobile#842)."""
    model.script = chatty
    _, events = take_turns(workspace, claude, [(task.id, "Go.")])
    told = [event for event in events if event.position]
    path = OpenDraft(workspace, task, "main").live_path
    begin = told[0].position - 1
    for known in (begin, *(event.position for event in told)):
        rest = LiveReader(path, known).read()
        assert [event.position for event in rest] == [e.position for e in told if e.position > known]
    text = "".join(event.text for event in LiveReader(path, begin).read() if isinstance(event, TextDelta))
    assert text.split() == [f"word{n}" for n in range(60)]


def test_case_089_closing_early(workspace: Workspace, task: Task) -> None:
    """Killed in the middle of an answer, what had been heard of it is kept, and it is said that the
    rest never came (simonw/llm#171)."""
    with OfflineModel(lambda request: [Text("The first half,"), Wait(threading.Event())]) as model:
        with subprocess.Popen(
            command(workspace.root, "run", "--json", "--offline", f"{task.id}=Go."),
            env=environment(model),
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            while parse(process.stdout.readline()).kind != "text_delta":
                pass
            kill_tree(process.pid)
        model.script = lambda request: [Text("Fine.")]
        done = smartwriter(workspace.root, "write", task.id, "Go on.", model=model)
    assert "was cut off when the program died; 15 characters" in done.stderr.decode()
    assert workspace.tasks.turns(task, "main")[0].partial == "The first half,"


def test_case_101_a_resumed_session_sees_no_settings_of_ours(
    workspace: Workspace, task: Task, claude: ClaudeAgent, model: OfflineModel, tmp_path: Path
) -> None:
    """Settings of the user's coding set-up reach neither a new nor a resumed session, so that both
    are alike (anthropics/claude-agent-sdk-typescript#392)."""
    config = tmp_path / "cli-home" / ".claude"
    (config / "CLAUDE.md").write_text("Always answer in Latin.")
    for prompt in ("First.", "Second."):
        take_turn(workspace, claude, task.id, prompt)
    assert not any("Latin" in str(request.body) for request in model.requests)
    new, resumed = (request for request in model.requests if not request.tool_results)
    assert new.system.split("\n\n")[0] == resumed.system.split("\n\n")[0]
    assert new.tools == resumed.tools


def test_case_103_104_a_batch_that_fails_and_is_tried_again(tmp_path: Path) -> None:
    """A batch with a character that cannot be stored leaves nothing, and one that is tried again is
    there once: for six entries, six lines."""
    store = FileSessionStore(tmp_path)
    key: Any = {"project_key": "p", "session_id": "s"}
    batch: Any = [entry(n) for n in range(6)]
    bad: Any = {"type": "x", "uuid": "u", "what": object()}

    async def go() -> None:
        with pytest.raises((ValueError, TypeError)):
            await store.append(key, [*batch[:3], bad, *batch[3:]])
        assert await store.load(key) is None
        for _ in range(3):
            await store.append(key, batch)
        await store.append(key, [entry(6, "half \ud83d an emoji")])  # type: ignore[list-item]
        loaded: Any = await store.load(key)
        assert len(loaded) == 7 and loaded[6]["message"]["content"][0]["text"] == "half \ud83d an emoji"

    anyio.run(go)
    assert store.path(key).read_bytes().count(b"\n") == 7


@pytest.mark.parametrize("session_id", ["", ".", "..", "CON", "a/b", "a\\b", "nul\0", "x" * 121])
def test_case_106_names_that_are_no_names(tmp_path: Path, session_id: str) -> None:
    """Session ids that would leave the folder or mean a device are refused with the reason; others
    of any plain form are taken."""
    store = FileSessionStore(tmp_path)

    async def go() -> None:
        with pytest.raises(ValueError, match="cannot name a stored session"):
            await store.append({"project_key": "p", "session_id": session_id}, [{"type": "x"}])
        for plain in ("sess", "s1", "nope", "会话", "with space"):
            await store.append({"project_key": "p", "session_id": plain}, [{"type": "x"}])
            assert await store.load({"project_key": "p", "session_id": plain}) == [{"type": "x"}]

    anyio.run(go)
