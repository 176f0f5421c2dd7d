"""Damaged files: what the journal reads of a million of them.

A small transcript, full of nested objects that look like entries, is damaged by one splice or two:
cuts, flipped bits, NULs, missing stretches, lines glued to torn ones, garbage, duplicates, CRLF,
byte order marks. Each variant is written to a memory-backed disk, if there is one, and read by
``read`` and by ``stream``, which must agree; of each transcript all single splices, then random
pairs (a quick run takes every twentieth of both). Held to:

- An *untouched* entry, none of whose bytes were replaced, is returned, in order, once for each
  time it is there.
- A *touched* one may be absent, or be what its bytes now say: JSON from where it began, or a line
  that as a whole is an object. Anything else that is returned is *invented*. (Where bytes are missing
  without a trace, what is left may say what no reader can tell from an entry, and is counted as
  *merged*: the start of one entry and the end of another that together are JSON; and an object just
  before the next or the end of the line, which is the first thing on its line, or has the marks of
  an entry and stands where by the text before it no object can be: so a glued entry looks.)
- Every byte lies in one returned entry, or in one damaged stretch, or is white space.

Excused, and counted, is an untouched entry that nothing tells from an object nested in the damage
it is glued to: one that bears no mark of an entry; and, unless a uuid links it to the entry before
it or to the one on the next line, one that stands where a value was awaited, or before what goes on
as behind a value, or with damage on either side. Where two of these are so, links are not enough.
"""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import anyio
from claude_agent_sdk.types import SessionKey
from figure import Figure, Outcome, Run

from smartwriter.sessions.store import FileSessionStore
from smartwriter.storage import journal
from smartwriter.storage.salvage import Damage, Entry

VARIANTS = 1_000_000
_PROCESSES = 2
_PAIRS = 60_000  # of one transcript, before the next one is made up
_THROUGH_STORE = 997  # every so many variants are loaded through the store too
_BOM = b"\xef\xbb\xbf"
_TIMEOUT_S = 3600


# --- variants -------------------------------------------------------------------------------


class Kept(NamedTuple):
    """An untouched entry in a file."""

    offset: int
    number: int
    """Its index in the transcript that was damaged."""


@dataclass(frozen=True)
class Variant:
    """A damaged transcript."""

    lines: tuple[bytes, ...]
    """Of the transcript before its damage, without their LFs."""
    entries: tuple[Entry, ...]
    data: bytes
    kept: tuple[Kept, ...]
    began: tuple[int, ...] = ()
    """Offsets of the first bytes of touched entries, as far as these bytes still stand."""
    ended: tuple[int, ...] = ()
    """Offsets behind the last bytes of touched entries, as far as these bytes still stand."""
    damages: tuple[str, ...] = ()

    def splice(
        self, kind: str, start: int, stop: int, new: bytes, inserted: tuple[Kept, ...] = ()
    ) -> Variant:
        """Put other bytes in the place of a stretch.

        :param inserted: the whole entries in the new bytes, by their offsets there.
        """
        shift = len(new) - (stop - start)
        before, after = [], []
        began = [at if at < start else at + shift for at in self.began if not start <= at < stop]
        ended = [at if at <= start else at + shift for at in self.ended if not start < at <= stop]
        for kept in self.kept:
            end = kept.offset + len(self.lines[kept.number])
            if end <= start:
                before.append(kept)
            elif kept.offset >= stop:
                after.append(Kept(kept.offset + shift, kept.number))
            else:
                began += [kept.offset] if kept.offset < start else []
                ended += [end + shift] if end > stop else []
        return Variant(
            self.lines,
            self.entries,
            self.data[:start] + new + self.data[stop:],
            (*before, *(Kept(start + offset, number) for offset, number in inserted), *after),
            tuple(began),
            tuple(ended),
            (*self.damages, f"{kind} {start}-{stop} {new[:40]!r}"),
        )


