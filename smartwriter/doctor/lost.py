"""What the doctor finds that the task list does not know: what it lost, and what forks left."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Literal

import smartwriter.memory.index as index
import smartwriter.storage.reading as reading
import smartwriter.system.bounds as bounds
from smartwriter.doctor.finding import Finding
from smartwriter.errors import DraftBusy, SmartWriterError
from smartwriter.files.names import is_plain_name, original, readable_name
from smartwriter.memory.collection import Collection
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.records import V, from_line
from smartwriter.tasks.revisions import current_number, sha256_of
from smartwriter.tasks.values import MAIN, UNFILED, Draft, Finished, Origin, Revision, Task, Turn
from smartwriter.trials.forking import clear_leftovers
from smartwriter.workspace import Workspace

_ALIKE = 0.5  # of the lines of a text that was edited by hand since


def examine_lost(workspace: Workspace, tasks: list[Task]) -> Iterator[Finding]:
    """Tasks and drafts that are not in the list, but have turns or texts."""
    known = {task.id: task for task in tasks}
    for id in _recorded(workspace):
        if id in known:
            yield from _unlisted_drafts(workspace, known[id])
        else:
            yield Finding(
                "lost-task",
                workspace.places.turns(id, MAIN).parent,
                f"has turns of a task {id} that tasks.jsonl does not know",
                "its sessions and texts are still there",
                "enter it again, with its drafts, under the name of its folder, and as finished where its "
                "article is there; its target and the choices between drafts do not come back",
                partial(_recover_task, workspace, id),
            )


def examine_sessions(workspace: Workspace, known: set[Path]) -> Iterator[Finding]:
    """Sessions that belong to no draft. :param known: those that do."""
    waiting = {turn.session_id for id in _recorded(workspace) for turn in _turns_of(workspace, id)}
    uuids: dict[Path, set[str]] = {}
    for path in workspace.places.transcripts():
        if path in known:
            continue
        forked = path.stem not in waiting and _was_forked(path, known, uuids)
        yield Finding(
            "fork" if forked else "unknown-session",
            path,
            "was left by a fork that was cut off" if forked else "belongs to no draft",
            "the draft that it was forked from has all of it"
            if forked
            else "another program's, or of a draft that was lost; it takes room, nothing else",
            "move it to the trash" if forked else "",
            partial(_put_away_session, workspace, path) if forked else None,
        )


def _recorded(workspace: Workspace) -> list[str]:
    """The ids of all tasks that have turns or texts."""
    return sorted(filter(is_plain_name, workspace.places.recorded()))


# Forks that were cut off --------------------------------------------------------------------------


def _unlisted_drafts(workspace: Workspace, task: Task) -> Iterator[Finding]:
    if workspace.fork_lease(task).is_held():  # a fork is being made
        return
    records = _records(workspace, task.id)
    for name, record in records.items():
        if name not in task.drafts and record.path.exists():
            yield (
                _lost(workspace, task, name, record)
                if record.is_own
                else _cut_off(
                    workspace, task, name, record.path, "the draft that it was forked from has all of it"
                )
            )
    for path in sorted(workspace.text(task, MAIN).path.parent.glob(".*.md.next")):
        name = path.name[1 : -len(".md.next")]
        if name not in task.drafts and name not in records:
            why = "its text was never recorded; the draft that it was forked from has it"
            yield _cut_off(workspace, task, name, path, why)


def _lost(workspace: Workspace, task: Task, name: str, record: _Record) -> Finding:
    return Finding(
        "lost-draft",
        record.path,
        f"is of a draft {task.address(name)} that tasks.jsonl does not know",
        "its session and texts are still there",
        "enter it again",
        partial(_recover_draft, workspace, task, name, record),
    )


def _cut_off(workspace: Workspace, task: Task, name: str, path: Path, meaning: str) -> Finding:
    return Finding(
        "fork",
        path,
        "was left by a fork that was cut off",
        meaning,
        "move it to the trash",
        partial(_clear_fork, workspace, task, name),
    )


def _clear_fork(workspace: Workspace, task: Task, name: str) -> None:
    with contextlib.suppress(DraftBusy), workspace.fork_lease(task):
        if name not in workspace.tasks.find(task.id).drafts:  # perhaps it was made anew by now
            clear_leftovers(OpenDraft(workspace, task, name))


def _was_forked(path: Path, known: set[Path], uuids: dict[Path, set[str]]) -> bool:
    """Whether a session is a copy of the beginning of a known one, and nothing was said in it."""
    own, session = set[str](), ""
    titled = False
    with contextlib.suppress(FileNotFoundError):
        for entry in reading.read(path).entries:
            if entry.get("type") == "custom-title" and entry.get("sessionId") == path.stem:
                titled = True
            elif isinstance(entry.get("uuid"), str):
                own.add(entry["uuid"])
                session = session or str(entry.get("sessionId"))
    origin = path.with_name(f"{session}.jsonl")
    origins = [origin] if origin in known else [other for other in known if other.parent == path.parent]
    return titled and any(own <= _uuids(other, uuids) for other in origins)


def _uuids(path: Path, read: dict[Path, set[str]]) -> set[str]:
    if path not in read:
        with contextlib.suppress(FileNotFoundError):
            read[path] = {str(entry.get("uuid")) for _, entry in reading.stream(path)}
    return read.get(path, set())


def _put_away_session(workspace: Workspace, path: Path) -> None:
    workspace.store.delete_now({"project_key": original(path.parent.name), "session_id": original(path.stem)})


# Tasks and drafts that were lost --------------------------------------------------------------------


@dataclass(frozen=True)
class _Record:
    """What there is of one draft, beside its line in the list."""

    path: Path
    turns: list[Turn]
    revisions: list[Revision]

    @property
    def is_own(self) -> bool:
        """Whether anything in it is its own, and not from the draft that it was forked from."""
        written = [one for one in self.revisions if one.author != "fork"]
        inherited = [turn for turn in self.turns if turn.inherited]
        last = inherited[-1].number if inherited else 0
        edited_before = all(one.author == "writer" and one.turn == last + 1 for one in written)
        return len(inherited) < len(self.turns) or not (inherited or self._forked) or not edited_before

    @property
    def _forked(self) -> bool:
        return any(one.author == "fork" for one in self.revisions)

    def draft(self, name: str, others: dict[str, _Record], *, dropped: bool = False) -> Draft:
        sessions = list(dict.fromkeys(turn.session_id for turn in self.turns if not turn.inherited))
        session = sessions[-1] if sessions else self.turns[-1].session_id if self.turns else str(uuid.uuid4())
        return Draft(
            name=name,
            session_id=session,
            earlier_sessions=tuple(one for one in sessions if one != session),
            origin=self._origin(name, others),
            dropped=dropped,
        )

    def _origin(self, name: str, others: dict[str, _Record]) -> Origin | None:
        inherited = {turn.uuid: turn.number for turn in self.turns if turn.inherited}
        for other, record in others.items():
            shared = [turn.number for turn in record.turns if turn.uuid in inherited]
            has_more = any(not turn.inherited and turn.uuid in inherited for turn in record.turns)
            if other != name and shared and has_more:
                return Origin(draft=other, turn=max(inherited.values()))
        source = next((one.source for one in self.revisions if one.author == "fork" and one.source), None)
        if source is not None and source.draft in others and source.draft != name:
            return Origin(draft=source.draft, turn=max(inherited.values(), default=0))
        return None


def _records(workspace: Workspace, id: str) -> dict[str, _Record]:
    """What there is of each draft of a task, by name; ``main`` first."""
    places, found = workspace.places, {}
    names = places.drafts_of(id)
    for name in sorted(filter(is_plain_name, names), key=lambda name: (name != MAIN, name)):
        paths = [places.turns(id, name), places.revisions(id, name)]
        taken = {turn.uuid: turn for turn in _values(Turn, paths[0])}
        found[name] = _Record(
            next((path for path in paths if path.exists()), paths[0]),
            sorted(taken.values(), key=lambda turn: turn.number),
            _values(Revision, paths[1]),
        )
    return found


def _turns_of(workspace: Workspace, id: str) -> Iterator[Turn]:
    for record in _records(workspace, id).values():
        yield from record.turns


def _values(model: type[V], path: Path) -> list[V]:
    try:
        lines = reading.read(path).entries
    except OSError:
        return []
    return [value for line in lines if (value := from_line(model, line)) is not None]


def _recover_draft(workspace: Workspace, task: Task, name: str, record: _Record) -> None:
    records = _records(workspace, task.id)

    def with_it(task: Task) -> Task:
        return task if name in task.drafts else task.with_draft(record.draft(name, records))

    workspace.tasks.update(task.id, with_it)


def _recover_task(workspace: Workspace, id: str) -> None:
    records = {
        name: record for name, record in _records(workspace, id).items() if record.turns or record.revisions
    }
    if not records:
        return
    current = next(iter(records))
    found = _folder(workspace, records)
    collection, folder = found or (None, "")
    drafts = {
        name: record.draft(name, records, dropped=_was_dropped(workspace, id, name, found))
        for name, record in records.items()
    }
    prompt = records[current].turns[0].prompt if records[current].turns else id
    title = folder or readable_name(prompt)[:60].strip()
    project = _project(workspace, drafts[current].session_id) or (
        collection.project_key if collection else UNFILED
    )
    if collection is None:
        collection = next(
            (one for one in workspace.collections() if one.project_key == project),
            Collection(UNFILED, workspace.root / "collections" / UNFILED),
        )
    task = Task(
        id=id,
        title=title,
        collection=collection.name,
        project_key=project,
        folder=folder or readable_name(f"{title} {id}"),
        current=current,
        drafts=drafts,
    )
    if (finished := _finished(workspace, task, records)) is not None:
        task = task.model_copy(update={"finished": finished, "current": finished.draft})
    workspace.tasks.restore(task)


def _finished(workspace: Workspace, task: Task, records: dict[str, _Record]) -> Finished | None:
    """What a task was finished with: the version of one of its drafts that its article is; None where it has
    no such article. Where the draft went on since, it had been opened again.
    """
    series = workspace.task_series(task)
    article = f"articles/{task.folder}.md"
    path = series.collection.path / article
    try:
        sha256 = sha256_of(bounds.read_regular(path).decode("utf-8", "surrogatepass"))
        at = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
        entered = not series.has_index or index.find(series.index(), article, task.title) is not None
    except (OSError, UnicodeDecodeError, SmartWriterError):
        return None
    found = [
        (one.number == current_number(record.revisions), name, one.number)
        for name, record in records.items()
        for one in record.revisions
        if one.sha256 == sha256 and not one.aside and not task.drafts[name].dropped
    ]
    if not found:
        return None
    is_last, draft, revision = max(found, key=lambda one: (one[0], one[1] == task.current, one[2]))
    state: Literal["finishing", "finished", "reopened"] = "finished" if entered else "finishing"
    return Finished(
        at=at, draft=draft, revision=revision, article=article, state=state if is_last else "reopened"
    )


def _project(workspace: Workspace, session_id: str) -> str:
    paths = workspace.places.transcripts(session_id)
    return next((original(path.parent.name) for path in paths), "")


def _was_dropped(workspace: Workspace, id: str, name: str, found: tuple[Collection, str] | None) -> bool:
    if found is None or name == MAIN or (found[0].path / "drafts" / found[1] / f"{name}.md").exists():
        return False
    return bool(workspace.places.in_trash("drafts", f"{id}-{name}"))


def _folder(workspace: Workspace, records: dict[str, _Record]) -> tuple[Collection, str] | None:
    """Where a task's texts are: the folder of drafts that holds versions of them."""
    taken = {(task.collection, task.folder) for task in workspace.tasks.all()}
    best, found = 0.0, None
    for collection in workspace.collections():
        drafts = collection.path / "drafts"
        for folder in sorted(drafts.iterdir()) if drafts.is_dir() else []:
            if (collection.name, folder.name) in taken or not folder.is_dir():
                continue
            alike = sum(_likeness(folder / f"{name}.md", record) for name, record in records.items())
            if alike > best:
                best, found = alike, (collection, folder.name)
    return found


def _likeness(path: Path, record: _Record) -> float:
    """How much a file is a version of a draft's text: 1 for one of them, 0 for another's."""
    if not record.revisions or path.is_symlink():
        return 0
    try:
        text = bounds.read_regular(path).decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError):
        return 0
    if any(one.sha256 == sha256_of(text) for one in record.revisions):
        return 1
    now = {line for line in text.splitlines() if line.strip()}
    then = {line for one in record.revisions for line in one.text.splitlines() if line.strip()}
    shared = len(now & then) / len(now) if now else 0
    return shared if shared >= _ALIKE else 0
