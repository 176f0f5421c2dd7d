"""The script that installs for those who develop."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "install"
UV = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/../log"
[ "$1" = pip ] && [ -e "$(dirname "$0")/../broken" ] && exit 1
[ "$1" = pip ] || { mkdir -p .venv/bin; touch .venv/bin/python; chmod +x .venv/bin/python; }
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_it_installs_anew_by_what_is_asked_for_never_by_times(tmp_path: Path) -> None:
    """What an installation is of is known by content: a pyproject.toml that is older than it and says
    something else is installed, one that is newer and says the same is not, and a failure is tried again."""
    for folder in ("scripts", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "bin" / "uv").write_text(UV)
    (tmp_path / "bin" / "uv").chmod(0o755)
    project, log, broken = (tmp_path / name for name in ("pyproject.toml", "log", "broken"))

    def installs(text: str, time_s: int, *extras: str) -> bool:
        """Whether anything is installed for a project file of this text and time."""
        project.write_text(text)
        os.utime(project, (time_s, time_s))
        log.unlink(missing_ok=True)
        path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            [tmp_path / "scripts" / "install", *extras], env={"PATH": path}, check=not broken.exists()
        )
        return log.exists() and "--editable" in log.read_text()

    new = 2**32
    assert installs("one", 1, "dev") and not installs("one", new, "dev")
    assert installs("two", 1, "dev") and not installs("two", 1, "dev")
    assert installs("two", 1), "other extras are another installation"
    broken.touch()
    assert installs("three", 1, "dev")
    broken.unlink()
    assert installs("three", 1, "dev") and not installs("three", 1, "dev")
