"""Facts about the Agent SDK and its CLI on which the code leans. Each test states one, in its docstring;
with another version of the SDK, a red one is named by that sentence."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from claude_agent_sdk import __version__
from talks import Desk

from smartwriter.agent.offline.environment import clean_environment
from smartwriter.agent.offline.server import OfflineModel


@pytest.fixture
def desk(model: OfflineModel, tmp_path: Path) -> Desk:
    return Desk(model, tmp_path)


@pytest.fixture(scope="module")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """For a conversation from which several facts can be read."""
    with clean_environment(), OfflineModel() as model:
        yield Desk(model, tmp_path_factory.mktemp("desk"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and isinstance(item, pytest.Function) and item.path.parent.name == "sdk":
        report.user_properties.append(("fact", " ".join((item.function.__doc__ or item.name).split())))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # A test that could not begin says nothing of its fact.
    for kind, what in (("failed", "NOT SO"), ("error", "NOT TRIED")):
        for report in terminalreporter.stats.get(kind, []):
            for name, sentence in report.user_properties:
                if name == "fact":
                    terminalreporter.write_line(f"{what} with SDK {__version__}: {sentence}", red=True)
