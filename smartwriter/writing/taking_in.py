"""What the CLI still wrote when its program had died, taken into our transcripts from its own."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import smartwriter.sessions.orphans as orphans
import smartwriter.storage.reading as reading
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.orphans import Cli
from smartwriter.sessions.transcript import descendants
from smartwriter.storage.identity import identity
from smartwriter.tasks.values import Turn, TurnState
from smartwriter.writing.orphans import uuids_in

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionStoreEntry

UNANSWERED = (TurnState.running, TurnState.interrupted, TurnState.failed)
"""The states of turns whose answers may lie in the CLI's own folder."""


def copies(draft: OpenDraft, config_folders: Iterable[Path], clis: Sequence[Cli]) -> Iterator[Path]:
    """The CLI's own transcripts of a draft's session, where it does not write any more.

    A copy of a workspace reads what the CLI of the one that it was copied from has left, too; it only
    leaves it there.
    """
    mine, session_id = identity(draft.workspace.hidden), draft.draft.session_id
    for folder in orphans.folders():
        if folder.workspace() in (mine.id, *mine.copied_from, None) and not folder.is_used(clis):
            yield from folder.transcripts(session_id)
    turns = draft.turns()
    if not turns or turns[-1].state not in UNANSWERED:  # most of what is there stays there for ever
        return
    for config in filter(_is_trusted, config_folders):
        yield from orphans.transcripts_in(config, session_id)


def _is_trusted(config: Path) -> bool:
    """Whether only this user writes into the CLI's own folder, which may be a link of theirs."""
    try:
        status = config.stat()
    except OSError:
        return False
    return os.name == "nt" or (status.st_uid == os.geteuid() and not status.st_mode & stat.S_IWOTH)


def take_in(draft: OpenDraft, copy: Path) -> bool:
    """Append what the CLI's copy of a session says after the prompts that were cut off; whether anything."""
    store, key = draft.workspace.store, draft.session
    have = uuids_in(store.path(key))
    prompts = _open_prompts(draft.turns(), have)
    entries = list(descendants(reading.read(copy).entries, prompts))
    new = [entry for entry in entries if entry["uuid"] not in have]
    store.append_now(key, cast("list[SessionStoreEntry]", new))
    for path, subpath in _subagents(copy):
        if subpath.rpartition("/")[2].removeprefix("agent-") in str(entries):
            of_agent = [entry for entry in reading.read(path).entries if "uuid" in entry]
            store.append_now({**key, "subpath": subpath}, cast("list[SessionStoreEntry]", of_agent))
    return bool(new)


def _open_prompts(turns: Sequence[Turn], have: Collection[str]) -> set[str]:
    """The prompts after which something may be missing: the last that is stored, and those after it.

    What was said after an earlier one would turn the conversation back to there.
    """
    prompts = set()
    for turn in reversed(turns):
        prompts.add(turn.uuid)
        if turn.uuid in have:
            break
    return prompts


def _subagents(copy: Path) -> list[tuple[Path, str]]:
    """The transcripts of a session's subagents, with their subpaths."""
    folder = copy.with_suffix("")
    paths = sorted(folder.rglob("*.jsonl")) if folder.is_dir() else []
    return [(path, path.relative_to(folder).with_suffix("").as_posix()) for path in paths]
