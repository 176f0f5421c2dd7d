"""What the measured stores hold: transcripts of any size, field by field in the shape of the CLI's."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_json

from smartwriter.sessions.store import FileSessionStore

PROJECT = "bench"
_WORDS = ("the", "heron", "waits", "where", "water", "slows", "reeds", "渡口", "雨", "落在", "铁皮")
_MARK = b"-0000-4"
_BLOCK_ENTRIES = 200
_WORDS_AN_ENTRY = (5, 150)


def key(session_id: str) -> Any:
    return {"project_key": PROJECT, "session_id": session_id}


def session() -> str:
    return str(uuid.uuid4())


def conversation(session_id: str, words: tuple[int, int] = _WORDS_AN_ENTRY) -> Iterator[dict[str, Any]]:
    """A user and an assistant, in turn, without end; each entry the child of the one before."""
    texts = _texts(words)
    source = random.Random(f"{session_id} {words}")  # so that no two kinds share a uuid
    parent: str | None = None
    number = 0
    while True:
        random_uuid = str(uuid.UUID(int=source.getrandbits(128), version=4))
        own = random_uuid[:8] + _MARK.decode() + random_uuid[15:]
        text = texts[number % len(texts)]
        yield {
            "parentUuid": parent,
            "isSidechain": False,
            **(_asked(text, number) if number % 2 == 0 else _answered(text, number)),
            "uuid": own,
            "timestamp": "2026-11-30T08:15:30.123Z",
            "userType": "external",
            "entrypoint": "sdk-py",
            "cwd": "/home/writer/essays",
            "sessionId": session_id,
            "version": "2.1.332",
            "gitBranch": "main",
        }
        parent = own
        number += 1


@cache
def _texts(words: tuple[int, int]) -> list[str]:
    source = random.Random(3)
    return [" ".join(source.choices(_WORDS, k=source.randint(*words))) for _ in range(499)]


def _asked(text: str, number: int) -> dict[str, Any]:
    return {
        "promptId": f"e728d999-14a3-40a5-9668-{number:012}",
        "type": "user",
        "message": {"role": "user", "content": text},
        "permissionMode": "default",
        "promptSource": "sdk",
        "sentAtMs": 1796047355574 + number,
        "rowSource": "local",
        "turnOrigin": "sdk",
        "turnPosition": {"promptIndex": number // 2, "turnIndex": number // 2 + 1},
    }


def _answered(text: str, number: int) -> dict[str, Any]:
    usage = {
        "input_tokens": 484,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 487,
        "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "iterations": [],
        "speed": "standard",
        "fallback_credit": None,
    }
    message = {
        "id": f"msg_c6babd7a4434{number:012}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
        "stop_details": None,
    }
    return {
        "message": message,
        "apiBlockIndex": 0,
        "requestRef": f"7fd7f36f-b556-43b0-87f8-{number:012}",
        "requestedModel": "claude-opus-5-5",
        "promptCacheRequested": "5m",
        "type": "assistant",
        "effort": "medium",
        "madeBy": "model",
    }


def small_batches(session_id: str) -> Iterator[list[dict[str, Any]]]:
    """Three entries at a time, about 1 KB together."""
    names = ("type", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version")
    entries = conversation(session_id, words=(3, 15))
    while batch := list(islice(entries, 3)):
        yield [
            {name: entry[name] for name in names} | {"message": {"content": entry["message"]["content"]}}
            for entry in batch
        ]


class Written(NamedTuple):
    entries: int
    last_uuid: str


def write(path: Path, session_id: str, size: int) -> Written:
    """A transcript of about ``size`` bytes: one block again and again, each time with new uuids."""
    entries = list(islice(conversation(session_id), _BLOCK_ENTRIES))
    block = b"".join(to_json(entry) + b"\n" for entry in entries)
    last_uuid: bytes = entries[-1]["uuid"].encode()
    blocks = max(1, round(size / len(block)))
    path.parent.mkdir(parents=True, exist_ok=True)
    parent = b"null"
    with path.open("wb") as file:
        for number in range(blocks):
            # Second group of all uuids, see conversation().
            mark = b"-%04x-4" % number
            file.write(block.replace(b'"parentUuid":null', b'"parentUuid":' + parent).replace(_MARK, mark))
            parent = b'"' + last_uuid.replace(_MARK, mark) + b'"'
        file.flush()
        os.fsync(file.fileno())  # must not be in the way of the syncs that are measured
    with path.open("rb") as file:
        while file.read(1 << 20):  # into the page cache
            pass
    return Written(blocks * _BLOCK_ENTRIES, parent.decode().strip('"'))


def stored(root: Path, size: int) -> tuple[FileSessionStore, str, Written]:
    """A store with one session of about ``size`` bytes, and its id."""
    store, session_id = FileSessionStore(root), session()
    return store, session_id, write(store.path(key(session_id)), session_id, size)
