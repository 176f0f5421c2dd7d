"""What the SDK itself makes of a transcript. It is loaded when it is asked: that takes half a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey, SessionStore, SessionStoreEntry


def sdk_reads(entries: Sequence[Mapping[str, Any]]) -> set[str]:
    """The uuids of the messages that the SDK's own reader finds in a transcript."""
    from claude_agent_sdk import get_session_messages_from_store

    class Shown:
        async def load(self, key: SessionKey) -> list[SessionStoreEntry]:
            return cast("list[SessionStoreEntry]", entries)

    reading = get_session_messages_from_store(cast("SessionStore", Shown()), str(uuid4()))
    try:
        reading.send(None)  # there is nothing in it to wait for
    except StopIteration as done:
        return {message.uuid for message in done.value}
    raise RuntimeError("The SDK's reader waits for something.")
