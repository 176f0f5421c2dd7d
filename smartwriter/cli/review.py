"""Commands for what models propose for a collection's memory, and what the writer makes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from smartwriter.cli.app import Group, as_json, in_workspace, print_json
from smartwriter.cli.terminal import print_pieces, secho
from smartwriter.errors import Invalid
from smartwriter.memory.collection import Collection
from smartwriter.memory.lines import MemoryLine
from smartwriter.memory.proposal import Conflict, Proposal
from smartwriter.memory.proposals import Proposals
from smartwriter.series.holders import holders_of
from smartwriter.series.origins import Origin, Origins
from smartwriter.text.sections import one_line
from smartwriter.text.wording import shortened
from smartwriter.workspace import Workspace

_SHOWN = 100  # characters of a prompt


@click.group(cls=Group)
def memory_command() -> None:
    """What a collection remembers, and what is proposed for it."""


# Reviewing --------------------------------------------------------------------------------------


@memory_command.command("review")
@click.argument("name", metavar="COLLECTION")
@click.option("--accept", "accepted", metavar="ID", multiple=True, help="Accept without asking; repeatable.")
@click.option("--reject", "rejected", metavar="ID", multiple=True, help="Reject without asking; repeatable.")
@as_json
@in_workspace
def review_memory(
    workspace: Workspace, name: str, accepted: tuple[str, ...], rejected: tuple[str, ...], json_: bool
) -> None:
    """Decide on what was proposed for a collection's memory: accept, edit, reject.

    Nothing is in the memory before it is accepted here.
    """
    collection = workspace.collection(name)
    proposals = workspace.series(collection).proposals
    if damage := proposals.damage():
        places = ", ".join(f"byte {stretch.offset}" for stretch in damage[:3])
        secho(f"The proposals' file is damaged at {places}; the rest is used.", err=True, fg="yellow")
    proposals.complete()
    decided = [proposals.accept(id) for id in accepted] + [proposals.reject(id) for id in rejected]
    if json_:
        print_json(_review_json(workspace, collection, proposals, decided))
        return
    for one in decided:
        click.echo(_decided(one))
    if not decided:
        _ask_all(workspace, collection, proposals)


def _ask_all(workspace: Workspace, collection: Collection, proposals: Proposals) -> None:
    pending = proposals.pending()
    if not pending:
        click.echo(f"Nothing is proposed for the memory of {collection.name}.")
        return
    origins = Origins(workspace)
    for number, batch in enumerate(_batches(pending, proposals.conflicts())):
        if number:
            click.echo()
        if isinstance(batch, Conflict):
            secho(f"These may contradict each other. {batch.why}", fg="yellow")
            for proposal in batch.proposals:
                _show(proposal, origins)
            click.echo()
        for proposal in batch.proposals if isinstance(batch, Conflict) else [batch]:
            _show(proposal, origins)
            _show_standing(proposal, proposals)
            if not _ask(proposal, proposals):
                return


def _batches(pending: Sequence[Proposal], conflicts: Sequence[Conflict]) -> list[Proposal | Conflict]:
    """In the order in which they were made, those that contradict each other at the first one's place."""
    of = {proposal.id: conflict for conflict in conflicts for proposal in conflict.proposals}
    batches: list[Proposal | Conflict] = []
    for proposal in pending:
        batch = of.get(proposal.id, proposal)
        if batch not in batches:
            batches.append(batch)
    return batches


def _show(proposal: Proposal, origins: Origins) -> None:
    secho(f"[{proposal.id}] {proposal.text}", fg="cyan")
    secho(f"  for {proposal.file}, from {_from(proposal, origins.of(proposal))}", dim=True)


def _show_standing(proposal: Proposal, proposals: Proposals) -> None:
    """What it would replace, and what the memory says nearest to it."""
    if proposal.replaces:
        secho(f"  takes the place of: {proposal.replaces.strip()}", fg="yellow")
    for line in proposals.near(proposal):
        secho(f"  {line.file} says ({line.number}): {line.text}", fg="yellow")


def _ask(proposal: Proposal, proposals: Proposals) -> bool:
    """Whether to go on with the next."""
    answer = click.prompt(
        "  a(ccept), e(dit), r(eject), s(kip) or q(uit)",
        type=click.Choice(["a", "e", "r", "s", "q"]),
        show_choices=False,
    )
    try:
        if answer == "a":
            click.echo(f"  {_decided(proposals.accept(proposal.id))}")
        elif answer == "e":
            text = edited("  The line: ", proposal.text)
            click.echo(f"  {_decided(proposals.accept(proposal.id, text))}")
        elif answer == "r":
            click.echo(f"  {_decided(proposals.reject(proposal.id))}")
    except Invalid as error:  # the others can be decided all the same
        secho(f"  {error} It still waits.", err=True, fg="red")
    return bool(answer != "q")


