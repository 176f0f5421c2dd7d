"""Damaged files: what the journal reads of a million of them.

A small transcript, full of nested objects that look like entries, is damaged by one splice or two:
cuts, flipped bits, NULs, missing stretches, lines glued to torn ones, garbage, duplicates, CRLF,
byte order marks. Each variant is written to a memory-backed disk, if there is one, and read by
``read`` and by ``stream``, which must agree; of each transcript all single splices, then random
pairs (a quick run takes every twentieth of both).

A variant is made of *pieces*: runs of bytes that stood together before. So it is known where each
entry went, and nothing is asked of the text that the reader could be wrong about in the same way:

- An *untouched* entry is one whole piece. If it has its line to itself it is returned, in order, once
  for each time it is there. Of those that are glued to something some cannot be told from an object
  nested in it, by no reader: a share of them is *excused*, and no more. (Nothing is asked of a glued line
  that says nothing of a session.)
- Anything else that is returned has a splice inside: it is what its bytes now say. Where they are all
  of one piece it was nested in an entry, and is *promoted*: never by one splice, and hardly ever by
  two, which can lay it bare from both sides.
- Hardly any of those with a splice inside begins elsewhere than an entry did: these are *merged*.
- Every byte lies in one returned entry, or in one damaged stretch, or is white space.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import anyio
from claude_agent_sdk.types import SessionKey
from figure import Figure, Outcome, Run

import smartwriter.storage.encoding as encoding
import smartwriter.storage.reading as reading
from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage.salvage import Damage, Entry

VARIANTS = 1_000_000
_PROCESSES = 2
_PAIRS = 60_000  # of one transcript, before the next one is made up
_THROUGH_STORE = 997  # every so many variants are loaded through the store too
_WHITE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_TIMEOUT_S = 3600

# What nobody can tell: how many of each kind of glued entries may be missing, ...
_LINKED, _UNLINKED, _BARE_GLUED = "glued and linked", "glued without a link", "glued and bare"
_MOST_EXCUSED = {_LINKED: 0.02, _UNLINKED: 0.08, _BARE_GLUED: 1.0}
# ... and in how many of the variants something may be returned that is no entry.
_MERGED, _LAID_BARE = "merged", "promoted by two splices"
_MOST_RETURNED = {_MERGED: 0.002, _LAID_BARE: 0.000_05}


# --- variants -------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Bytes that stood together before the damage."""

    data: bytes
    number: int | None = None
    """The entry that they are of; None for line ends, and for what the damage brought."""
    at: int = 0
    """Where in that entry they begin."""


@dataclass(frozen=True)
class Variant:
    """A damaged transcript."""

    lines: tuple[bytes, ...]
    """Of the transcript before its damage, without their LFs."""
    pieces: tuple[Piece, ...]
    damages: tuple[str, ...] = ()

    @cached_property
    def data(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces)

    @cached_property
    def kept(self) -> list[int]:
        """Where its untouched entries begin."""
        return [offset for offset, piece in _placed(self.pieces) if self.is_entry(piece)]

    def is_entry(self, piece: Piece) -> bool:
        return piece.number is not None and len(piece.data) == len(self.lines[piece.number])

    def splice(self, kind: str, start: int, stop: int, *new: Piece) -> Variant:
        """Put other bytes in the place of a stretch."""
        before, after = _between(self.pieces, 0, start), _between(self.pieces, stop, len(self.data))
        shown = b"".join(piece.data for piece in new)[:40]
        damages = (*self.damages, f"{kind} {start}-{stop} {shown!r}")
        return Variant(self.lines, (*before, *new, *after), damages)


def _placed(pieces: Iterable[Piece]) -> Iterator[tuple[int, Piece]]:
    offset = 0
    for piece in pieces:
        yield offset, piece
        offset += len(piece.data)


def _between(pieces: Iterable[Piece], start: int, stop: int) -> Iterator[Piece]:
    for offset, piece in _placed(pieces):
        first, last = max(start - offset, 0), min(stop - offset, len(piece.data))
        if first < last:
            yield Piece(piece.data[first:last], piece.number, piece.at + first)


def transcript(rng: random.Random) -> Variant:
    """An undamaged transcript, short: every byte of it will be damaged in turn."""
    lines = tuple(encoding.encode(entry).rstrip(b"\n") for entry in _entries(rng))
    pieces = [piece for number, line in enumerate(lines) for piece in (Piece(line, number), Piece(b"\n"))]
    return Variant(lines, tuple(pieces))


