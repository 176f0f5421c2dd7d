"""What the figures of a running engine share: an isolated machine, a stand-in, processes to kill."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from figure import Run

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.environment import clean_environment, offline_env
from smartwriter.agent.offline.script import Script
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.workspace import Workspace


@dataclass(frozen=True)
class Stage:
    workspace: Workspace
    model: OfflineModel
    claude: ClaudeAgent
    temporary: Path
    """The folder for temporary files, of this process and all that it starts."""

    def command(self, name: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "smartwriter", name, "-w", str(self.workspace.root), *arguments]

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of ours, to its end."""
        return subprocess.run(self.command(name, *arguments), capture_output=True, text=True, timeout=120)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """``smartwriter run``, in a process group of its own; what it writes is discarded."""
        return subprocess.Popen(
            self.command("run", "--offline", *arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


@contextlib.contextmanager
def stage(run: Run, script: Script | None = None) -> Iterator[Stage]:
    """A workspace, a stand-in model, and no way to the user's own things."""
    temporary, home = run.folder / "tmp", run.folder / "home"
    temporary.mkdir()
    home.mkdir()
    with (
        clean_environment(),
        OfflineModel(script) as model,
        mock.patch.dict(
            os.environ,
            {"HOME": str(home), "TMPDIR": str(temporary), "SMARTWRITER_OFFLINE_URL": model.url},
        ),
        mock.patch.object(tempfile, "tempdir", str(temporary)),
    ):
        claude = ClaudeAgent(env=offline_env(model.url, run.folder / "cli-home"))
        yield Stage(Workspace.create(run.folder / "workspace"), model, claude, temporary)
