"""What all tests share: isolation from the machine, and a workspace of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.environment import clean_environment, offline_env
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.workspace import Workspace

SAMPLES = Path(__file__).parent.parent / "collections"


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No home folder, no account, no temporary files outside the test's own folder."""
    for name in [name for name in os.environ if name.startswith("SMARTWRITER_")]:
        monkeypatch.delenv(name)
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with clean_environment():
        yield


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Blocking work on the event loop fails the test; what the SDK does there is its own affair."""
    detector = BlockBuster(
        scanned_modules="smartwriter", excluded_modules=["smartwriter.agent.offline.server"]
    )
    for function in detector.functions.values():
        for module, functions in _SDK_BLOCKS.items():
            function.can_block_in(f"claude_agent_sdk/_internal/{module}.py", functions)
    detector.activate()
    try:
        yield detector
    finally:
        detector.deactivate()


_SDK_BLOCKS = {
    "session_resume": {"materialize_resume_session", "_rmtree_with_retry"},
    "transport/subprocess_cli": {"connect", "_find_cli", "__init__"},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty workspace."""
    return Workspace.create(tmp_path / "workspace")


@pytest.fixture
def model() -> Iterator[OfflineModel]:
    """The stand-in model, running, with its default script."""
    with OfflineModel() as model:
        yield model


@pytest.fixture
def claude(model: OfflineModel, tmp_path: Path) -> ClaudeAgent:
    """An agent that runs the real CLI against the stand-in."""
    return ClaudeAgent(env=offline_env(model.url, tmp_path / "cli-home"))


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that no rename leads to."""
    if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("no second disk to write to")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
