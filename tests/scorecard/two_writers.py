"""Two processes resume the same draft at the same moment, over and over.

Each wants to append to the article through the tools. Exactly one of them takes a turn; the other is refused
and records nothing; the chain stays whole: the next request holds every turn that was taken, in order, and
nothing else, and so does the article.
"""

from __future__ import annotations

import re
import subprocess

from figure import Figure, Outcome, Run
from stage import Stage, stage

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.tasks.values import Task

RACES = 100


def _slowly(request: Request) -> Reply:
    if request.tool_results:
        return [Text(f"Heard {request.prompt}.")]
    # Longer than the second process may come later than the first.
    addition = f"Written in {request.prompt} " + "and so on " * 20
    return [ToolUse("append_draft", {"text": addition}, chunk_chars=8, pause_s=0.03)]


def _measure(run: Run) -> Outcome:
    races, both, neither = run.scaled(RACES), 0, 0
    with stage(run, _slowly) as scene:
        task = scene.workspace.new_task("Herons")
        for number in range(races):
            ended = [process.wait(timeout=120) for process in _race(scene, task, number)]
            both += ended.count(0) == 2
            neither += ended.count(0) == 0
        turns = scene.workspace.tasks.turns(task, "main")
        scene.run("write", task.id, "The last.", "--offline")
        said = scene.model.requests[-1].said
        places = [said.find(f"Heard {turn.prompt}.") for turn in turns]
        article = scene.workspace.text(task, "main").path.read_text(encoding="utf-8")
        written = re.findall(r"Written in (race \d+ by \w\.)", article)
        whole = places == sorted(places) and -1 not in places and len(turns) == races
        whole = whole and written == [turn.prompt for turn in turns]
        refused = sum(f"race {number} by {who}." in said for number in range(races) for who in "ab") - len(
            turns
        )
    got = (
        f"{races} races: {both} times both wrote, {neither} times neither; {len(turns)} turns in the chain, "
        f"{'whole' if whole else 'NOT whole'}; {refused} refused prompts in it"
    )
    return Outcome(got, not both and not neither and whole and not refused)


def _race(scene: Stage, task: Task, number: int) -> list[subprocess.Popen[bytes]]:
    return [scene.start(f"{task.id}=race {number} by {who}.") for who in "ab"]


FIGURES = [
    Figure(
        "two processes resume one draft at once",
        f"{RACES} times: exactly one runs, the other is refused, chain and article are whole",
        _measure,
    )
]
