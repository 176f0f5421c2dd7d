"""Finishing a task: its text becomes an article, its collection's index says so, its draft is closed.

::

    tasks.jsonl                              the task is being finished; what it was before is kept
    .smartwriter/trash/articles/…            its article of an earlier time, where there is one
    collections/<collection>/articles/<task>.md
    collections/<collection>/index.md
    tasks.jsonl                              the task is finished

In this order. Each file is replaced as a whole and each step may be taken twice, so that a crash
anywhere leaves nothing half-written, and finishing again completes it.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable
from datetime import date
from pathlib import Path

import smartwriter.files.change as document
import smartwriter.files.durable as durable
import smartwriter.memory.index as index
import smartwriter.system.bounds as bounds
from smartwriter.errors import Invalid
from smartwriter.memory.index import IndexEntry
from smartwriter.memory.series import Series
from smartwriter.series.summary import Summary, links_of
from smartwriter.storage.records import now
from smartwriter.tasks.draft_text import MAX_TEXT_BYTES, current_number, text_of
from smartwriter.tasks.values import Finished, Task
from smartwriter.text.sameness import normal
from smartwriter.workspace import Workspace


def finish(
    workspace: Workspace, task: Task, text: str, summary: Summary, *, on: date | None = None
) -> Finished:
    """Make the text of a task's current draft an article, and close the draft. Blocking.

    What a crash left of an earlier call is completed. A task that is finished with this text stays so.

    :param text: the draft's, as it was when the summary was made.
    :param on: the date in the index; None: the one that is there, else today.
    :raises Invalid: for an empty text, one that has changed meanwhile, a foreign file in the article's
        place, an index with damaged marks; nothing was changed.
    :raises DraftBusy: while the draft is being written.
    """
    if not text.strip():
        raise Invalid(f"{task.title} has no text yet; there is nothing to finish.")
    with workspace.lease(task, task.current):
        task = _as_recorded(workspace, task)
        series = workspace.task_series(task)
        with series.lock():
            return _finish(workspace, task, series, text, summary, on)


def reopen(workspace: Workspace, task: Task) -> Task:
    """Let a finished task's draft be written again. Its article and index entry stay, until it is
    finished again.

    :raises Invalid: when it is not finished.
    """

    def reopened(task: Task) -> Task:
        finished = task.finished
        if finished is None or finished.state == "reopened":
            raise Invalid(f"{task.title} is not finished.")
        return task.model_copy(update={"finished": finished.model_copy(update={"state": "reopened"})})

    return workspace.tasks.update(task.id, reopened)


def check_open(task: Task, draft: str) -> None:
    """:raises Invalid: when a draft takes no more turns, because the task was finished with it."""
    finished = task.finished
    if finished is not None and finished.closed and finished.draft == draft:
        raise Invalid(f"{task.title} is finished; to write on: smartwriter reopen {task.id}")


# The steps --------------------------------------------------------------------------------------


def _finish(
    workspace: Workspace,
    task: Task,
    series: Series,
    text: str,
    summary: Summary,
    on: date | None,
) -> Finished:
    article = series.collection.path / "articles" / f"{task.folder}.md"
    relative = f"articles/{article.name}"
    workspace.take_hand_edit(task, task.current)
    revisions = workspace.text(task, task.current).revisions()
    before = task.finished
    if before is not None and before.closed:
        if (
            text == text_of(revisions)
            and article.exists()
            and _bytes_of(text) == bounds.read_regular(article)
        ):
            return before
        raise Invalid(f"{task.title} is finished already; to change it: smartwriter reopen {task.id}")
    if text != text_of(revisions):
        raise Invalid(f"The text of {task.title} has just changed; finish it again.")
    own = before is not None and before.article == relative
    _check_place(article, {_bytes_of(text), *(_versions(workspace, task) if own else ())})
    known = series.index()  # where its marks are damaged, nothing is changed
    finished = Finished(
        draft=task.current, revision=current_number(revisions), article=relative, state="finishing"
    )
    _record(workspace, task, finished)
    # Who keeps the draft from other people's eyes keeps the article from them.
    mode = bounds.mode_of(workspace.text(task, task.current).path)
    _put_in_place(workspace, task, article, text, mode)
    if series.has_index:
        series.enter(_entry(task, relative, summary, text, known, on))
    finished = finished.model_copy(update={"state": "finished", "at": now()})
    _record(workspace, task, finished)
    return finished


def _record(workspace: Workspace, task: Task, finished: Finished) -> None:
    workspace.tasks.update(task.id, lambda task: task.model_copy(update={"finished": finished}))


def _as_recorded(workspace: Workspace, task: Task) -> Task:
    recorded = workspace.tasks.find(task.id)
    if recorded.current != task.current:
        raise Invalid(f"{task.title} has another current draft by now; finish it again.")
    return recorded


def _versions(workspace: Workspace, task: Task) -> Iterable[bytes]:
    """Every text that the task's drafts ever had."""
    for draft in task.drafts:
        for revision in workspace.text(task, draft).revisions():
            yield _bytes_of(revision.text)


def _check_place(article: Path, known: Container[bytes]) -> None:
    """:raises Invalid: when something is in the article's place that is no version of this task's text."""
    bounds.checked(article)
    if article.parent.is_dir():
        for path in article.parent.iterdir():  # a name may be there in another form of Unicode
            if normal(path.name) != normal(article.name):
                continue
            if path.is_symlink() or not path.is_file():
                raise Invalid(f"{path} is there already, and is no file; move it away to finish.")
            if path.read_bytes() not in known:
                raise Invalid(
                    f"{path} is there already, and is not of this task or was changed by hand; "
                    "take over what you need of it and move it away to finish."
                )


def _put_in_place(workspace: Workspace, task: Task, article: Path, text: str, mode: int | None) -> None:
    data = _bytes_of(text)
    if article.exists() and (old := bounds.read_regular(article)) != data:
        # Copied, not moved: at no moment is there no article.
        when = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{time.time_ns() % 10**9:09d}"
        durable.write_document(workspace.hidden / "trash" / "articles" / f"{task.id}.{when}.md", old)
    durable.make_folder(article.parent)
    document.change(article, lambda _: data, MAX_TEXT_BYTES, missing=b"", mode=mode)


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _entry(
    task: Task, file: str, summary: Summary, text: str, known: list[IndexEntry], on: date | None
) -> IndexEntry:
    before = index.find(known, file, task.title)
    others = [one for one in known if one is not before]
    return IndexEntry(
        title=task.title,
        date=on.isoformat() if on else (before.date if before else "") or date.today().isoformat(),
        file=file,
        gist=summary.gist,
        claims=summary.claims,
        terms=summary.terms,
        links=links_of(summary, text, task.title, others),
    )
