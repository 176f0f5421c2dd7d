from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartwriter.agent.notes import notes
from smartwriter.text.differences import alignment, likeness, pieces
from smartwriter.text.differences.comparison import Block, compare, word_changes
from smartwriter.text.differences.likeness import SIMILAR, similarity
from smartwriter.text.differences.pairing import Continued, continued, matches
from smartwriter.text.differences.pieces import Piece
from smartwriter.text.words import count_words, paragraphs

WORDS = [
    "the",
    "ferry",
    "left",
    "early",
    "渡",
    "口",
    "，",
    "雾",
    "e\u0301",
    "👍🏽",
    "-",
    ".",
    "#",
    "\r\n",
    "מילה",
]
PARAGRAPH = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
TEXT = st.lists(st.one_of(PARAGRAPH, st.sampled_from(["---", "```", "a: 1", ""])), max_size=8).map(
    "\n\n".join
)
ANYTHING = st.one_of(TEXT, st.text(max_size=60))


def marked(block: Block) -> str:
    """A paragraph on one line: what was removed in [-…-], what was added in {+…+}."""
    forms = {"same": "{}", "added": "{{+{}+}}", "removed": "[-{}-]"}
    return "".join(forms[piece.kind].format(piece.text) for piece in block.pieces)


def shape(before: str, after: str) -> list[tuple[str, int | None, int | None]]:
    return [(block.kind, block.before, block.after) for block in compare(before, after).blocks]


# Inside a paragraph -----------------------------------------------------------------------------

INSIDE = {
    "a word": ("The ferry left early.", "The ferry left late.", "The ferry left [-early-]{+late+}."),
    "a word more": ("The cat sat down.", "The big cat sat down.", "The {+big +}cat sat down."),
    "a word less": ("The big cat sat down.", "The cat sat down.", "The [-big -]cat sat down."),
    "a sentence more": (
        "It was dark. We went home.",
        "It was dark. It rained. We went home.",
        "It was dark. {+It rained. +}We went home.",
    ),
    "no confetti": (
        "We saw a red house there yesterday evening.",
        "We saw the blue barn there yesterday evening.",
        "We saw [-a red house-]{+the blue barn+} there yesterday evening.",
    ),
    "a short word between changes": (
        "It was the middle of winter in the north country.",
        "It was the end of summer in the north country.",
        "It was the [-middle of winter-]{+end of summer+} in the north country.",
    ),
    "Chinese": (
        "渡口的雾很大，船没有来。",
        "渡口的雾散了，船还没有来。",
        "渡口的雾[-很大-]{+散了+}，船{+还+}没有来。",
    ),
    "Chinese, a sentence more": (
        "雾很大。船没来。",
        "雾很大。天亮了。船没来。",
        "雾很大。{+天亮了。+}船没来。",
    ),
    "Chinese and English": (
        "我用Claude写作很久了",
        "我用Codex写作很久了",
        "我用[-Claude-]{+Codex+}写作很久了",
    ),
    "Japanese": ("雨の日に本を読む。", "雪の日に本を読む。", "[-雨-]{+雪+}の日に本を読む。"),
    "Korean": ("오늘은 비가 옵니다", "오늘은 눈이 옵니다", "오늘은 [-비가-]{+눈이+} 옵니다"),
    "Hebrew": ("אני אוהב לכתוב ספרים", "אני אוהב לקרוא ספרים", "אני אוהב [-לכתוב-]{+לקרוא+} ספרים"),
    "Arabic": ("كتب الولد رسالة طويلة", "كتب الولد قصة طويلة", "كتب الولد [-رسالة-]{+قصة+} طويلة"),
    "a skin tone": (
        "Well done 👍🏽 my friend",
        "Well done 👍🏿 my friend",
        "Well done [-👍🏽-]{+👍🏿+} my friend",
    ),
    "a family": (
        "Here we are 👩‍👩‍👧 at home",
        "Here we are 👩‍👩‍👧‍👦 at home",
        "Here we are [-👩‍👩‍👧-]{+👩‍👩‍👧‍👦+} at home",
    ),
    "an accent": (
        "a small cafe by the river",
        "a small cafe\u0301 by the river",
        "a small [-cafe-]{+cafe\u0301+} by the river",
    ),
    "composed and decomposed": (
        "a small café by the river",
        "a small cafe\u0301 by the river",
        "a small [-café-]{+cafe\u0301+} by the river",
    ),
    "CRLF": ("one two\r\nthree four", "one two\r\nthree five", "one two\r\nthree [-four-]{+five+}"),
    "bold": ("this word is here", "this **word** is here", "this {+**+}word{+**+} is here"),
}


