"""An agent without a model: the real CLI, talking to the stand-in, in a home folder that lasts as long."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from smartwriter.agent.claude import ClaudeAgent
from smartwriter.agent.offline.environment import clean_environment, offline_env
from smartwriter.agent.offline.server import OfflineModel
from smartwriter.sessions.orphans import HOMES, mark_home


@contextmanager
def offline_agent(workspace_id: str, url: str = "") -> Iterator[ClaudeAgent]:
    """
    :param workspace_id: which will know what a CLI leaves in that folder, should this program die.
    :param url: of a stand-in that runs already; empty: one is run.
    """
    with clean_environment(), ExitStack() as stack:
        home = stack.enter_context(
            tempfile.TemporaryDirectory(prefix=f"{HOMES}{os.getpid()}-", ignore_cleanup_errors=True)
        )
        mark_home(Path(home), workspace_id)
        url = url or stack.enter_context(OfflineModel()).url
        yield ClaudeAgent(env=offline_env(url, Path(home)))
