"""``smartwriter demo``: the whole story in under a minute, on the real Claude Code CLI.

Every step runs the same command that a writer would type, in a process of its own. Without
``--live`` the model is a stand-in that types texts from ``demo.json``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from smartwriter.cli.collection import samples
from smartwriter.cli.console import TerminalConsole
from smartwriter.cli.interrupts import kill_tree, signals_raised
from smartwriter.cli.progress import Progress
from smartwriter.cli.running import OFFLINE_URL
from smartwriter.events import Event, parse
from smartwriter.tasks.values import Task
from smartwriter.text.language import guessed_language
from smartwriter.text.wording import counted
from smartwriter.text.words import count_words
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from smartwriter.agent.offline.script import Reply, Request

_BANNER = "No model writes here, and nothing is paid for: a stand-in types what was written for this demo."
_CUT_CHARACTERS = 45  # of each article, before the plug is pulled
_TYPING_S = 0.02
_ON_AGAIN = {"zh": "刚才断电了。接着写，写完为止。", "en": "The power went. Go on from there and finish it."}


@click.command()
@click.option("--live", is_flag=True, help="Use the real model, with your Claude login or API key.")
@click.option(
    "-w", "--workspace", "folder", type=click.Path(path_type=Path), help="Where to make the workspace."
)
def demo_command(live: bool, folder: Path | None) -> None:
    """Watch three articles written at once, killed, resumed, forked and compared."""
    console = TerminalConsole()
    with contextlib.ExitStack() as stack:
        stack.enter_context(signals_raised())
        # A killed process cannot clear up after itself.
        temporary = tempfile.TemporaryDirectory(prefix="smartwriter-demo-", ignore_cleanup_errors=True)
        inside = Path(stack.enter_context(temporary))
        root = folder or inside / "essays"
        (inside / "tmp").mkdir()
        environment = {"TMPDIR": str(inside / "tmp")}
        if not live:
            environment |= stack.enter_context(_stand_in(console))
        _Story(console, Workspace.create(root), environment, live).tell()
        if folder is None:
            console.print(
                "\nThe demo's folder is removed now. To look around in it, have it made somewhere: "
                "smartwriter demo -w FOLDER",
                markup=False,
                soft_wrap=True,
            )
        else:
            console.print(f"\nLook around: smartwriter tasks -w {root}", markup=False, soft_wrap=True)


class _Story:
    def __init__(
        self, console: Console, workspace: Workspace, environment: dict[str, str], live: bool
    ) -> None:
        self._console = console
        self._workspace = workspace
        self._environment = os.environ | environment
        self._live = live
        self._texts = _texts()
        self._tasks: list[Task] = []

    def tell(self) -> None:
        self._say(f"A workspace with two collections: {self._workspace.root}")
        for sample in samples():
            self._workspace.add_sample(sample)
        articles = self._texts["articles"]
        self._tasks = [
            self._workspace.new_task(article["title"], article["collection"]) for article in articles
        ]
        self._say("Three articles, written in parallel.")
        self._run([article["prompt1"] for article in articles])
        self._say("They are written on, and the writing process is killed with SIGKILL mid-sentence.")
        heard: dict[str, str] = {task.id: "" for task in self._tasks}
        self._run([article["prompt2"] for article in articles], stop_when=_all_mid_sentence(heard))
        self._say("What stood on the screen at that moment is there, to the last word:")
        for task in self._tasks:
            self._show_cut_off(task, heard[task.id])
        self._say("A new process goes on in the middle of each sentence.")
        self._run([_ON_AGAIN[guessed_language(article["prompt1"])] for article in articles])
        self._fork()
        self._say("What became of the first one, version by version:")
        self._command("log", self._tasks[0].id)
        self._say("The articles, as files for any editor:")
        for task in self._workspace.tasks.all():
            text = self._workspace.text(task, task.current)
            where = text.path.relative_to(self._workspace.root)
            self._console.print(
                f"  {where}  {counted(count_words(text.read()), 'word')}", markup=False, soft_wrap=True
            )

    def _fork(self) -> None:
        plan = self._texts["fork"]
        task = self._tasks[plan["of"]]
        trial = f"{task.id}@{plan['name']}"
        self._say(f"A trial draft, forked after turn 1 of {task.title}, goes its own way.")
        self._command("fork", task.id, "--at", "1", "--name", plan["name"])
        self._run([plan["prompt"]], [trial])
        drafts = [self._workspace.text(task, name).read() for name in (task.current, plan["name"])]
        self._console.print(_side_by_side([task.address(task.current), trial], drafts))
        self._say("It is the better one. The other stays, word for word.")
        self._command("adopt", trial)

    def _run(
        self,
        prompts: list[str],
        addresses: list[str] | None = None,
        stop_when: Callable[[Event], bool] | None = None,
    ) -> None:
        """Write with ``smartwriter run``, and kill it when told to."""
        addresses = addresses or [task.id for task in self._tasks]
        jobs = [f"{address}={prompt}" for address, prompt in zip(addresses, prompts, strict=True)]
        with subprocess.Popen(
            self._arguments("run", "--json", *([] if self._live else ["--offline"]), *jobs),
            stdout=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,  # ctrl-C is the demo's alone, which ends it
        ) as process:
            assert process.stdout is not None
            try:
                with Progress({task.id: task.title for task in self._tasks}, self._console) as progress:
                    for line in process.stdout:
                        event = parse(line)
                        progress.show(event)
                        if stop_when is not None and stop_when(event):
                            kill_tree(process.pid)
                            self._console.print(f"kill -9 {process.pid}", style="bold red")
                            return
            except BaseException:
                kill_tree(process.pid)
                raise
        if process.returncode:
            raise click.ClickException("The demo stopped: the turn above says why.")

    def _command(self, *arguments: str) -> None:
        self._console.print(f"$ smartwriter {' '.join(arguments)}", style="bold")
        subprocess.run(self._arguments(*arguments), env=self._environment, check=True)

    def _show_cut_off(self, task: Task, heard: str) -> None:
        """The end of what was kept of an article, if it is all that was heard of it."""
        output = subprocess.run(
            self._arguments("show", task.id, "--json"),
            env=self._environment,
            check=True,
            capture_output=True,
        ).stdout
        kept = json.loads(output)["cut_off"]
        if not heard:  # it had come to its end by then
            return
        if not kept or heard not in kept[-1]["text"]:
            raise click.ClickException(f"The demo stopped: {task.title} lost {heard!r}.")
        address = f"{task.address(task.current)}:{kept[-1]['revision']}"
        self._console.print(f"{task.title}, cut off, kept as {address}:", style="yellow", markup=False)
        self._console.print(f"  … {' '.join(heard.split())}▌", markup=False, soft_wrap=True)

    def _arguments(self, command: str, *arguments: str) -> list[str]:
        workspace = ["-w", str(self._workspace.root)]
        return [sys.executable, "-m", "smartwriter", command, *workspace, *arguments]

    def _say(self, text: str) -> None:
        self._console.print(f"\n{text}", style="bold", markup=False)


def _all_mid_sentence(heard: dict[str, str]) -> Callable[[Event], bool]:
    """True once every draft that has started is in the middle of its article.

    :param heard: gets what each had typed by then, by task; nothing for one that had finished.
    """
    done: set[str] = set()

    def check(event: Event) -> bool:
        if event.kind == "article_delta" and event.field == "text":
            heard[event.task] += event.text
        elif event.kind == "finished":
            heard[event.task] = ""
            done.add(event.task)
        return all(task in done or len(typed) >= _CUT_CHARACTERS for task, typed in heard.items())

    return check


def _side_by_side(titles: list[str], texts: list[str]) -> Table:
    table = Table(expand=True)
    for title in titles:
        table.add_column(title, ratio=1, overflow="fold")
    table.add_row(*(Text(text) for text in texts))
    return table


# The stand-in's part --------------------------------------------------------------------------


@contextlib.contextmanager
def _stand_in(console: Console) -> Iterator[dict[str, str]]:
    from smartwriter.agent.offline.server import OfflineModel

    with OfflineModel(_type_the_texts) as model:
        console.print(_BANNER, style="yellow")
        yield {OFFLINE_URL: model.url}


def _type_the_texts(request: Request) -> Reply:
    """What the demo's stand-in answers: the texts of ``demo.json``, at a typist's speed."""
    from smartwriter.agent.offline import script

    article, step = _place(request)
    language = guessed_language(article["prompt1"])
    if request.tool_results:
        done = {"zh": "写进草稿了。", "en": "It is in the draft now."}[language]
        return [script.Text(done, pause_s=_TYPING_S)]
    # A few characters a delta, so that the articles are seen being typed.
    typed = partial(script.ToolUse, chunk_chars=18, pause_s=_TYPING_S / 2)
    if step == "prompt2":
        return [replace(typed("append_draft", {"text": article["text2_addition"]}), pause_s=_TYPING_S * 3)]
    if step == "again":
        return [typed("append_draft", _rest(article, request.prompt))]
    return [
        typed("write_draft", {"text": article["text1"] if step == "prompt1" else _texts()["fork"]["text"]})
    ]


def _rest(article: dict[str, Any], prompt: str) -> dict[str, Any]:
    """What is missing of an article, behind the version that was cut off and is told with the prompt."""
    addition = article["text2_addition"]
    version = re.search(r"append_draft with version (\d+)", prompt)
    told = max((end for end in range(len(addition)) if addition[:end] in prompt), default=0)
    if version is None or not told:
        return {"text": addition}
    return {"version": int(version[1]), "text": addition[told:]}


def _place(request: Request) -> tuple[dict[str, Any], str]:
    """Which article a request belongs to, and where in the story it is."""
    texts = _texts()
    if request.prompt == texts["fork"]["prompt"]:
        return texts["articles"][texts["fork"]["of"]], "fork"
    for article in texts["articles"]:
        if article["prompt1"] in request.said:
            steps = {article["prompt1"]: "prompt1", article["prompt2"]: "prompt2"}
            return article, steps.get(request.prompt, "again")
    raise ValueError(f"The demo has no answer to {request.prompt[:60]!r}.")


def _texts() -> dict[str, Any]:
    texts: dict[str, Any] = json.loads((Path(__file__).parent / "demo.json").read_text(encoding="utf-8"))
    return texts