@pytest.mark.parametrize(("before", "after", "expected"), INSIDE.values(), ids=INSIDE)
def test_changes_inside_a_paragraph(before: str, after: str, expected: str) -> None:
    """Whole words and whole characters, in pieces that are no smaller than a reader likes."""
    (block,) = compare(before, after).blocks
    assert (block.kind, marked(block)) == ("changed", expected)


# Paragraphs -------------------------------------------------------------------------------------

ONE, TWO, THREE = "The first is about rain.", "The second speaks of snow.", "And a third one on wind!"


def test_paragraphs_come_and_go() -> None:
    """What is equal is aligned; what is not is added or removed where it stands."""
    assert shape(f"{ONE}\n\n{TWO}", f"{ONE}\n\n{THREE}\n\n{TWO}") == [
        ("same", 1, 1),
        ("added", None, 2),
        ("same", 2, 3),
    ]
    assert shape(f"{ONE}\n\n{THREE}\n\n{TWO}", f"{ONE}\n\n{TWO}") == [
        ("same", 1, 1),
        ("removed", 2, None),
        ("same", 3, 2),
    ]
    assert shape("", ONE) == [("added", None, 1)]
    assert shape(ONE, "") == [("removed", 1, None)]
    assert shape("", "") == []


def test_a_moved_paragraph_is_found() -> None:
    """It is shown once, at its new place, and adds and removes no word."""
    found = compare(f"{ONE}\n\n{TWO}\n\n{THREE}", f"{THREE}\n\n{ONE}\n\n{TWO}")
    assert [(block.kind, block.before, block.after) for block in found.blocks] == [
        ("moved", 3, 1),
        ("same", 1, 2),
        ("same", 2, 3),
    ]
    assert (found.moved, found.added_words, found.removed_words) == (1, 0, 0)
    assert [(step.block.kind, step.leaves) for step in found.steps()] == [
        ("moved", False),
        ("same", False),
        ("same", False),
        ("moved", True),
    ]


def test_a_moved_paragraph_that_was_edited_is_found() -> None:
    """It is moved, and its pieces say what was edited."""
    found = compare(f"{ONE}\n\n{TWO}\n\n{THREE}", f"{THREE.replace('wind', 'storms')}\n\n{ONE}\n\n{TWO}")
    block = found.blocks[0]
    assert (block.kind, block.before, block.after) == ("moved", 3, 1)
    assert marked(block) == "And a third one on [-wind-]{+storms+}!"
    assert (found.added_words, found.removed_words) == (1, 1)


def test_the_least_text_moves() -> None:
    """Of two that changed places the shorter one is said to have moved."""
    assert shape(f"A short line.\n\n{ONE}", f"{ONE}\n\nA short line.") == [("same", 2, 1), ("moved", 1, 2)]


def test_a_paragraph_that_grew_or_was_split_is_changed() -> None:
    """What stands nearly whole in the other is not removed and written anew."""
    short = "The second one speaks of snow"
    grown = f"{short}, and of ice, and of all that falls from the sky in winter and melts in spring."
    assert shape(f"{ONE}\n\n{short}.", f"{ONE}\n\n{grown}") == [("same", 1, 1), ("changed", 2, 2)]
    long = "We went down to the river before dawn and waited there. Nobody came, and the fog stayed all day."
    first, _, second = long.partition(". ")
    assert shape(long, f"{first}.\n\n{second}") == [("split", 1, 1)]


def test_a_rule_across_the_page_does_not_move() -> None:
    """What has no word is added and removed."""
    kinds = [block.kind for block in compare(f"***\n\n{ONE}\n\n{TWO}", f"{ONE}\n\n{TWO}\n\n***").blocks]
    assert kinds == ["removed", "same", "same", "added"]


def test_words_are_counted_as_everywhere() -> None:
    """Only inside the changes, a character of Chinese being a word."""
    found = compare("渡口的雾很大。\n\ngone now", "渡口的雾散了。\n\n全新的一段 with English")
    assert (found.added_words, found.removed_words) == (2 + 7, 2 + 2)


