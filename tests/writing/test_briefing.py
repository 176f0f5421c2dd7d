from __future__ import annotations

import pytest

from smartwriter.agent.tools import DraftTools
from smartwriter.memory.snapshot import Memory
from smartwriter.tasks.values import Turn, TurnState
from smartwriter.workspace import Workspace
from smartwriter.writing.briefing import Briefing


@pytest.mark.parametrize(
    ("lost", "told"),
    [("Open with the fog.", ["Open with the fog.", "Go on."]), ("/compact", ["Go on."])],
    ids=["a prompt", "a command"],
)
def test_a_prompt_that_never_reached_the_model_is_handed_on(
    workspace: Workspace, lost: str, told: list[str]
) -> None:
    """What the author asked for in a turn that died is said with the next prompt; a command to the CLI is
    none of the author's words."""
    task = workspace.new_task("Herons")
    draft = task.drafts["main"]
    turn = Turn(number=1, uuid="u", session_id=draft.session_id, prompt=lost, state=TurnState.interrupted)
    tools = DraftTools(workspace.text(task, "main"), lambda _: None)
    said = Briefing(workspace, task, draft, [turn]).prompt("Go on.", tools, 2, Memory(()))
    assert [part for part in said.split("\n\n") if not part.startswith("[")] == told
