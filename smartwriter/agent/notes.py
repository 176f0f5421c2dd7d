"""What the model is told, beside the prompt, of what happened to the draft since its last turn."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from smartwriter.tasks.draft_text import current_number, text_of
from smartwriter.tasks.values import Breaks, Revision
from smartwriter.text.comparison import notes

_MOST_CHARACTERS = 4000
_MOST_OF_ARTICLE = 24_000  # characters of an article that was cut off, to be sent again
_END_OF_ARTICLE = 1200  # of a longer one
LOST_PROMPT = "[The connection broke before you got this prompt of the author:]"
FORGOTTEN = (
    "[The conversation was compacted: you have not the draft's text any more. Read it before you replace it.]"
)
_AGAIN = (
    "The conversation was compacted in the middle of this turn, which goes on. This is the author's prompt, "
    "with what you were told before it:"
)
_SPACING = "Nothing but blank lines, line ends or the like."
_RESTORED = "[The draft's file was gone; it was restored with the text of its last revision.]"


def lost_prompt(prompt: str) -> str:
    return f"{LOST_PROMPT}\n\n{prompt}"


_HEADS: dict[Breaks, str] = {
    "at the end": (
        "What had arrived is version {0}, beside the draft, which stays as it was until you go on. To go on "
        "from it, to the character, call append_draft with version {0}."
    ),
    "within": (
        "What had arrived of your change breaks off within the text. Version {0}, beside the draft, is what "
        "the draft would have become by it; the draft stays as it was. To go on, make the whole change again."
    ),
    "nowhere": (
        "All that you wrote had arrived, but it was not done. Version {0}, beside the draft, is what the "
        "draft would have become; the draft stays as it was. To make it the draft, call append_draft with "
        "version {0} and an empty text."
    ),
}


def half_answer(heard: str) -> str:
    return f"[Your last answer was cut off. This much of it had arrived:\n\n{heard}]"


def half_article(version: Revision, before: str) -> str:
    """What the model had typed into the draft when it was cut off, word for word if it is not too much.

    :param before: the text that it would have changed.
    """
    number, text = version.number, version.text
    head = f"[You were cut off while you wrote into the draft. {_HEADS[version.breaks].format(number)}"
    if version.breaks == "within":
        diff, whole = difference(before, text)
        if whole:
            return f"{head} This much of your change had arrived:\n\n{diff}]"
    if len(text) <= _MOST_OF_ARTICLE:
        return f"{head} This is version {number}:\n\n{text}]"
    end = text[-_END_OF_ARTICLE:]
    return (
        f"{head} It has {len(text):,} characters: read it with read_draft, version {number}, before you go "
        f"on. It ends so:\n\n…{end}]"
    )


def forgotten(revisions: Sequence[Revision], last_told: int, *, restored: bool) -> list[str]:
    """Where a summary of the conversation is all that the model has any more: that the text changed.

    :param last_told: the last turn that it was told in what had changed.
    """
    told = [_RESTORED] if restored else []
    # A fork's first revision is what its origin's model had been told.
    told_of = (one for one in revisions if one.turn <= last_told or (one.author, one.number) == ("fork", 1))
    known = max((revision.number for revision in told_of), default=0)
    if any(revision.number > known and not revision.aside for revision in revisions):
        told.append(f"[{_causes(revisions, known)}]")
    return told


def again(prompt: str) -> str:
    """What the model is to be told when the conversation was compacted in the middle of a turn.

    :param prompt: as it was sent.
    """
    return f"[{_AGAIN}]\n\n{prompt}"


def changes(revisions: Sequence[Revision], known: int, *, restored: bool) -> tuple[list[str], int]:
    """What changed in a text since the revision that the model knows, exactly if it is not too much.

    :returns: the notes, and the revision that the model knows once it has got them.
    """
    told = [_RESTORED] if restored else []
    before, after = (
        text_of(revision for revision in revisions if revision.number <= known),
        text_of(revisions),
    )
    if before == after:
        return told, current_number(revisions)
    cause, (diff, whole) = _causes(revisions, known), difference(before, after)
    if whole:
        return [*told, f"[{cause} What changed:\n\n{diff}]"], current_number(revisions)
    return [*told, f"[{cause} What changed, in part; read it before you change it:\n\n{diff}]"], known


def difference(before: str, after: str) -> tuple[str, bool]:
    """What changed, as far as it is not too much, and whether that is all of it.

    Line ends are left out: the model's passages fit whichever the draft has.
    """
    before, after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
    found = notes(before, after, _MOST_CHARACTERS)
    return found or _SPACING, found == notes(before, after, sys.maxsize)


def _causes(revisions: Sequence[Revision], known: int) -> str:
    causes = dict.fromkeys(
        _cause(revision) for revision in revisions if revision.number > known and not revision.aside
    )
    return "The author " + ", then ".join(causes) + "." if causes else "The draft was changed."


def _cause(revision: Revision) -> str:
    source = revision.source
    if revision.author == "fork":
        return f"started this trial draft from the text of {source}" if source else "started this trial draft"
    if source is None:
        return "edited the draft by hand" if revision.author == "writer" else "let you change the draft"
    if source.turn is not None:
        return f"made your answer of turn {source.turn} the draft's text"
    if revision.paragraphs:
        numbers = ", ".join(map(str, revision.paragraphs))
        return f"took over paragraph {numbers} of {source} into the draft"
    return f"put the text of {source} in the draft's place"
