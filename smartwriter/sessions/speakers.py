"""Whose words an entry of a transcript holds. This place decides, and everything else asks it.

Beside what the writer and the model said, the CLI writes entries of its own in their names: a filler
where an answer was interrupted, each error of the API as an answer, a note where a turn was stopped.
Those are nobody's words. They stay in the transcript, and are never shown, taken, exported or counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from smartwriter.storage.salvage import Entry
from smartwriter.tasks.values import Turn

Speaker = Literal["user", "assistant"]
"""The writer or the model, by the names that a transcript has for them."""

CLI_MODEL = "<synthetic>"
"""The model of which the CLI's own answers say that they are."""
_SERVICE = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage", "isVirtual")
_COMMAND = re.compile(r"\s*<(?:command-name|local-command-stdout|local-command-stderr)>")  # what the CLI did
_FILLER = re.compile(
    r"\s*(?:No response requested\.|\(no content\)|\[Empty text removed\]|\[Request interrupted[^\[\]]*\]"
    r"|\[This turn ended before it finished\.\])\s*"
)


def speaker(entry: Entry) -> Speaker | None:
    """Who said what an entry holds; None: nobody, whatever its role says."""
    kind, message = entry.get("type"), entry.get("message")
    if kind not in ("user", "assistant") or any(entry.get(mark) for mark in _SERVICE):
        return None
    if kind == "assistant" and isinstance(message, dict) and message.get("model") == CLI_MODEL:
        return None
    text, tools = words(entry)
    if (not text.strip() and not tools) or (kind == "user" and _COMMAND.match(text)):
        return None
    return "user" if kind == "user" else "assistant"


def words(entry: Entry) -> tuple[str, tuple[str, ...]]:
    """The text of an entry without the CLI's fillers, and the names of the tools that it used."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else []
    texts, tools = [], []
    for block in content if isinstance(content, list) else blocks:
        match block:
            case {"type": "text", "text": str(text)} if not _FILLER.fullmatch(text):
                texts.append(text)
            case {"type": "tool_use", "name": str(name)}:
                tools.append(name)
    return "\n\n".join(texts), tuple(tools)


def prompt_and_notes(sent: str, prompt: str) -> tuple[str, str]:
    """What the writer said of a prompt as it was sent, and what the program had put before it."""
    return prompt, sent[: -len(prompt)].strip() if prompt and sent.endswith(prompt) else ""


def whole_answer(stored: str, heard: str) -> str:
    """What there is of an answer that broke off: what is in the transcript, and what was only heard."""
    known, new = _letters(stored), _letters(heard)
    if new in known:
        return stored
    return heard if known in new else f"{stored}\n\n{heard}"


def only_heard(stored: str, heard: str) -> str:
    """What was heard of an answer that broke off and is not in the transcript."""
    known, new = _letters(stored), _letters(heard)
    if new in known:
        return ""
    if not new.startswith(known):
        return heard
    left = len(known)
    for at, character in enumerate(heard):
        if not left:
            return heard[at:]
        left -= not character.isspace()
    return ""


def _letters(text: str) -> str:
    """Without white space: between two messages a transcript has some, and what was heard has none."""
    return "".join(text.split())


Prompts = Mapping[str, str]
"""What the writer said in each turn, by the uuid of the turn."""


def prompts(turns: Iterable[Turn]) -> Prompts:
    return {turn.uuid: turn.prompt for turn in turns}
