"""Write several articles at once with Claude, and never lose a word.

The names below are loaded when they are first used: the SDK alone takes half a second to import.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartwriter.agent.claude import ClaudeAgent as ClaudeAgent
    from smartwriter.agent.conversation import Agent as Agent
    from smartwriter.agent.conversation import AgentError as AgentError
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
    from smartwriter.events import ArticleDelta as ArticleDelta
    from smartwriter.events import Awaited as Awaited
    from smartwriter.events import CallBegun as CallBegun
    from smartwriter.events import CallDropped as CallDropped
    from smartwriter.events import Clashed as Clashed
    from smartwriter.events import Compacted as Compacted
    from smartwriter.events import CutOffKept as CutOffKept
    from smartwriter.events import DraftRevised as DraftRevised
    from smartwriter.events import Ending as Ending
    from smartwriter.events import Event as Event
    from smartwriter.events import Failed as Failed
    from smartwriter.events import Finished as Finished
    from smartwriter.events import MemoryProposed as MemoryProposed
    from smartwriter.events import NotKept as NotKept
    from smartwriter.events import NotSaved as NotSaved
    from smartwriter.events import OfDraft as OfDraft
    from smartwriter.events import OfTurn as OfTurn
    from smartwriter.events import Queued as Queued
    from smartwriter.events import RateLimited as RateLimited
    from smartwriter.events import Reload as Reload
    from smartwriter.events import Retrying as Retrying
    from smartwriter.events import Saved as Saved
    from smartwriter.events import Stopped as Stopped
    from smartwriter.events import TextDelta as TextDelta
    from smartwriter.events import TextDropped as TextDropped
    from smartwriter.events import ThinkingDelta as ThinkingDelta
    from smartwriter.events import ToolAnswered as ToolAnswered
    from smartwriter.events import ToolUsed as ToolUsed
    from smartwriter.events import TurnRecovered as TurnRecovered
    from smartwriter.events import TurnStarted as TurnStarted
    from smartwriter.events import UsageCounted as UsageCounted
    from smartwriter.events import Withdrawn as Withdrawn
    from smartwriter.memory.collection import Collection as Collection
    from smartwriter.sessions.store import BoundSessionStore as BoundSessionStore
    from smartwriter.sessions.store import FileSessionStore as FileSessionStore
    from smartwriter.system.config import Config as Config
    from smartwriter.tasks.manager import TaskManager as TaskManager
    from smartwriter.tasks.values import Draft as Draft
    from smartwriter.tasks.values import Revision as Revision
    from smartwriter.tasks.values import Task as Task
    from smartwriter.tasks.values import Turn as Turn
    from smartwriter.tasks.values import TurnState as TurnState
    from smartwriter.tasks.values import Usage as Usage
    from smartwriter.turns.sent import SentPrompt as SentPrompt
    from smartwriter.workspace import Workspace as Workspace
    from smartwriter.writing.engine import Engine as Engine

_HOMES = {
    "Agent": "agent.conversation",
    "AgentError": "agent.conversation",
    "AlreadyExists": "errors",
    "ArticleDelta": "events",
    "Awaited": "events",
    "BoundSessionStore": "sessions.store",
    "CallBegun": "events",
    "CallDropped": "events",
    "Clashed": "events",
    "ClaudeAgent": "agent.claude",
    "Collection": "memory.collection",
    "CollectionNotFound": "errors",
    "Compacted": "events",
    "Config": "system.config",
    "CutOffKept": "events",
    "Draft": "tasks.values",
    "DraftBusy": "errors",
    "DraftNotFound": "errors",
    "DraftRevised": "events",
    "Ending": "events",
    "Engine": "writing.engine",
    "Event": "events",
    "Failed": "events",
    "FileSessionStore": "sessions.store",
    "Finished": "events",
    "FolderGone": "errors",
    "Invalid": "errors",
    "JournalBusy": "errors",
    "JournalError": "errors",
    "LeadsOutside": "errors",
    "MemoryProposed": "events",
    "NotAWorkspace": "errors",
    "NotKept": "events",
    "NotSaved": "events",
    "NotSavedYet": "errors",
    "OfDraft": "events",
    "OfTurn": "events",
    "ParagraphNotFound": "errors",
    "Queued": "events",
    "RateLimited": "events",
    "Reload": "events",
    "Retrying": "events",
    "Revision": "tasks.values",
    "RevisionNotFound": "errors",
    "Saved": "events",
    "SentPrompt": "turns.sent",
    "SessionMissing": "errors",
    "SmartWriterError": "errors",
    "Stopped": "events",
    "Task": "tasks.values",
    "TaskAmbiguous": "errors",
    "TaskManager": "tasks.manager",
    "TaskNotFound": "errors",
    "TextConflict": "errors",
    "TextDelta": "events",
    "TextDropped": "events",
    "ThinkingDelta": "events",
    "ToolAnswered": "events",
    "ToolUsed": "events",
    "Turn": "tasks.values",
    "TurnNotFound": "errors",
    "TurnRecovered": "events",
    "TurnStarted": "events",
    "TurnState": "tasks.values",
    "UnsafeName": "errors",
    "Usage": "tasks.values",
    "UsageCounted": "events",
    "Withdrawn": "events",
    "Workspace": "workspace",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
