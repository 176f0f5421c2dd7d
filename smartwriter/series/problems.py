"""What a writer should know of the memory that turns are about to have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from smartwriter.tasks.values import UNFILED, Task
from smartwriter.workspace import Workspace


def memory_problems(workspace: Workspace, tasks: Iterable[Task]) -> Iterator[str]:
    """A sentence for what is left out, too much or gone of the memory of each collection of some tasks.

    Blocking. :raises Invalid: when the folder of a collection has another name by now.
    """
    for task in {task.collection: task for task in tasks}.values():
        workspace.check_folder(task)
        series = workspace.task_series(task)
        name, path = series.collection.name, series.collection.path
        for problem in series.memory().problems:
            yield f"{name}: {problem}"
        if task.collection != UNFILED and not path.is_dir():
            yield f"{name}: its folder is gone ({path}): this is written without its memory."
