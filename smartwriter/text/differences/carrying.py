"""Where a passage of an earlier text stands in a later one, if nobody has touched it."""

from __future__ import annotations

import re

from smartwriter.text.differences.comparison import compare
from smartwriter.text.differences.pieces import aligned
from smartwriter.text.words import spans, tokens

_LONG = 3  # tokens, white space aside: an untouched stretch that chance does not make again

_BREAK = re.compile(r"\n[ \t\r]*\n")


def place_of(passage: str, known: str, now: str) -> int | None:
    """Where a passage that stands once in the text known stands in the text now; None if it was touched.

    It is carried through the changes between both: it must be the same, and so must each word of which
    it is a part, and, where it is short or stands there more than once, what is right beside it.
    """
    start = known.index(passage)
    end = start + len(passage)
    if known == now:
        return start
    stretches, doubtful = _untouched(known, now)
    if not all(ends <= start or starts >= end for starts, ends in doubtful):
        return None
    for first, last, shift in stretches:
        if first <= start and end <= last:
            place = start + shift
            alone = len(re.findall(f"(?={re.escape(passage)})", now)) == 1
            before, behind = _BREAK.split(known[first:start])[-1], _BREAK.split(known[end:last])[0]
            beside = sum(not token.isspace() for token in tokens(before + passage + behind))
            if alone and beside >= _LONG:
                return place
            texts = [(known[:start], now[:place]), (known[end:][::-1], now[place + len(passage) :][::-1])]
            sides = [
                stretches,
                [(len(known) - b, len(known) - a, _mirrored(s, known, now)) for a, b, s in stretches],
            ]
            kept = all(_same_end(*text, side, alone) for text, side in zip(texts, sides, strict=True))
            return place if kept else None
    return None


def _mirrored(shift: int, known: str, now: str) -> int:
    return len(now) - len(known) - shift


def _same_end(known: str, now: str, stretches: list[_Stretch], alone: bool) -> bool:
    """Whether two texts end with the same untouched character, white space aside; or, for a passage that is
    the only one of its kind, both with the end of a paragraph."""
    known_end, now_end = len(known.rstrip()), len(now.rstrip())
    if not (known_end and now_end):
        return known_end == now_end
    if alone and _is_break(known[known_end:]) and _is_break(now[now_end:]):
        return True
    return any(start < known_end <= end and known_end + shift == now_end for start, end, shift in stretches)


def _is_break(space: str) -> bool:
    return space.count("\n") > 1


_Stretch = tuple[int, int, int]
"""Of the text known: its start, its end, and how far it has moved."""


def _untouched(known: str, now: str) -> tuple[list[_Stretch], list[tuple[int, int]]]:
    """What of the text known stands in the text now; and which tokens of it might be others just as well."""
    found: list[_Stretch] = []
    doubtful: list[tuple[int, int]] = []
    old, new = spans(known), spans(now)
    partner: dict[int, int] = {-1: -1, len(old): len(new)}
    for block in compare(known, now).blocks:
        if not (block.before and block.after):
            continue
        first, last = block.before - 1, (block.before_last or block.before) - 1
        first_now, last_now = block.after - 1, (block.after_last or block.after) - 1
        same, unclear = _same(
            known, now, (old[first][0], old[last][1]), (new[first_now][0], new[last_now][1])
        )
        found += same
        doubtful += unclear
        if (first, first_now) == (last, last_now):
            partner[first] = first_now
    ends, ends_now = [0, *(end for _, end in old)], [0, *(end for _, end in new)]
    starts, starts_now = [*(start for start, _ in old), len(known)], [*(start for start, _ in new), len(now)]
    for i, j in partner.items():  # what stands between two paragraphs that still follow each other
        if i < len(old) and partner.get(i + 1) == j + 1:
            gap, there = slice(ends[i + 1], starts[i + 1]), slice(ends_now[j + 1], starts_now[j + 1])
            if known[gap] == now[there]:
                found.append((gap.start, gap.stop, there.start - gap.start))
    return _joined(sorted(found)), doubtful


def _same(
    known: str, now: str, in_old: tuple[int, int], in_new: tuple[int, int]
) -> tuple[list[_Stretch], list[tuple[int, int]]]:
    """Tokens that are the same; and those that are others when the texts are aligned from their ends."""
    a, b = tokens(known[slice(*in_old)]), tokens(now[slice(*in_new)])
    backwards = {(len(a) - 1 - i, len(b) - 1 - j) for i, j in aligned(a[::-1], b[::-1])}
    starts_a, starts_b = _starts(a, in_old[0]), _starts(b, in_new[0])
    pairs = aligned(a, b)
    stretches = [(starts_a[i], starts_a[i] + len(a[i]), starts_b[j] - starts_a[i]) for i, j in pairs]
    doubtful = [
        (starts_a[i], starts_a[i] + len(a[i]))
        for i, j in pairs
        if (i, j) not in backwards and not a[i].isspace()
    ]
    return stretches, doubtful


def _starts(found: list[str], at: int) -> list[int]:
    starts = []
    for token in found:
        starts.append(at)
        at += len(token)
    return starts


def _joined(stretches: list[_Stretch]) -> list[_Stretch]:
    joined: list[_Stretch] = []
    for start, end, shift in stretches:
        if joined and joined[-1][1:] == (start, shift):
            joined[-1] = (joined[-1][0], end, shift)
        else:
            joined.append((start, end, shift))
    return joined
