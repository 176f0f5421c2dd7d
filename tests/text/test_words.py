from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from smartwriter.text.words import (
    count,
    count_words,
    front_matter,
    is_cjk,
    is_word,
    paragraphs,
    spans,
    tokens,
)

# Letters and marks of many scripts, what joins them, and what must never be taken apart.
AWKWARD = st.text(
    st.sampled_from(
        "abZ09 \t\n\r.,'’-_\"#*`~[]()<>!|:é"
        "\u0301\u0300\u200d\u200c\ufe0f\u20e3\u00ad渡口，。「」あアーｶﾞ한\u1100\u1161"
        "\u11a8مرב״\u0600क्षिำไ👍🏽👩🇨🇳🏴\U000e0067\ud83d\udc00\ufeff\u2028\x85\u3000"
    )
)
MARKDOWN = st.lists(
    st.sampled_from(
        [
            "# One",
            "words",
            "",
            "  ",
            "```",
            "~~~~",
            "``` python",
            "---",
            "===",
            "- a",
            "    b",
            "渡口",
            "\u3000",
            "> c",
        ]
    )
).flatmap(lambda lines: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda end: end.join(lines)))

# Tokens -----------------------------------------------------------------------------------------

TOKENS = {
    "English": ("Don't stop, now!", ["Don't", " ", "stop", ",", " ", "now", "!"]),
    "hyphens": ("state-of-the-art — yes", ["state-of-the-art", " ", "—", " ", "yes"]),
    "quotes": ("‘It’s’", ["‘", "It’s", "’"]),
    "numbers": ("3.14, 1,000.", ["3.14", ",", " ", "1,000", "."]),
    "Chinese": ("渡口的雾，很大。", ["渡", "口", "的", "雾", "，", "很", "大", "。"]),
    "Chinese and English": ("用Claude写作", ["用", "Claude", "写", "作"]),
    "Japanese": ("ノートを書く。", ["ノ", "ー", "ト", "を", "書", "く", "。"]),
    "half-width kana": ("ｶﾞｷ", ["ｶﾞ", "ｷ"]),
    "Korean": ("안녕 세상", ["안", "녕", " ", "세", "상"]),
    "Korean, decomposed": (unicodedata.normalize("NFD", "안녕"), ["안", "녕"]),
    "Arabic": ("مرحباً بالعالم", ["مرحباً", " ", "بالعالم"]),
    "Hebrew": ('צה"ל בא', ['צה"ל', " ", "בא"]),
    "Hindi": ("क्षत्रिय है", ["क्षत्रिय", " ", "है"]),
    "composed": ("café", ["café"]),
    "decomposed": ("cafe\u0301s", ["cafe\u0301s"]),
    "times": ("At 10:30, 3:16: no", ["At", " ", "10:30", ",", " ", "3:16", ":", " ", "no"]),
    "Thai": ("เรือออกสองทุ่ม 20 น.", ["เรือ", "ออก", "สอง", "ทุ่ม", " ", "20", " ", "น", "."]),
    "Lao": ("ເຮືອຂ້າມຟາກ", ["ເຮືອ", "ຂ້າມ", "ຟາກ"]),
    "Khmer": ("សាឡាងចុងក្រោយ", ["សាឡាង", "ចុងក្រោយ"]),
    "Burmese": ("နောက်ဆုံးကူးတို့", ["နောက်ဆုံး", "ကူးတို့"]),
    "emoji": ("👍🏽👩‍👩‍👧‍👦🇨🇳🇯🇵1️⃣", ["👍🏽", "👩‍👩‍👧‍👦", "🇨🇳", "🇯🇵", "1️⃣"]),
    "CRLF": ("a\r\nb\n\nc", ["a", "\r\n", "b", "\n\n", "c"]),
    "half an emoji": ("a\ud83db", ["a", "\ud83d", "b"]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), TOKENS.values(), ids=TOKENS)
def test_a_text_is_cut_as_a_reader_would(text: str, expected: list[str]) -> None:
    """Words stay whole in every script that spaces them; the others are cut into characters."""
    assert [unicodedata.normalize("NFC", token) for token in tokens(text)] == [
        unicodedata.normalize("NFC", token) for token in expected
    ]


@given(st.one_of(AWKWARD, st.text()))
def test_cutting_loses_nothing(text: str) -> None:
    """Tokens join to their text, and none ends inside a user-perceived character."""
    found = tokens(text)
    assert "".join(found) == text and all(found)
    whole = {match.end() for match in regex.finditer(r"\X", text)}
    ends = {len("".join(found[:n])) for n in range(1, len(found) + 1)}
    assert ends <= whole


def test_what_counts_as_a_word() -> None:
    """Letters, numbers and characters do; punctuation, spaces and emoji do not."""
    assert all(map(is_word, ["word", "3", "渡", "あ", "한", "שלום"]))
    assert not any(map(is_word, [" ", ".", "。", "👍🏽", "1️⃣", "—", "\ud83d"]))
    assert all(map(is_cjk, ["渡", "あ", "ー", "한"])) and not any(map(is_cjk, ["a", "。", "א"]))


# Paragraphs -------------------------------------------------------------------------------------

