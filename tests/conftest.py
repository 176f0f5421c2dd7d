"""What all tests share: isolation from the machine, and a workspace of their own."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster
from hypothesis import settings

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.environment import clean_environment, offline_env
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.storage.files import FileStorage
from smartwriter.storage.interface import Storage
from smartwriter.workspace import Workspace

settings.register_profile("dev", max_examples=25, deadline=None, database=None)
settings.register_profile("ci", max_examples=100, deadline=None, database=None)
settings.load_profile("dev")

pytest_plugins = ["facts"]

SAMPLES = Path(__file__).parent.parent / "collections"


_ROOMS_OF_PROCESSES = {"journeys", "sdk"}
"""Folders of tests that all run commands or the CLI."""
_FIXTURES_OF_PROCESSES = {"model", "claude"}
_SUPPORT_OF_PROCESSES = {"commands", "terminal", "dying"}
"""Modules of ``tests/support`` that start processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs processes is slow: ``scripts/test --fast`` leaves it out."""
    for item in items:
        if isinstance(item, pytest.Function) and _runs_processes(item):
            item.add_marker("slow")


def _runs_processes(test: pytest.Function) -> bool:
    if test.path.parent.name in _ROOMS_OF_PROCESSES or _FIXTURES_OF_PROCESSES & set(test.fixturenames):
        return True
    known = vars(test.module)
    used = (known.get(name) for name in test.function.__code__.co_names)
    return any(getattr(one, "__module__", None) in _SUPPORT_OF_PROCESSES for one in used)


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
    detector = BlockBuster(scanned_modules="smartwriter", excluded_modules=["smartwriter.agent.offline"])
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


STORAGES: dict[str, Callable[[Path], Storage]] = {"files": FileStorage}
"""Each kind there is, made by a folder of its own."""


@pytest.fixture(params=STORAGES)
def new_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Makes empty ones of each kind: a test that takes it runs over all."""
    folders = (tmp_path / f"records-{number}" for number in itertools.count())
    return lambda: STORAGES[request.param](next(folders))


@pytest.fixture
def storage(new_storage: Callable[[], Storage]) -> Storage:
    """As :func:`new_storage`, one."""
    return new_storage()


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
