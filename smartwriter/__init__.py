"""Write several articles at once with Claude, and never lose a word.

The names below are loaded when they are first used: the SDK alone takes half a second to import.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartwriter.errors import AlreadyExists as AlreadyExists
    from smartwriter.errors import CollectionNotFound as CollectionNotFound
    from smartwriter.errors import DraftBusy as DraftBusy
    from smartwriter.errors import DraftNotFound as DraftNotFound
    from smartwriter.errors import FolderGone as FolderGone
    from smartwriter.errors import Invalid as Invalid
    from smartwriter.errors import JournalBusy as JournalBusy
    from smartwriter.errors import JournalError as JournalError
    from smartwriter.errors import LeadsOutside as LeadsOutside
    from smartwriter.errors import NotAWorkspace as NotAWorkspace
    from smartwriter.errors import NotSavedYet as NotSavedYet
    from smartwriter.errors import ParagraphNotFound as ParagraphNotFound
    from smartwriter.errors import RevisionNotFound as RevisionNotFound
    from smartwriter.errors import SessionMissing as SessionMissing
    from smartwriter.errors import SmartWriterError as SmartWriterError
    from smartwriter.errors import TaskAmbiguous as TaskAmbiguous
    from smartwriter.errors import TaskNotFound as TaskNotFound
    from smartwriter.errors import TextConflict as TextConflict
    from smartwriter.errors import TurnNotFound as TurnNotFound
    from smartwriter.errors import UnsafeName as UnsafeName
    from smartwriter.memory.collection import Collection as Collection
    from smartwriter.sessions.store import FileSessionStore as FileSessionStore
    from smartwriter.tasks.manager import TaskManager as TaskManager
    from smartwriter.tasks.values import Draft as Draft
    from smartwriter.tasks.values import Revision as Revision
    from smartwriter.tasks.values import Task as Task
    from smartwriter.tasks.values import Turn as Turn
    from smartwriter.workspace import Workspace as Workspace
    from smartwriter.writing.engine import Engine as Engine

_HOMES = {
    "AlreadyExists": "errors",
    "Collection": "memory.collection",
    "CollectionNotFound": "errors",
    "Draft": "tasks.values",
    "DraftBusy": "errors",
    "DraftNotFound": "errors",
    "Engine": "writing.engine",
    "FileSessionStore": "sessions.store",
    "FolderGone": "errors",
    "Invalid": "errors",
    "JournalBusy": "errors",
    "JournalError": "errors",
    "LeadsOutside": "errors",
    "NotAWorkspace": "errors",
    "NotSavedYet": "errors",
    "ParagraphNotFound": "errors",
    "Revision": "tasks.values",
    "RevisionNotFound": "errors",
    "SessionMissing": "errors",
    "SmartWriterError": "errors",
    "Task": "tasks.values",
    "TaskAmbiguous": "errors",
    "TaskManager": "tasks.manager",
    "TaskNotFound": "errors",
    "TextConflict": "errors",
    "Turn": "tasks.values",
    "TurnNotFound": "errors",
    "UnsafeName": "errors",
    "Workspace": "workspace",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
