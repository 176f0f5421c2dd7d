"""The connection to the API is cut after every event of a turn, for good or once.

A turn with a tool call and two answers is cut after each piece in turn. Cut for good, it must end as
a failed turn in the CLI's words with what had been heard; cut once, the CLI asks again and the turn
must finish with the whole text. The next turn must work and hold everything that was before.
"""

from __future__ import annotations

import anyio
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline import Cut, Reply, Request, Step, Text, ToolUse
from smartwriter.config import Config
from smartwriter.engine import Engine
from smartwriter.tasks import Task, Turn, TurnState

_WORDS = [f"word{number} " for number in range(8)]
_STEPS: list[Step] = [*(Text(word) for word in _WORDS[:4]), ToolUse("read_draft", {})]
_AFTER_TOOL: list[Step] = [Text(word) for word in _WORDS[4:]]
CUTS = len(_STEPS) + len(_AFTER_TOOL) + 1


class _Script:
    """Cuts the reply after so many steps, so many times."""

    def __init__(self) -> None:
        self.after = 0
        self.times = 0

    def __call__(self, request: Request) -> Reply:
        if "cut" not in request.prompt:
            return [Text("Fine.")]
        steps, before = (_AFTER_TOOL, len(_STEPS)) if request.tool_results else (_STEPS, 0)
        here = self.after - before
        if self.times > 0 and 0 <= here <= len(steps) and not (before == 0 and here == len(steps)):
            self.times -= 1
            return [*steps[:here], Cut()]
        return steps


def _measure(run: Run) -> Outcome:
    script = _Script()
    wrong: list[str] = []
    cuts = range(0, CUTS, 3) if run.quick else range(CUTS)
    with stage(run, script) as scene:
        for after in cuts:
            for times in (1, 1000):
                script.after, script.times = after, times
                task = scene.workspace.new_task(f"cut {after} {times}")
                cut, fine = anyio.run(_two_turns, scene, task)
                if problem := _problem(scene, task, cut, fine, for_good=times > 1):
                    wrong.append(f"cut after {after}, {times} times: {problem}")
    got = f"{2 * len(cuts)} cut turns: {len(wrong)} ended otherwise" + (f" ({wrong[0]})" if wrong else "")
    return Outcome(got, not wrong)


async def _two_turns(scene: Stage, task: Task) -> tuple[Turn, Turn]:
    async with Engine(scene.workspace, scene.claude, Config()) as engine:
        sent = [engine.send(task, task.drafts["main"], prompt) for prompt in ("Be cut.", "Now on.")]
        first, second = [await prompt.outcome() for prompt in sent]
    return first, second


def _problem(scene: Stage, task: Task, cut: Turn, fine: Turn, *, for_good: bool) -> str:
    if cut.state not in (TurnState.failed, TurnState.finished):
        return f"the turn is {cut.state.value}"
    if cut.state is TurnState.failed and not (for_good and cut.detail):
        return f"it failed although the next try would have worked: {cut.detail}"
    if fine.state is not TurnState.finished or fine.session_id != task.drafts["main"].session_id:
        return f"the next turn is {fine.state.value}: {fine.detail}"
    if "Be cut." not in scene.model.requests[-1].said:
        return "the next turn does not know of it"
    return ""


FIGURES = [
    Figure(
        "the connection to the API cut after every event of a turn",
        f"{2 * CUTS} cut turns: each finishes when asked again, or fails in the CLI's words; the next works",
        _measure,
    )
]
