"""The model's edits in texts that the writer changes meanwhile: random ones, with short passages and the same
few words again and again.

Each word of the text that the model read has a number of its own that nobody sees, so that it is known which
one is which after any change. The writer deletes, replaces, inserts and moves words and paragraphs; what they
write may read like what was there.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from figure import Figure, Outcome, Run

from smartwriter.errors import Invalid
from smartwriter.text.passages import Edit, edited

TRIPLES = 5_000
_WORDS = ["the", "cat", "a", "12", "fog", "ferry", "no", "渡", "口", "1912"]


@dataclass(frozen=True)
class _Word:
    text: str
    number: int
    """0 for what the writer wrote."""


_Text = list[list[_Word]]


def _measure(run: Run) -> Outcome:
    chance = run.random()
    made = refused = 0
    wrong: list[str] = []
    for _ in range(run.scaled(TRIPLES)):
        known = _written(chance)
        by_hand = _changed(known, chance)
        where = chance.randrange(len(known))
        start = chance.randrange(len(known[where]))
        passage = known[where][start : start + chance.choice([1, 1, 1, 2, 3])]
        before, now, old = _said(known), _said(by_hand), " ".join(word.text for word in passage)
        if before.count(old) != 1:
            continue
        try:
            after = edited(now, [Edit(old, "NEW")], [before])
        except Invalid:
            refused += 1
            continue
        made += 1
        if after not in _meant(by_hand, passage, known):
            wrong.append(f"{before!r} -> {now!r}: {old!r} made {after!r}")
    got = f"{made} edits made, {refused} refused, {len(wrong)} elsewhere than meant"
    return Outcome(". ".join([got, *wrong[:3]]), not wrong and made > refused / 4)


def _meant(by_hand: _Text, passage: list[_Word], known: _Text) -> set[str]:
    """What the edit may make of the text: in the very words, or the same ones beside the same word;
    several in a row that stand there only once are the same ones anyway.

    The latter is what a writer who deletes a word and types it again has done: nobody can tell.
    """
    beside = _neighbours(known, passage)
    alone = len(passage) > 1 and _said(by_hand).count(" ".join(word.text for word in passage)) == 1
    right = set()
    for number, paragraph in enumerate(by_hand):
        for at in range(len(paragraph) - len(passage) + 1):
            held = paragraph[at : at + len(passage)]
            if [word.text for word in held] != [word.text for word in passage]:
                continue
            same = [word.number for word in held] == [word.number for word in passage]
            around = [paragraph[at - 1 : at], paragraph[at + len(passage) : at + len(passage) + 1]]
            if (
                same
                or alone
                or any(
                    [word.text for word in side] == [word.text for word in other] and side
                    for side, other in zip(around, beside, strict=True)
                )
            ):
                changed = [*paragraph[:at], _Word("NEW", 0), *paragraph[at + len(passage) :]]
                right.add(_said([*by_hand[:number], changed, *by_hand[number + 1 :]]))
    return right


def _neighbours(known: _Text, passage: list[_Word]) -> list[list[_Word]]:
    for paragraph in known:
        if passage[0] in paragraph:
            at = paragraph.index(passage[0])
            return [paragraph[max(0, at - 1) : at], paragraph[at + len(passage) : at + len(passage) + 1]]
    return [[], []]


def _written(chance: random.Random) -> _Text:
    text: _Text = []
    number = 0
    for _ in range(chance.randint(1, 3)):
        text.append([])
        for _ in range(chance.randint(3, 9)):
            number += 1
            text[-1].append(_Word(chance.choice(_WORDS), number))
    return text


def _changed(text: _Text, chance: random.Random) -> _Text:
    text = [list(paragraph) for paragraph in text]
    for _ in range(chance.randint(1, 3)):
        paragraph = chance.choice(text)
        at = chance.randrange(len(paragraph)) if paragraph else 0
        match chance.randrange(5):
            case 0:
                del paragraph[at : at + chance.randint(1, 2)]
            case 1:
                paragraph[at : at + 1] = [_Word(chance.choice(_WORDS), 0)]
            case 2:
                paragraph[at:at] = [_Word(chance.choice(_WORDS), 0) for _ in range(chance.randint(1, 3))]
            case 3:
                chance.shuffle(text)
            case _:
                if len(paragraph) > 2:  # Enter
                    place = text.index(paragraph)
                    text[place : place + 1] = [paragraph[: at or 1], paragraph[at or 1 :]]
    return [paragraph for paragraph in text if paragraph] or [[_Word("gone", 0)]]


def _said(text: _Text) -> str:
    return "\n\n".join(" ".join(word.text for word in paragraph) for paragraph in text) + "\n"


FIGURES = [
    Figure(
        "the model's edits in texts changed by hand meanwhile",
        "nothing lost, nothing inside another word, every edit where it was meant or refused",
        _measure,
    )
]
