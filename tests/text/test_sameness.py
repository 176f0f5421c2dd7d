"""When two texts are the same, although they are written otherwise."""

from __future__ import annotations

import pytest

from smartwriter.memory.collection import lies_in
from smartwriter.text.sameness import folded, normal, same_words


def test_what_looks_the_same_is_the_same() -> None:
    """A letter composed of two characters is that letter, in a name, a word and a line."""
    one, other = "Caf\u00e9", "Cafe\u0301"
    assert normal(one) == normal(other)
    assert folded(one) == folded(f" {other.upper()}\n")
    assert same_words(f"the  {one}\n opens") == same_words(f"The {other} opens")
    assert same_words("the cafe opens") != same_words(f"the {one} opens")


@pytest.mark.parametrize(
    "name, outer, lies",
    [
        ("rivers", "rivers", True),
        ("rivers/danube", "rivers", True),
        ("rivers/danube/delta", "rivers", True),
        ("riverside", "rivers", False),
        ("rivers", "rivers/danube", False),
        ("cafe\u0301/guests", "caf\u00e9", True),
    ],
)
def test_a_collection_lies_in_another_one_by_whole_names(name: str, outer: str, lies: bool) -> None:
    """The name of the outer one must stand there whole, however its letters are composed."""
    assert lies_in(name, outer) is lies
