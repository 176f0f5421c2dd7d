"""Commands that show and arrange tasks and drafts, without the model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from smartwriter.cli.app import as_json, in_workspace, offline_option, print_json, print_json_line
from smartwriter.errors import Invalid
from smartwriter.open_draft import OpenDraft, prompts_waiting
from smartwriter.tasks.values import Task, Usage, usage_of
from smartwriter.text.sameness import normal
from smartwriter.text.wording import acting, counted
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from smartwriter.text.words import Counts


@click.command()
@click.argument("title")
@click.option("-c", "--collection", help="The series it belongs to.")
@click.option("-p", "--prompt", help="Start writing with this prompt.")
@click.option("--target", type=click.IntRange(1), help="How many words it is to become.")
@offline_option
@as_json
@in_workspace
def new_command(
    workspace: Workspace,
    title: str,
    collection: str | None,
    prompt: str | None,
    target: int | None,
    offline: bool,
    json_: bool,
) -> None:
    """Start a task: one article with this TITLE.

    --json with a prompt prints the task and then its first turn, a line each.
    """
    if prompt is not None:
        from smartwriter.cli.running import checked_prompt

        checked_prompt(prompt)
    task = workspace.new_task(title, collection, target)
    if json_:
        (print_json if prompt is None else print_json_line)(task.model_dump(mode="json"))
    else:
        click.echo(f"{task.id}  {task.title}  ({task.collection})")
    if prompt is not None:
        from smartwriter.cli.running import write

        show = print_json_line if json_ else None
        write(workspace, task, task.drafts[task.current], prompt, offline=offline, show_turn=show)


@click.command()
@as_json
@in_workspace
def tasks_command(workspace: Workspace, json_: bool) -> None:
    """List the tasks."""
    tasks = workspace.tasks.all()
    if json_:
        print_json([task.model_dump(mode="json") for task in tasks])
        return
    if not tasks:
        click.echo('No tasks yet; start one with: smartwriter new "Its title"')
    for task in tasks:
        drafts = task.live_drafts
        more = f"  [{task.current}, {len(drafts)} drafts]" if len(drafts) > 1 else ""
        more += _progress(workspace, task) + _waiting(workspace, task)
        click.echo(f"{task.id}  {task.title}  ({task.collection}){more}")


def _waiting(workspace: Workspace, task: Task) -> str:
    waiting = prompts_waiting(workspace, task)
    return f"  [{acting(waiting, 'prompt', 'wait')}]" if waiting else ""


def _progress(workspace: Workspace, task: Task) -> str:
    if task.target is None:
        return ""
    from smartwriter.text.words import count_words  # `tasks` is to be quick where nobody set a target

    try:
        words = count_words(workspace.text(task, task.current).read())
    except (Invalid, OSError):  # doctor says what is wrong with it
        return f"  ? of {counted(task.target, 'word')}"
    return f"  {words:,} of {counted(task.target, 'word')} ({100 * words // task.target} %)"


@click.command()
@click.argument("address", metavar="TASK[@DRAFT]", required=False)
@click.option("-c", "--collection", help="Of all articles of a series: their current drafts.")
@as_json
@in_workspace
def count_command(workspace: Workspace, address: str | None, collection: str | None, json_: bool) -> None:
    """Count a text: words, characters, paragraphs, reading time.

    In Chinese, Japanese and Korean every character is a word.
    """
    if (address is None) == (collection is None):
        raise Invalid("Name a task, or a collection with -c.")
    if address is not None:
        draft = OpenDraft.at(workspace, address)
        counts, label, target = _counts(draft), draft.address, draft.task.target
    else:
        found = workspace.collection(collection or "")
        of_it = [task for task in workspace.tasks.all() if normal(task.collection) == normal(found.name)]
        counts = _in_all([_counts(OpenDraft(workspace, task, task.current)) for task in of_it])
        label, target = f"{found.name} ({counted(len(of_it), 'article')})", None
    if json_:
        print_json({**dataclasses.asdict(counts), "target": target})
        return
    words = f"{counts.words:,} of {counted(target, 'word')}" if target else counted(counts.words, "word")
    minutes = max(1, round(counts.reading_s / 60)) if counts.words else 0
    click.echo(
        f"{label}: {words}, {counted(counts.characters, 'character')}, "
        f"{counted(counts.paragraphs, 'paragraph')}, {minutes} min to read."
    )


def _in_all(counts: list[Counts]) -> Counts:
    from smartwriter.text.words import Counts

    return Counts(
        words=sum(one.words for one in counts),
        characters=sum(one.characters for one in counts),
        paragraphs=sum(one.paragraphs for one in counts),
        reading_s=sum(one.reading_s for one in counts),
    )


def _counts(draft: OpenDraft) -> Counts:
    from smartwriter.text.words import count

    return count(draft.text.read())


@click.command()
@click.argument("address", metavar="TASK")
@as_json
@in_workspace
def usage_command(workspace: Workspace, address: str, json_: bool) -> None:
    """Show what a task's drafts have used: tokens, cost, time."""
    task = workspace.tasks.find(address)
    turns = {name: workspace.tasks.turns(task, name) for name in task.drafts}
    usage = {name: usage_of(found) for name, found in turns.items()}
    total = sum(usage.values(), Usage())
    if json_:
        drafts = {name: used.model_dump() for name, used in usage.items()}
        print_json({"drafts": drafts, "total": total.model_dump()})
        return
    for name, used in (usage | {"in all": total}).items():
        read = f"{counted(used.input_tokens, 'token')} in, {used.cached_tokens:,} cached"
        tokens = f"{read}, {used.output_tokens:,} out"
        click.echo(f"{name}: {tokens}, ${used.cost_usd:.2f}, {used.duration_ms / 1000:.0f} s")


@click.command()
@click.argument("address", metavar="TASK@DRAFT")
@in_workspace
def adopt_command(workspace: Workspace, address: str) -> None:
    """Make a draft the one that TASK alone means."""
    task, draft = workspace.tasks.resolve(address)
    workspace.tasks.adopt(task.id, draft.name)
    click.echo(f"{task.address(draft.name)} is now the current draft of {task.title}.")


@click.command()
@click.argument("address", metavar="TASK@DRAFT")
@in_workspace
def drop_command(workspace: Workspace, address: str) -> None:
    """Put a draft away. Its text goes to the trash; restore takes it up again."""
    draft = OpenDraft.at(workspace, address)
    draft.drop()
    click.echo(f"Dropped {draft.address}.")
