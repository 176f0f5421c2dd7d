"""The front door."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import smartwriter


def test_all_names_are_there() -> None:
    """Everything that ``__all__`` promises can be imported, and it is sorted."""
    assert list(smartwriter.__all__) == sorted(smartwriter.__all__)
    for name in smartwriter.__all__:
        assert getattr(smartwriter, name).__name__ == name


def test_importing_it_loads_nothing_heavy() -> None:
    """``import smartwriter`` loads neither the SDK nor pydantic's models nor rich."""
    heavy = ["claude_agent_sdk", "pydantic", "rich"]
    code = f"import sys, smartwriter; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_layers_import_only_downwards() -> None:
    """A module imports its own layer and those below, also where it does so late or for types alone,
    and never the package root; nothing but ``agent/claude.py`` imports the SDK when it is loaded."""
    layers = [
        {"errors", "tasks", "events", "names", "damage", "words", "passages", "comparison", "provenance"}
        | {"carrying", "placing"}
        | {"front_matter", "tokens", "sections", "index"}
        | {"conflicts", "lines", "harmless", "speakers", "endings"}
        | {"content", "sense", "facts", "nearness", "quantities", "stems", "uses"},
        {"journal", "summaries", "session_store", "memory", "task_manager", "drafts", "lease"}
        | {"transcript", "workspace", "live", "spool", "config", "texts", "timeline"}
        | {"memory_versions", "whole_file", "proposals", "document", "records", "roots", "threads"}
        | {"identity", "orphans", "calls", "bounds", "output", "outbox", "memory_changes", "watching"}
        | {"parts", "elsewhere", "keeper", "cut_off", "forks", "compaction"},
        {"agent", "engine", "writer", "pool", "broadcast", "fork", "recovery"}
        | {"doctor", "doctor_safety", "doctor_lost", "findings"}
        | {"inlines", "pictures"}
        | {"history", "export", "finishing", "reliance", "staleness", "what_if", "renaming", "briefing"},
        {"cli", "__main__"},
    ]
    package = Path(smartwriter.__file__).parent
    for path in package.rglob("*.py"):
        module = path.relative_to(package).with_suffix("").parts[0]
        if module == "__init__":
            continue
        (level,) = [number for number, layer in enumerate(layers) if module in layer]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in imports(ast.walk(tree)):
            assert name != "smartwriter", path
            if name.startswith("smartwriter."):
                imported = name.split(".")[1]
                assert any(imported in layer for layer in layers[: level + 1]), f"{path}: {name}"
        at_once = imports(tree.body)  # neither within a function nor for type checkers alone
        assert path.name == "claude.py" or not any(name.startswith("claude_agent_sdk") for name in at_once)


def imports(nodes: Iterable[ast.AST]) -> list[str]:
    """The names of the modules that import statements among some nodes name."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or ".")
    return found