def transcript(rng: random.Random) -> Variant:
    """An undamaged transcript, short: every byte of it will be damaged in turn."""
    entries = _entries(rng)
    lines = tuple(journal.encode(entry).rstrip(b"\n") for entry in entries)
    data, kept = b"", []
    for number, line in enumerate(lines):
        kept.append(Kept(len(data), number))
        data += line + b"\n"
    return Variant(lines, tuple(entries), data, tuple(kept))


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


def _service(rng: random.Random) -> Entry:
    return rng.choice(
        [
            {"type": "summary", "summary": _words(rng), "leafUuid": _uuid(rng)},
            {"type": "queue-operation", "operation": "enqueue", "timestamp": "t", "sessionId": "s"},
            {"type": "mode", "mode": "normal", "sessionId": "s"},
            {"type": "agent_metadata", "agentType": "critic"},
        ]
    )


# --- kinds of damage ------------------------------------------------------------------------


def singles(whole: Variant) -> Iterator[Variant]:
    """Every damage by one splice."""
    size = len(whole.data)
    yield whole
    for at in range(size):
        yield whole.splice("cut", at, size, b"")
        yield _torn_and_glued(whole, at)
        for bit in range(8):
            yield whole.splice("flip", at, at + 1, bytes([whole.data[at] ^ 1 << bit]))
        for length in (1, 7, 64, 400):
            stop = min(at + length, size)
            yield whole.splice("nul", at, stop, bytes(stop - at))
            yield whole.splice("hole", at, stop, b"")
    for kept in whole.kept:
        yield from _around_line(whole, kept)
    yield whole.splice("bom", 0, 0, _BOM)
    yield whole.splice("nul", size, size, bytes(1728))


def _torn_and_glued(whole: Variant, at: int) -> Variant:
    """A write that broke off, and the next one right behind it."""
    line_end = whole.data.index(b"\n", at)
    return whole.splice("glue", at, line_end + 1, b"")


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


def _around_line(whole: Variant, kept: Kept) -> Iterator[Variant]:
    """What comes before a line: garbage, one more copy of each entry, the torn head of each."""
    for garbage in _GARBAGE:
        yield whole.splice("garbage", kept.offset, kept.offset, garbage)
    for number, line in enumerate(whole.lines):
        copy = (Kept(0, number),)
        yield whole.splice("duplicate", kept.offset, kept.offset, line + b"\n", copy)
        yield whole.splice("glued duplicate", kept.offset, kept.offset, line, copy)
        for at in range(1, len(line), 3):
            yield whole.splice("torn head", kept.offset, kept.offset, line[:at])
    end = kept.offset + len(whole.lines[kept.number])
    yield whole.splice("crlf", end, end, b"\r")
    yield whole.splice("no lf", end, end + 1, b"")


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
            return variant.splice("cut", at, size, b"")
        case "flip":
            return variant.splice("flip", at, at + 1, bytes([variant.data[at] ^ 1 << rng.randrange(8)]))
        case "nul":
            return variant.splice("nul", at, stop, bytes(stop - at))
        case "hole":
            return variant.splice("hole", at, stop, b"")
        case "glue" if b"\n" in variant.data[at:]:
            return _torn_and_glued(variant, at)
        case "garbage":
            return variant.splice("garbage", at, at, rng.choice(_GARBAGE))
        case "copy" | "head" as kind:
            return _one_more(variant, rng, whole=kind == "copy")
        case _:
            return _crlf(variant)


def _one_more(variant: Variant, rng: random.Random, *, whole: bool) -> Variant:
    number = rng.randrange(len(variant.lines))
    line = variant.lines[number]
    at = rng.choice(variant.kept).offset if variant.kept else len(variant.data)
    if whole:
        return variant.splice("duplicate", at, at, line + b"\n", (Kept(0, number),))
    return variant.splice("torn head", at, at, line[: rng.randrange(1, len(line))])


