"""An engine that is watched while it runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from smartwriter.agent.offline.script import Reply, Request, Text
from smartwriter.events import Event


def run(function: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def bounded() -> Any:
        with anyio.fail_after(50):
            return await function()

    return anyio.run(bounded)


async def until(events: Any, kind: str) -> Event:
    async for event in events:
        if event.kind == kind:
            assert not isinstance(event, str)
            return event  # type: ignore[no-any-return]
    raise AssertionError(f"no {kind}")


def then_fine(*steps: Any) -> Callable[[Request], Reply]:
    """A script that fails with these steps where the prompt says so, and else answers."""
    return lambda request: list(steps) if "fail" in request.prompt else [Text(f"Fine: {request.prompt}")]
