"""``smartwriter demo``: the whole story in under a minute, on the real Claude Code CLI.

Every step runs the same command that a writer would type, in a process of its own. Without
``--live`` the model is a stand-in that types texts from ``demo.json``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from smartwriter.cli.console import TerminalConsole
from smartwriter.cli.interrupts import kill_tree
from smartwriter.cli.library import samples
from smartwriter.cli.progress import Progress
from smartwriter.cli.running import OFFLINE_URL
from smartwriter.events import Event, parse
from smartwriter.tasks import Task
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from smartwriter.agent.offline import Reply, Request

_CUT_CHARACTERS = 45  # of each answer, before the plug is pulled
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
    root = folder or Path(tempfile.mkdtemp(prefix="smartwriter-demo-"))
    with contextlib.ExitStack() as stack:
        # A killed process cannot clear up after itself.
        temporary = tempfile.TemporaryDirectory(prefix="smartwriter-", ignore_cleanup_errors=True)
        environment = {"TMPDIR": stack.enter_context(temporary)}
        if not live:
            environment |= stack.enter_context(_stand_in(console))
        _Story(console, Workspace.create(root), environment, live).tell()


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
        self._run([article["prompt2"] for article in articles], stop_when=_all_mid_sentence())
        self._say("A new process resumes each by its task. The history is there:")
        for task in self._tasks:
            self._show(task)
        self._run([_ON_AGAIN[_language(article["prompt1"])] for article in articles])
        self._fork()
        self._say("What all this left on disk, as plain files:")
        self._console.print(_tree(self._workspace.root))
        self._console.print()
        self._console.print(self._transcript_line(), style="dim", soft_wrap=True, markup=False)
        self._say(f"Have a look around: smartwriter tasks -w {self._workspace.root}")

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

    def _show(self, task: Task) -> None:
        output = subprocess.run(
            self._arguments("show", task.id, "--json"),
            env=self._environment,
            check=True,
            capture_output=True,
        ).stdout
        table = Table.grid(padding=(0, 1))
        table.title, table.title_justify = f"{task.title}  {task.id}", "left"
        for message in json.loads(output)["messages"]:
            if text := " ".join(message["text"].split()):
                who = "you" if message["role"] == "user" else "answer"
                table.add_row(f"  {who}", Text(text if len(text) < 90 else text[:90] + "…"))
        self._console.print(table)

    def _transcript_line(self) -> str:
        task = self._tasks[0]
        path = self._workspace.transcript(task, task.drafts[task.current]).path
        lines = path.read_text(encoding="utf-8").splitlines()
        line = next(line for line in lines if '"type":"user"' in line)
        return f"{path.relative_to(self._workspace.root)}, one line of {len(lines)}:\n{line}"

    def _arguments(self, command: str, *arguments: str) -> list[str]:
        workspace = ["-w", str(self._workspace.root)]
        return [sys.executable, "-m", "smartwriter", command, *workspace, *arguments]

    def _say(self, text: str) -> None:
        self._console.print(f"\n{text}", style="bold", markup=False)


def _all_mid_sentence() -> Callable[[Event], bool]:
    """True once every draft that has started is in the middle of its answer."""
    typed: dict[str, int] = {}

    def check(event: Event) -> bool:
        if event.kind == "queued":
            typed[event.task] = 0
        elif event.kind == "text_delta":
            typed[event.task] += len(event.text)
        elif event.kind == "finished":
            typed[event.task] = _CUT_CHARACTERS
        return min(typed.values()) >= _CUT_CHARACTERS

    return check


def _side_by_side(titles: list[str], texts: list[str]) -> Table:
    table = Table(expand=True)
    for title in titles:
        table.add_column(title, ratio=1, overflow="fold")
    table.add_row(*(Text(text) for text in texts))
    return table


def _tree(root: Path) -> Tree:
    tree = Tree(f"{root}/")
    folders = {root: tree}
    for path in sorted(root.rglob("*")):
        if path.is_dir():
            folders[path] = folders[path.parent].add(f"{path.name}/")
        else:
            folders[path.parent].add(Text.assemble(path.name, (f"  {path.stat().st_size:,}", "dim")))
    return tree


# The stand-in's part --------------------------------------------------------------------------


@contextlib.contextmanager
def _stand_in(console: Console) -> Iterator[dict[str, str]]:
    from smartwriter.agent.offline import BANNER, OfflineModel

    with OfflineModel(_type_the_texts) as model:
        console.print(BANNER, style="yellow")
        yield {OFFLINE_URL: model.url}


def _type_the_texts(request: Request) -> Reply:
    """What the demo's stand-in answers: the texts of ``demo.json``, at a typist's speed."""
    from smartwriter.agent import offline

    article, step = _place(request)
    language = _language(article["prompt1"])
    if request.tool_results:
        done = {"zh": "写进草稿了。", "en": "It is in the draft now."}[language]
        return [offline.Text(done, pause_s=_TYPING_S)]
    # A few characters a delta, so that the answers are seen being typed.
    said = offline.Text(f"{offline.BANNER}\n\n", chunk_chars=12, pause_s=_TYPING_S)
    if step == "prompt2":
        return [said, offline.Text(article["text2_addition"], chunk_chars=3, pause_s=_TYPING_S)]
    texts = {
        "prompt1": article["text1"],
        "again": f"{article['text1']}\n\n{article['text2_addition']}",
        "fork": _texts()["fork"]["text"],
    }
    return [said, offline.ToolUse("write_draft", {"text": texts[step]})]


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


def _language(text: str) -> str:
    return "zh" if any("\u4e00" <= character <= "\u9fff" for character in text) else "en"


def _texts() -> dict[str, Any]:
    texts: dict[str, Any] = json.loads((Path(__file__).parent / "demo.json").read_text(encoding="utf-8"))
    return texts