def _entries(rng: random.Random) -> list[Entry]:
    makers = [_spoken, _answered, _tool_used, _tool_answered, _progress, _service]
    kinds = [*makers, *rng.choices(makers, k=rng.randrange(4))]
    rng.shuffle(kinds)
    entries: list[Entry] = []
    parent = None
    for make in kinds:
        entry = make(rng)
        if make is not _service:
            # As in real files the links may come first or last.
            links = {"parentUuid": parent, "uuid": _uuid(rng)}
            entry = {**links, **entry} if rng.random() < 0.5 else {**entry, **links}
            parent = links["uuid"]
        entries.append(entry)
    return entries


def _uuid(rng: random.Random) -> str:
    return f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}"


def _lookalike(rng: random.Random) -> Entry:
    """What must never be taken for an entry: it has all that one has, and is nested in one."""
    return {
        "type": rng.choice(["user", "assistant", "summary"]),
        "uuid": _uuid(rng),
        "parentUuid": rng.choice([None, _uuid(rng)]),
        "sessionId": "s",
        "timestamp": "t",
    }


def _words(rng: random.Random) -> str:
    pieces = [
        "rain ",
        "渡口 ",
        "🛶",
        "JSON ",
        "\\",
        '"',
        "\n",
        "{",
        "}",
        '{"type":"user","uuid":"x"}',
        "\0",
        "é",
    ]
    return "".join(rng.choices(pieces, k=rng.randrange(1, 6)))


def _spoken(rng: random.Random) -> Entry:
    return {"type": "user", "sessionId": "s", "message": {"role": "user", "content": _words(rng)}}


def _answered(rng: random.Random) -> Entry:
    content = [{"type": "text", "text": _words(rng)}, {"type": "thinking", "thinking": _words(rng)}]
    return {"type": "assistant", "timestamp": "t", "message": {"role": "assistant", "content": content}}


def _tool_used(rng: random.Random) -> Entry:
    block = {"type": "tool_use", "id": "t1", "input": {"entry": _lookalike(rng), "n": [1, {}, -2.5e3]}}
    return {"type": "assistant", "sessionId": "s", "message": {"content": [block]}, "isMeta": False}


def _tool_answered(rng: random.Random) -> Entry:
    return {"type": "user", "toolUseResult": [_lookalike(rng), _lookalike(rng)], "timestamp": "t"}


def _progress(rng: random.Random) -> Entry:
    message = {"type": "assistant", "message": {"content": []}, "uuid": _uuid(rng), "timestamp": "t"}
    return {"type": "progress", "data": {"message": message, "type": "agent"}, "sessionId": "s"}


_BARE: Entry = {"type": "agent_metadata", "agentType": "critic"}


def _service(rng: random.Random) -> Entry:
    return rng.choice(
        [
            {"type": "summary", "summary": _words(rng), "leafUuid": _uuid(rng)},
            {"type": "queue-operation", "operation": "enqueue", "timestamp": "t", "sessionId": "s"},
            {"type": "mode", "mode": "normal", "sessionId": "s"},
            _BARE,
        ]
    )


# --- kinds of damage ------------------------------------------------------------------------


def singles(whole: Variant) -> Iterator[Variant]:
    """Every damage by one splice."""
    size = len(whole.data)
    yield whole
    for at in range(size):
        yield whole.splice("cut", at, size)
        yield _torn_and_glued(whole, at)
        for bit in range(8):
            yield whole.splice("flip", at, at + 1, Piece(bytes([whole.data[at] ^ 1 << bit])))
        for length in (1, 7, 64, 400):
            stop = min(at + length, size)
            yield whole.splice("nul", at, stop, Piece(bytes(stop - at)))
            yield whole.splice("hole", at, stop)
    for offset, piece in list(_placed(whole.pieces)):
        if piece.number is not None:
            yield from _around_line(whole, offset, offset + len(piece.data))
    yield whole.splice("bom", 0, 0, Piece(_BOM))
    yield whole.splice("nul", size, size, Piece(bytes(1728)))


def _torn_and_glued(whole: Variant, at: int) -> Variant:
    """A write that broke off, and the next one right behind it."""
    line_end = whole.data.index(b"\n", at)
    return whole.splice("glue", at, line_end + 1)


_GARBAGE = [
    b"\n",
    b"\r\n",
    b" \t\n",
    b"\0\0\0\n",
    b"null\n",
    b"[]\n",
    b'"text"\n',
    b"{\n",
    b"}\n",
    b'{"type":\n',
    b"\xff\xfe\x80\n",
    b"rubbish",
    b"\0\0\0",
    b"\x1a",
    b"<<<<<<< HEAD\n",
    _BOM,
]


