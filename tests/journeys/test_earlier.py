"""What an earlier version made is used as if this one had: ``workspace-0.1.0.zip`` was written by 0.1.0."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from faces import printed
from turns import make_fork, take_turn

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.doctor.examine import examine
from smartwriter.tasks.values import TurnState
from smartwriter.workspace import Workspace

_FERRY, _HERONS = "z4zd", "jwnw"


@pytest.fixture
def earlier(tmp_path: Path) -> Workspace:
    with zipfile.ZipFile(Path(__file__).with_name("workspace-0.1.0.zip")) as archive:
        archive.extractall(tmp_path / "texts")
    return Workspace(tmp_path / "texts")


def test_a_workspace_of_the_version_before_is_read(earlier: Workspace) -> None:
    """Tasks, forks, texts, turns, memory and what was finished are as they were, and the doctor finds nothing
    but that others may look into it."""
    assert [task.title for task in earlier.tasks.all()] == ["渡口", "Herons"]
    ferry = earlier.tasks.find("渡口")
    assert list(ferry.drafts) == ["main", "trial"]
    assert [turn.state for turn in earlier.tasks.turns(ferry, "main")][:2] == [TurnState.finished] * 2
    assert "Write about the ferry." in printed(earlier, "show", _FERRY)
    assert printed(earlier, "text", f"{_FERRY}:1") != printed(earlier, "text", f"{_FERRY}:2")
    assert earlier.tasks.find(_HERONS).finished
    assert {finding.kind for finding in examine(earlier)} <= {"permissions"}


def test_a_draft_of_the_version_before_goes_on(
    earlier: Workspace, claude: ClaudeAgent, model: OfflineModel
) -> None:
    """Resumed, the model is sent the whole conversation; forked, its first turn alone."""
    assert take_turn(earlier, claude, _FERRY, "Go on now.").state is TurnState.finished
    sent = str(model.requests[-1].body["messages"])
    assert "Write about the ferry." in sent and "Write on." in sent and "Go on now." in sent
    fork = make_fork(earlier, earlier.tasks.find(_FERRY), "main", at=1)
    assert take_turn(earlier, claude, f"{_FERRY}@{fork.name}", "Another way.").state is TurnState.finished
    sent = str(model.requests[-1].body["messages"])
    assert "Write about the ferry." in sent and "Write on." not in sent and "Another way." in sent
