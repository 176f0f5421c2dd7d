"""Texts as a copy editor would judge them: cases with the answer a person would give.

Every ``*.yaml`` file in ``tests/text_cases`` is read; the head of ``comparing.yaml`` says what a case is
made of. One that is not met names why, in ``unmet``: then it must fail, so that it is noticed when it no
longer does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from smartwriter.errors import Invalid, TextConflict
from smartwriter.export.document import Document
from smartwriter.export.export import converted
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.journal import Journal
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.values import Origin
from smartwriter.text.differences.comparison import Comparison, compare, word_changes
from smartwriter.text.passages import Edit
from smartwriter.text.words import count
from smartwriter.trials.edits import pick
from smartwriter.trials.provenance import provenance
from smartwriter.trials.version import version
from smartwriter.workspace import Workspace

Case = dict[str, Any]


def cases() -> list[Any]:
    found = []
    for path in sorted((Path(__file__).parent / "text_cases").glob("*.yaml")):
        for number, case in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")), 1):
            name = f"{path.stem}-{number}-{case['name']}"
            marks = [pytest.mark.xfail(reason=case["unmet"])] if "unmet" in case else []
            found.append(pytest.param(case, id=name, marks=marks))
    return found


@pytest.mark.parametrize("case", cases())
def test_a_copy_editor_would_say_the_same(case: Case, tmp_path: Path) -> None:
    """Comparing, picking, blaming, counting, merging and exporting give the answer that a person gives."""
    JUDGES[case["kind"]](case, tmp_path)


def _compare(case: Case, _: Path) -> None:
    found = compare(case["before"], case["after"])
    if "blocks" in case:
        shown = [f"{block.kind} {_marked(found, n)}" for n, block in enumerate(found.blocks)]
        assert shown == case["blocks"]
    if "words" in case:
        assert [found.added_words, found.removed_words] == case["words"]
        assert list(word_changes(case["before"], case["after"])) == case["words"]
    if "moved" in case:
        assert found.moved == case["moved"]


def _marked(found: Comparison, number: int) -> str:
    forms = {"same": "{}", "added": "{{+{}+}}", "removed": "[-{}-]"}
    block = found.blocks[number]
    pieces = block.pieces if len(block.pieces) > 1 else [None]
    return "".join(forms[piece.kind].format(piece.text) if piece else "…" for piece in pieces)


def _pick(case: Case, folder: Path) -> None:
    workspace = Workspace.create(folder)
    task = workspace.new_task("T")
    workspace.tasks.add_draft(task.id, "trial", "s-trial", Origin(draft="main", turn=0))
    workspace.text(task, "main").write(case["into"], author="writer", turn=1)
    task = workspace.tasks.find(task.id)
    workspace.text(task, "trial").write(case["from"], author="writer", turn=1)
    origin = version(workspace, task.address("trial"))
    done = pick(origin, OpenDraft(workspace, task, "main"), case["paragraphs"])
    assert workspace.text(task, "main").read().strip() == case["result"].strip()
    for words in case.get("said", []):
        assert words in " ".join(done.placed)


def _blame(case: Case, folder: Path) -> None:
    text = DraftText(folder / "main.md", Journal(folder / "main.jsonl"), lambda: folder / "trash")
    for number, step in enumerate(case["versions"], 1):
        ((author, words),) = step.items()
        text.write(words, author=author, turn=number)
    found = provenance(lambda *_: text.revisions(), "t", "main", len(case["versions"]))
    said = [
        f"{one.origin.author} {one.origin.revision}"
        + ("" if one.changed == one.origin else f", {one.changed.author} {one.changed.revision}")
        for one in found
    ]
    assert said == case["result"]


def _count(case: Case, _: Path) -> None:
    assert count(case["text"]).words == case["words"]


def _merge(case: Case, folder: Path) -> None:
    text = DraftText(folder / "main.md", Journal(folder / "main.jsonl"), lambda: folder / "trash")
    text.write(case["known"], author="model", turn=1)
    (folder / "main.md").write_text(case["by_hand"], encoding="utf-8")
    edits = [Edit(*edit) for edit in case["edits"]]
    if case["result"] == "refused":
        with pytest.raises((Invalid, TextConflict)):
            text.edit(edits, turn=2, base=1)
        assert text.read() == case["by_hand"]
    else:
        assert text.edit(edits, turn=2, base=1).text == case["result"]


def _export(case: Case, _: Path) -> None:
    data = converted(Document("Untitled", case["text"], verse=case.get("verse", False)), case["to"])
    said = data.decode()
    for words in case["has"]:
        assert words in said
    for words in case.get("lacks", []):
        assert words not in said


JUDGES: dict[str, Callable[[Case, Path], None]] = {
    "compare": _compare,
    "pick": _pick,
    "blame": _blame,
    "count": _count,
    "merge": _merge,
    "export": _export,
}
