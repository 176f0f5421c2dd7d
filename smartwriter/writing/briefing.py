"""What a prompt is sent with: all that happened since the model's last turn and that it must know.

Prompts of the author that never reached it, changes to the text, and changes to the memory that
texts rely on; each is told once, exactly, and only if it was not told before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smartwriter.agent.notes import changes, forgotten, half_answer, half_article, lost_prompt
from smartwriter.agent.tools import DraftTools
from smartwriter.memory.snapshot import Memory
from smartwriter.open_draft import OpenDraft
from smartwriter.series.reliance import reliance
from smartwriter.sessions.compaction import is_compaction
from smartwriter.sessions.speakers import only_heard
from smartwriter.sessions.transcript import answer_to, compacted_since
from smartwriter.tasks.commands import is_command
from smartwriter.tasks.cut_off import to_be_told
from smartwriter.tasks.revisions import current_number, known_after, text_of
from smartwriter.tasks.values import ANSWERED, DIED, Draft, Revision, Task, Turn, TurnState
from smartwriter.workspace import Workspace


class Briefing:
    """Before one turn of a draft. All calls block."""

    def __init__(self, workspace: Workspace, task: Task, draft: Draft, turns: Sequence[Turn]) -> None:
        """:param turns: those so far, in order."""
        self._workspace = workspace
        self._task, self._draft = task, draft
        self._turns = turns
        self._transcript = OpenDraft(workspace, task, draft.name).transcript

    def prompt(self, prompt: str, tools: DraftTools, number: int, memory: Memory) -> str:
        """The prompt as it is sent. The writer's hand edit is recorded, and the tools know what was told.

        :param number: of the turn.
        """
        text = self._workspace.text(self._task, self._draft.name)
        hand_edit = text.take_hand_edit(number)
        revisions = text.revisions()
        known = self._known(revisions)
        tools.turn, tools.known, tools.told = number, known, known
        if is_command(prompt):  # alone, or it is none; the rest is told with the next prompt
            return prompt.strip()
        if text_of(revisions) and not known and self._was_compacted():
            told = forgotten(revisions, self._last_told(), restored=hand_edit.restored)
        else:
            told, tools.known = changes(revisions, known, restored=hand_edit.restored)
        tools.told = current_number(revisions)
        lost = [lost_prompt(turn.prompt) for turn in self._unanswered() if self._is_lost(turn)]
        cut_off = self._cut_off(revisions)
        return "\n\n".join([*lost, *cut_off, *told, *self._relied_on(memory), prompt])

    def _cut_off(self, revisions: Sequence[Revision]) -> list[str]:
        """What the model was writing when its last turns were cut off: the answer, and the article."""
        recent: list[Turn] = []
        for turn in reversed(self._turns):
            recent.insert(0, turn)
            if self._was_told(turn):  # and what came before it
                break
        return [note for turn in recent for note in self._of_turn(turn, revisions)]

    def _of_turn(self, turn: Turn, revisions: Sequence[Revision]) -> Iterator[str]:
        if turn.left_out:  # as if it had not been
            return
        if turn.partial:
            entries = self._transcript.read().entries
            stored = answer_to(entries, turn.uuid, whole=False) or ""
            if heard := only_heard(stored, turn.partial).strip():
                yield half_answer(heard)
        text = text_of(revisions)
        for one in to_be_told(turn, revisions):
            if one.text != text:
                before = text_of(earlier for earlier in revisions if earlier.number < one.number)
                yield half_article(one, before)

    def _known(self, revisions: Sequence[Revision]) -> int:
        """The last revision of the text that the model knows of, from the last turn that reached it.

        0 where there was a compaction since, and nobody lived to tell of it.
        """
        died = False
        for turn in reversed(self._turns):
            died = died or turn.state in DIED
            failed_command = is_command(turn.prompt) and turn.state not in ANSWERED
            if self._transcript.has_told(turn) and not failed_command:
                forgot = died and compacted_since([*self._transcript.entries()], turn.uuid)
                return 0 if forgot else known_after(turn, revisions)
        return 0

    def _was_compacted(self) -> bool:
        return any(map(is_compaction, self._transcript.entries()))

    def _last_told(self) -> int:
        """The last turn that the model was told in what had changed."""
        return next((turn.number for turn in reversed(self._turns) if self._was_told(turn)), 0)

    def _relied_on(self, memory: Memory) -> list[str]:
        """Changes to the memory that this text, or another one after this, relies on."""
        before = next((turn.memory for turn in reversed(self._turns) if self._was_told(turn)), None)
        if before is None or before == memory.hashes:
            return []
        return reliance(OpenDraft(self._workspace, self._task, self._draft.name), before, memory)

    def _was_told(self, turn: Turn) -> bool:
        """Whether the model got what stands before the prompt of a turn; that of a command has nothing."""
        return not is_command(turn.prompt) and self._transcript.has_told(turn)

    def _unanswered(self) -> list[Turn]:
        """The last turns, as far back as their process died in them, but for those that are left out."""
        found: list[Turn] = []
        for turn in reversed(self._turns):
            if turn.left_out:
                continue
            if turn.state not in (TurnState.running, TurnState.interrupted):
                break
            found.insert(0, turn)
        return found

    def _is_lost(self, turn: Turn) -> bool:
        return not is_command(turn.prompt) and not self._transcript.has_told(turn)
