from __future__ import annotations

from smartwriter.memory.proposal import Proposal
from smartwriter.series.origins import Origin, Origins
from smartwriter.tasks.values import MAIN
from smartwriter.workspace import Workspace


def test_a_proposal_of_a_lost_task_has_no_origin(workspace: Workspace) -> None:
    """One whose task, draft or turn is not there is shown with what is known, and is no error."""
    task = workspace.new_task("Fog")
    lost = Proposal(id="k7mq", text="A line.", task="gone", draft=MAIN, turn=1)
    assert Origins(workspace).of(lost) == Origin("", "")
    assert Origins(workspace).of(lost.model_copy(update={"task": task.id})) == Origin("Fog", "")
    other = lost.model_copy(update={"task": task.id, "draft": "draft-9"})
    assert Origins(workspace).of(other) == Origin("Fog", "")