def edited(label: str, text: str) -> str:
    """A line as the writer leaves it, who begins with the text as it is."""
    if not sys.stdin.isatty():
        return str(click.prompt(label.rstrip(": "), default=text))
    import readline

    readline.set_startup_hook(lambda: readline.insert_text(text))
    try:
        return input(label)
    except EOFError:
        raise click.Abort from None
    finally:
        readline.set_startup_hook(None)


def _decided(proposal: Proposal) -> str:
    if proposal.accepted_text:
        return f"{proposal.id} is in {proposal.file}: {proposal.accepted_text}"
    return f"{proposal.id} is rejected: {proposal.text}"


def _review_json(
    workspace: Workspace, collection: Collection, proposals: Proposals, decided: Iterable[Proposal]
) -> dict[str, Any]:
    origins = Origins(workspace)
    return {
        "collection": collection.name,
        "decided": [one.model_dump(mode="json") for one in decided],
        "pending": [
            {
                **_proposal_json(one, origins.of(one)),
                "near": [_near_json(line) for line in proposals.near(one)],
            }
            for one in proposals.pending()
        ],
        "conflicts": [
            {"why": conflict.why, "proposals": [one.id for one in conflict.proposals]}
            for conflict in proposals.conflicts()
        ],
    }


# Where proposals come from ----------------------------------------------------------------------


def _from(proposal: Proposal, origin: Origin) -> str:
    title = f"{origin.title}, " if origin.title else ""
    prompt = f": “{shortened(one_line(origin.prompt), _SHOWN)}”" if origin.prompt else ""
    return f"{title}turn {proposal.turn} of {proposal.task}@{proposal.draft}{prompt}"


def _proposal_json(proposal: Proposal, origin: Origin) -> dict[str, Any]:
    return {**proposal.model_dump(mode="json"), "task_title": origin.title, "prompt": origin.prompt}


# Lines that are there ---------------------------------------------------------------------------


@memory_command.command("lines")
@click.argument("name", metavar="COLLECTION")
@as_json
@in_workspace
def memory_lines(workspace: Workspace, name: str, json_: bool) -> None:
    """Number the lines of a collection's memory, and say where those that were proposed come from."""
    proposals = workspace.series(workspace.collection(name)).proposals
    proposals.complete()
    lines = proposals.lines()
    if json_:
        print_json([_line_json(line) for line in lines])
        return
    file = ""
    for line in lines:
        if line.file != file:
            file = line.file
            secho(file, bold=True)
        origin = line.proposal
        made = f"  (from turn {origin.turn} of {origin.task}@{origin.draft})" if origin else ""
        print_pieces([(f"{line.number:>4}  {line.text}", None), (made, "dim")])


def _near_json(line: MemoryLine) -> dict[str, Any]:
    return {"number": line.number, "file": line.file, "line": line.line, "text": line.text}


def _line_json(line: MemoryLine) -> dict[str, Any]:
    origin = line.proposal.model_dump(mode="json") if line.proposal else None
    return {
        "number": line.number,
        "file": line.file,
        "line": line.line,
        "text": line.text,
        "proposal": origin,
    }


class _WithLine(click.Command):
    """Takes an argument with a bullet for what it is: no option has a blank in it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        lines = [argument for argument in args if argument.startswith("- ")]
        if lines and "--" not in args:
            args = [*(argument for argument in args if argument not in lines), "--", *lines]
        return super().parse_args(ctx, args)


@memory_command.command("forget", cls=_WithLine)
@click.argument("name", metavar="COLLECTION")
@click.argument("line", metavar="LINE")
@as_json
@in_workspace
def forget_memory(workspace: Workspace, name: str, line: str, json_: bool) -> None:
    """Remove a line from a collection's memory, and say which drafts had it.

    LINE is its number, as "memory lines" shows it, or its exact text.
    """
    collection = workspace.collection(name)
    plain = line.strip()
    number = int(plain) if plain.isascii() and plain.isdecimal() else None
    forgotten = workspace.series(collection).proposals.forget(line if number is None else number)
    had = holders_of(workspace, collection, forgotten.text)
    if json_:
        origin = forgotten.proposal.model_dump(mode="json") if forgotten.proposal else None
        print_json(
            {
                "file": forgotten.file,
                "text": forgotten.text,
                "proposal": origin,
                "drafts": had.drafts,
                "unknown": had.unknown,
            }
        )
        return
    click.echo(f"Removed from {forgotten.file}: {forgotten.text.strip()}")
    click.echo(
        f"Drafts that had it: {', '.join(had.drafts)}." if had.drafts else "No draft is known to have had it."
    )
    if had.unknown:
        click.echo(f"Drafts whose memory of that time was not kept: {', '.join(had.unknown)}.")
