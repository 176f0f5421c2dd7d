"""How numbers and texts stand in sentences, here and in all that a command says."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import smartwriter
from smartwriter.text.wording import acting, counted, shortened


def test_a_number_agrees_with_its_noun() -> None:
    """One is one, all else are many, and thousands can be told apart."""
    assert [counted(number, "word") for number in (0, 1, 2, 12_000)] == [
        "0 words",
        "1 word",
        "2 words",
        "12,000 words",
    ]


def test_who_does_it_agrees_with_the_number() -> None:
    """One waits, all others wait."""
    said = [acting(number, "prompt", "wait") for number in (0, 1, 2)]
    assert said == ["0 prompts wait", "1 prompt waits", "2 prompts wait"]


_MANY = re.compile(
    r"(?: more)? (?:articles|bytes|characters|comments|decisions|drafts|files|lines|messages|pages|paragraphs"
    r"|parts|places|proposals|prompts|revisions|stretches|tasks|tokens|turns|versions|words)\b"
)
_NEVER_ONE = {"change.lost", "len(drafts)", "len(earlier)", "len(found)", "len(largest.prompt)"}
"""One of two numbers; and what is said from two on alone, or is never so few."""
_NEVER_ONE |= {"len(turn.prompt)"}


def test_no_command_says_one_things() -> None:
    """What commands and the doctor say has no number in front of a noun that is always in the plural."""
    found = []
    for room in ("cli", "doctor", "trials", "writing"):
        for path in (Path(smartwriter.__file__).parent / room).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                for number, noun in pairwise(node.values) if isinstance(node, ast.JoinedStr) else ():
                    if isinstance(number, ast.FormattedValue) and isinstance(noun, ast.Constant):
                        said = ast.unparse(number.value)
                        if _MANY.match(str(noun.value)) and said not in _NEVER_ONE:
                            found.append(f"{path.name}: {said}{noun.value!r}")
    assert found == []


def test_a_text_is_cut_to_a_line() -> None:
    """It stays as it is where it fits, counts its mark of omission, and has no line ends."""
    assert shortened("one\n two", 7) == "one two"
    assert shortened("one\n twos", 7) == "one tw…"
