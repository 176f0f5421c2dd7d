from __future__ import annotations

import pytest

from smartwriter.errors import Invalid
from smartwriter.memory.front_matter import FrontMatter, split


def fields(block: str) -> FrontMatter:
    return split(f"---\n{block}\n---\nThe text.\n")[0]


def why(block: str) -> str:
    with pytest.raises(Invalid) as caught:
        fields(block)
    return str(caught.value)


def test_a_text_without_front_matter_is_left_as_it_is() -> None:
    """A file that says nothing about itself is all text, also one that starts with a rule."""
    for text in (
        "# Title\n",
        "",
        "---\n\nBelow a rule.\n\n---\n",
        "----\nMore.\n",
        "---\nProse, no field.\n",
    ):
        assert split(text) == (FrontMatter(), text)


def test_all_that_a_file_may_say() -> None:
    """Each field is read, and the text is what stands below."""
    front, text = split(
        "---\ninclude: on-demand\norder: 1.5\ntitle: 人物\ndescription: >\n  Who\n  appears.\n"
        "max_words: 800\nextends: true\n---\n# 人物\n"
    )
    assert text == "# 人物\n"
    assert (front.include, front.order, front.title, front.max_words) == ("on-demand", 1.5, "人物", 800)
    assert (front.description.strip(), front.extends) == ("Who appears.", True)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_either_kind_of_line_end(end: str) -> None:
    """Front matter may have the line ends of any system."""
    front, text = split(end.join(["---", "title: People", "---", "Text."]))
    assert (front.title, text) == ("People", "Text.")


def test_a_title_is_the_text_that_was_written() -> None:
    """A title that YAML would take for a date, a number or a truth value stays as it is."""
    for title in ("2026-01-02", "12:30", "007", "yes", "1e3"):
        assert fields(f"title: {title}").title == title


def test_fields_of_the_writers_own_are_left_alone() -> None:
    """Unknown fields, of whatever kind, and fields with nothing behind them change nothing."""
    assert fields("tags: [a, b]\nnested: {x: 1}\n&a k: *a\ntitle:\norder: ~") == FrontMatter()
    assert fields("# only a comment") == FrontMatter()


@pytest.mark.parametrize("written", ["on-demand", "On Demand", "on_demand", " ON-DEMAND "])
def test_how_on_demand_may_be_written(written: str) -> None:
    """Capitals, and what stands between the two words, do not matter."""
    assert fields(f"include: {written}").include == "on-demand"


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("include: sometimes", "has front matter whose include is not always, on-demand or never"),
        ("include: [always]", "has front matter whose include is not always, on-demand or never"),
        ("order: first", "has front matter whose order is not a number"),
        ("order: .inf", "has front matter whose order is not a number"),
        ("order: inf", "has front matter whose order is not a number"),
        ("max_words: 0", "has front matter whose max_words is not a whole number above 0"),
        ("max_words: 1.5", "has front matter whose max_words is not a whole number above 0"),
        ("extends: perhaps", "has front matter whose extends is not true or false"),
        ("title: {a: b}", "has front matter whose title is not text of at most 200 characters"),
        (
            f"description: {'x' * 501}",
            "has front matter whose description is not text of at most 500 characters",
        ),
        ("title: 'open", "has front matter that is not YAML (line 3)"),
        ("a: b: c", "has front matter that is not YAML (line 2)"),
        ("a: \x01", "has front matter that is not YAML"),
        ("a: " + "[" * 8000, "has front matter that is nested too deep"),
        ("- " * 4000, "has front matter that is not YAML"),
        ("- a\n- b", "has front matter without fields"),
        ("prose", "has front matter without fields"),
        ("a: " + "x" * 20_000, "has front matter of more than 16,384 characters"),
    ],
)
def test_broken_front_matter_is_said_in_one_sentence(block: str, problem: str) -> None:
    """What is wrong is named, without quoting the file."""
    assert why(block).startswith(problem)
    assert "\n" not in why(block)


def test_front_matter_that_never_ends() -> None:
    """A block that opens with a field and is not closed is broken, not a text."""
    with pytest.raises(Invalid, match="without a closing line of ---"):
        split("---\ntitle: People\n\nText.\n")


def test_front_matter_makes_nothing_but_text() -> None:
    """Tags that would make objects, and aliases that would fill the memory, do neither."""
    assert fields("title: !!python/name:os.system x").title == "x"
    bomb = "\n".join(
        ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    )
    assert fields(bomb) == FrontMatter()
    assert fields(f"{bomb}\ninclude: never").include == "never"
