"""Which texts rely on a line of a collection's memory, and what they are told when it changes.

A text relies on a line when it holds a value that the line had and has otherwise now (``uses``), uses a term
that the line defines, or makes a claim that it states. Each sentence of a line is a claim of its own.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from smartwriter.errors import Invalid
from smartwriter.meaning.conflicts import defined
from smartwriter.meaning.content import ALSO_WORDS, adjoin, content
from smartwriter.meaning.facts import (
    ALIKE,
    QUANTITIES,
    Change,
    changes,
    is_reordered,
    likeness,
    read,
    sentences,
)
from smartwriter.meaning.numbers import Kind, Word
from smartwriter.meaning.stems import stem
from smartwriter.meaning.uses import Text, Use
from smartwriter.memory.proposal import ProposalState
from smartwriter.memory.snapshot import Memory
from smartwriter.open_draft import OpenDraft
from smartwriter.series.changes import MemoryChange, memory_changes
from smartwriter.tasks.values import Task
from smartwriter.text.sameness import normal, same_words
from smartwriter.text.wording import shortened
from smartwriter.workspace import Workspace

_MOST_CHANGES = 12
_MOST_CHARACTERS = 160  # of a sentence that is told
_LONGEST_LINE = 2_000
_MOST_SENTENCES = 400
"""That are compared one by one; where more have changed, a memory is another one."""
_FIELD = re.compile(r"(gist|claims|terms):\s*")
"""Of an entry in an index: what it says of an article."""
_SHORTEST_CLAIM = 6  # characters; of what is shorter, nearly every text has some
_NOT = (" not ", " never ", " instead of ", " rather than ", "不", "而非")
_QUOTED = re.compile(r"“(.+?)”|‘(.+?)’|「(.+?)」|\"(.+?)\"|(?<!\w)'(.+?)'(?!\w)")
_GLOSSARY = re.compile(r"[:：*“「《\"]|\s=\s")
"""What marks the term of a line that defines one; where there is none, a verb does."""


@dataclass(frozen=True)
class Relied:
    """That a text relies on something that changed in the memory."""

    file: str
    old: str
    """What the memory said: a sentence of it; empty: nothing."""
    new: str
    """What it says now; empty: nothing any more."""
    used: str
    """What of it the text has: the old value, a term, or a claim."""
    value: str = ""
    """What stands now in the place of the old value; empty where that is no single value."""
    sentence: str = ""
    """Of the text, with the old value; empty where a term or claim is used."""
    paragraph: int = 0
    """Where that stands in the text, from 1."""

    def __str__(self) -> str:
        if self.sentence:
            change = (
                f"said: {self.old} Now it says: {self.new}" if self.new else f"no longer says: {self.old}"
            )
            where = f" (paragraph {self.paragraph})" if self.paragraph else ""
            said = shortened(self.sentence, _MOST_CHARACTERS)
            return f"{self.file} {change} This draft says{where}: {said}"
        what = f"now says: {self.new}" if self.new else f"no longer says: {self.old}"
        return f"{self.file} {what} (this draft uses {self.used!r})"


def relied_on(text: str, line: str) -> str:
    """What of a memory line a text uses: a term that it defines, a claim that it states, or nothing."""
    return _term_in(text, line) or _claim_in(text, line)


def _term_in(text: str, line: str) -> str:
    said = same_words(text)
    field, claims = _claims(line)
    if field == "gist":  # tells of an article, and defines nothing
        return ""
    if field == "terms":
        terms = {same_words(claim) for claim in claims} - {""}
    else:
        terms = {term for one in claims for term in defined(one) if _is_term(term, one, text)}
    found = [term for term in terms if re.search(_whole(term), said)]
    return max(sorted(found), key=len, default="")


def _claim_in(text: str, line: str) -> str:
    said = same_words(text)
    field, claims = _claims(line)
    for claim in claims if field != "terms" else []:
        wanted = same_words(claim).strip(" .。!！?？")
        if len(wanted) >= _SHORTEST_CLAIM and wanted in said:
            return claim
    return ""


def _claims(line: str) -> tuple[str, list[str]]:
    """The field of an index that a line is, if any, and what it states."""
    field = _FIELD.match(line)
    if field is None:
        return "", [line]
    return field[1], [claim.strip() for claim in re.split(r"[;；]", line[field.end() :])]


def relied(text: str, changed: Sequence[MemoryChange]) -> list[Relied]:
    """What in a text relies on something that has changed: of each change the strongest sign."""
    read_text = Text(text)
    return [one for change in changed for one in _relied(text, read_text, change)]


def _relied(text: str, read_text: Text, change: MemoryChange) -> Iterator[Relied]:
    judged: set[str] = set()  # lines of which a value decides: a term of theirs says no more
    for old, new in _versions(change):
        if found := _value_used(read_text, change.file, old, new):
            judged |= {old.line, new.line} if new else {old.line}
            yield found
        elif new and (_is_of_values(old, new) or _has_new_value(read_text, old, new)):
            judged |= {old.line, new.line}
    for line in change.removed:
        if line not in judged and (used := relied_on(text, line)):
            yield Relied(change.file, line, "", used)
    for line in change.added:
        if line not in judged and (used := _term_in(text, line)):
            yield Relied(change.file, "", line, used)


@dataclass(frozen=True)
class _Sentence:
    text: str
    words: tuple[Word, ...]
    line: str
    """That it stands in."""
    context: frozenset[str]
    """What that is about."""


def _versions(change: MemoryChange) -> Iterator[tuple[_Sentence, _Sentence | None]]:
    """The sentences that are gone, each with what became of it."""
    was = [one for line in change.removed[:_MOST_SENTENCES] for one in _sentences(line)]
    is_ = [one for line in change.added[:_MOST_SENTENCES] for one in _sentences(line)]
    kept, stood = {one.text for one in is_}, {one.text for one in was}
    before = [one for one in was if one.text not in kept][:_MOST_SENTENCES]
    after = [one for one in is_ if one.text not in stood][:_MOST_SENTENCES]
    for old in before:
        alike = max(after, key=lambda new: likeness(old.words, new.words), default=None)
        alone = len(before) == len(after) == 1
        is_version = alike is not None and (alone or likeness(old.words, alike.words) >= ALIKE)
        yield old, alike if is_version else None


def _sentences(line: str) -> list[_Sentence]:
    field = _FIELD.match(line)
    said = line[field.end() :] if field else line
    if len(said) > _LONGEST_LINE:  # no fact, but a text: what it shares with a draft says nothing
        return []
    about = content(read(said))
    return [_Sentence(said[a:b].strip(), tuple(read(said[a:b])), line, about) for a, b in sentences(said)]


def _value_used(text: Text, file: str, old: _Sentence, new: _Sentence | None) -> Relied | None:
    for phrase in _quoted_before(old, new) if new else ():
        if use := text.phrase_of(phrase):
            return _told_of(file, old, new, use, None)
    if new and is_reordered(old.words, new.words) and not _is_of_spelling(old):
        use = _order_used(text, old, new)
        return _told_of(file, old, new, use, None) if use else None
    found = changes(old.words, new.words) if new else []
    for change in found:
        if use := text.use_of(change, old.context):
            return _told_of(file, old, new, use, change)
    rewritten = new is None or not any(_is_value(change) for change in found)
    if rewritten and (use := text.statement_of(old.words)):
        return _told_of(file, old, new, use, None)
    return None


def _order_used(text: Text, old: _Sentence, new: _Sentence) -> Use | None:
    """Where a text has words in the order that a line had: who did it to whom, what comes first."""
    moved = [change.at for change in changes(old.words, new.words)]
    if use := text.sequence_of(old.words[moved[0] : moved[-1] + 1]):
        return use
    for at in moved:
        run = old.words[max(0, at - 2) : at + 1]  # a character with the two before it
        adjoining = len(run) == 3 and all(adjoin(*pair) for pair in pairwise(run))
        if adjoining and (use := text.sequence_of(run)):
            return use
    return text.statement_of(old.words, in_one=True)


def _is_value(change: Change) -> bool:
    return any(word.kind in (*QUANTITIES, Kind.name) for word in change.old)


def _is_of_values(old: _Sentence, new: _Sentence) -> bool:
    """Whether nothing but numbers, amounts, times or names differ."""
    found = changes(old.words, new.words)
    return bool(found) and all(map(_is_value, found)) and likeness(old.words, new.words) >= 0.5


def _is_of_spelling(old: _Sentence) -> bool:
    """Whether what changed places are words that are written, or not: this, not that."""
    return any(mark in old.line for mark in _NOT)


def _has_new_value(text: Text, old: _Sentence, new: _Sentence) -> bool:
    """Whether a text says it as the memory does now."""
    if any(map(text.phrase_of, _quoted_before(new, old))):
        return True
    return any(text.use_of(change, new.context) for change in changes(new.words, old.words))


def _quoted(sentence: _Sentence) -> list[str]:
    """What a sentence has in quotes: words that are to be written so."""
    return ["".join(match) for match in _QUOTED.findall(sentence.text)]


def _quoted_before(old: _Sentence, new: _Sentence) -> list[str]:
    """What was to be written so, and is not any more: of this, not that, the first."""
    before, after = _quoted(old), _quoted(new)
    if before and after and before[0] != after[0]:
        return [before[0]] if before[0] in after else [one for one in before if one not in after]
    return [one for one in before if one not in after]


def _told_of(file: str, old: _Sentence, new: _Sentence | None, use: Use, change: Change | None) -> Relied:
    value = " ".join(word.text for word in change.new) if change else ""
    return Relied(file, old.text, new.text if new else "", use.value, value, use.sentence, use.paragraph)


def reliance(draft: OpenDraft, before: Mapping[str, str], memory: Memory) -> list[str]:
    """What the model is told: the changes that its own text relies on, and those that came from this task
    and that other open tasks rely on. Blocking.

    :param before: the sha256 of each memory file that its last turn had.
    """
    workspace, task = draft.workspace, draft.task
    article = task.finished.article if task.finished else ""
    changed = memory_changes(workspace.versions, before, memory, article)
    lines = list(_told(workspace, task, draft.text.read(), changed))
    if not lines:
        return []
    more = [f"… and {len(lines) - _MOST_CHANGES} more."] if len(lines) > _MOST_CHANGES else []
    said = "\n".join([*lines[:_MOST_CHANGES], *more])
    return [f"[The memory of the series has changed since your last turn, in what texts rely on:\n\n{said}]"]


def _told(workspace: Workspace, task: Task, own: str, changed: list[MemoryChange]) -> Iterator[str]:
    mine = relied(own, changed)
    yield from map(str, mine)
    told = {line for one in mine for line in (one.old, one.new)}
    origins = _origins(workspace, task)
    for change in changed:
        for line in (*change.removed, *change.added):
            if origins.get(same_words(line)) != task.id or any(said and said in line for said in told):
                continue
            gone = line in change.removed
            one = MemoryChange(change.file, (line,) if gone else (), () if gone else (line,))
            users = [title for title, text in _other_texts(workspace, task).items() if relied(text, [one])]
            if users:
                what = "no longer says" if gone else "now says"
                by = f" (from this task; {', '.join(map(repr, users))} relies on it, too)"
                yield f"{change.file} {what}: {line}{by}"


def _origins(workspace: Workspace, task: Task) -> dict[str, str]:
    """From which task each line came that was ever accepted."""
    proposals = workspace.task_series(task).proposals.all()
    return {
        same_words(proposal.accepted_text): proposal.task
        for proposal in proposals
        if proposal.state in (ProposalState.accepted, ProposalState.forgotten) and proposal.task
    }


def _other_texts(workspace: Workspace, task: Task) -> dict[str, str]:
    """The texts of the collection's other open tasks, by their titles."""
    texts = {}
    for other in workspace.tasks.all():
        finished = other.finished
        closed = finished is not None and finished.closed
        if other.id != task.id and not closed and normal(other.collection) == normal(task.collection):
            with contextlib.suppress(Invalid):  # a file that cannot be read is that task's affair
                texts[other.title] = workspace.text(other, other.current).read()
    return texts


def _whole(term: str) -> str:
    """A pattern for a term that is no part of a longer word; scripts without spaces have no such."""
    left = r"(?<![^\W_])" if term[0].isascii() else ""
    right = r"(?![^\W_])" if term[-1].isascii() else ""
    return f"{left}{re.escape(term)}{right}"


def _is_term(term: str, line: str, text: str) -> bool:
    """Whether what a line seems to define is a term in this text.

    A term of one word may be met in another sense: what it means has to be spoken of, too. A name is one only
    where it is written as one.
    """
    if " " in term or not term.isascii():
        return True
    written = re.search(rf"\b{re.escape(term)}\b", line, re.IGNORECASE)
    if not _GLOSSARY.search(line) and written and written[0][0].isupper():
        return term not in ALSO_WORDS and re.search(rf"\b{re.escape(written[0])}\b", text) is not None
    return bool(content(read(line)) - {stem(term)} & content(read(text)))
