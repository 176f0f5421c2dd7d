"""The command that shows a draft's conversation, to the last character that was heard of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import click

from smartwriter.cli.app import as_json, in_workspace, print_json
from smartwriter.cli.terminal import secho
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.speakers import only_heard, prompts
from smartwriter.sessions.transcript import Message, messages
from smartwriter.tasks.cut_off import is_whole, kept_as, version_of
from smartwriter.tasks.values import Revision, Turn
from smartwriter.text.wording import counted
from smartwriter.workspace import Workspace


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]")
@as_json
@in_workspace
def show_command(workspace: Workspace, address: str, json_: bool) -> None:
    """Show a draft's conversation."""
    draft = OpenDraft.at(workspace, address)
    turns = draft.turns_now()
    contents = draft.conversation(turns)
    said = messages(contents.entries, prompts(turns))
    revisions = draft.text.revisions()
    waiting = draft.outbox().waiting()
    if json_:
        asked = [dataclasses.asdict(one) for one in waiting]
        print_json(_fields(draft, turns, said, revisions) | {"waiting": asked})
        return
    secho(f"{draft.task.title}  {draft.address}", bold=True)
    for turn, of_turn in _by_turn(turns, said):
        for message in of_turn:
            _print(message, turn)
        if turn is not None:
            _print_end(draft, turn, of_turn, revisions)
    for number, one in enumerate(waiting, 1):
        secho(f"\n[waits, {number}] {one.prompt}", fg="cyan", dim=True)
    path = draft.transcript.path
    for stretch in contents.damage:
        secho(
            f"Damaged at byte {stretch.offset}, {counted(stretch.length, 'byte')}: {path}",
            err=True,
            fg="yellow",
        )


def _by_turn(turns: Sequence[Turn], said: Sequence[Message]) -> Iterator[tuple[Turn | None, list[Message]]]:
    """The messages of each turn, the prompt first; what was said before the first, without one.

    A prompt that died before it was in the transcript is there as well, where it belongs.
    """
    numbers = {turn.uuid: number for number, turn in enumerate(turns)}
    there = {message.uuid for message in said}
    waiting, current, own = 0, None, list[Message]()
    for message in said:
        if message.uuid not in numbers:
            own.append(message)
            continue
        if current is not None or own:
            yield current, own
        for turn in turns[waiting : numbers[message.uuid]]:
            if turn.uuid not in there:
                yield turn, [_prompt(turn)]
        waiting = max(waiting, numbers[message.uuid] + 1)
        current, own = turns[numbers[message.uuid]], [message]
    if current is not None or own:
        yield current, own
    yield from ((turn, [_prompt(turn)]) for turn in turns[waiting:] if turn.uuid not in there)


def _prompt(turn: Turn) -> Message:
    return Message("user", turn.uuid, turn.prompt, ())


def _print(message: Message, turn: Turn | None) -> None:
    if message.gap:
        secho("\n[… something that was said here is missing from the file …]", fg="yellow")
    if message.role == "user":
        label = f"turn {turn.number}" if turn is not None and message.uuid == turn.uuid else "you"
        secho(f"\n[{label}] {message.text}", fg="cyan")
        for line in _told(message.notes):
            secho(f"  · told with it: {line}", dim=True)
        return
    if message.role == "compaction":
        secho(f"\n── {message.text} ──", fg="magenta")
        return
    if message.text.strip():
        click.echo(f"\n{message.text.strip()}")
    for tool in message.tools:
        secho(f"  · {tool.rpartition('__')[2]}", dim=True)


def _print_end(draft: OpenDraft, turn: Turn, said: Sequence[Message], revisions: Sequence[Revision]) -> None:
    """What only was heard of an answer, and what became of an article that was being typed."""
    if heard := _only_heard(turn, said):
        click.echo(f"\n{heard}")
    kept = version_of(turn, revisions)
    if kept is not None:
        click.echo(f"\n{kept.text.strip()}")
        why = f" {turn.detail}" if turn.detail else ""
        where = kept_as(f"{draft.address}:{kept.number}", whole=kept.is_whole)
        secho(f"{where}{why}", fg="yellow")
    elif not is_whole(turn):
        secho(f"({turn.state.value}{f': {turn.detail}' if turn.detail else ' here'})", fg="yellow")
    elif turn.detail:
        secho(f"({turn.detail})", fg="yellow")


def _only_heard(turn: Turn, said: Sequence[Message]) -> str:
    stored = "\n\n".join(message.text for message in said if message.role == "assistant")
    return only_heard(stored, turn.partial).strip()


def _fields(
    draft: OpenDraft, turns: list[Turn], said: list[Message], revisions: list[Revision]
) -> dict[str, Any]:
    cut_off = {turn.number: version_of(turn, revisions) for turn in turns}
    return {
        "task": draft.task.id,
        "draft": draft.name,
        "turns": [turn.model_dump(mode="json") for turn in turns],
        "messages": [
            {
                "role": message.role,
                "uuid": message.uuid,
                "text": message.text,
                "tools": message.tools,
                "notes": message.notes,
            }
            for message in said
        ],
        "cut_off": [
            {"turn": number, "revision": kept.number, "whole": kept.is_whole, "text": kept.text}
            for number, kept in cut_off.items()
            if kept is not None
        ],
    }


def _told(notes: str) -> list[str]:
    """The beginning of each note that the program sent before a prompt."""
    return [note[1:].partition("\n")[0].rstrip("]") for note in notes.split("\n\n") if note[:1] == "["]
