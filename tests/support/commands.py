"""Running ``smartwriter`` as a user does: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from smartwriter.agent.offline.server import OfflineModel


def environment(model: OfflineModel | None) -> dict[str, str]:
    """Of a process that uses a stand-in of this one."""
    return dict(os.environ) | ({"SMARTWRITER_OFFLINE_URL": model.url} if model else {})


def command(workspace: Path, name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "smartwriter", name, "-w", str(workspace), *arguments]


def smartwriter(
    workspace: Path, name: str, *arguments: str, model: OfflineModel | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; with a model, --offline."""
    return subprocess.run(
        command(workspace, name, *arguments, *(["--offline"] if model else [])),
        env=environment(model),
        input=stdin,
        capture_output=True,
        timeout=60,
    )


def written(workspace: Path, *arguments: str, model: OfflineModel) -> dict[str, Any]:
    """The turn that ``smartwriter write`` took."""
    done = smartwriter(workspace, "write", *arguments, "--json", model=model)
    assert done.returncode == 0, done.stderr.decode()
    turn: dict[str, Any] = json.loads(done.stdout)
    return turn