PARAGRAPHS = {
    "blank lines": ("\n\none\ntwo\n\n \t\n\nthree\n", ["one\ntwo", "three"]),
    "CRLF": ("one\r\ntwo\r\n\r\nthree\r\n", ["one\r\ntwo", "three"]),
    "old Mac line ends": ("one\r\rtwo", ["one", "two"]),
    "headings": ("# One\ntext\n## Two\n\nmore", ["# One", "text", "## Two", "more"]),
    "underlined headings": ("One\n===\ntext\n\nTwo\n---\nmore", ["One\n===", "text", "Two\n---", "more"]),
    "not a heading": ("#one\n####### two", ["#one\n####### two"]),
    "a code block": ("see:\n```py\na\n\n# b\n```\nafter", ["see:", "```py\na\n\n# b\n```", "after"]),
    "a longer fence": ("````\n```\n\n````\nx", ["````\n```\n\n````", "x"]),
    "tildes": ("~~~\n```\n\n~~~", ["~~~\n```\n\n~~~"]),
    "an open code block": ("```\na\n\nb\n\n", ["```\na\n\nb"]),
    "code in a line": ("```a``` b\n\nc", ["```a``` b", "c"]),
    "a list": ("- a\n- b\n\n- c", ["- a\n- b", "- c"]),
    "front matter": ("---\ntitle: x\n\ntags: y\n---\n\none", ["one"]),
    "a byte order mark": ("\ufeff# 渡口\n\n雾。", ["# 渡口", "雾。"]),
    "an ideographic space": ("一\n\u3000\n二", ["一", "二"]),
    "nothing": ("\n \n", []),
}


@pytest.mark.parametrize(("text", "expected"), PARAGRAPHS.values(), ids=PARAGRAPHS)
def test_paragraphs(text: str, expected: list[str]) -> None:
    """What blank lines part, and headings and code blocks by themselves."""
    assert paragraphs(text) == expected


@given(st.one_of(MARKDOWN, AWKWARD))
def test_spans_hold_all_but_white_space(text: str) -> None:
    """In order, apart, never blank at either end; between them is nothing but white space."""
    at = front_matter(text)
    rest = ""
    for start, end in spans(text):
        assert at <= start < end
        lines = regex.split(r"[\r\n]", text[start:end])
        assert lines[0].strip() and lines[-1].strip()
        rest += text[at:start]
        at = end
    assert not (rest + text[at:]).removeprefix("\ufeff").strip()


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("---\na: 1\n---\ntext", "---\na: 1\n---\n"),
        ("\ufeff---\r\na: 1\r\n---\r\ntext", "\ufeff---\r\na: 1\r\n---\r\n"),
        ("---\n---", "---\n---"),
        ("---\na: 1\n\nb: 2\n---  \n", "---\na: 1\n\nb: 2\n---  \n"),
        ("---\nnever closed", ""),
        ("---\n\nA rule across the page.\n\n---\n", ""),
        ("----\na\n----\n", ""),
        ("text\n---\na: 1\n---\n", ""),
        ("", ""),
    ],
)
def test_front_matter(text: str, block: str) -> None:
    """The block between two lines of three hyphens at the very start, and nothing else."""
    assert text[: front_matter(text)] == block


# Counts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't count state-of-the-art twice.", 4),
        ("In 2024, 3.14 and 1,000", 5),
        ("渡口的雾，很大。", 6),
        ("用Claude写作 2 次", 6),
        ("노트 쓰기", 4),
        ("ノートを書く", 6),
        ("שלום עולם", 2),
        ("cafe\u0301 café", 2),
        ("👍🏽 1️⃣ — … * # -", 0),
        ("# A *very* **big** `word`", 4),
        ("1. one\n2. two\n- three", 3),
        ("[a link](https://example.org/a/b-c_(d)?e=f) and ![a picture](p.png)", 5),
        ("see https://example.org/a?b=c, please", 3),
        ("访问https://example.org吧", 4),
        ("one[^1] two\n\n[^1]: three", 3),
        ("[a]: https://example.org 'Title'\n\none", 1),
        ("[Ann]: I said so.", 4),
        ("one <!-- not this --> two", 2),
        ('one <b>two</b> <a href="x y">three</a>, <https://example.org> 1 < 2 > 0', 7),
        ("```python\nprint\n```", 1),
        ("---\ntitle: Not this\n---\none", 1),
        ("a\ud83db", 2),
        ("", 0),
        ("un**believ**able and *very*~~good~~", 3),
        ("an un<b>believ</b>able H<sub>2</sub>O un<!-- so -->known thing", 5),
        ("2 * 3 * 4 and a*b", 6),
        ("The 10:30 ferry, John 3:16", 5),
        ("www.example.org/a-b?c and ada.b+c@example.co.uk or ftp://a.b/c", 5),
        ("caf&eacute; &amp;&nbsp;bar&nbsp;&mdash; don&rsquo;t", 3),
        ("a [text][label-of-it], [a] [b] and [c]\n\n[label-of-it]: /a 'b c'", 6),
        (r"one\_two 2\. three", 3),
        ("เรือข้ามฟากลำสุดท้ายออกเวลาสองทุ่ม", 9),
        ("สวัสดี Claude ครับ", 3),
    ],
)
def test_words_are_counted(text: str, words: int) -> None:
    """As a writer counts what a reader reads: no marks, no addresses behind links, no front matter."""
    assert count(text).words == count_words(text) == words


def test_counts() -> None:
    """Characters are user-perceived and without line ends; each script has its own reading speed."""
    found = count("---\na: b\n---\n# 渡口\r\n\r\ncafe\u0301 👩‍👩‍👧‍👦\r\n")
    assert (found.words, found.characters, found.paragraphs) == (3, 10, 2)
    assert count("word " * 240).reading_s == 60.0
    assert count("字" * 400).reading_s == 60.0
    assert count("word " * 120 + "字" * 200).reading_s == 60.0


@given(AWKWARD)
def test_characters_are_clusters(text: str) -> None:
    """Plain text is counted by a quicker way, which gives the same."""
    body = text[front_matter(text) :].removeprefix("\ufeff")
    clusters = [cluster for cluster in regex.findall(r"\X", body) if cluster not in {"\r", "\n", "\r\n"}]
    assert count(text).characters == len(clusters)
