"""What somebody gets who installs the package: its types, its files, what it says of itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from consumer import program

from smartwriter import ClaudeAgent

ROOT = Path(__file__).parents[1]
CHECKERS = {
    # With a cache of its own: it reads all that the SDK and pydantic consist of.
    "mypy": f"mypy --strict --config-file= --cache-dir={ROOT}/.mypy_cache/consumer --python-executable",
    "pyright": "pyright --pythonpath",
}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_the_program_of_a_consumer_is_type_checked(checker: str, tmp_path: Path) -> None:
    """A program that uses the store, a workspace, the engine, events and errors has no fault for mypy and
    pyright at their strictest; and they know the types, for one that misuses an event has that one fault."""
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}), encoding="utf-8")
    right = Path(program.__file__).read_text(encoding="utf-8")
    wrong = right.replace("event.turn.state.value", "event.turn.status")
    (tmp_path / "right.py").write_text(right, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    command = [sys.executable, "-m", *CHECKERS[checker].split(" "), sys.executable, "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    faults = [line for line in done.stdout.splitlines() if "error:" in line]
    assert faults, done.stdout + done.stderr
    assert [line for line in faults if "wrong.py:" not in line or "status" not in line] == []


@pytest.mark.slow
def test_the_program_of_a_consumer_runs(
    tmp_path: Path, claude: ClaudeAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes an article through the engine, hears it typed, and has it in the end."""
    said = program.main(tmp_path / "theirs", claude)
    assert said.startswith("finished for ") and "Open with the fog." in said
    assert "No model has written this." in capsys.readouterr().out


@pytest.mark.slow
def test_the_wheel_has_all_that_the_program_reads(tmp_path: Path) -> None:
    """A wheel built from here has every module, the mark that there are types, the demo and the samples."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "smartwriter").rglob("*.py")}
    wanted |= {"smartwriter/py.typed", "smartwriter/cli/demo.json"}
    samples = ROOT / "collections"
    wanted |= {
        f"smartwriter/samples/{path.relative_to(samples).as_posix()}" for path in samples.rglob("*.md")
    }
    assert any("/samples/" in name for name in wanted)
    assert wanted <= names


def test_the_pythons_that_are_named_are_those_that_are_tested() -> None:
    """The classifiers have the versions of Python that the tests run on, no more and no fewer."""
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tested = re.search(r"for version in (.*); do", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert tested and named == tested[1].split()


def test_the_sdk_is_bounded_above() -> None:
    """A new line of the SDK, which nobody has tested, is not installed by itself."""
    (sdk,) = (line for line in metadata.requires("smartwriter") or () if line.startswith("claude-agent-sdk"))
    assert ">=" in sdk and "<" in sdk