def _around_line(whole: Variant, start: int, end: int) -> Iterator[Variant]:
    """What comes before a line: garbage, one more copy of each entry, the torn head of each."""
    for garbage in _GARBAGE:
        yield whole.splice("garbage", start, start, Piece(garbage))
    for number, line in enumerate(whole.lines):
        copy = Piece(line, number)
        yield whole.splice("duplicate", start, start, copy, Piece(b"\n"))
        yield whole.splice("glued duplicate", start, start, copy)
        for at in range(1, len(line), 3):
            yield whole.splice("torn head", start, start, Piece(line[:at], number))
    yield whole.splice("crlf", end, end, Piece(b"\r"))
    yield whole.splice("no lf", end, end + 1)


def pairs(whole: Variant, rng: random.Random) -> Iterator[Variant]:
    """Random damages by two splices, without end."""
    while True:
        yield _at_random(_at_random(whole, rng), rng)


def _at_random(variant: Variant, rng: random.Random) -> Variant:
    size = len(variant.data)
    if size == 0:
        return variant
    at = rng.randrange(size)
    stop = min(at + rng.choice([1, 2, 5, 16, 64, 200, 1000]), size)
    match rng.choice(["cut", "flip", "nul", "hole", "glue", "garbage", "copy", "head", "crlf"]):
        case "cut":
            return variant.splice("cut", at, size)
        case "flip":
            return variant.splice(
                "flip", at, at + 1, Piece(bytes([variant.data[at] ^ 1 << rng.randrange(8)]))
            )
        case "nul":
            return variant.splice("nul", at, stop, Piece(bytes(stop - at)))
        case "hole":
            return variant.splice("hole", at, stop)
        case "glue" if b"\n" in variant.data[at:]:
            return _torn_and_glued(variant, at)
        case "garbage":
            return variant.splice("garbage", at, at, Piece(rng.choice(_GARBAGE)))
        case "copy" | "head" as kind:
            return _one_more(variant, rng, whole=kind == "copy")
        case _:
            return _crlf(variant)


def _one_more(variant: Variant, rng: random.Random, *, whole: bool) -> Variant:
    number = rng.randrange(len(variant.lines))
    line = variant.lines[number]
    at = rng.choice(variant.kept) if variant.kept else len(variant.data)
    if whole:
        return variant.splice("duplicate", at, at, Piece(line, number), Piece(b"\n"))
    return variant.splice("torn head", at, at, Piece(line[: rng.randrange(1, len(line))], number))


def _crlf(variant: Variant) -> Variant:
    at = len(variant.data)
    while (at := variant.data.rfind(b"\n", 0, at)) >= 0:
        variant = variant.splice("crlf", at, at, Piece(b"\r"))
    return variant


# --- what must be read of them --------------------------------------------------------------


