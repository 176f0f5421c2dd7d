"""The README's examples are run, and their output is what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.environment import offline_env
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.cli.app import cli
from smartwriter.workspace import Workspace

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def steps(block: str) -> list[tuple[str, str]]:
    """Each command of a console block and the output shown for it."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def test_the_console_session_prints_what_it_shows(tmp_path: Path) -> None:
    """Every command of the README's sessions works as written and prints what stands below it."""
    for number, block in enumerate(blocks("console")):
        folder = tmp_path / f"ada{number}"
        folder.mkdir()
        known: dict[str, str] = {}  # the README's task ids, and those of this run
        here = folder
        for command, shown in steps(block):
            words = shlex.split(command)
            if words[0] == "cd":
                here = here / words[1]
                continue
            assert words[0] == "smartwriter"
            for id, real in known.items():
                words = [re.sub(rf"\b{id}\b", real, word) for word in words]
            done = subprocess.run(
                [sys.executable, "-m", *words], cwd=here, env=os.environ, capture_output=True, text=True
            )
            printed = done.stdout.replace(str(folder), "/home/ada")
            if words[1] == "new":
                known[shown.split()[0]] = printed.split()[0]
            for id, real in known.items():
                printed = printed.replace(real, id)
            assert done.returncode == 0, done.stderr
            assert _comparable(printed) == _comparable(shown), command
        for hidden in folder.glob("*/.smartwriter"):
            files = [str(file.relative_to(hidden)) for file in hidden.rglob("*") if file.is_file()]
            assert [file for file in files if not _is_in_layout(file)] == []


def _is_in_layout(file: str) -> bool:
    """Whether "Where everything is" says what a file of ``.smartwriter`` is."""
    section = README.partition("## Where everything is")[2].partition("\n## ")[0]
    words = section.partition(".smartwriter/")[2].partition("```")[0].split()
    places = [word for word in words if word.endswith((".jsonl", ".lease", "/fork", ".md", ".toml", "/"))]
    patterns = [re.sub(r"<\w+>", "[^/]+", re.escape(place)) for place in places]
    return any(re.fullmatch(pattern + (".*" if pattern[-1] == "/" else ""), file) for pattern in patterns)


def _comparable(output: str) -> list[str]:
    lines = [line.rstrip() for line in re.sub(r"\d+\.\d s", "0.0 s", output).rstrip().split("\n")]
    # Drafts written in parallel end in any order.
    return sorted(lines) if all("finished," in line for line in lines) else lines


def test_the_three_lines_store_and_resume_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: OfflineModel
) -> None:
    """The plugin snippet, run as it stands, stores a session that another client resumes."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, ClaudeAgentOptions] = {}
    exec(blocks("python")[0], names)
    options = names["options"]
    options.env = offline_env(model.url, tmp_path / "cli-home")
    options.tools = []

    async def ask(prompt: str) -> str:
        async for message in query(prompt=prompt, options=options):
            if isinstance(message, ResultMessage):
                return message.session_id
        raise AssertionError("no result")

    session_id = anyio.run(ask, "Remember the heron.")
    (transcript,) = (tmp_path / ".smartwriter" / "sessions").rglob("*.jsonl")
    assert transcript.stem == session_id
    options.resume = session_id
    assert anyio.run(ask, "What was it?") == session_id
    assert "Remember the heron." in model.requests[-1].said


def test_the_program_writes_an_article(
    workspace: Workspace, claude: ClaudeAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program that is shown, run as it stands, prints the article and leaves it in its file."""
    names: dict[str, Any] = {"__name__": "theirs"}
    exec(blocks("python")[1], names)
    task = workspace.new_task("The last ferry")
    anyio.run(names["write"], workspace, claude, task, "Open with the fog.")
    text = workspace.text(task, task.current)
    assert text.path.read_text(encoding="utf-8").strip() == capsys.readouterr().out.strip() != ""


def test_where_the_text_lies_is_said_as_it_is(workspace: Workspace) -> None:
    """The Markdown file of a task is where the first five minutes say, in a collection and outside of one."""
    workspace.new_collection("rivers")
    said = README.partition("## The first five minutes")[2].partition("```console")[0]
    for collection, place in (("rivers", "rivers/drafts/The last ferry/main.md"), (None, "unfiled/")):
        task = workspace.new_task("The last ferry", collection)
        path = workspace.text(task, task.current).path.relative_to(workspace.root).as_posix()
        assert path.startswith(f"collections/{place}") and f"collections/{place}`" in said


def test_the_drawing_of_the_rooms_is_the_contract_between_them() -> None:
    """What is drawn, line by line, are the layers that import-linter checks; folders end with a slash."""
    drawn = README.partition("## How it fits together")[2].split("```")[1].strip().splitlines()
    names = [[word for word in re.split(r" {2,}", line) if re.fullmatch(r"\w+/?", word)] for line in drawn]
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    assert [{name.rstrip("/") for name in line} for line in names] == [
        set(layer.split(" | ")) for layer in contract["layers"]
    ]
    for name in (name for line in names for name in line):
        assert (ROOT / "smartwriter" / name.rstrip("/")).is_dir() == name.endswith("/"), name


def test_every_script_is_named_and_there() -> None:
    """ "Working on it" names what there is to run, all of it but what the others call."""
    named = re.findall(r"^    scripts/(\w+)", README.partition("## Working on it")[2], re.MULTILINE)
    assert {*named, "install"} == {path.name for path in (ROOT / "scripts").iterdir()}


def test_one_version_is_said_everywhere() -> None:
    """What is installed, pyproject.toml and the newest of the changes have one version."""
    newest = re.search(r"^### (\S+)", README.partition("## Changes")[2], re.MULTILINE)
    assert newest and newest[1] == PROJECT["project"]["version"] == metadata.version("smartwriter")


def test_every_command_is_in_the_readme_or_in_help() -> None:
    """Each command has a help text, and the README shows the ones a writer needs first."""
    context = cli.make_context("smartwriter", [], resilient_parsing=True)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None and command.get_short_help_str(), name
    for name in ("init", "collection", "new", "write", "run", "show", "text", "fork", "adopt", "drop"):
        assert f"smartwriter {name}" in README, name
