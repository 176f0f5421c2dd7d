"""Tasks: which there are, and what happened in each.

::

    .smartwriter/tasks.jsonl                  one line per change of a task, last one wins
    .smartwriter/turns/<task>/<draft>.jsonl   one line per change of a turn, last one wins

    {"type":"task","timestamp":"2026-…","id":"k7mq","title":"渡口","current":"main","drafts":{…},…}
    {"type":"turn","timestamp":"2026-…","number":1,"uuid":"5f0c…","prompt":"…","state":"finished",…}
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from pydantic import ValidationError

import smartwriter.tasks.addresses as addresses
from smartwriter.errors import AlreadyExists, DraftNotFound, Invalid, TaskNotFound
from smartwriter.files.names import readable_name
from smartwriter.storage.interface import Journal, Storage
from smartwriter.storage.reading import Contents
from smartwriter.storage.records import V, Value, from_line, kind_of, to_line
from smartwriter.storage.salvage import Damage, Entry
from smartwriter.tasks.addresses import Card
from smartwriter.tasks.values import MAIN, Choice, Draft, Origin, Task, Turn, WhatIf
from smartwriter.text.sameness import normal

_LETTERS = "bcdfghjkmnpqrstvwxz"  # no vowels, so no words; nothing that looks like a digit
_ID_CHARACTERS = _LETTERS + "23456789"
_DRAFT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # a title is one line, on a screen and in a prompt


class TaskManager:
    """The tasks of a workspace. All calls block; any number of processes may use it at once."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._journal = storage.journal("tasks", kept=True)
        self._last: _Known | None = None

    # Tasks -----------------------------------------------------------------------------------

    def all(self) -> list[Task]:
        """Every task, oldest first."""
        return self._known().all()

    def damage(self) -> list[Damage]:
        """The stretches of ``tasks.jsonl`` that could not be read."""
        return self._journal.read().damage

    def refused(self) -> dict[str, str]:
        """Why a task that is there is passed over, by its id: a name in it could lead elsewhere."""
        why = dict[str, str]()
        for id, line in self._known().lines.items():
            try:
                Task.model_validate(line)
            except ValidationError as error:
                first = error.errors()[0]
                why[id] = f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
        return why

    def find(self, wanted: str) -> Task:
        """A task by its id, its title, or a unique prefix of either, in any script and case.

        :raises TaskNotFound, TaskAmbiguous:
        """
        known = self._known()
        if task := known.task(wanted):  # without a look at all others
            return task
        fit = addresses.fitting(known.cards(), wanted)
        title, at, name = wanted.rpartition("@")
        if at and not fit.cards:
            near = [known.task(card.id) for card in addresses.fitting(known.cards(), title).cards]
            if any(task and name in task.drafts for task in near):
                raise TaskNotFound(wanted, f"{wanted!r} is a draft; name its task alone: {title}")
        return known.needed(addresses.only(wanted, fit))

    def resolve(self, address: str) -> tuple[Task, Draft]:
        """The task and draft of an address, ``task@draft`` or ``task`` for its current draft.

        :raises TaskNotFound, TaskAmbiguous, DraftNotFound:
        """
        known = self._known()
        card, name = addresses.of_draft(known.cards(), address)
        task = known.needed(card)
        return task, self.draft(task, name or task.current)

    def resolve_revision(self, address: str) -> tuple[Task, Draft, int | None]:
        """As :meth:`resolve`, for addresses that may end in ``:REVISION``.

        :returns: None for the revision where the address names none.
        """
        address, number = addresses.of_version(self._known().cards(), address)
        return (*self.resolve(address), number)

    def draft(self, task: Task, name: str) -> Draft:
        """:raises DraftNotFound: also for a dropped one."""
        draft = task.drafts.get(name)
        if draft is None or draft.dropped:
            raise DraftNotFound(task.id, name, task.live_drafts, dropped=draft is not None)
        return draft

    def create(
        self,
        title: str,
        collection: str,
        project_key: str,
        taken: frozenset[str] = frozenset(),
        target: int | None = None,
    ) -> Task:
        """Start a task with its main draft.

        :param taken: names that its folder must not have: those of folders that are there already.
        :param target: how long it is to become, in words.
        :raises Invalid: for an empty title.
        """
        title = _CONTROL.sub(" ", normal(title)).strip()
        if not title:
            raise Invalid("A task needs a title.")
        made = list[Task]()

        def new(contents: Contents) -> list[Entry]:
            tasks = self._known(contents).all()
            folders = {task.folder for task in tasks if normal(task.collection) == normal(collection)}
            task = Task(
                id=_new_id({task.id for task in tasks}),
                title=title,
                collection=collection,
                project_key=project_key,
                folder=readable_name(title, taken | folders),
                target=target,
                drafts={MAIN: Draft(name=MAIN, session_id=str(uuid.uuid4()))},
            )
            made.append(task)
            return [to_line(task)]

        self._journal.update(new)
        return made[-1]

    def restore(self, task: Task) -> None:
        """Enter a task that ``tasks.jsonl`` has lost. One that is there, perhaps by now, stays as it is."""
        self._journal.update(
            lambda contents: [] if task.id in self._known(contents).lines else [to_line(task)]
        )

    def update(self, id: str, change: Callable[[Task], Task]) -> Task:
        """Change a task as it is now. :raises TaskNotFound:

        :param change: may be called again, when somebody was faster.
        """
        (changed,) = self.update_each([id], change)
        return changed

    def update_each(self, ids: Sequence[str], change: Callable[[Task], Task]) -> list[Task]:
        """As :meth:`update`, of several tasks, all or none."""
        changed = list[Task]()

        def lines(contents: Contents) -> Iterator[Entry]:
            changed.clear()
            known = self._known(contents).lines
            for id in ids:
                line = known.get(id)
                task = from_line(Task, line)
                if line is None or task is None:
                    raise TaskNotFound(id)
                changed.append(change(task))
                yield _over(line, to_line(changed[-1]))

        self._journal.update(lines)
        return changed

    def add_draft(
        self,
        id: str,
        name: str | None,
        session_id: str,
        origin: Origin,
        memory: Mapping[str, WhatIf] | None = None,
    ) -> Draft:
        """Record a fork. :raises AlreadyExists, Invalid: for its name, also of a dropped draft."""

        def add(task: Task) -> Task:
            free = free_draft_name(task, name)
            draft = Draft(name=free, session_id=session_id, origin=origin, memory=memory or {})
            return task.with_draft(draft)

        return list(self.update(id, add).drafts.values())[-1]

    def adopt(self, id: str, name: str) -> Task:
        """Make a draft the task's current one. :raises DraftNotFound:"""
        return self.update(id, lambda task: task.model_copy(update={"current": self.draft(task, name).name}))

    def drop(self, id: str, name: str) -> Task:
        """Put a draft away. :raises DraftNotFound: :raises Invalid: for the current one."""
        return self.update(id, lambda task: self.without(task, name))

    def without(self, task: Task, name: str) -> Task:
        """What :meth:`drop` makes of a task, and raises."""
        draft = self.draft(task, name)
        if name == task.current:
            raise Invalid(f"{name} is the current draft of {task.id}; adopt another one first.")
        return task.with_draft(draft.model_copy(update={"dropped": True}))

    def take_up(self, id: str, name: str) -> Task:
        """Make a dropped draft a draft again. :raises DraftNotFound: unless it was dropped."""

        def undropped(task: Task) -> Task:
            draft = task.drafts.get(name)
            if draft is None or not draft.dropped:
                dropped = [other for other, draft in task.drafts.items() if draft.dropped]
                raise DraftNotFound(task.id, name, dropped, "dropped draft")
            return task.with_draft(draft.model_copy(update={"dropped": False}))

        return self.update(id, undropped)

    def choose(self, id: str, choice: Choice) -> Task:
        """Record which of two texts the writer preferred."""
        return self.update(id, lambda task: task.model_copy(update={"choices": (*task.choices, choice)}))

    # Turns -----------------------------------------------------------------------------------

    def turns(self, task: Task, draft: str) -> list[Turn]:
        """The turns of a draft, in order, those it inherited included."""
        entries = self._turns(task, draft).read().entries
        return sorted(_latest(Turn, entries, "uuid").values(), key=lambda turn: turn.number)

    def record(self, task: Task, draft: str, turns: Sequence[Turn]) -> None:
        """Append the present state of turns."""
        self._turns(task, draft).append([to_line(turn) for turn in turns])

    def _turns(self, task: Task, draft: str) -> Journal:
        return self._storage.journal("turns", task.id, draft)

    def _known(self, contents: Contents | None = None) -> _Known:
        """The tasks as they are now, or were when read; what was looked at before is not looked at again."""
        contents = contents or self._journal.read()
        known = self._last
        if known is None or known.contents is not contents:
            known = self._last = _Known(contents, known)
        return known