def _crlf(variant: Variant) -> Variant:
    at = len(variant.data)
    while (at := variant.data.rfind(b"\n", 0, at)) >= 0:
        variant = variant.splice("crlf", at, at, b"\r")
    return variant


# --- what must be read of them --------------------------------------------------------------


@dataclass
class Tally:
    """What was found in some variants."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """The first of each kind of problem."""

    def note(self, problem: str, variant: Variant) -> None:
        self.counts[problem] += 1
        self.examples.setdefault(problem, f"{'; '.join(variant.damages)} of {variant.data!r}")

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.examples = other.examples | self.examples


class Site(NamedTuple):
    """A place in a file where an entry may be found."""

    offset: int
    end: int
    entry: Entry


def check(variant: Variant, entries: list[Entry], damage: list[Damage], tally: Tally) -> None:
    """Compare what was read of a variant with what is there."""
    found = [_kept_site(variant, kept) for kept in variant.kept]
    if [site.entry for site in found] != entries:
        found = _check_entries(variant, entries, damage, tally)
    _check_damage(variant, found, damage, tally)


def _kept_site(variant: Variant, kept: Kept) -> Site:
    end = kept.offset + len(variant.lines[kept.number])
    return Site(kept.offset, end, variant.entries[kept.number])


def _check_entries(variant: Variant, entries: list[Entry], damage: list[Damage], tally: Tally) -> list[Site]:
    """The places of the entries."""
    kept = {kept.offset: _kept_site(variant, kept) for kept in variant.kept}
    touched = {site.offset: site for site in _touched_sites(variant)}
    merged = {site.offset: site for site in _merged_sites(variant)}
    sites = merged | touched | kept
    # What lies in a damaged stretch was not returned, whatever equals it elsewhere.
    left = [sites[at] for at in sorted(sites) if not _lies_in(sites[at], damage)]
    found: list[Site] = []
    for entry in entries:
        place = next((place for place, site in enumerate(left) if site.entry == entry), None)
        if place is None:
            tally.note("invented", variant)
            continue
        site = left[place]
        left = left[place + 1 :]
        found.append(site)
        if site.offset in merged and site.offset not in touched | kept:
            tally.note("merged", variant)
    for offset in kept.keys() - {site.offset for site in found}:
        excused = _is_excused(variant, kept[offset], found)
        tally.note("excused" if excused else "missing", variant)
    return found


def _lies_in(site: Site, damage: list[Damage]) -> bool:
    return any(at < site.end and site.offset < at + length for at, length in damage)


def _touched_sites(variant: Variant) -> Iterator[Site]:
    """What touched entries now say."""
    offset = 0
    for line in variant.data.split(b"\n"):
        for start in {0, len(line) - len(line.removeprefix(_BOM))}:
            if (entry := _object(line[start:])) is not None:
                yield Site(offset + start, offset + len(line), entry)
        offset += len(line) + 1
    for offset in variant.began:
        yield from _object_from(variant.data, offset)


def _merged_sites(variant: Variant) -> Iterator[Site]:
    """What may be taken for an entry although it never was one."""
    whole = [_kept_site(variant, kept) for kept in variant.kept]
    start = len(variant.data)
    while (start := variant.data.rfind(b"{", 0, start)) >= 0:
        head = variant.data[variant.data.rfind(b"\n", 0, start) + 1 : start]
        for site in _object_from(variant.data, start):
            tail = variant.data[site.end :].split(b"\n", 1)[0].strip(b"\0 \t\r")[:1]
            stands_out = not head or (not _MARKS.isdisjoint(site.entry) and _is_torn(head))
            is_glued = tail in [b"", b"{"] and stands_out
            is_nested = any(kept.offset <= start < kept.end for kept in whole)
            if (site.end in variant.ended or is_glued) and not is_nested:
                yield site


def _is_torn(head: bytes) -> bool:
    """Whether an object is the last thing to come behind this beginning of a line."""
    text = head.decode("utf-8", "surrogateescape")
    try:
        json.loads(text + '{"')
    except json.JSONDecodeError as error:
        return error.pos >= len(text) and not error.msg.startswith("Unterminated")
    return False


def _object(line: bytes) -> Entry | None:
    try:
        value = json.loads(line.decode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _object_from(data: bytes, start: int) -> Iterator[Site]:
    text = data[start:].split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    with contextlib.suppress(ValueError):  # not JSON, or not UTF-8
        value, end = json.JSONDecoder().raw_decode(text)
        if isinstance(value, dict):
            yield Site(start, start + len(text[:end].encode()), value)


_MARKS = {"uuid", "sessionId", "timestamp", "leafUuid"}


def _is_excused(variant: Variant, site: Site, found: list[Site]) -> bool:
    data = variant.data
    head = data[data.rfind(b"\n", 0, site.offset) + 1 : site.offset].strip(b" \t\r")
    tail, _, after = data[site.end :].partition(b"\n")
    tail = tail.strip(b" \t\r")
    if not head and not tail:
        return False
    if _MARKS.isdisjoint(site.entry):
        return True
    is_like_a_value = head[-1:] in [b":", b",", b"["] or tail[:1] in [b",", b":", b'"', b"]", b"}"]
    is_in_between = bool(head) and bool(tail.strip(b"\0")) and tail[:1] != b"{"
    if is_like_a_value and is_in_between:
        return True
    if not is_like_a_value and not is_in_between:
        return False
    return not _is_linked(site, found, _object(after.split(b"\n", 1)[0]))


def _is_linked(site: Site, found: list[Site], following: Entry | None) -> bool:
    uuid, parent = site.entry.get("uuid"), site.entry.get("parentUuid")
    before = [other.entry for other in found if other.offset < site.offset]
    if parent is not None and before and before[-1].get("uuid") == parent:
        return True
    return uuid is not None and following is not None and following.get("parentUuid") == uuid


def _check_damage(variant: Variant, found: list[Site], damage: list[Damage], tally: Tally) -> None:
    spans = [(site.offset, site.end) for site in found]
    spans += [(stretch.offset, stretch.offset + stretch.length) for stretch in damage]
    rest = b""
    last = len(_BOM) if variant.data.startswith(_BOM) else 0
    for start, end in sorted(spans):
        if start < last or end <= start or end > len(variant.data):
            tally.note("damage misplaced", variant)
            return
        rest += variant.data[last:start]
        last = end
    rest += variant.data[last:]
    if rest.strip(b" \t\r\n"):
        tally.note("damage unreported", variant)


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
        contents = journal.read(path)
        streamed_damage: list[Damage] = []
        streamed = list(journal.stream(path, on_damage=streamed_damage.append))
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
    for entry in journal.read(store.path(key)).entries:
        uuid = entry.get("uuid")
        if isinstance(uuid, str) and uuid:
            if uuid in seen:
                continue
            seen.add(uuid)
        expected.append(entry)
    tally.counts["loaded through the store"] += 1
    if await store.load(key) != expected:
        tally.note("store differs", variant)


_HARMLESS = {"variants", "entries", "excused", "merged", "loaded through the store"}


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
    bad = sorted(set(counts) - _HARMLESS)
    got = f"{counts['variants']:,} variants, {counts['entries']:,} entries returned, "
    got += ", ".join(f"{counts[kind]:,} {kind}" for kind in bad) or "0 exceptions, 0 missing, 0 invented"
    got += f"; {counts['excused']:,} excused as ambiguous, {counts['merged']:,} merged"
    for kind in bad:
        got += f"\n                {kind}, e.g.: {total.examples[kind]}"
    return Outcome(got, not bad and counts["variants"] == share * _PROCESSES)


FIGURES = [
    Figure(
        "damaged files: cuts, bit flips, NULs, holes, glued lines, garbage, duplicates, CRLF, BOM",
        "1,000,000; 0 exceptions; every untouched entry returned, nothing invented or promoted",
        _measure,
    )
]
