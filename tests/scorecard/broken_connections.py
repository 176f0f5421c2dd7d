"""The connection to the API is cut after every event of a turn that writes an article, for good or once.

A turn that says something, types an article through a tool in pieces, and ends its answer is cut after each
piece in turn. Cut for good, it must end as a failed turn in the CLI's words, and what had been typed must be
a version beside the text; cut once, the CLI asks again, and the turn must finish with the whole article, and
no version beside it. The next turn must work and hold everything that was before.
"""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Cut, Reply, Request, Step, Text, ToolUse
from smartwriter.system.config import Config
from smartwriter.tasks.values import Task, Turn, TurnState
from smartwriter.writing.engine import Engine

_PIECE = 8  # characters
_ARTICLE = "# Fog\n\n" + " ".join(f"w{number:02d}" for number in range(16)) + "\n"
_BEFORE: list[Step] = [Text(word) for word in ("I ", "begin ", "with ", "fog. ")]
_CALL = ToolUse("write_draft", {"text": _ARTICLE}, chunk_chars=_PIECE)
_AFTER: list[Step] = [Text(word) for word in ("It ", "is ", "all ", "there.")]
_INPUT = json.dumps(_CALL.input)
_PIECES = -(-len(_INPUT) // _PIECE)
_QUICK_STEP = 8
CUTS = len(_BEFORE) + _PIECES + len(_AFTER) + 1


class _Script:
    """Cuts the reply after so many pieces, so many times."""

    def __init__(self) -> None:
        self.after = 0
        self.times = 0

    def __call__(self, request: Request) -> Reply:
        if not request.prompt.endswith("Be cut."):
            return [Text("Fine.")]
        typed = len(_BEFORE) + _PIECES
        whole = _AFTER if request.tool_results else [*_BEFORE, _CALL]
        if self.times == 0 or (self.after < typed) == bool(request.tool_results):
            return whole
        self.times -= 1
        if request.tool_results:
            return [*_AFTER[: self.after - typed], Cut()]
        if self.after <= len(_BEFORE):
            return [*_BEFORE[: self.after], Cut()]
        return [*_BEFORE, replace(_CALL, break_at=(self.after - len(_BEFORE)) * _PIECE), Cut()]


def _measure(run: Run) -> Outcome:
    script = _Script()
    wrong: list[str] = []
    cuts = range(run.random().randrange(_QUICK_STEP), CUTS, _QUICK_STEP) if run.quick else range(CUTS)
    with stage(run, script) as scene:
        for after in cuts:
            for times in (1, 1000):
                script.after, script.times = after, times
                task = scene.workspace.new_task(f"cut {after} {times}")
                cut, fine = anyio.run(_two_turns, scene, task)
                if problem := _problem(scene, task, cut, fine, after, for_good=times > 1):
                    wrong.append(f"cut after {after}, {times} times: {problem}")
    got = f"{2 * len(cuts)} cut turns: {len(wrong)} ended otherwise" + (f" ({wrong[0]})" if wrong else "")
    return Outcome(got, not wrong)


async def _two_turns(scene: Stage, task: Task) -> tuple[Turn, Turn]:
    async with Engine(scene.workspace, scene.claude, Config()) as engine:
        sent = [engine.send(task, task.drafts["main"], prompt) for prompt in ("Be cut.", "Now on.")]
        first, second = [await prompt.outcome() for prompt in sent]
    return first, second


def _problem(scene: Stage, task: Task, cut: Turn, fine: Turn, after: int, *, for_good: bool) -> str:
    if cut.state not in (TurnState.failed, TurnState.finished):
        return f"the turn is {cut.state.value}"
    if cut.state is TurnState.failed and not (for_good and cut.detail):
        return f"it failed although the next try would have worked: {cut.detail}"
    if fine.state is not TurnState.finished:
        return f"the next turn is {fine.state.value}: {fine.detail}"
    said = scene.model.requests[-1].said
    if "Be cut." not in said and not cut.left_out:
        return "the next turn does not know of it"
    return _problem_of_article(scene, task, said, after, cut=cut.state is TurnState.failed)


def _problem_of_article(scene: Stage, task: Task, said: str, after: int, *, cut: bool) -> str:
    text = scene.workspace.text(task, "main")
    beside = [one.text for one in text.revisions() if one.aside]
    if not cut or after >= len(_BEFORE) + _PIECES:  # its call had its end
        is_whole = text.path.exists() and text.path.read_text(encoding="utf-8") == _ARTICLE
        return "" if is_whole and not beside else "the article is not there, or not alone"
    typed = _typed(_INPUT[: max(0, after - len(_BEFORE)) * _PIECE])
    if typed and (beside != [typed] or typed not in said):
        return f"of {typed!r} there is {beside}, and the next turn is told so: {typed in said}"
    return "" if typed or not beside else f"nothing was typed, and there is {beside}"


def _typed(data: str) -> str:
    """The article in the beginning of its JSON, which has no escapes but those of line ends."""
    return data[len('{"text": "') :].partition('"')[0].removesuffix("\\").replace("\\n", "\n")


FIGURES = [
    Figure(
        "the connection to the API cut after every event of a turn that types an article",
        f"{2 * CUTS} cut turns: each finishes with the whole article when asked again, or fails in the CLI's "
        "words with what had been typed as a version; the next works",
        _measure,
    )
]
