from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import smartwriter
from smartwriter.storage.places import Places, stamp

_PACKAGE = Path(smartwriter.__file__).parent
_OWNERS = ("storage/", "workspace.py", "system/bounds.py")
_FOLDERS = {"'.smartwriter'", "'trash'", "hidden", "_hidden"}


def _joins(tree: ast.AST) -> Iterator[ast.AST]:
    """Where a path is made of ``.smartwriter`` or of a folder in it, or a stamp of the trash is made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _names(node) & _FOLDERS:
            yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            searched = node.func.attr in ("glob", "rglob", "joinpath", "with_name")
            if searched and _names(node.func.value) & _FOLDERS and ast.unparse(node.args[0]) != "'*'":
                yield node
            if node.func.attr == "strftime" and "%Y%m%dT" in ast.unparse(node):
                yield node


def _names(node: ast.AST) -> set[str]:
    """The names and strings that stand on either side of a join, not those in calls and brackets."""
    match node:
        case ast.BinOp(left, ast.Div(), right):
            return _names(left) | _names(right)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return {name}
        case ast.Constant(value=str(text)):
            return {repr(text)}
    return set()


def test_nobody_else_knows_a_path_of_a_workspaces_records() -> None:
    """Every path in ``.smartwriter``, and every name in its trash, is made in one place."""
    found = [
        f"{path.relative_to(_PACKAGE)}:{ast.unparse(node)}"
        for path in sorted(_PACKAGE.rglob("*.py"))
        if not str(path.relative_to(_PACKAGE)).startswith(_OWNERS)
        for node in _joins(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "workspace.hidden / 'turns' / id",
        "self._hidden / 'x'",
        "root / '.smartwriter' / 'tasks.jsonl'",
        "root / 'trash' / name",
        "workspace.hidden.glob('turns/*')",
        "time.strftime('%Y%m%dT%H%M%SZ')",
    ],
)
def test_a_path_made_elsewhere_is_found(line: str) -> None:
    """The search for paths that are made elsewhere finds them, in every form that they had."""
    assert list(_joins(ast.parse(line)))


def test_what_is_put_away_is_named_for_the_moment(tmp_path: Path) -> None:
    """Twice is two names, in order, that say what it was; a hidden file can be seen in the trash."""
    places = Places(tmp_path)
    names = [places.trash("drafts", "t-1-main", ".md") for _ in range(3)]
    assert names == sorted(names) and len(set(names)) == 3
    for path in names:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    assert places.in_trash("drafts", "t-1-main") == names
    assert places.in_trash("drafts", "t-1") == []
    assert places.trash("leftovers", ".main.md.1-ab.tmp").name.startswith("main.md.1-ab.tmp.")
    assert stamp()[8] == "T" and stamp()[15] == "Z"