def test_front_matter_and_spacing() -> None:
    """Front matter is compared by itself, without its words being counted; spacing is only mentioned."""
    found = compare("---\ntitle: a\n---\nx", "---\ntitle: b\n---\nx")
    assert [(piece.kind, piece.text) for piece in found.front] == [
        ("same", "---\ntitle: "),
        ("removed", "a"),
        ("added", "b"),
        ("same", "\n---"),
    ]
    assert (found.differs, found.spacing, found.added_words) == (True, False, 0)
    spaced = compare("x\n\ny", "x\n\n\n\ny\n")
    assert (spaced.differs, spaced.spacing) == (False, True)
    same = compare("x\n\ny", "x\n\ny")
    assert (same.differs, same.spacing) == (False, False)


@given(ANYTHING, ANYTHING)
def test_a_comparison_holds_both_texts(before: str, after: str) -> None:
    """Each side joins to its paragraphs, in order and numbered; and it is JSON."""
    found = compare(before, after)
    assert found.before() == paragraphs(before) and found.after() == paragraphs(after)
    old = [n for b in found.blocks if b.before for n in range(b.before, (b.before_last or b.before) + 1)]
    new = [n for b in found.blocks if b.after for n in range(b.after, (b.after_last or b.after) + 1)]
    assert sorted(old) == list(range(1, len(found.before()) + 1))
    assert new == list(range(1, len(found.after()) + 1))
    assert all(piece.text for block in found.blocks for piece in block.pieces)
    for block in found.blocks:
        if block.kind == "same":
            assert block.before_text == block.after_text
    assert sum(step.leaves for step in found.steps()) == found.moved
    assert word_changes(before, after) == (found.added_words, found.removed_words)
    assert json.loads(json.dumps(asdict(found)))["moved"] == found.moved


@given(ANYTHING)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    """And none of its words came or went."""
    found = compare(text, text)
    assert (found.differs, found.spacing, found.added_words, found.removed_words) == (False, False, 0, 0)


