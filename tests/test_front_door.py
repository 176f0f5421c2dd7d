"""The front door."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import smartwriter
import smartwriter.errors
import smartwriter.events


def test_all_names_are_there() -> None:
    """Everything that ``__all__`` promises can be imported, and it is sorted."""
    assert list(smartwriter.__all__) == sorted(smartwriter.__all__)
    for name in set(smartwriter.__all__) - _UNIONS:
        assert getattr(smartwriter, name).__name__ == name
    assert all(get_args(getattr(smartwriter, name)) for name in _UNIONS)


_UNIONS = {"Event", "Ending"}


def test_dir_lists_what_is_public_before_any_of_it_is_loaded() -> None:
    """``dir(smartwriter)``, and so completion in a shell, has every public name and nothing else."""
    assert dir(smartwriter) == smartwriter.__all__


def test_every_error_and_every_event_is_public() -> None:
    """A program can catch each error and tell each event apart by names of the front door alone; type
    checkers know the same names from the same places."""
    for module in (smartwriter.errors, smartwriter.events):
        for name, one in vars(module).items():
            if isinstance(one, type) and one.__module__ == module.__name__:
                assert getattr(smartwriter, name) is one
    (checked,) = (node for node in ast.parse(inspect.getsource(smartwriter)).body if isinstance(node, ast.If))
    named = [
        (alias.name, node.module)
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert dict(named) == {name: f"smartwriter.{home}" for name, home in smartwriter._HOMES.items()}


def test_importing_it_loads_nothing_heavy() -> None:
    """``import smartwriter`` loads neither the SDK nor pydantic's models nor rich."""
    heavy = ["claude_agent_sdk", "pydantic", "rich"]
    code = f"import sys, smartwriter; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_imports_the_root_or_loads_the_sdk() -> None:
    """No module imports the package root; only what runs conversations imports the SDK when it is loaded."""
    package = Path(smartwriter.__file__).parent
    for path in package.rglob("*.py"):
        if path == package / "__init__.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert "smartwriter" not in imports(ast.walk(tree)), path
        at_once = imports(tree.body)  # neither within a function nor for type checkers alone
        sdk = [name for name in at_once if name.startswith("claude_agent_sdk")]
        assert not sdk or path.relative_to(package).as_posix() in _CONVERSATIONS, path


def test_no_module_imports_what_the_sdk_keeps_to_itself() -> None:
    """What the SDK marks as private, by an underscore, is imported by tests alone."""
    package = Path(smartwriter.__file__).parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = imports([node])
            if isinstance(node, ast.ImportFrom):
                names += [f"{node.module}.{alias.name}" for alias in node.names]
            sdk = [name for name in names if name.startswith("claude_agent_sdk")]
            assert not [name for name in sdk if "._" in name], path


def test_the_sdk_is_loaded_by_conversations_alone() -> None:
    """What writes with an agent, forks, or proves what is stored, loads no SDK before it has to."""
    modules = ["writing.engine", "trials.forking", "doctor.examine", "agent.offline.server"]
    code = "; ".join(["import sys", *(f"import smartwriter.{name}" for name in modules)])
    code += "; print('claude_agent_sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


_CONVERSATIONS = ("agent/claude.py", "agent/listening.py")


def imports(nodes: Iterable[ast.AST]) -> list[str]:
    """The names of the modules that import statements among some nodes name."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or ".")
    return found


def test_the_tree_can_be_seen_whole() -> None:
    """No room but the commands' holds more than twelve modules, no module more than 400 lines, and of ten
    functions nine fit into eighteen."""
    package = Path(smartwriter.__file__).parent
    modules = [path for path in package.rglob("*.py") if path.name != "__init__.py"]
    rooms = Counter(path.parent for path in modules)
    assert {room.name: count for room, count in rooms.items() if count > 12 and room.name != "cli"} == {}
    texts = {path: path.read_text(encoding="utf-8") for path in modules}
    assert {path.name: text.count("\n") for path, text in texts.items() if text.count("\n") > 400} == {}
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for text in texts.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert lengths[len(lengths) * 9 // 10] <= 18 and lengths[-1] <= 40