class _Known:
    """What ``tasks.jsonl`` holds, validated as far as it is asked for."""

    def __init__(self, contents: Contents, before: _Known | None) -> None:
        self.contents = contents
        self.lines = _lines(Task, contents.entries, "id")
        """The last line of each task, in the order of their first ones."""
        self._tasks: dict[str, tuple[Entry, Task | None]] = before._tasks if before else {}
        self._cards: list[Card] | None = None

    def all(self) -> list[Task]:
        return [task for id in self.lines if (task := self.task(id)) is not None]

    def task(self, id: str) -> Task | None:
        """None where there is none, or one that cannot be used."""
        if (line := self.lines.get(id)) is None:
            return None
        found = self._tasks.get(id)
        if found is None or found[0] is not line:
            found = self._tasks[id] = line, from_line(Task, line)
        return found[1]

    def needed(self, card: Card) -> Task:
        """:raises TaskNotFound:"""
        if (task := self.task(card.id)) is None:
            raise TaskNotFound(card.id)
        return task

    def cards(self) -> list[Card]:
        if self._cards is None:
            self._cards = [
                Card(id, str(line.get("title", "")), partial(self._is_usable, id))
                for id, line in self.lines.items()
            ]
        return self._cards

    def _is_usable(self, id: str) -> bool:
        return self.task(id) is not None


