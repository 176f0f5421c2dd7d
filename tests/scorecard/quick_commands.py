"""Commands that have to stay quick as a workspace grows: ``tasks`` with 1,000 tasks, ``doctor`` with
10,000 sessions. Whole processes, from start to exit, on a real disk.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
import uuid

from figure import Figure, Outcome, Run
from stage import Stage, stage

import smartwriter.storage.encoding as encoding
from smartwriter.storage.records import now
from smartwriter.tasks.values import Draft, Task, Turn, TurnState

TASKS = 1000
TASKS_S = 0.3
_QUICK_TASKS_S = 1.0
SESSIONS = 10_000
DOCTOR_S = 20.0
_RUNS = 7
_MESSAGES = 8


def _measure_tasks(run: Run) -> Outcome:
    with stage(run) as scene:
        _fill(scene, TASKS, sessions=False)
        seconds = []
        for _ in range(_RUNS):
            done, took = _timed(scene, "tasks")
            seconds.append(took)
            assert done.stdout.count("\n") == TASKS
    median = statistics.median(seconds)
    got = f"{TASKS} tasks, {_RUNS} runs: {median:.2f} s ({min(seconds):.2f}-{max(seconds):.2f})"
    # A quick run comes beside others: the fastest of its runs, and a limit that only another order breaks.
    return Outcome(got, min(seconds) < _QUICK_TASKS_S if run.quick else median < TASKS_S)


def _measure_doctor(run: Run) -> Outcome:
    sessions = run.scaled(SESSIONS)
    with stage(run) as scene:
        _fill(scene, sessions, sessions=True)
        done, seconds = _timed(scene, "doctor")
    healthy = done.returncode == 0 and f"{sessions} tasks, every file read" in done.stdout
    found = "all found well" if healthy else done.stdout[-300:]
    got = f"{sessions} tasks and sessions: {found} in {seconds:.1f} s"
    return Outcome(got, healthy and seconds < DOCTOR_S)


def _timed(scene: Stage, command: str) -> tuple[subprocess.CompletedProcess[str], float]:
    started = time.perf_counter()
    done = scene.run(command)
    return done, time.perf_counter() - started


def _fill(scene: Stage, count: int, *, sessions: bool) -> None:
    """Tasks of one finished turn each; with sessions, the transcripts and turns of these too."""
    hidden = scene.workspace.hidden
    lines = []
    for number in range(count):
        session_id = str(uuid.uuid4())
        draft = Draft(name="main", session_id=session_id)
        title = f"文章 {number}"
        task = Task(
            id=f"t{number:05d}",
            title=title,
            collection="unfiled",
            project_key="unfiled",
            folder=title,
            drafts={"main": draft},
        )
        lines.append(_line("task", task))
        if sessions:
            entries = _entries(session_id)
            path = hidden / "sessions" / "unfiled" / f"{session_id}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(map(encoding.encode, entries)))
            turn = Turn(
                number=1,
                uuid=str(entries[0]["uuid"]),
                session_id=session_id,
                prompt="Go.",
                state=TurnState.finished,
            )
            path = hidden / "turns" / task.id / "main.jsonl"
            path.parent.mkdir(parents=True)
            path.write_bytes(encoding.encode(_line("turn", turn)))
    (hidden / "tasks.jsonl").write_bytes(b"".join(map(encoding.encode, lines)))


def _line(kind: str, value: Task | Turn) -> dict[str, object]:
    fields: dict[str, object] = json.loads(value.model_dump_json())
    return {"type": kind, "timestamp": now().isoformat()} | fields


def _entries(session_id: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for number in range(_MESSAGES):
        role = "assistant" if number % 2 else "user"
        found.append(
            {
                "type": role,
                "uuid": str(uuid.uuid4()),
                "parentUuid": found[-1]["uuid"] if found else None,
                "sessionId": session_id,
                "timestamp": "2026-01-01T00:00:00.000Z",
                "message": {"role": role, "content": [{"type": "text", "text": "字和 words " * 40}]},
            }
        )
    return found


FIGURES = [
    Figure("listing tasks", f"`tasks` shows {TASKS} tasks in under {TASKS_S} s", _measure_tasks),
    Figure(
        "doctor of a big workspace",
        f"`doctor` reads {SESSIONS} tasks and sessions in under {DOCTOR_S:.0f} s",
        _measure_doctor,
    ),
]
