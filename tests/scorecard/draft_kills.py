"""``kill -9`` of a process that works on the drafts of a task, at a random moment, thousands of times.

Each cycle forks a process that goes on with a task where the killed one before it left off. It saves
by hand, reads, writes, rewrites over a hand edit that it does not know of, edits, puts back, picks,
forks, rewinds, adopts, drops and takes up, at random. What a model does in a turn goes through the
tools that a model is given. Before each operation it reports what is to come of it, and after it what
did. After the kill, and after each operation that was acknowledged before it:

- every revision is there, in its place, under its number, and old bytes are the start of new ones;
- a hand edit is in the file, or a revision of its own before what replaced it;
- the text is that of the last revision, or the last hand edit; a fork is there whole or not at all.

Then the next operation must work on each draft, and nothing may lie in the folder of the texts but
theirs. What lies there is read by plain means (``oracle``), and the product must read the same. Half of
the kills are aimed at the moment when a text is recorded, and not yet in its file.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from figure import Figure, Outcome, Run, file_system
from oracle import Disk
from writers import Report, entries, forget_folders, in_memory, in_parallel, start

from smartwriter.agent.tools import DraftTools
from smartwriter.errors import Invalid, TextConflict
from smartwriter.open_draft import OpenDraft
from smartwriter.sessions.transcript import cut
from smartwriter.tasks.revisions import current_number, sha256_of, text_of
from smartwriter.tasks.values import MAIN, Revision, Task, Turn, TurnState
from smartwriter.text.words import paragraphs
from smartwriter.trials.edits import pick, put_back
from smartwriter.trials.forking import fork, rewind
from smartwriter.trials.version import version
from smartwriter.turns.keeper import Keeper
from smartwriter.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk.types import SessionKey

_KILLS = 2_000
_WORKERS = 2
_KILLS_PER_TASK = 12
_MOST_DRAFTS = 7
_LATEST_KILL_S = 0.03
_LONGEST_WAIT_S = 0.3  # for the moment between a revision and its file

_TITLE = "渡口"
_SENTENCES = [
    "雾很大，对岸看不见。",
    "The ferry left at dawn.",
    "Nobody waved.",
    "- one\n- two",
    "\ud83d half",
]


def _hash(text: str) -> str:
    """Short enough that the pipe holds all that is reported in a life."""
    return sha256_of(text)[:16]


@dataclass(frozen=True)
class _Kept:
    """A revision, as far as it is compared."""

    text: str
    """Its hash, or empty for any."""
    aside: bool = False


@dataclass
class _Line:
    """What is known of a draft."""

    revisions: list[_Kept] = field(default_factory=list)
    shown: str = ""
    """The hash of its text, hand edits included."""
    pending: str | None = None
    """The hash of a hand edit that no operation had to record yet."""
    dropped: bool = False


@dataclass
class _State:
    lines: dict[str, _Line]
    current: str
    data: dict[str, bytes] = field(default_factory=dict)
    """Of the journals, after the last kill."""


# --- the process that is killed -----------------------------------------------------------------


class _Worker:
    """Works on a task until it dies."""

    def __init__(self, folder: Path, random: Random, report: Report, portal: BlockingPortal) -> None:
        """:param portal: runs the tools, in a thread of its own."""
        self.workspace = Workspace(folder)
        self.random = random
        self._report = report
        self._portal = portal

    @classmethod
    def work(cls, folder: Path, seed: float, report: Report) -> None:
        with start_blocking_portal() as portal:
            cls(folder, Random(seed), report, portal).run()

    def run(self) -> None:
        steps = [self.by_hand, self.look, self.write, self.overwrite, self.edit, self.put_back, self.pick]
        steps += [self.turn, self.fork, self.rewind, self.adopt, self.drop, self.take_up]
        weights = [6, 1, 8, 3, 3, 4, 3, 2, 2, 1, 1, 1, 2]
        while True:
            self.random.choices(steps, weights)[0]()

    @contextlib.contextmanager
    def reported(self, kind: str, *names: str, **said: Any) -> Iterator[None]:
        """:param names: of the drafts that it may change, the one that gets a text first."""
        self.tell({"begin": kind, "names": names, **said})
        yield
        self.tell(
            {"end": kind, **_described(self.workspace.root, [*names, *filter(None, [said.get("made")])])}
        )

    def tell(self, message: dict[str, Any]) -> None:
        self._report(json.dumps(message).encode() + b"\n")

    # Choices ---------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        return self.workspace.tasks.all()[0]

    def live(self) -> str:
        return self.random.choice(self.task.live_drafts)

    def revisions(self, name: str) -> list[Revision]:
        return self.workspace.text(self.task, name).revisions()

    # Steps -----------------------------------------------------------------------------------

    def by_hand(self, name: str = "", words: str = "") -> None:
        name, words = name or self.live(), words or _words(self.random)
        with self.reported("by hand", name, hand=_hash(words)):
            _save_by_hand(self.workspace, self.task, name, words)

    def look(self) -> None:
        self.read(self.live())

    def read(self, name: str) -> DraftTools:
        """As a turn begins, for a model that knows nothing: the tools that are its own in this turn."""
        tools = self._portal.call(self._tools, name)
        with self.reported("read", name, after=None):
            said = self.call(tools, "read_draft")
        if said != (self.workspace.text(self.task, name).read() or "(The draft is empty.)"):
            raise RuntimeError("read_draft returned another text")
        return tools

    async def _tools(self, name: str) -> DraftTools:
        keeper = Keeper(self.workspace.spool, self.task.id, name, self._fail)
        tools = DraftTools(self.workspace.text(self.task, name), lambda _: None, keeper)
        tools.turn = OpenDraft(self.workspace, self.task, name).next_turn()
        return tools

    def _fail(self, why: str) -> None:
        raise RuntimeError(f"put aside: {why}")

    def call(self, tools: DraftTools, name: str, **arguments: Any) -> str:
        (run,) = (tool.run for tool in tools.all() if tool.name == name)
        return self._portal.call(run, arguments)

    def write(self) -> None:
        name, words = self.live(), _words(self.random)
        tools = self.read(name)
        with self.reported("write", name, after=_hash(words)):
            self.call(tools, "write_draft", text=words)

    def overwrite(self) -> None:
        """With a text of a model that does not know what the writer did."""
        name, words = self.live(), _words(self.random)
        tools = self.read(name)
        self.by_hand(name)
        with (
            self.reported("overwrite", name, after=_hash(words), aside=True),
            contextlib.suppress(TextConflict),
        ):
            self.call(tools, "write_draft", text=words)
            raise RuntimeError("the writer's text was replaced")

    def edit(self) -> None:
        """Of a passage that the writer left alone, whatever else they did meanwhile."""
        name, new = self.live(), f"{self.random.random()}"
        tools = self.read(name)
        shown = self.workspace.text(self.task, name).read()
        old = shown.partition("\n")[0]
        if not old or shown.count(old) != 1:
            return
        if self.random.random() < 0.5:
            shown += f"\n{self.random.random()}\n"
            self.by_hand(name, shown)
        with self.reported("edit", name, after=_hash(shown.replace(old, new))):
            self.call(tools, "edit_draft", edits=[{"old_text": old, "new_text": new}])

    def put_back(self) -> None:
        name = self.live()
        if not (revisions := self.revisions(name)):
            return
        chosen = self.random.choice(revisions)
        with self.reported("put back", name, after=_hash(chosen.text)):
            put_back(version(self.workspace, f"{self.task.address(name)}:{chosen.number}"))

    def pick(self) -> None:
        name, other = self.live(), self.live()
        if name == other:
            return
        there = paragraphs(self.workspace.text(self.task, other).read())
        numbers = [number for number in range(1, len(there) + 1) if self.random.random() < 0.5]
        with self.reported("pick", name, other, after=""), contextlib.suppress(Invalid):
            task = self.task
            pick(version(self.workspace, task.address(other)), OpenDraft(self.workspace, task, name), numbers)

    def turn(self) -> None:
        name = self.live()
        with self.reported("turn", name, after=None):
            _take_turn(self.workspace, self.task, name, self.random)

    def fork(self) -> None:
        self._fork("fork", None)

    def rewind(self) -> None:
        self._fork("rewind", 0)

    def _fork(self, kind: str, at: int | None) -> None:
        name, task = self.live(), self.task
        if len(task.drafts) >= _MOST_DRAFTS:
            return
        draft, turns = task.drafts[name], self.workspace.tasks.turns(task, name)
        if at is None:
            text = self.workspace.text(task, name).read()
        else:
            at = next((turn.number for turn in turns if not turn.inherited), None)
            if at is None:
                return
            text = text_of(one for one in self.revisions(name) if one.turn <= at)
            if turns[-1].number == at:
                text = self.workspace.text(task, name).read()
        made = f"draft-{len(task.drafts) + 1}"
        adopted = made if kind == "rewind" else None
        shared = len(turns) if at is None else at
        with self.reported(
            kind, name, made=made, forked=_hash(text), turns=shared, adopted=adopted, keeps=True
        ):
            if at is None:
                anyio.run(fork, OpenDraft(self.workspace, task, draft.name))
            else:
                anyio.run(rewind, OpenDraft(self.workspace, task, draft.name), at)

    def adopt(self) -> None:
        name = self.live()
        with self.reported("adopt", name, adopted=name, keeps=True):
            self.workspace.tasks.adopt(self.task.id, name)

    def drop(self) -> None:
        name, task = self.live(), self.task
        if name == task.current:
            return
        with (
            self.reported("drop", name, after=None, dropped=True),
            OpenDraft(self.workspace, task, name).lease(),
        ):
            OpenDraft(self.workspace, task, name).take_hand_edit()
            self.workspace.tasks.drop(task.id, name)
            self.workspace.text(task, name).put_away()

    def take_up(self) -> None:
        task = self.task
        dropped = [name for name, draft in task.drafts.items() if draft.dropped]
        if not dropped:
            return
        name = self.random.choice(dropped)
        with self.reported("take up", name, dropped=False, keeps=True):
            self.workspace.tasks.take_up(task.id, name)
            OpenDraft(self.workspace, task, name).take_hand_edit(restore=True)


def _words(random: Random) -> str:
    """A text that there never was before."""
    chosen = [random.choice(_SENTENCES) for _ in range(random.randint(0, 4))]
    return "\n\n".join([f"# {_TITLE} {random.random()}", *chosen]) + "\n"


def _save_by_hand(workspace: Workspace, task: Task, name: str, words: str) -> None:
    """As a careful editor does: how well editors save is not measured here."""
    path = workspace.text(task, name).path
    saved = workspace.root.parent / f"{workspace.root.name}-editor"
    saved.write_bytes(words.encode("utf-8", "surrogatepass"))
    path.parent.mkdir(parents=True, exist_ok=True)
    saved.replace(path)


def _take_turn(workspace: Workspace, task: Task, name: str, random: Random) -> None:
    """As the engine and the CLI leave one that has ended."""
    draft = task.drafts[name]
    transcript = OpenDraft(workspace, task, draft.name).transcript
    parent = cut(transcript.read().entries, ()) if transcript.has_entries() else None
    said: list[Any] = entries(random, [20, 200], parent)
    for entry in said:
        entry["sessionId"] = draft.session_id
    key: SessionKey = {"project_key": task.project_key, "session_id": draft.session_id}
    OpenDraft(workspace, task, name).take_hand_edit()
    workspace.store.append_now(key, said)
    turn = Turn(
        number=OpenDraft(workspace, task, name).next_turn(),
        uuid=said[0]["uuid"],
        session_id=draft.session_id,
        prompt="go on",
        state=TurnState.finished,
        revision=current_number(workspace.text(task, name).revisions()),
    )
    workspace.tasks.record(task, name, [turn])


def _described(root: Path, names: Iterable[str] = ()) -> dict[str, Any]:
    """What lies there of these drafts, or of all, read by plain means."""
    disk = Disk(root)
    (task,) = disk.tasks()
    return {
        "current": task["current"],
        "dropped": {name: bool(draft["dropped"]) for name, draft in task["drafts"].items()},
        "lines": {
            name: {
                "revisions": [
                    [one["number"], _hash(one["text"]), one.get("aside", False)]
                    for one in disk.revisions(task, name)
                ],
                "shown": _hash(disk.text(task, name)),
                "turns": len(disk.turns(task, name)),
            }
            for name in names or task["drafts"]
            if name in task["drafts"]
        },
    }


def _check_reading(workspace: Workspace, task: Task) -> None:
    """The product must find the same as plain means do."""
    disk = Disk(workspace.root)
    (plain,) = disk.tasks()
    if task.current != plain["current"] or set(task.drafts) != set(plain["drafts"]):
        raise _Wrong("another task is read than the one that stands there")
    for name in task.drafts:
        text = workspace.text(task, name)
        revisions = [(one.number, one.text, one.aside) for one in text.revisions()]
        if revisions != [
            (one["number"], one["text"], one.get("aside", False)) for one in disk.revisions(plain, name)
        ]:
            raise _Wrong("other revisions are read than those that stand there")
        if text.read() != disk.text(plain, name):
            raise _Wrong("another text is read than the one that stands there")
        if [turn.uuid for turn in workspace.tasks.turns(task, name)] != [
            turn["uuid"] for turn in disk.turns(plain, name)
        ]:
            raise _Wrong("other turns are read than those that stand there")


# --- the one that watches -----------------------------------------------------------------------


class _Wrong(Exception):
    """What was promised and is not so."""


def _measure(run: Run) -> Outcome:
    kills = run.scaled(_KILLS)
    share = -(-kills // _WORKERS)
    with in_memory(run.folder) as folder:
        disk = file_system(folder)
        jobs = [
            partial(_cycles, folder / str(number), Random(f"{run.seed}-{number}"), share)
            for number in range(_WORKERS)
        ]
        totals = sum(in_parallel(jobs), Counter[str]())
    done, under_way, between, operations, temporary = (
        totals.pop(name, 0) for name in ("kills", "under way", "between", "operations", "temporary")
    )
    wrong = "; ".join(f"{count} times {what}" for what, count in totals.items())
    return Outcome(
        f"{done:,} kills, {under_way:,} in an operation, {between:,} of these between a revision "
        f"and its file; {operations:,} operations acknowledged, {temporary} temporary files left; "
        f"{wrong or '0 faults'}",
        not wrong and done >= kills and between >= kills / 100,
        disk,
    )


def _cycles(folder: Path, random: Random, count: int) -> Counter[str]:
    totals = Counter[str]()
    while totals["kills"] < count:
        shutil.rmtree(folder, ignore_errors=True)
        forget_folders()
        state = _new_task(folder, random)
        for _ in range(min(_KILLS_PER_TASK, count - totals["kills"])):
            totals["kills"] += 1
            try:
                totals.update(_cycle(folder, state, random))
            except (_Wrong, RuntimeError) as wrong:
                totals[str(wrong)] += 1
                break
    shutil.rmtree(folder)
    return totals


def _new_task(folder: Path, random: Random) -> _State:
    workspace = Workspace.create(folder)
    task = workspace.new_task(_TITLE)
    workspace.text(task, MAIN).write(f"# {_TITLE}\n\nThe ferry left.\n", author="model", turn=1)
    _take_turn(workspace, task, MAIN, random)
    return _as_found(workspace, task)


def _cycle(folder: Path, state: _State, random: Random) -> list[str]:
    """One kill: what there is to count of it. :raises _Wrong:"""
    child = start(partial(_Worker.work, folder, random.random()))
    if random.random() < 0.5:
        time.sleep(random.uniform(0, _LATEST_KILL_S))
    else:
        time.sleep(random.uniform(0, _LATEST_KILL_S / 3))
        _wait_for_a_next_text(folder)
    *lines, _ = child.kill().split(b"\n")  # the last one is empty, or torn
    begun: dict[str, Any] | None = None
    counted = []
    for message in map(json.loads, lines):
        if begun is None:
            begun = message
            continue
        _check(state, begun, message, done=True)
        _take_over(state, begun, message)
        begun = None
        counted.append("operations")
    return [*counted, *_after_kill(folder, state, begun, random)]


def _wait_for_a_next_text(folder: Path) -> None:
    drafts = folder / "collections" / "unfiled" / "drafts" / _TITLE
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            if any(path.suffix == ".next" for path in drafts.iterdir()):
                return


def _after_kill(folder: Path, state: _State, begun: dict[str, Any] | None, random: Random) -> list[str]:
    workspace = Workspace(folder)
    (task,) = workspace.tasks.all()
    counted = ["under way"] if begun else []
    counted += ["temporary" for _ in folder.rglob(".*.tmp")]
    behind = [name for name in task.drafts if _is_behind(workspace, task, name)]
    counted += ["between" for _ in behind]
    idle: dict[str, Any] = {"begin": "nothing", "names": [], "keeps": True}
    found = _described(folder)
    _check(state, begun or idle, found, done=False)
    _check_reading(workspace, task)
    _check_forks(folder)
    for path, old in state.data.items():
        if not (folder / path).read_bytes().startswith(old):
            raise _Wrong(f"old bytes of {path} changed")
    _next_operations(workspace, task, begun or idle, random)
    (task,) = workspace.tasks.all()
    after = _as_found(workspace, task)
    state.lines, state.current, state.data = after.lines, after.current, after.data
    return counted


def _is_behind(workspace: Workspace, task: Task, name: str) -> bool:
    text = workspace.text(task, name)
    return text.path.with_name(f".{name}.md.next").exists() and (
        not text.path.exists() or text.path.read_bytes() != text.read().encode("utf-8", "surrogatepass")
    )


def _check(state: _State, begun: dict[str, Any], found: dict[str, Any], *, done: bool) -> None:
    """Hold what was found to what an operation may do, or to what it was to do."""
    kind = begun["begin"]
    made, names = begun.get("made"), begun["names"]
    adopted = begun.get("adopted")
    currents = {adopted} if done and adopted else {state.current, adopted or state.current}
    if found["current"] not in currents:
        raise _Wrong(f"{kind}: the current draft is another one")
    drafts = {*state.lines, made} if made else {*state.lines}
    if not set(state.lines) <= set(found["dropped"]) <= drafts or (done and set(found["dropped"]) != drafts):
        raise _Wrong(f"{kind}: drafts are lost or invented")
    for name, line in state.lines.items():
        dropped = begun.get("dropped", line.dropped) if name in names else line.dropped
        if found["dropped"][name] not in ({dropped} if done else {dropped, line.dropped}):
            raise _Wrong(f"{kind}: a draft was dropped, or came back, by itself")
        if name in found["lines"]:
            own = begun if name in names else {"begin": kind, "keeps": True}
            _check_line(line, own, found["lines"][name], done, name in names[:1])
    if made in found["lines"]:
        new = found["lines"][made]
        if (new["shown"], new["turns"]) != (begun["forked"], begun["turns"]):
            raise _Wrong(f"{kind}: a fork is half there")


def _check_line(line: _Line, begun: dict[str, Any], found: dict[str, Any], done: bool, first: bool) -> None:
    kind = begun["begin"]
    numbers = [number for number, _, _ in found["revisions"]]
    revisions = [_Kept(text, aside) for _, text, aside in found["revisions"]]
    if numbers != list(range(1, len(numbers) + 1)):
        raise _Wrong(f"{kind}: revisions are not numbered in order")
    if revisions[: len(line.revisions)] != line.revisions:
        raise _Wrong(f"{kind}: a revision is lost or changed")
    expected = _expected(line, begun, first)
    more = revisions[len(line.revisions) :]
    if len(more) > len(expected) or not all(map(_fits, more, expected)):
        raise _Wrong(f"{kind}: a revision is not the one that was made")
    # A pick of what is there already makes none.
    if done and not all(one.text == "" for one in expected[len(more) :]):
        raise _Wrong(f"{kind}: a hand edit or a text was not recorded")
    shown = {line.shown}
    if "hand" in begun:
        shown = {begun["hand"]} if done else {line.shown, begun["hand"]}
    own = [one.text for one in more if not one.aside]
    if own:
        shown = {own[-1]}
    if found["shown"] not in shown:
        raise _Wrong(f"{kind}: the text is neither the last revision's nor the last hand edit")


def _expected(line: _Line, begun: dict[str, Any], first: bool) -> list[_Kept]:
    """The revisions that an operation adds to a draft."""
    if begun.get("keeps") or "hand" in begun:
        return []
    hand_edit = [] if line.pending is None else [_Kept(line.pending)]
    after = begun.get("after")
    return hand_edit if after is None or not first else [*hand_edit, _Kept(after, begun.get("aside", False))]


def _fits(found: _Kept, expected: _Kept) -> bool:
    return found == expected or (not expected.text and not found.aside)


def _take_over(state: _State, begun: dict[str, Any], found: dict[str, Any]) -> None:
    """An operation was acknowledged: from now on it must stay."""
    state.current = found["current"]
    for name, about in found["lines"].items():
        line = state.lines.setdefault(name, _Line())
        line.revisions = [_Kept(text, aside) for _, text, aside in about["revisions"]]
        line.shown = about["shown"]
        current = [one.text for one in line.revisions if not one.aside]
        line.pending = None if line.shown == (current[-1] if current else _hash("")) else line.shown
    for name, dropped in found["dropped"].items():
        state.lines[name].dropped = dropped


def _check_forks(root: Path) -> None:
    """What is recorded as a draft has its whole conversation."""
    disk = Disk(root)
    (task,) = disk.tasks()
    for name in task["drafts"]:
        said = {entry.get("uuid") for entry in disk.session(task, name)}
        if not {turn["uuid"] for turn in disk.turns(task, name)} <= said:
            raise _Wrong("a draft has turns that are not in its session")


def _next_operations(workspace: Workspace, task: Task, begun: dict[str, Any], random: Random) -> None:
    """Whatever comes next works, and clears away what the crash left; also an edit by hand is no matter."""
    for name in task.live_drafts:
        text = workspace.text(task, name)
        shown = text.read()
        if random.random() < 0.3:
            shown = _words(random)
            _save_by_hand(workspace, task, name, shown)
        OpenDraft(workspace, task, name).take_hand_edit(restore=True)
        if text.read() != shown or text_of(text.revisions()) != shown:
            raise _Wrong("looking at a draft after a kill changed its text")
        if text.revisions() and name in begun["names"]:
            put_back(version(workspace, f"{task.address(name)}:1"))
            if text.path.read_bytes() != text.revision(1).text.encode("utf-8", "surrogatepass"):
                raise _Wrong("the next operation did not work")
    if begun.get("made") and begun["made"] not in task.drafts:
        anyio.run(partial(fork, OpenDraft(workspace, task, MAIN), at=0, name=begun["made"]))
        (task,) = workspace.tasks.all()
        OpenDraft(workspace, task, begun["made"]).take_hand_edit()
    drafts = workspace.text(task, MAIN).path.parent
    for path in drafts.iterdir():
        if path.suffix == ".tmp":
            path.unlink()  # counted before
        elif path.name not in {f"{name}.md" for name in task.drafts}:
            raise _Wrong(f"{begun['begin']}: something was left beside the texts")
    for kind in ("revisions", "turns"):
        kept = (workspace.hidden / kind / task.id).glob("*.jsonl")
        if not {path.name for path in kept} <= {f"{name}.jsonl" for name in task.drafts}:
            raise _Wrong(f"{begun['begin']}: {kind} of no draft were left")


def _as_found(workspace: Workspace, task: Task) -> _State:
    state = _State({}, task.current)
    found = _described(workspace.root)
    _take_over(state, {}, found)
    hidden = workspace.hidden.relative_to(workspace.root)
    for kind in ("revisions", "turns"):
        for name in task.drafts:
            state.data[str(hidden / kind / task.id / f"{name}.jsonl")] = b""
    state.data[str(hidden / "tasks.jsonl")] = b""
    state.data = {
        path: (workspace.root / path).read_bytes() for path in state.data if (workspace.root / path).exists()
    }
    return state


FIGURES = [
    Figure(
        "kill -9 of a process that works on drafts at random moments",
        f"{_KILLS:,} kills; every acknowledged revision and hand edit is there, every text is that of its "
        "revisions or the hand edit, no fork is half there, and the next operation works; "
        "at least 1 % of the kills fell between a revision and its file",
        _measure,
    )
]
