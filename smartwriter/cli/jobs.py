"""What ``run`` is to write: jobs from its arguments and from a file, checked before any starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from smartwriter.cli.running import checked_prompt
from smartwriter.errors import Invalid, SmartWriterError
from smartwriter.tasks.values import Draft, Task
from smartwriter.workspace import Workspace


class Job:
    def __init__(self, prompt: str, task: str | None, title: str | None, collection: str | None) -> None:
        self.prompt, self._task, self._title, self._collection = prompt, task, title, collection

    def check(self, workspace: Workspace) -> None:
        """Everything that can be known before anything is started."""
        checked_prompt(self.prompt)
        if self._task is not None:
            workspace.tasks.resolve(self._task)
        elif self._collection is not None:
            workspace.collection(self._collection)

    def resolve(self, workspace: Workspace) -> tuple[Task, Draft]:
        if self._task is not None:
            return workspace.tasks.resolve(self._task)
        task = workspace.new_task(self._title or "", self._collection)
        return task, task.drafts[task.current]


def job_of_argument(workspace: Workspace, argument: str) -> Job:
    address, equals, prompt = argument.partition("=")
    if not equals:
        raise Invalid(f"{argument!r} is no job: write TASK=PROMPT.")
    job = Job(prompt, address, None, None)
    job.check(workspace)
    return job


def jobs_of_file(workspace: Workspace, file: Path) -> list[Job]:
    """:raises Invalid: with the line of the job that is wrong."""
    try:
        text = file.read_text(encoding="utf-8")
        found, node = yaml.safe_load(text), yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that is none
        raise Invalid(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, list) or not isinstance(node, yaml.SequenceNode):
        raise Invalid(f"{file} is no list of jobs.")
    jobs = []
    for item, place in zip(found, node.value, strict=True):
        try:
            jobs.append(_job_of_item(workspace, item))
        except SmartWriterError as error:
            raise Invalid(f"{file}, line {place.start_mark.line + 1}: {error}") from None
    return jobs


def _job_of_item(workspace: Workspace, item: Any) -> Job:
    fields = {"task", "draft", "title", "collection", "prompt"}
    if not isinstance(item, dict) or not all(isinstance(value, str) for value in item.values()):
        raise Invalid("a job must have a prompt and a task or title, all of them text.")
    if unknown := item.keys() - fields:
        raise Invalid(f"a job has no field {sorted(map(str, unknown))[0]!r}.")
    if ("task" in item) == bool(item.get("title", "").strip()):
        raise Invalid("a job needs either a task or, for a new one, a title.")
    if "draft" in item and "task" not in item:
        raise Invalid("only a task that is there already has drafts to choose from.")
    address = f"{item['task']}@{item['draft']}" if "draft" in item else item.get("task")
    job = Job(item.get("prompt", ""), address, item.get("title"), item.get("collection"))
    job.check(workspace)
    return job
