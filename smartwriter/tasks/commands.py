"""Prompts that are commands to the CLI, which nobody says to the model."""

from __future__ import annotations

COMMAND = "/compact"
"""The one that there is. What follows it says how the summary is to be written."""


def is_command(prompt: str) -> bool:
    """Whether a prompt asks for a compaction, with or without words on how."""
    return prompt.split(maxsplit=1)[:1] == [COMMAND]
