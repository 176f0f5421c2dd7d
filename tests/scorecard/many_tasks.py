"""Many articles written at once: 100 tasks of 3 turns under a cap of 8 live CLI processes.

Each turn appends to its task's article through the tools, in pieces, and says so. Every transcript and every
article must hold only its own task's words, in order; nothing may be left over: no process, no folder, no
file handle; our own memory must stay small.
"""

from __future__ import annotations

import contextlib

import anyio
import psutil
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.transcript import messages
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task, TurnState
from smartwriter.writing.engine import Engine

TASKS = 100
TURNS = 3
CAP = 8
_MEMORY_BYTES = 150 << 20


def _writes(request: Request) -> Reply:
    if request.tool_results:
        return [Text(f"Heard {request.prompt}")]
    return [ToolUse("append_draft", {"text": _paragraph(request.prompt)}, chunk_chars=8, pause_s=0.001)]


def _paragraph(prompt: str) -> str:
    return f"Written for {prompt} " + "and so on " * 20 + "to the end."


def _measure(run: Run) -> Outcome:
    with stage(run, _writes) as scene:
        tasks = [scene.workspace.new_task(f"task-{number:03d}") for number in range(run.scaled(TASKS))]
        handles, before = _handles(), set(_children())
        most_live, memory = anyio.run(_write_all, scene, tasks)
        mixed = sum(not _only_own_words(scene, task) for task in tasks)
        strange = sum(not _only_own_article(scene, task) for task in tasks)
        left = set(_children()) - before
        folders = list(scene.temporary.iterdir())
        more_handles = _handles() - handles
    got = (
        f"{len(tasks)} tasks × {TURNS} turns, {most_live} live at most: {mixed} transcripts and "
        f"{strange} articles wrong, {len(left)} processes, {len(folders)} folders, "
        f"{more_handles} handles left over, {memory / (1 << 20):.0f} MB at most"
    )
    fine = not mixed and not strange and not left and not folders and more_handles <= 0 and most_live <= CAP
    return Outcome(got, fine and memory < _MEMORY_BYTES)


async def _write_all(scene: Stage, tasks: list[Task]) -> tuple[int, int]:
    """The most CLI processes at once, and our own greatest memory in bytes."""
    most_live = memory = 0
    async with Engine(scene.workspace, scene.claude, Config(parallel=CAP)) as engine:
        sent = [
            engine.send(task, task.drafts["main"], f"{task.title} turn {turn}.")
            for turn in range(TURNS)
            for task in tasks
        ]
        for prompt in sent:
            assert (await prompt.outcome()).state is TurnState.finished
            live, used = await anyio.to_thread.run_sync(_live_and_memory)
            most_live, memory = max(most_live, live), max(memory, used)
    return most_live, memory


def _live_and_memory() -> tuple[int, int]:
    live = 0
    for process in _children():
        with contextlib.suppress(psutil.NoSuchProcess):
            live += "claude" in process.name()
    return live, psutil.Process().memory_info().rss


def _children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _only_own_words(scene: Stage, task: Task) -> bool:
    entries = OpenDraft(scene.workspace, task, "main").transcript.read().entries
    said = [message.text for message in messages(entries) if message.text]
    return said == [
        text
        for turn in range(TURNS)
        for text in (f"{task.title} turn {turn}.", f"Heard {task.title} turn {turn}.")
    ]


def _only_own_article(scene: Stage, task: Task) -> bool:
    text = scene.workspace.text(task, "main").path.read_text(encoding="utf-8")
    return text == "\n\n".join(_paragraph(f"{task.title} turn {turn}.") for turn in range(TURNS)) + "\n"


def _handles() -> int:
    return psutil.Process().num_fds()


FIGURES = [
    Figure(
        "many articles written at once under a cap",
        f"{TASKS} tasks × {TURNS} turns under a cap of {CAP}: each transcript and article only its own "
        "words, nothing left over, under 150 MB",
        _measure,
    )
]
