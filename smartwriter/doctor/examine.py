"""The doctor: reads everything in a workspace and proves that it can be used.

Each check yields findings; none changes anything. A repair only ever writes new files and keeps
the old ones beside them, or moves leftovers to the trash.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from smartwriter.doctor.drafts import examine_draft, examine_task
from smartwriter.doctor.finding import Finding
from smartwriter.doctor.journals import examine_journals
from smartwriter.doctor.leftovers import (
    examine_conflicts,
    examine_leases,
    examine_leftovers,
    is_conflict_copy,
)
from smartwriter.doctor.lost import examine_lost, examine_sessions
from smartwriter.doctor.memory import examine_proposals, examine_versions
from smartwriter.doctor.safety import examine_safety
from smartwriter.open_draft import OpenDraft
from smartwriter.workspace import Workspace


def examine(workspace: Workspace) -> Iterator[Finding]:
    """All findings, in the order of the checks. Blocking."""
    tasks = workspace.tasks.all()
    yield from examine_journals(workspace)
    yield from examine_lost(workspace, tasks)
    known: set[Path] = set()
    for task in tasks:
        yield from examine_task(workspace, task)
        for draft in task.drafts.values():
            for session_id in (draft.session_id, *draft.earlier_sessions):
                known.add(workspace.store.path({"project_key": task.project_key, "session_id": session_id}))
            if not draft.dropped:
                yield from examine_draft(OpenDraft(workspace, task, draft.name))
    yield from examine_versions(workspace)
    yield from examine_proposals(workspace)
    of_nobody = examine_sessions(workspace, known)
    yield from (finding for finding in of_nobody if not is_conflict_copy(finding.path))
    yield from examine_leases(workspace)
    yield from examine_leftovers(workspace)
    yield from examine_conflicts(workspace, tasks)
    yield from examine_safety(workspace)