@dataclass
class Tally:
    """What was found in some variants."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """The first of each kind."""

    def note(self, kind: str, variant: Variant) -> None:
        self.counts[kind] += 1
        self.examples.setdefault(kind, f"{'; '.join(variant.damages)} of {variant.data!r}")

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.examples = other.examples | self.examples


class Span(NamedTuple):
    start: int
    end: int
    entry: Entry


def check(variant: Variant, entries: list[Entry], damage: list[Damage], tally: Tally) -> None:
    """Hold what was read of a variant to how it was made."""
    try:
        spans = list(_beside(variant.data, damage))
    except ValueError as error:
        tally.note(str(error), variant)
        return
    if [span.entry for span in spans] != entries:
        tally.note("not what stands beside the damage", variant)
        return
    returned = {span.start: span for span in spans}
    for offset, piece in _placed(variant.pieces):
        if not variant.is_entry(piece):
            continue
        found = returned.pop(offset, None)
        glued = _glued(variant.data, offset, piece.data)
        if glued:
            tally.counts[glued] += 1
        if found is None or found.end != offset + len(piece.data):
            tally.note(_excused(glued) if glued else "missing", variant)
    for span in returned.values():
        offset, piece = max(one for one in _placed(variant.pieces) if one[0] <= span.start)
        behind = offset + len(piece.data)
        if span.end <= behind:
            tally.note("promoted" if len(variant.damages) == 1 else _LAID_BARE, variant)
        elif span.start != offset or piece.at > 0 or piece.number is None:
            tally.note(_MERGED, variant)


def _excused(glued: str) -> str:
    return f"{glued}, excused"


def _beside(data: bytes, damage: list[Damage]) -> Iterator[Span]:
    """The objects that all but the damage consists of. :raises ValueError: it consists of more."""
    at = len(_BOM) if data.startswith(_BOM) else 0
    for offset, length in [*damage, (len(data), 0)]:
        if not at <= offset <= offset + length <= len(data) or b"\n" in data[offset : offset + length]:
            raise ValueError("damage misplaced")
        while gap := data[at:offset].lstrip(_WHITE):
            start = offset - len(gap)
            try:
                text = gap.decode("utf-8", "surrogatepass")
                value, end = json.JSONDecoder().raw_decode(text)
            except ValueError:
                raise ValueError("damage unreported") from None
            at = start + len(text[:end].encode("utf-8", "surrogatepass"))
            yield Span(start, at, value)
        at = offset + length


def _glued(data: bytes, offset: int, line: bytes) -> str:
    """As what an entry counts that is not alone on its line; empty for one that is."""
    start, end = data.rfind(b"\n", 0, offset) + 1, data.find(b"\n", offset)
    beside = data[start:offset].removeprefix(_BOM if start == 0 else b"")
    beside += data[offset + len(line) : end if end >= 0 else None]
    if not beside.strip(_WHITE):
        return ""
    entry = json.loads(line)
    return _BARE_GLUED if entry == _BARE else _LINKED if "parentUuid" in entry else _UNLINKED


# --- measuring ------------------------------------------------------------------------------


def measure_share(seed: int, count: int, every: int) -> Tally:
    """Check ``count`` variants. Runs in a process of its own."""
    tally = Tally()
    rng = random.Random(seed)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for number, variant in enumerate(islice(_variants(rng, every), count)):
            path = Path(folder) / "sessions" / "p" / "s.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(variant.data)
            _measure_one(variant, path, tally)
            if number % _THROUGH_STORE == 0:
                anyio.run(_measure_store, variant, FileSessionStore(folder), tally)
    return tally


def _variants(rng: random.Random, every: int) -> Iterator[Variant]:
    while True:
        whole = transcript(rng)
        yield from islice(singles(whole), rng.randrange(every), None, every)
        yield from islice(pairs(whole, rng), _PAIRS // every)


def _measure_one(variant: Variant, path: Path, tally: Tally) -> None:
    tally.counts["variants"] += 1
    try:
        contents = reading.read(path)
        streamed_damage: list[Damage] = []
        streamed = list(reading.stream(path, on_damage=streamed_damage.append))
    except Exception as error:
        tally.note(f"exception {type(error).__name__}", variant)
        return
    if contents.entries != [entry for _, entry in streamed] or contents.damage != streamed_damage:
        tally.note("read and stream differ", variant)
    tally.counts["entries"] += len(contents.entries)
    check(variant, contents.entries, contents.damage, tally)


async def _measure_store(variant: Variant, store: FileSessionStore, tally: Tally) -> None:
    """The store's own load returns what the journal does, each uuid once."""
    key: SessionKey = {"project_key": "p", "session_id": "s"}
    seen = set[str]()
    expected = []
    for entry in reading.read(store.path(key)).entries:
        uuid = entry.get("uuid")
        if isinstance(uuid, str) and uuid:
            if uuid in seen:
                continue
            seen.add(uuid)
        expected.append(entry)
    tally.counts["loaded through the store"] += 1
    if await store.load(key) != expected:
        tally.note("store differs", variant)


def _measure(run: Run) -> Outcome:
    total = Tally()
    share = run.scaled(VARIANTS) // _PROCESSES
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(measure_share, run.seed + number, share, 20 if run.quick else 1)
            for number in range(_PROCESSES)
        ]
        for job in jobs:
            total.add(job.result(_TIMEOUT_S))
    counts = total.counts
    wrong = _wrong(counts)
    got = f"{counts['variants']:,} variants, {counts['entries']:,} entries returned, "
    got += ", ".join(f"{counts[kind]:,} {kind}" for kind in wrong) or "0 exceptions, missing or promoted"
    got += "; not told apart: " + ", ".join(
        f"{counts[_excused(kind)]:,} of {counts[kind]:,} {kind}" for kind in _MOST_EXCUSED
    )
    got += "".join(f", {counts[kind]:,} {kind}" for kind in _MOST_RETURNED if kind not in wrong)
    for kind in wrong:
        got += f"\n                {kind}, e.g.: {total.examples[kind]}"
    return Outcome(got, not wrong and counts["variants"] == share * _PROCESSES)


def _wrong(counts: Counter[str]) -> list[str]:
    """What there is too much of."""
    most = {_excused(kind): share * counts[kind] for kind, share in _MOST_EXCUSED.items()}
    most |= {kind: share * counts["variants"] for kind, share in _MOST_RETURNED.items()}
    known = {"variants", "entries", "loaded through the store", *_MOST_EXCUSED}
    return sorted(kind for kind in counts.keys() - known if counts[kind] > most.get(kind, 0))


FIGURES = [
    Figure(
        "damaged files: cuts, bit flips, NULs, holes, glued lines, garbage, duplicates, CRLF, BOM",
        f"{VARIANTS:,}; 0 exceptions; every untouched entry on a line of its own returned, of those that "
        "are glued and linked 98 %, without a link 92 %; nothing promoted by one splice, 1 in 20,000 by two; "
        "at most 0.2 % merged",
        _measure,
    )
]
