"""CLIs whose programs died, as a workspace knows them: what they still write, and what they have left."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import smartwriter.files.durable as durable
import smartwriter.sessions.orphans as orphans
import smartwriter.storage.reading as reading
from smartwriter.errors import DraftBusy
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.orphans import Cli, Folder
from smartwriter.storage.identity import identity
from smartwriter.storage.interface import Lease
from smartwriter.workspace import Workspace

_REMOVALS = 5


def still_writing(draft: OpenDraft) -> list[Cli]:
    """The CLI processes that write a draft, whose lease the caller holds: of programs that died. Blocking."""
    mine = identity(draft.workspace.hidden).id
    return orphans.of_sessions(orphans.living(), mine, sessions_of(draft))


def orphaned(workspace: Workspace) -> list[Cli]:
    """The CLI processes that write drafts of a workspace whose programs died. Blocking."""
    mine = identity(workspace.hidden).id
    clis = [cli for cli in orphans.living() if mine and cli.workspace == mine]
    leases = _leases(workspace) if clis else {}
    return [cli for cli in clis if cli.session_id in leases and not leases[cli.session_id].is_held()]


def end_orphans(draft: OpenDraft) -> bool:
    """End the CLIs that write a draft whose programs died; whether there were any. Blocking.

    :raises DraftBusy: somebody writes the draft by now.
    """
    if not still_writing(draft):
        return False
    with draft.lease():  # so that they are nobody's who lives
        clis = still_writing(draft)
        orphans.end(clis)
    return bool(clis)


def remove_folders(workspace: Workspace, held: Collection[str] = ()) -> None:
    """Remove the folders of dead CLIs, each once all that it holds is kept. Blocking.

    :param held: sessions of drafts whose leases the caller holds.
    """
    for folder in orphans_of(workspace, held):
        with contextlib.suppress(DraftBusy, OSError), contextlib.ExitStack() as stack:
            leases = _leases(workspace)
            for lease in {leases[session_id] for session_id in folder.sessions().difference(held)}:
                stack.enter_context(lease)
            if not folder.is_used(orphans.living()):  # none can begin to now
                _keep_the_rest(workspace, folder)
                _remove(folder.path)


def orphans_of(workspace: Workspace, held: Collection[str] = ()) -> list[Folder]:
    """The folders that hold nothing but sessions of ours that nobody is writing.

    :param held: as for :func:`remove_folders`.
    """
    leases, mine, clis = _leases(workspace), identity(workspace.hidden).id, orphans.living()
    found = []
    for folder in orphans.folders():
        sessions = folder.sessions()
        ours = sessions <= leases.keys() and not any(leases[id].is_held() for id in sessions.difference(held))
        mark = folder.workspace()
        # One without a session may be another program's, but for the stand-in's homes.
        named = sessions or folder.is_home
        if ours and named and mark in (mine, None) and not folder.is_used(clis):
            found.append(folder)
    return found


def _leases(workspace: Workspace) -> dict[str, Lease]:
    """The lease of each session's draft."""
    found = {}
    for draft in drafts_of(workspace):
        found.update(dict.fromkeys(sessions_of(draft), draft.lease()))
    return found


def _keep_the_rest(workspace: Workspace, folder: Folder) -> None:
    """Put away transcripts that have more than ours: what was said where the draft has gone on since.

    :raises OSError: they could not be; then the folder has to stay.
    """
    ours = {
        session_id: workspace.store.path({**draft.session, "session_id": session_id})
        for draft in drafts_of(workspace)
        for session_id in sessions_of(draft)
    }
    for transcript in folder.transcripts():
        if not uuids_in(transcript) <= uuids_in(ours[transcript.stem]):
            durable.move(transcript, workspace.places.trash("orphans", transcript.stem, ".jsonl"))


def _remove(path: Path) -> None:
    # Until it is gone: half removed, nothing in it would tell any more that it is ours.
    for _ in range(_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            break


def drafts_of(workspace: Workspace) -> Iterator[OpenDraft]:
    for task in workspace.tasks.all():
        for name in task.drafts:
            yield OpenDraft(workspace, task, name)


def sessions_of(draft: OpenDraft) -> tuple[str, ...]:
    return (draft.draft.session_id, *draft.draft.earlier_sessions)


def uuids_in(transcript: Path) -> set[str]:
    """Of the entries of a transcript; none where there is no such file."""
    try:
        return {entry["uuid"] for _, entry in reading.stream(transcript) if "uuid" in entry}
    except FileNotFoundError:
        return set()
