"""A draft whose conversation is compacted, and what the API is sent in it and in its forks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
from turns import take_turns

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse, asks_for_summary
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.compaction import is_compaction
from smartwriter.tasks.values import MAIN, Turn, TurnState
from smartwriter.trials.forking import fork, rewind
from smartwriter.workspace import Workspace

LONG = "word " * 1200
"""About 1,500 tokens, as the stand-in counts."""


def early(claude: ClaudeAgent, thousands: int = 4) -> ClaudeAgent:
    """An agent whose CLI compacts by itself after so many tokens."""
    window = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": str(thousands)}
    return replace(claude, env={**claude.env, **window})


def says(request: Request) -> Reply:
    """A summary; for the first prompt a text, for "Tools" two calls that make it long; else an answer."""
    if asks_for_summary(request):
        return [Text("<summary>What was said before.</summary>")]
    calls = len(request.tool_results)
    if "Tools" in request.prompt and calls < 2:
        return [
            Text(f"Call {calls}."),
            ToolUse("edit_draft", {"edits": [{"old_text": "dawn", "new_text": LONG + "dawn"}]}),
        ]
    if request.prompt.startswith("First") and not calls:
        return [ToolUse("write_draft", {"text": "The ferry left at dawn.\n"})]
    return [Text(f"Answer to {request.prompt[:40]}")]


def messages_sent(request: Request) -> str:
    """All that is said in a request, without what is drawn anew in each draft, and the cache's marks."""
    messages: list[dict[str, Any]] = []
    for message in request.messages:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = [{k: v for k, v in block.items() if k != "cache_control"} for block in content]
        said = [block for block in blocks if block.get("text") != ""]
        messages.append({"role": message["role"], "content": said})
    text = re.sub(r"as revision \d+", "as a revision", json.dumps(messages, indent=1, ensure_ascii=False))
    text = re.sub(r"read the full transcript at: .*?\.jsonl", "", text)
    for number, id in enumerate(dict.fromkeys(re.findall(r"toolu_\w+", text))):
        text = text.replace(id, f"call {number}")
    return text


@dataclass
class Origin:
    """A draft that took some turns, and what the model was sent in each."""

    workspace: Workspace
    claude: ClaudeAgent
    model: OfflineModel
    prompts: list[str]

    def __post_init__(self) -> None:
        self.task = self.workspace.new_task("Ferry")
        self.turns, self.sent = [], list[list[str]]()
        for prompt in self.prompts:
            (turn,), sent = self.take([(MAIN, prompt)])
            self.turns.append(turn)
            self.sent += sent
        assert all(turn.state is TurnState.finished for turn in self.turns), self.turns

    def take(self, jobs: list[tuple[str, str]]) -> tuple[list[Turn], list[list[str]]]:
        """Turns of drafts, at once; and for each what the model was sent in it."""
        before = len(self.model.requests)
        addresses = [(f"{self.task.id}@{draft}", prompt) for draft, prompt in jobs]
        turns, _ = take_turns(self.workspace, self.claude, addresses)
        sent: dict[str, list[str]] = {turn.session_id: [] for turn in turns}
        for request in self.model.requests[before:]:
            sent[json.loads(request.body["metadata"]["user_id"])["session_id"]].append(messages_sent(request))
        return turns, [sent[turn.session_id] for turn in turns]

    def compactions(self) -> int:
        task = self.workspace.tasks.find(self.task.id)
        return sum(map(is_compaction, OpenDraft(self.workspace, task, MAIN).transcript.read().entries))

    def forked(self, at: int) -> str:
        """The name of a fork at a turn; of every second one by going back to it."""
        task = self.workspace.tasks.find(self.task.id)
        origin = OpenDraft(self.workspace, task, MAIN)
        make = partial(fork, origin, at=at) if at % 2 else partial(rewind, origin, to=at)
        return anyio.run(make).name

    def differing(self, points: list[int] | None = None) -> list[int]:
        """The points from which a fork's next turn sends something else than the origin's did there."""
        points = list(range(len(self.prompts))) if points is None else points
        jobs = [(self.forked(at), self.prompts[at]) for at in points]
        _, sent = self.take(jobs)
        return [at for at, there in zip(points, sent, strict=True) if there != self.sent[at]]
