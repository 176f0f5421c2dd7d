"""The README's examples are run, and their output is what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from smartwriter.agent.offline.environment import offline_env
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.cli.app import cli

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


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


def test_every_command_is_in_the_readme_or_in_help() -> None:
    """Each command has a help text, and the README shows the ones a writer needs first."""
    context = cli.make_context("smartwriter", [], resilient_parsing=True)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None and command.get_short_help_str(), name
    for name in ("init", "collection", "new", "write", "run", "show", "text", "fork", "adopt", "drop"):
        assert f"smartwriter {name}" in README, name
