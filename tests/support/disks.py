"""A disk that stands in for the real one wherever SmartWriter writes, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import smartwriter.files.durable as durable
import smartwriter.storage.journal as journal
import smartwriter.storage.reading as reading

_WRITING = (durable, journal, reading)


@contextmanager
def in_place_of_os(disk: Any) -> Iterator[None]:
    """Let all that writes records and documents use ``disk``; asyncio, which writes too, does not."""
    with ExitStack() as stack:
        for module in _WRITING:
            stack.enter_context(mock.patch.object(module, "os", disk))
        yield
