"""The environment in which the CLI, and all else, talks to the stand-in alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def offline_env(url: str, home: Path) -> dict[str, str]:
    """The CLI's environment for the server at `url`; what it writes, it writes into `home`."""
    config, tmp = home / ".claude", home / "tmp"
    for folder in (config, tmp):
        folder.mkdir(parents=True, exist_ok=True)
    # The SDK adds to the environment and cannot take away, so what would lead elsewhere is blanked.
    return dict.fromkeys(filter(_leads_elsewhere, os.environ), "") | {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-offline",
        "HOME": str(home),
        "USERPROFILE": str(home),
        "CLAUDE_CONFIG_DIR": str(config),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_TMPDIR": str(tmp),
        "CLAUDE_CODE_MAX_RETRIES": "1",  # of ten, the last would come after minutes
        "NO_PROXY": "127.0.0.1",
    }


@contextmanager
def clean_environment() -> Iterator[None]:
    """Without any variable that would point the CLI, or an HTTP client, at something real."""
    taken = {name: os.environ.pop(name) for name in list(os.environ) if _leads_elsewhere(name)}
    try:
        yield
    finally:
        os.environ.update(taken)


def _leads_elsewhere(name: str) -> bool:
    name = name.upper()
    return name.startswith(("ANTHROPIC_", "CLAUDE")) or name.endswith("_PROXY")
