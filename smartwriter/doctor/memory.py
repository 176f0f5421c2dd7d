"""What the doctor finds of memories: versions that have changed, decisions that were cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import smartwriter.system.bounds as bounds
from smartwriter.doctor.finding import Finding
from smartwriter.memory.proposal import UNDER_WAY
from smartwriter.tasks.revisions import sha256_of_bytes
from smartwriter.text.wording import counted
from smartwriter.workspace import Workspace


def examine_versions(workspace: Workspace) -> Iterator[Finding]:
    """Versions that are not what they are named for."""
    for path in sorted(workspace.places.memory.glob("*.md")):
        if not _is_version(path):
            yield Finding(
                "memory",
                path,
                "is not the version that it is named for",
                "what some turns had of a memory file cannot be shown any more",
            )


def _is_version(path: Path) -> bool:
    try:
        return sha256_of_bytes(bounds.read_record(path)) == path.stem
    except OSError:
        return False


def examine_proposals(workspace: Workspace) -> Iterator[Finding]:
    """Decisions on proposals that were cut off."""
    for collection in workspace.collections():
        proposals = workspace.series(collection).proposals
        half_done = [one for one in proposals.all() if one.state in UNDER_WAY]
        if half_done:
            yield Finding(
                "memory",
                collection.path,
                f"{counted(len(half_done), 'decision')} on proposals for its memory cut off",
                "the program died in between; the next review completes them",
                "complete them",
                proposals.complete,
            )
