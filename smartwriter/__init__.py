"""Write several articles at once with Claude, and never lose a word.

The names below are loaded when they are first used: the SDK alone takes half a second to import.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartwriter.engine import Engine as Engine
    from smartwriter.errors import SmartWriterError as SmartWriterError
    from smartwriter.memory import Collection as Collection
    from smartwriter.session_store import FileSessionStore as FileSessionStore
    from smartwriter.task_manager import TaskManager as TaskManager
    from smartwriter.tasks import Draft as Draft
    from smartwriter.tasks import Revision as Revision
    from smartwriter.tasks import Task as Task
    from smartwriter.tasks import Turn as Turn
    from smartwriter.workspace import Workspace as Workspace

_HOMES = {
    "Collection": "memory",
    "Draft": "tasks",
    "Engine": "engine",
    "FileSessionStore": "session_store",
    "Revision": "tasks",
    "SmartWriterError": "errors",
    "Task": "tasks",
    "TaskManager": "task_manager",
    "Turn": "tasks",
    "Workspace": "workspace",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
