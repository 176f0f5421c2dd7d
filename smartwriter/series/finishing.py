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

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import smartwriter.files.change as document
import smartwriter.files.durable as durable
import smartwriter.memory.index as index
import smartwriter.system.bounds as bounds
from smartwriter.errors import Invalid
from smartwriter.memory.index import IndexEntry
from smartwriter.memory.series import Series
from smartwriter.open_draft import OpenDraft
from smartwriter.series.summary import Summarise, Summary, links_of, summarised
from smartwriter.storage.records import now
from smartwriter.tasks.draft_text import DraftText
from smartwriter.tasks.manager import TaskManager
from smartwriter.tasks.revisions import MAX_TEXT_BYTES, current_number, text_of
from smartwriter.tasks.values import Finished, Task
from smartwriter.text.sameness import normal
from smartwriter.workspace import Workspace


def finish_task(
    workspace: Workspace, task: Task, on: date | None, summarise: Summarise | None
) -> tuple[Finished, Summary]:
    """Finish a task with the summary of a model, or without one where it gives none. Blocking.

    :raises Invalid, DraftBusy: as :func:`finish`.
    """
    draft = OpenDraft(workspace, task, task.current)
    with draft.lease():  # where it is being written, no model is asked
        draft.take_hand_edit()
        text = draft.text.read()
    _check_not_empty(task, text)
    known = workspace.task_series(task).index()
    summary = _entered(task, known) or summarised(task.title, text, known, summarise)
    return finish(workspace, task, text, summary, on=on), summary


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
    _check_not_empty(task, text)
    with OpenDraft(workspace, task, task.current).lease():
        task = _as_recorded(workspace, task)
        series = workspace.task_series(task)
        with series.lock():
            return _finish(_article(workspace, task, series), text, summary, on)


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


def _check_not_empty(task: Task, text: str) -> None:
    if not text.strip():
        raise Invalid(f"{task.title} has no text yet; there is nothing to finish.")


def _entered(task: Task, known: list[IndexEntry]) -> Summary | None:
    """What the index says of a task that is finished already."""
    finished = task.finished
    if finished is None or not finished.closed:
        return None
    entry = index.find(known, finished.article, task.title)
    return Summary(entry.gist, entry.claims, entry.terms, entry.links) if entry else None


# The steps --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Article:
    """All that a task is finished with, while its draft and its series are held."""

    task: Task
    tasks: TaskManager
    series: Series
    texts: Mapping[str, DraftText]
    """Of all its drafts, by their names."""
    trash: Path
    """Where an article of an earlier time goes."""

    @property
    def path(self) -> Path:
        return self.series.collection.path / self.relative

    @property
    def relative(self) -> str:
        return f"articles/{self.task.folder}.md"

    @property
    def text(self) -> DraftText:
        """Of its current draft."""
        return self.texts[self.task.current]


def _article(workspace: Workspace, task: Task, series: Series) -> _Article:
    OpenDraft(workspace, task, task.current).take_hand_edit()
    texts = {name: workspace.text(task, name) for name in task.drafts}
    return _Article(task, workspace.tasks, series, texts, workspace.places.trash("articles", task.id, ".md"))


def _finish(article: _Article, text: str, summary: Summary, on: date | None) -> Finished:
    task, series = article.task, article.series
    revisions = article.text.revisions()
    if (before := task.finished) is not None and before.closed:
        return _as_it_is(article, before, text, text_of(revisions))
    if text != text_of(revisions):
        raise Invalid(f"The text of {task.title} has just changed; finish it again.")
    own = before is not None and before.article == article.relative
    _check_place(article.path, {_bytes_of(text), *(_versions(article) if own else ())})
    known = series.index()  # where its marks are damaged, nothing is changed
    finished = Finished(
        draft=task.current, revision=current_number(revisions), article=article.relative, state="finishing"
    )
    _record(article, finished)
    _put_in_place(article, text)
    if series.has_index:
        series.enter(_entry(task, article.relative, summary, text, known, on))
    finished = finished.model_copy(update={"state": "finished", "at": now()})
    _record(article, finished)
    return finished


def _as_it_is(article: _Article, finished: Finished, text: str, current: str) -> Finished:
    """:raises Invalid: when a task that is finished has another text by now, or none in its place."""
    there = article.path.exists() and _bytes_of(text) == bounds.read_regular(article.path)
    if text == current and there:
        return finished
    title, id = article.task.title, article.task.id
    raise Invalid(f"{title} is finished already; to change it: smartwriter reopen {id}")


def _record(article: _Article, finished: Finished) -> None:
    article.tasks.update(article.task.id, lambda task: task.model_copy(update={"finished": finished}))


def _as_recorded(workspace: Workspace, task: Task) -> Task:
    recorded = workspace.tasks.find(task.id)
    if recorded.current != task.current:
        raise Invalid(f"{task.title} has another current draft by now; finish it again.")
    return recorded


def _versions(article: _Article) -> Iterable[bytes]:
    """Every text that the task's drafts ever had."""
    for text in article.texts.values():
        for revision in text.revisions():
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


def _put_in_place(article: _Article, text: str) -> None:
    path, data = article.path, _bytes_of(text)
    if path.exists() and (old := bounds.read_regular(path)) != data:
        # Copied, not moved: at no moment is there no article.
        durable.write_document(article.trash, old)
    durable.make_folder(path.parent)
    # Who keeps the draft from other people's eyes keeps the article from them.
    mode = bounds.mode_of(article.text.path)
    document.change(path, lambda _: data, MAX_TEXT_BYTES, missing=b"", mode=mode)


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
