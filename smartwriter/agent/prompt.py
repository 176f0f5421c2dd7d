"""The system prompt of a session: what the work is, and what its collection remembers."""

from __future__ import annotations

from smartwriter.memory import Memory
from smartwriter.tasks import Task

_WORK = """\
You are the writing partner of an author. You work together on one article, over many turns.

The article's text is a draft that you read and change only with the tools read_draft, \
write_draft and edit_draft. The author may edit it by hand between turns: read it before you \
change it. Put the article's text into the draft, not into your answers; answer in a sentence \
or two, in the author's language. Change nothing that you were not asked to change."""


def system_prompt(task: Task, memory: Memory) -> str:
    """The same bytes as long as neither task nor memory changes, so that prompt caches hold."""
    parts = [_WORK, f"The article's working title: {task.title}"]
    if memory.files:
        parts.append(
            f"# The collection {task.collection}\n\n"
            "The article belongs to this series. What follows is the series' memory; "
            "write as it says.\n\n" + memory.render()
        )
    return "\n\n".join(parts) + "\n"
