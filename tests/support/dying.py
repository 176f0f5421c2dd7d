"""Killing a process at each thing that it does to the disk, one after another."""

from __future__ import annotations

import os
import signal
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STEPS: list[tuple[Any, str]] = [
    (os, "write"),
    (os, "fsync"),
    (os, "fdatasync"),
    (os, "ftruncate"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "unlink"),
    (Path, "mkdir"),
]


def killed_before(step: int, action: Callable[[], object]) -> bool:
    """Run an action in a process of its own that gets SIGKILL before its n-th step, from 0.

    False when the action came to its end with fewer steps.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads that other tests left idle
        pid = os.fork()
    if pid == 0:
        try:
            _die_before(step)
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, -signal.SIGKILL), "the action failed before it was killed"
    return status != 0


def _die_before(step: int) -> None:
    left = step

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for owner, name in _STEPS:
        if hasattr(owner, name):
            setattr(owner, name, dying(getattr(owner, name)))
