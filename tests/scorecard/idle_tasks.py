"""1,000 open tasks, 8 of them live: how soon an idle one answers.

The time from a prompt to its first word through the engine, for a task that has to take another's
place, beside the SDK's own resume of a session of the same size from the same store; paired, in turn.
"""

from __future__ import annotations

import statistics
import time
import uuid

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, StreamEvent
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline import Reply, Request, Text
from smartwriter.config import Config
from smartwriter.engine import Engine
from smartwriter.tasks import Task

TASKS = 1000
LIVE = 8
_PAIRS = 21
_RATIO = 1.1


def _answer(request: Request) -> Reply:
    return [Text("Fine.")]


def _measure(run: Run) -> Outcome:
    pairs = 5 if run.quick else _PAIRS
    with stage(run, _answer) as scene:
        tasks = [scene.workspace.new_task(f"task-{number}") for number in range(run.scaled(TASKS))]
        ratios, ours, theirs = anyio.run(_compare, scene, tasks, pairs)
    ratio = statistics.median(ratios)
    got = (
        f"{len(tasks)} tasks, {pairs} pairs: {ratio:.2f}× ({min(ratios):.2f}-{max(ratios):.2f}); "
        f"ours {ours * 1000:.0f} ms, the SDK {theirs * 1000:.0f} ms"
    )
    return Outcome(got, ratio <= _RATIO or run.quick)


async def _compare(scene: Stage, tasks: list[Task], pairs: int) -> tuple[list[float], float, float]:
    ours: list[float] = []
    theirs: list[float] = []
    used = tasks[: LIVE + 4]
    async with Engine(scene.workspace, scene.claude, Config(parallel=LIVE)) as engine:
        for task in used:  # each has a session, and the last 8 are live
            await engine.send(task, task.drafts["main"], "Begin.").outcome()
        for number in range(pairs):
            task = used[number % len(used)]  # the least recently used: it is not live
            ours.append(await _first_word(engine, task))
            theirs.append(await _sdk_first_word(scene, used[(number + 1) % len(used)]))
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    return ratios, statistics.median(ours), statistics.median(theirs)


async def _first_word(engine: Engine, task: Task) -> float:
    async with engine.events() as events:
        started = time.perf_counter()
        sent = engine.send(task, task.drafts["main"], "Go on.")
        async for event in events:
            if event.kind == "text_delta":
                break
        seconds = time.perf_counter() - started
        await sent.outcome()
    return seconds


async def _sdk_first_word(scene: Stage, task: Task) -> float:
    fork = scene.workspace.store.bind(task.project_key)
    options = ClaudeAgentOptions(
        session_store=fork,
        session_store_flush="eager",
        resume=task.drafts["main"].session_id,
        fork_session=True,
        session_id=str(uuid.uuid4()),  # so that the task's own session stays as it is
        include_partial_messages=True,
        setting_sources=[],
        tools=[],
        system_prompt="You are the writing partner of an author.",
        env=dict(scene.claude.env),
    )
    client = ClaudeSDKClient(options)
    started = time.perf_counter()
    await client.connect()
    try:
        await client.query("Go on.")
        async for message in client.receive_response():
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                seconds = time.perf_counter() - started
    finally:
        await client.disconnect()
    return seconds


FIGURES = [
    Figure(
        "an idle task among many answers",
        f"{TASKS} open tasks, {LIVE} live: to the first word at most {_RATIO}× of the SDK's own resume",
        _measure,
    )
]