@given(ANYTHING, ANYTHING)
def test_long_texts_are_compared_in_parts(before: str, after: str) -> None:
    """What is too long for an exact alignment is tied together at what is found once, and still exact."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "_MAX_CELLS", 4)
        patch.setattr(likeness, "_MAX_CELLS", 400)
        found = compare(before, after)
    assert found.before() == paragraphs(before) and found.after() == paragraphs(after)


def test_a_giant_paragraph_is_compared_by_words() -> None:
    """Ten thousand words in one paragraph, each fiftieth another: just those are changed."""
    pick = random.Random(1)
    words = [f"w{pick.randrange(2000)}" for _ in range(10_000)]
    edited = [f"new{n}" if n % 50 == 25 else word for n, word in enumerate(words)]
    found = compare(" ".join(words), " ".join(edited))
    assert (found.added_words, found.removed_words, len(found.blocks)) == (200, 200, 1)


def test_giants_with_nothing_in_common() -> None:
    """Are one removed and one added paragraph."""
    before, after = (" ".join(f"{letter}{n}" for n in range(10_000)) for letter in "ab")
    assert shape(before, after) == [("removed", 1, None), ("added", None, 1)]


# Which paragraph continues which ----------------------------------------------------------------


def test_similarity() -> None:
    """From nothing in common to all words in their order; spaces and punctuation do not count."""
    assert similarity(ONE, ONE) == similarity("", "") == similarity("a b", "a  b!") == 1.0
    assert similarity("a b c d", "a b c x") == 0.75
    assert similarity("渡口的雾", "渡口的船") == 0.75
    assert similarity("one two", "three four") == similarity("", "one") == similarity("---", "***") == 0.0


def test_matches() -> None:
    """Equal ones first, moved or not, then edited ones; copies share, new ones have none."""
    edited = TWO.replace("snow", "ice")
    assert matches([ONE, TWO, THREE], [THREE, "Quite another thing.", ONE, edited]) == [2, None, 0, 1]
    assert matches([ONE, TWO], [ONE, ONE, TWO]) == [0, 0, 1]
    assert matches([ONE, ONE], [ONE, ONE]) in ([0, 1], [0, 0])
    assert matches([], [ONE]) == [None] and matches([ONE], []) == []


@given(st.lists(PARAGRAPH, max_size=8), st.lists(PARAGRAPH, max_size=8))
def test_matches_are_equal_or_alike(before: list[str], after: list[str]) -> None:
    """What stands in the text before is its own origin; others are alike, and none is used twice.

    Only the parts of a paragraph that was split share it, in a row.
    """
    found = continued(before, after)
    edited: dict[int, list[int]] = {}
    for j, (text, one) in enumerate(zip(after, found, strict=True)):
        if text in before:
            assert one.whole and [before[i] for i in one.places] == [text]
        elif one.places:
            assert len(one.places) > 1 or one.whole or _alike(before, after, found, one.places[0])
            for i in one.places:
                edited.setdefault(i, []).append(j)
    assert all(places == list(range(places[0], places[-1] + 1)) for places in edited.values())


def _alike(before: list[str], after: list[str], found: list[Continued], i: int) -> bool:
    parts = [text for text, one in zip(after, found, strict=True) if one.places == (i,)]
    return any(similarity(before[i], text) >= SIMILAR for text in parts)


# Split, merged, the same to a reader --------------------------------------------------------------

LONG = "We went down to the river before dawn and waited there. Nobody came, and the fog stayed all day."
FIRST, _, SECOND = LONG.partition(". ")


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (f"{ONE}\n\n{LONG}\n\n{TWO}", f"{ONE}\n\n{FIRST}.\n\n{SECOND}\n\n{TWO}", "split"),
        (f"{ONE}\n\n{FIRST}.\n\n{SECOND}\n\n{TWO}", f"{ONE}\n\n{LONG}\n\n{TWO}", "merged"),
        ("雾散了。渡船靠岸。没有人下船。", "雾散了。\n\n渡船靠岸。没有人下船。", "split"),
        ("One two. Three four. Five six.", "One two.\n\nThree four.\n\nFive six.", "split"),
    ],
)
def test_a_break_between_paragraphs_is_no_word(before: str, after: str, kind: str) -> None:
    """Pressing Enter, or deleting a break, adds and removes no word and makes no paragraph new or gone."""
    found = compare(before, after)
    assert [block.kind for block in found.blocks if block.kind != "same"] == [kind]
    assert (found.added_words, found.removed_words) == word_changes(before, after) == (0, 0)
    assert found.before() == paragraphs(before) and found.after() == paragraphs(after)
    assert kind in notes(before, after)


def test_a_half_that_was_edited_counts_what_was_edited() -> None:
    """A paragraph that was split and edited counts the edited words alone."""
    found = compare(LONG, f"{FIRST}.\n\n{SECOND.replace('fog', 'mist')}")
    assert (found.added_words, found.removed_words) == (1, 1)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("See [the map](a.png) here.", "See [the map](b.png) here.", (0, 0)),
        ("1. one\n2. two\n3. three", "2. one\n3. two\n4. three", (0, 0)),
        ("It was unbelievable.", "It was un**believ**able.", (0, 0)),
        ("It was [good][a].", "It was [good][b].", (0, 0)),
        ("At 10:30 we left.", "At 10:45 we left.", (1, 1)),
        ("เรือออกสองทุ่ม", "เรือออกสามทุ่ม", (1, 1)),
        ("We had caf\u00e9.", "We had cafe\u0301.", (0, 0)),
    ],
)
def test_words_that_changed_are_those_a_reader_sees(before: str, after: str, words: tuple[int, int]) -> None:
    """A comparison counts by the rule that words are counted by: what no reader sees is no word."""
    assert word_changes(before, after) == words
    assert compare(before, after).differs


def test_one_change_in_many_places_is_told_once() -> None:
    """A name that changed everywhere is one line for the model, and other changes are told beside it."""
    before = "\n\n".join(f"{n} Bruno barked, and {n} times the ferryman called Bruno." for n in range(5))
    after = before.replace("Bruno", "Hasso").replace("4 times", "six times")
    told = notes(before, after).splitlines()
    assert told[0] == "In 10 places (paragraphs 1, 2, 3, 4, 5): [-Bruno-]{+Hasso+}"
    assert len(told) == 2 and "[-4-]{+six+} times" in told[1]


def test_letters_that_only_look_the_same_are_said() -> None:
    """A change from composed to decomposed letters looks like nothing, so it is said."""
    before, after = "We had caf\u00e9 there.", "We had cafe\u0301 there."
    assert "looks the same" in notes(before, after) and compare(before, after).recomposed == 1


_SHAPES = ["-", "- ", "[", "(", "()", "[a](", "渡", "---\n\n", "[](\n\n"]


@pytest.mark.parametrize("shape", _SHAPES)
def test_one_shape_again_and_again_takes_no_longer_than_prose(shape: str) -> None:
    """What a whole text is made of is never tried against the rest of the text at each place."""
    before = shape * (100_000 // len(shape))
    after = f"{before[:50_000]}Changed here.{before[50_000:]}"
    started = time.process_time()
    found = compare(before, after)
    assert time.process_time() - started < 20, "minutes, where each place looks at all the others"
    assert found.before() == paragraphs(before) and found.after() == paragraphs(after)


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_what_is_far_from_a_change_is_not_looked_at(head: str, old: str, new: str, tail: str) -> None:
    """A long paragraph is cut into words around its changes alone, and what is shown is the same."""
    before, after = head + old + tail, head + new + tail
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_NEAR", 1 << 30)
        whole = pieces.pieces_of(before, after)
        patch.setattr(pieces, "_NEAR", 12)
        near = pieces.pieces_of(before, after)
    assert [_text(near, gone) for gone in ("added", "removed")] == [before, after]
    assert [_size(near, kind) for kind in ("added", "removed")] == [
        _size(whole, kind) for kind in ("added", "removed")
    ]


def _text(found: Sequence[Piece], without: str) -> str:
    return "".join(piece.text for piece in found if piece.kind != without)


def _size(found: Sequence[Piece], kind: str) -> int:
    return sum(len(piece.text) for piece in found if piece.kind == kind)


# For a language model ---------------------------------------------------------------------------


def test_notes() -> None:
    """A line for each place, with what stands around it."""
    before = f"# Title\n\n{ONE}\n\n{TWO}\n\nThis one goes.\n\n{THREE}"
    after = f"# Title\n\n{THREE}\n\n{ONE.replace('rain', 'hail')}\n\nQuite another thing.\n\n{TWO}"
    assert notes(before, after).splitlines() == [
        "Paragraph 2 was moved here; it was paragraph 5: And a third one on wind!",
        "Paragraph 3: The first is about [-rain-]{+hail+}.",
        "Paragraph 4 is new: {+Quite another thing.+}",
        "Old paragraph 4 was removed: [-This one goes.-]",
    ]
    assert notes(before, before) == ""


def test_notes_on_a_long_paragraph() -> None:
    """Each place has its own line, with a few words on both sides."""
    words = [f"w{n}" for n in range(100)]
    edited = ["x" if n in (20, 80) else word for n, word in enumerate(words)]
    assert notes(" ".join(words), " ".join(edited)).splitlines() == [
        "Paragraph 1: …w16 w17 w18 w19 [-w20-]{+x+} w21 w22 w23 w24…",
        "Paragraph 1: …w76 w77 w78 w79 [-w80-]{+x+} w81 w82 w83 w84…",
    ]


def test_notes_say_what_did_not_fit() -> None:
    """No change is cut: one that is too long is named in the last line."""
    after = f"{ONE}\n\n{'long ' * 100}\n\n{TWO}"
    assert notes("", after, 200).splitlines() == [
        f"Paragraph 1 is new: {{+{ONE}+}}",
        f"Paragraph 3 is new: {{+{TWO}+}}",
        "(1 more change does not fit in here: paragraph 2.)",
    ]
    assert notes("", after, 0) == (
        "(3 more changes do not fit in here: paragraph 1, paragraph 2, paragraph 3.)"
    )


@given(ANYTHING, ANYTHING, st.integers(160, 400))
def test_notes_keep_to_their_limit(before: str, after: str, limit: int) -> None:
    """And hold every change when there is room for all."""
    assert len(notes(before, after, limit)) <= limit
    whole = notes(before, after, 100_000)
    for block in compare(before, after).blocks:
        for piece in block.pieces:
            assert piece.kind == "same" or piece.text in whole


def test_word_changes_of_equal_texts() -> None:
    """A timeline asks this for every pair of versions."""
    assert word_changes(ONE, ONE) == (0, 0)
    assert word_changes(ONE, f"{ONE}\n\n{TWO}") == (count_words(TWO), 0)
