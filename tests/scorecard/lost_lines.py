"""A history of 100 entries that lost one line: what is shown of it, and what the model is sent.

Each entry says a word of its own and has the one before it for its parent. For each line, a
transcript without it, and one in which only its first half is left, are read from disk; what
``messages`` makes of them must be the 99 others, in order. For a sample of lines the real CLI
resumes the session through the store, with the stand-in model on 127.0.0.1: its next request must
hold the 99 words, in order, and the transcript must have its old bytes first.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from unittest import mock

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient
from claude_agent_sdk.types import SessionKey
from figure import Figure, Outcome, Run

import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
from smartwriter.agent.offline.environment import clean_environment, offline_env
from smartwriter.agent.offline.script import Reply, Request, Text
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.sessions.store import FileSessionStore
from smartwriter.sessions.transcript import messages

ENTRIES = 100
RESUMES = 20
_QUICK_RESUMES = 2
_RESUME_TIMEOUT_S = 60
_PROJECT = "p"


def history(session_id: str) -> list[bytes]:
    """The lines of a transcript, as the CLI would have written them."""
    lines = []
    for number in range(ENTRIES):
        role = "assistant" if number % 2 else "user"
        lines.append(
            encoding.encode(
                {
                    "type": role,
                    "uuid": _uuid(number),
                    "parentUuid": _uuid(number - 1) if number else None,
                    "sessionId": session_id,
                    "timestamp": f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}.000Z",
                    "cwd": "/w/book",
                    "version": "2.1.332",
                    "userType": "external",
                    "isSidechain": False,
                    "message": {"role": role, "content": [{"type": "text", "text": _word(number)}]},
                }
            )
        )
    return lines


def _uuid(number: int) -> str:
    return str(uuid.UUID(int=number + 1))


def _word(number: int) -> str:
    return f"<word-{number:03d}>"


# --- shown ----------------------------------------------------------------------------------


def _measure_shown(run: Run) -> Outcome:
    lines = history(str(uuid.UUID(int=0)))
    path = run.folder / "session.jsonl"
    whole = 0
    fewest = ENTRIES
    for lost in range(ENTRIES):
        for rest in (b"", lines[lost][: len(lines[lost]) // 2] + b"\n"):
            path.write_bytes(b"".join([*lines[:lost], rest, *lines[lost + 1 :]]))
            shown = [message.uuid for message in messages(reading.read(path).entries)]
            whole += shown == [_uuid(number) for number in range(ENTRIES) if number != lost]
            fewest = min(fewest, len(shown))
    got = (
        f"{ENTRIES - 1} of {ENTRIES - 1}, in order, in {whole} of {2 * ENTRIES} files; fewest shown: {fewest}"
    )
    return Outcome(got, whole == 2 * ENTRIES)


# --- sent -----------------------------------------------------------------------------------


def _measure_sent(run: Run) -> Outcome:
    sample = run.random().sample(range(ENTRIES), _QUICK_RESUMES if run.quick else RESUMES)
    problems = []
    home = mock.patch.dict(os.environ, {"HOME": str(run.folder / "home")})  # the SDK looks there too
    with home, clean_environment(), OfflineModel(_reply) as model:
        for lost in sorted(sample):
            problems += _resume_without(lost, model, run.folder)
    got = (
        f"{len(sample)} resumes, lines {sorted(sample)} lost: {len(sample) - len(problems)} sent all 99 words"
    )
    return Outcome("\n                ".join([got, *problems]), not problems)


def _reply(_: Request) -> Reply:
    return [Text("Done.")]


def _resume_without(lost: int, model: OfflineModel, folder: Path) -> list[str]:
    """What was wrong, in at most one sentence."""
    session_id = str(uuid.uuid4())
    lines = history(session_id)
    store = FileSessionStore(folder / "store")
    key: SessionKey = {"project_key": _PROJECT, "session_id": session_id}
    path = store.path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = b"".join([*lines[:lost], *lines[lost + 1 :]])
    path.write_bytes(before)
    requests = len(model.requests)
    anyio.run(_take_turn, _options(store, session_id, model.url, folder))
    if len(model.requests) == requests:
        return [f"line {lost}: nothing was sent"]
    said = model.requests[-1].said
    places = [said.find(_word(number)) for number in range(ENTRIES) if number != lost]
    if -1 in places or places != sorted(places):
        return [
            f"line {lost}: {sum(place >= 0 for place in places)} of {len(places)} words sent, or in disorder"
        ]
    if not path.read_bytes().startswith(before):
        return [f"line {lost}: the transcript lost its old bytes"]
    return []


def _options(store: FileSessionStore, session_id: str, url: str, folder: Path) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        session_store=store.bind(_PROJECT),
        session_store_flush="eager",
        resume=session_id,
        system_prompt="You are a writer.",
        setting_sources=[],
        strict_mcp_config=True,
        tools=[],
        cwd=folder,
        env=offline_env(url, folder / "home"),
    )


async def _take_turn(options: ClaudeAgentOptions) -> None:
    with anyio.fail_after(_RESUME_TIMEOUT_S):
        async with ClaudeSDKClient(options) as client:
            await client.query("Go on.")
            async for _ in client.receive_response():
                pass


FIGURES = [
    Figure(
        "history shown after losing any one line of 100",
        "99 of 99 for each line, lost or torn",
        _measure_shown,
    ),
    Figure(
        "history sent by the real CLI on resume after losing one line of 100",
        "99 of 99 for each of a sample of 20 lines",
        _measure_sent,
    ),
]
