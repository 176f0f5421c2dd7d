"""A conversation that was compacted, by command or by the CLI itself, is still the same conversation."""

from __future__ import annotations

import pytest
from compacted import Compacted, early, says

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline import OfflineModel
from smartwriter.doctor import examine
from smartwriter.workspace import Workspace


@pytest.mark.parametrize(
    "prompts",
    [["First.", "Second.", "/compact", "Third.", "/compact", "Fourth."], ["First.", "Tools.", "Third."]],
    ids=["by command", "by itself, in a turn"],
)
def test_a_fork_is_sent_what_its_origin_was_sent(
    workspace: Workspace, claude: ClaudeAgent, model: OfflineModel, prompts: list[str]
) -> None:
    """Forked or rewound at any turn, before or after a compaction, the model is sent what it was sent
    in the origin, message for message; the origin is as it was, and nothing is found by the doctor."""
    model.script = says
    by_itself = "/compact" not in prompts
    origin = Compacted(workspace, early(claude) if by_itself else claude, model, prompts)
    assert origin.compactions() == (1 if by_itself else 2)
    transcript = workspace.transcript(origin.task, origin.task.drafts["main"]).path
    before = transcript.read_bytes()
    assert origin.differing() == []
    assert transcript.read_bytes() == before
    assert not list(examine(workspace))
