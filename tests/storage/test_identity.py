"""A workspace has an id that no copy of it shares."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from smartwriter.storage.identity import identify, identity
from smartwriter.workspace import Workspace


def copied(workspace: Workspace, target: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(workspace.root, target)))


def test_an_id_is_for_life(workspace: Workspace, tmp_path: Path) -> None:
    """A workspace keeps its id when it is opened again, renamed or moved on its disk."""
    mine = workspace.identify()
    assert mine.id and not mine.is_new_copy
    workspace.root.rename(tmp_path / "elsewhere")
    assert Workspace(tmp_path / "elsewhere").identify() == mine


def test_a_copy_gets_an_id_of_its_own(workspace: Workspace, tmp_path: Path) -> None:
    """It knows what it is a copy of, and says once that it is one; the other one is as it was."""
    mine = workspace.identify().id
    copy = copied(workspace, tmp_path / "copy")
    new = copy.identify()
    assert new.id not in ("", mine) and new.is_new_copy and new.copied_from == (mine,)
    assert not identify(copy.hidden).is_new_copy
    of_copy = copied(copy, tmp_path / "copy of it").identify()
    assert of_copy.copied_from == tuple(sorted((mine, new.id)))
    assert Workspace(workspace.root).identify().id == mine


def test_looking_changes_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """Who only looks at a copy gives it no id."""
    copy = copied(workspace, tmp_path / "copy")
    before = sorted(copy.hidden.rglob("*"))
    assert identity(copy.hidden).id == ""
    assert sorted(copy.hidden.rglob("*")) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"id": "../x", "copied_from": []}', b"\xff"])
def test_a_damaged_record(workspace: Workspace, content: bytes) -> None:
    """What cannot be an id is none: the workspace gets another one."""
    (record,) = (workspace.hidden / "identity").iterdir()
    record.write_bytes(content)
    new = identify(workspace.hidden)
    assert new.id and identify(workspace.hidden) == new
    assert list((workspace.hidden / "identity").iterdir()) == [record]
