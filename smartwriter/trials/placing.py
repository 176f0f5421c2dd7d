"""Which paragraphs of one text stand for which of another, as a writer who brings some over sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from smartwriter.text.differences.pairing import continued

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_NOTE = re.compile(r"[ ]{0,3}\[\^([^\]\s]+)\]:")
_MARK = re.compile(r"\[\^([^\]\s]+)\](?!:)")
_CODE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def counterparts(ours: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, ...]]:
    """For each paragraph of theirs, the places of ours that it is a version of; none for a new one.

    Besides one that was edited: a heading that was renamed above the same text, and what was rewritten
    between the same two neighbours.
    """
    found = [one.places for one in continued(ours, theirs)]
    free = set(range(len(ours))) - {place for places in found for place in places}
    for index, paragraph in enumerate(theirs):
        if found[index] or not (heading := _HEADING.match(paragraph)):
            continue
        below = found[index + 1] if index + 1 < len(found) else ()
        above = found[index - 1] if index else ()
        for place in [*(below[0] - 1 for _ in below[:1]), *(above[-1] + 1 for _ in above[-1:])]:
            other = _HEADING.match(ours[place]) if place in free else None
            if other and other[1] == heading[1]:
                found[index] = (place,)
                free.discard(place)
                break
    for first, last in _unknown(found):
        if not first or last == len(found):
            continue
        places = list(range(found[first - 1][-1] + 1, found[last][0]))
        same = len(places) == last - first and free.issuperset(places)
        if same and all(_kind(ours[place]) == _kind(theirs[first + n]) for n, place in enumerate(places)):
            for n, place in enumerate(places):
                found[first + n] = (place,)
                free.discard(place)
    return found


def _unknown(found: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Stretches of paragraphs that are versions of none."""
    stretches: list[tuple[int, int]] = []
    for index, places in enumerate(found):
        if places:
            continue
        if stretches and stretches[-1][1] == index:
            stretches[-1] = (stretches[-1][0], index + 1)
        else:
            stretches.append((index, index + 1))
    return stretches


def _kind(paragraph: str) -> str:
    if heading := _HEADING.match(paragraph):
        return heading[1]
    return "note" if _NOTE.match(paragraph) else "code" if _CODE.match(paragraph) else ""


def behind(found: Sequence[tuple[int, ...]], index: int) -> int:
    """How many of our paragraphs come before a new one of theirs; -1 where none of its neighbours is known.

    It goes behind the one that it follows; where that is unknown, before the one that follows it.
    """
    before, after = found[:index], found[index + 1 :]
    if before and before[-1]:
        return before[-1][-1] + 1
    if after and after[0]:
        return after[0][0]
    for places in reversed(before):
        if places:
            return places[-1] + 1
    return next((places[0] for places in after if places), -1)


# Footnotes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Notes:
    """The footnotes of picked paragraphs."""

    paragraphs: dict[int, str]
    """The paragraphs, with marks that mean the same here."""
    added: tuple[str, ...]
    """The definitions that have to come along."""
    said: tuple[str, ...]


def with_notes(ours: Sequence[str], theirs: Sequence[str], picked: dict[int, str]) -> Notes:
    """What the marks of footnotes in picked paragraphs need.

    :param picked: by the index in theirs.
    """
    here, there = _notes(ours), _notes(theirs)
    taken = set(here)
    renamed: dict[str, str] = {}
    added: list[str] = []
    said: list[str] = []
    own = {label for text in picked.values() if (label := _label(text))}
    for label in dict.fromkeys(label for text in picked.values() for label in _MARK.findall(text)):
        if label in own or label not in there or here.get(label) == there[label]:
            continue
        new = label
        if label in taken:
            new = next(name for n in range(1, len(taken) + 2) if (name := str(n)) not in taken)
            renamed[label] = new
        taken.add(new)
        added.append(there[label].replace(f"[^{label}]:", f"[^{new}]:", 1))
        said.append(f"The note [^{label}] came along" + (f", as [^{new}]." if new != label else "."))

    def marked(text: str) -> str:
        return _MARK.sub(lambda found: f"[^{renamed.get(found[1], found[1])}]", text)

    return Notes({index: marked(text) for index, text in picked.items()}, tuple(added), tuple(said))


def _label(paragraph: str) -> str:
    found = _NOTE.match(paragraph)
    return found[1] if found else ""


def _notes(paragraphs: Sequence[str]) -> dict[str, str]:
    """The definition of each label: one paragraph may hold several, line by line."""
    found: dict[str, str] = {}
    for paragraph in paragraphs:
        label = ""
        for line in paragraph.splitlines():
            if start := _label(line):
                label = start
                found.setdefault(label, line.strip())
            elif label:
                found[label] += f"\n{line}"
    return found
