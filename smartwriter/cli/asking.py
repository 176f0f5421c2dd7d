"""Asking for a prompt on a terminal: what is pasted, however many lines it has, is one."""

from __future__ import annotations

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output


def ask(message: str) -> str:
    """What the writer types up to Enter, or pastes. :raises click.Abort: they would rather not."""
    keys = KeyBindings()

    @keys.add("enter")
    def _end(event: KeyPressEvent) -> None:
        # A terminal that does not mark what is pasted sends it like keys, but faster than anybody types.
        if any(key.key != Keys.CPRResponse for key in event.key_processor.input_queue):
            event.current_buffer.newline(copy_margin=False)
        else:
            event.current_buffer.validate_and_handle()

    session = PromptSession[str](
        message,
        multiline=True,
        prompt_continuation=" " * len(message),
        key_bindings=keys,
        output=create_output(always_prefer_tty=True),  # the text itself may go to a file
    )
    try:
        return session.prompt()
    except (KeyboardInterrupt, EOFError):
        raise click.Abort from None
