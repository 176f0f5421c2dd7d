"""What reaches a terminal, and what reaches a file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from commands import command, environment, smartwriter
from escapes import ESCAPES, RAW, on_a_terminal, raw_in

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.text.harmless import harmless, is_harmless_name
from smartwriter.workspace import Workspace

EVERYTHING = " ".join(ESCAPES)


def test_every_sequence_wherever_it_is_split() -> None:
    """No sequence acts on a terminal, not even one whose two halves are shown at different times."""
    assert len(set(ESCAPES)) == 60
    for sequence in ESCAPES:
        for at in range(len(sequence) + 1):
            shown = harmless(sequence[:at]) + harmless(sequence[at:])
            assert not RAW.search(shown) and "\r" not in shown, repr(sequence)


@pytest.mark.parametrize(
    "text",
    [
        "Two lines,\n\tand a tab.\n",
        "渡口的名字 · “quoted” — 🏞️",
        "می\u200cخواهم",
        "👩\u200d👩\u200d👧",
        "שלום \u200fעולם",
        "ไม่\u200bมี",
    ],
)
def test_a_text_as_people_write_it(text: str) -> None:
    """What people write in any script is shown as it is, with the joiners that their scripts need."""
    assert harmless(text) is text


def test_line_ends_and_what_is_left_of_a_sequence() -> None:
    """A line end of any kind is one; a lone return shows that it is there; so does half an emoji."""
    assert harmless("a\r\nb\r") + harmless("\nc") == "a\nb\nc"
    assert harmless("truth\rlie") == "truth␍lie"
    assert harmless("\x1b[2J\x7f\x9b\ud83d") == "␛[2J␡\ufffd\ufffd"
    assert is_harmless_name("渡口 — 2") and not any(
        map(is_harmless_name, ("a\nb", "a\tb", "\x1b[2J", "\u202e"))
    )


@pytest.fixture
def hostile(workspace: Workspace, tmp_path: Path) -> Workspace:
    """A workspace in which everything that has a name or a text holds every sequence."""
    (workspace.root / "collections" / "series" / "drafts").mkdir(parents=True)
    (workspace.root / "collections" / "series" / "memory.md").write_text(f"# {EVERYTHING}\n- {EVERYTHING}\n")
    named = EVERYTHING[:40].replace("/", "")
    (workspace.root / "collections" / f"named {named}").mkdir()
    (workspace.root / "collections" / "series" / f"{named}.md").write_text("Something.\n")
    (workspace.root / "collections" / "series" / "latin.md").write_bytes(b"caf\xe9")
    task = workspace.new_task("Herons", "series")
    line = json.loads((workspace.hidden / "tasks.jsonl").read_text())
    with open(workspace.hidden / "tasks.jsonl", "a") as file:
        file.write(json.dumps({**line, "title": f"Herons {EVERYTHING}"}) + "\n")
    text = workspace.text(task, "main").path
    text.parent.mkdir(parents=True)
    text.write_text(f"# The text\n\n{EVERYTHING}\n", encoding="utf-8", errors="surrogatepass", newline="")
    return workspace


def _hostile_answer(request: Request) -> Reply:
    if request.tool_results:
        return [Text(f"The end {EVERYTHING} of it.", chunk_chars=3)]
    return [
        Text(f"Said: {EVERYTHING}", chunk_chars=1),
        ToolUse("propose_memory", {"file": "memory.md", "text": f"A fact {EVERYTHING}", "why": EVERYTHING}),
    ]


def test_commands_on_a_terminal(hostile: Workspace) -> None:
    """Whatever a command shows on a terminal, be it an answer as it is typed, a text, a title, a name of a
    file, a proposal, an error or a whole conversation, nothing in it acts there."""
    task = hostile.tasks.all()[0].id
    with OfflineModel(_hostile_answer) as model:
        runs = [
            ("write", task, f"Begin {EVERYTHING}".replace("\x00", ""), "--offline"),
            ("run", f"{task}=Go on.", "--offline"),
            ("show", task),
            ("text", task),
            ("log", task),
            ("blame", task),
            ("tasks",),
            ("status",),
            ("collection", "show", "series"),
            ("memory", "review", "series", "--list"),
            ("compare", f"{task}:1", str(hostile.root / "collections" / "series" / "memory.md")),
            ("collection", "list"),
            ("doctor",),
            ("export", task),
            ("show", f"no such {ESCAPES[0]}"),
            (f"mis{ESCAPES[2]}spelt",),
            ("tasks", "--json"),
        ]
        for arguments in runs:
            shown = on_a_terminal(command(hostile.root, *arguments), environment(model))
            assert (len(shown) > 20 and "No such command" not in shown) or "mis" in arguments[0], arguments
            assert not raw_in(shown, live=arguments[0] == "run"), arguments
            assert "Traceback" not in shown, shown


def test_what_is_piped_is_exact(hostile: Workspace) -> None:
    """What goes to a file or another program has every character of the text, colours and all; and JSON
    on a terminal means the same."""
    task = hostile.tasks.all()[0]
    text = hostile.text(task, "main").path.read_bytes()
    assert smartwriter(hostile.root, "text", task.id).stdout == text
    assert smartwriter(hostile.root, "export", task.id).stdout == text
    assert json.loads(smartwriter(hostile.root, "tasks", "--json").stdout)[0]["title"] == task.title
    shown = on_a_terminal(command(hostile.root, "tasks", "--json"), dict(os.environ))
    assert json.loads(shown)[0]["title"] == task.title


def test_no_other_way_to_a_terminal() -> None:
    """A command prints through the guarded streams: none styles with click, makes a console of rich of its
    own, or writes bytes."""
    folder = Path(__file__).parents[2] / "smartwriter" / "cli"
    for path in folder.glob("*.py"):
        if path.name not in ("terminal.py", "console.py", "outlet.py"):  # what the guard stands on
            found = re.findall(
                r"click\.(?:secho|style)\(|(?<![A-Za-z])Console\(|\.buffer\.write|__stdout__|__stderr__"
                r"|os\.write\((?!1, b\"\\x1b\[\?25h)",  # but for a cursor that is shown again
                path.read_text(),
            )
            assert not found, path
