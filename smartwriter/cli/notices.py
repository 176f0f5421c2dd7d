"""What a person who waits for an answer is told, in a sentence each, and what drafts are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from smartwriter.events import Event

NOTICED = ("retrying", "rate_limited", "clashed")
"""The kinds of events that have a notice."""


def notice(event: Event) -> str:
    """The sentence for an event, or nothing."""
    match event.kind:
        case "retrying":
            return (
                f"The API does not answer ({event.why}); "
                f"retry {event.attempt} of {event.of}, in {event.wait_s:.0f} s."
            )
        case "rate_limited":
            until = f" until {event.until.astimezone():%H:%M}" if event.until else ""
            return f"The account's limit is reached{until}."
        case "clashed":
            address = f"{event.task}@{event.draft}"
            return (
                "You changed the text while the model was writing; yours stands, and the model's is kept "
                f"beside it. To compare: smartwriter compare {address}:{event.aside} {address}"
            )
    return ""


def names(titles: Mapping[str, str], drafts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What drafts are called: by their task's title, and where there are several of one, by theirs too."""
    drafts = set(drafts)
    several = Counter(task for task, _ in drafts)
    return {
        (task, draft): titles.get(task, task) + (f" @{draft}" if several[task] > 1 else "")
        for task, draft in drafts
    }