def free_draft_name(task: Task, wanted: str | None) -> str:
    """A name for a new draft: the wanted one, or ``draft-2``, ``draft-3``, …

    :raises AlreadyExists: :raises Invalid: unless it is lower-case letters, digits and hyphens.
    """
    if wanted is None:
        number = len(task.drafts) + 1
        while f"draft-{number}" in task.drafts:
            number += 1
        return f"draft-{number}"
    if not _DRAFT_NAME.fullmatch(wanted):
        raise Invalid(f"{wanted!r} cannot name a draft: use lower-case letters, digits and hyphens.")
    if wanted in task.drafts:
        raise AlreadyExists("draft", f"{task.id}@{wanted}")
    return wanted


def _over(before: Entry, line: Entry) -> Entry:
    """A task's new line, with the fields of a later version that the line before had."""
    drafts = {name: {**before["drafts"].get(name, {}), **draft} for name, draft in line["drafts"].items()}
    return {**before, **line, "drafts": drafts}


def _latest(model: type[V], entries: list[Entry], key: str) -> dict[str, V]:
    """The last state of each, in the order of their first lines."""
    lines = _lines(model, entries, key)
    return {id: value for id, line in lines.items() if (value := from_line(model, line)) is not None}


def _lines(model: type[Value], entries: list[Entry], key: str) -> dict[str, Entry]:
    kind = kind_of(model)
    return {
        entry[key]: entry
        for entry in entries
        if entry.get("type") == kind and isinstance(entry.get(key), str)
    }


def _new_id(taken: set[str]) -> str:
    length = 4
    while True:
        for _ in range(20):
            id = secrets.choice(_LETTERS) + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(length - 1))
            if id not in taken:
                return id
        length += 1
