"""Addresses: what a person types for a task, a draft, a version of its text.

``k7mq``, ``渡口``, ``k7`` for a task; ``k7mq@trial`` for a draft; ``k7mq@trial:3`` for a version. A task
is meant by its id, its title, or a unique prefix of either, in any script and case. Titles may hold an
``@`` or end in ``:3``: what fits exactly goes before what fits as a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from smartwriter.errors import TaskAmbiguous, TaskNotFound
from smartwriter.text.sameness import folded

_REVISION = re.compile(r"[0-9]{1,9}")
EXACT, PREFIX, NOT_AT_ALL = 2, 1, 0
"""How well a task fits."""


class Card(NamedTuple):
    """What a task is found by."""

    id: str
    title: str
    usable: Callable[[], bool]
    """Whether its record can be used; asked only of what fits."""


class Fit(NamedTuple):
    """The tasks that fit best, and how well."""

    how: int
    cards: list[Card]


def fitting(cards: Iterable[Card], wanted: str) -> Fit:
    """The tasks that a name without draft or version may mean."""
    key = folded(wanted)
    cards = list(cards)
    tests: list[tuple[int, Callable[[Card], bool]]] = [
        (EXACT, lambda card: card.id == key),
        (EXACT, lambda card: folded(card.title) == key),
        (PREFIX, lambda card: card.id.startswith(key) or folded(card.title).startswith(key)),
    ]
    for how, test in tests if key else ():
        if found := [card for card in cards if test(card) and card.usable()]:
            return Fit(how, found)
    return Fit(NOT_AT_ALL, [])


def only(wanted: str, fit: Fit) -> Card:
    """:raises TaskNotFound, TaskAmbiguous:"""
    if not fit.cards:
        raise TaskNotFound(wanted)
    if len(fit.cards) > 1:
        raise TaskAmbiguous(wanted, [(card.id, card.title) for card in fit.cards])
    return fit.cards[0]


def of_draft(cards: Iterable[Card], address: str) -> tuple[Card, str]:
    """The task of an address, and the name of its draft; empty: its current one.

    :raises TaskNotFound, TaskAmbiguous:
    """
    cards = list(cards)
    whole = fitting(cards, address)
    wanted, at, name = address.rpartition("@")
    if at and (before_at := fitting(cards, wanted)).how > whole.how:
        return only(wanted, before_at), name
    return only(address, whole), ""


def of_version(cards: Iterable[Card], address: str) -> tuple[str, int | None]:
    """The address of a draft, and the version of its text; None: the address names none."""
    head, colon, number = address.rpartition(":")
    if not (colon and _REVISION.fullmatch(number) and head) or fitting(cards, address).how == EXACT:
        return address, None
    return head, int(number)
