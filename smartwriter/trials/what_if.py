"""What if a memory file were another: a fork whose sessions get its text, and how it is adopted."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import smartwriter.files.change as document
from smartwriter.errors import Invalid
from smartwriter.files.utf8 import decoded
from smartwriter.memory.files import MAX_FILE_BYTES, MemoryFile
from smartwriter.memory.snapshot import Memory
from smartwriter.open_draft import OpenDraft
from smartwriter.tasks.values import WhatIf
from smartwriter.text.sameness import normal


def what_if(draft: OpenDraft, given: Sequence[str]) -> dict[str, WhatIf]:
    """Other versions of memory files, kept for a fork. Blocking.

    :param given: ``FILE=OTHER`` each: the name of a memory file, and the path of its other version.
    :raises Invalid: for what is neither.
    """
    if not given:
        return {}
    memory = draft.memory()
    return dict(_kept(draft, memory, one) for one in given)


def _kept(draft: OpenDraft, memory: Memory, given: str) -> tuple[str, WhatIf]:
    name, equals, path = given.partition("=")
    if not equals:
        raise Invalid(f"{given!r} names no other memory: write FILE=OTHER, as in profile.md=bolder.md.")
    other = memory.replaced(name, _read(Path(path)))
    file, base = _file(other, name), _file(memory, name)
    draft.workspace.versions.keep_file(file)
    # The collection's own, also where the origin has another already.
    earlier = draft.draft.memory.get(file.name)
    return file.name, WhatIf(sha256=file.sha256, base=earlier.base if earlier else base.sha256)


def _file(memory: Memory, name: str) -> MemoryFile:
    (file,) = [file for file in (*memory.files, *memory.on_demand) if file.name == normal(name)]
    return file


def _read(path: Path) -> str:
    if not path.is_file():
        raise Invalid(f"There is no file {str(path)!r}.")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise Invalid(f"{path} is longer than 1 MB.")
    text = decoded(path.read_bytes(), str(path))
    if "\0" in text or not text.strip():
        raise Invalid(f"{path} holds no text that a memory file can have.")
    return text


def adopt_memory(draft: OpenDraft) -> list[Path]:
    """Write a draft's other versions into the collection's files. Blocking.

    The versions before stay in ``.smartwriter/memory``. Returns the files that were written.
    :raises Invalid: for a draft without any, or a file that was changed since the fork; then none is.
    """
    if not draft.draft.memory:
        raise Invalid(f"{draft.address} has the collection's own memory; there is nothing to adopt.")
    workspace = draft.workspace
    files = _changes(draft)  # what is refused leaves no lock file
    with contextlib.ExitStack() as locks:
        # In one order, or two of them could wait for each other.
        for origin in sorted({file.origin for file, _, _ in files}):
            locks.enter_context(workspace.memory_lock(origin))
        files = _changes(draft)
        for file, change, text in files:
            document.change(
                file.path,
                partial(_unchanged_since, name=file.name, change=change, text=text),
                MAX_FILE_BYTES,
            )
    workspace.tasks.update(
        draft.task.id, lambda task: task.with_draft(task.drafts[draft.name].model_copy(update={"memory": {}}))
    )
    return [file.path for file, _, _ in files]


def _changes(draft: OpenDraft) -> list[tuple[MemoryFile, WhatIf, str]]:
    """The collection's files, and what each is to become. :raises Invalid: as :func:`adopt_memory`."""
    versions = draft.workspace.versions
    memory = draft.workspace.task_collection(draft.task).memory()
    versions.keep(memory)
    return [
        (_own(memory, name, change), change, versions.needed(change.sha256, name))
        for name, change in draft.draft.memory.items()
    ]


def _own(memory: Memory, name: str, change: WhatIf) -> MemoryFile:
    if name not in memory.hashes:
        raise Invalid(f"The collection has no memory file {name!r} any more; nothing was changed.")
    file = _file(memory, name)
    _unchanged_since(file.data, name=name, change=change)
    return file


def _unchanged_since(data: bytes, *, name: str, change: WhatIf, text: str = "") -> bytes:
    """The bytes of the other version, for a file that is as it was. :raises Invalid: when it is not."""
    if hashlib.sha256(data).hexdigest() not in (change.base, change.sha256):
        raise Invalid(
            f"{name} was changed since the fork; nothing was overwritten; bring the two together by hand."
        )
    return text.encode("utf-8", "surrogatepass")
