"""What the CLI is told when it compacts a conversation: how to write the summary, and what the model still
needs after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from claude_agent_sdk import HookCallback, HookMatcher
    from claude_agent_sdk.types import HookEvent, HookJSONOutput

_MOST_CHARACTERS = 9_000  # of one hook's answer: a longer one goes into a file that the model cannot read
_MOST_PIECES = 64

INSTRUCTIONS = """\
This is the work of an author and a writing partner on one article. Write the summary for the partner, who \
goes on with it, in the author's language: what was decided, and why; the plan, and what comes next; the \
voice, the readers and the words that the author asks for; what the author refused or took back, so that it \
is not proposed again; facts, names and figures as the author stated them; what is still open. No code \
snippets, no files, nothing of how tools were used, and not the article's text: that can be read.\
"""


def hooks(after: Callable[[], str]) -> dict[HookEvent, list[HookMatcher]]:
    """
    :param after: called when a conversation has been compacted, before the model is asked again; returns
        what it is to be told.
    """
    from claude_agent_sdk import HookMatcher  # 0.5 s to import: only where it is used

    pieces: list[str] = []

    async def before_it(_: Any, __: str | None, ___: Any) -> HookJSONOutput:
        return {"systemMessage": INSTRUCTIONS}

    async def first_piece(_: Any, __: str | None, ___: Any) -> HookJSONOutput:
        told = after()  # waits for nothing: the other pieces are asked for at once
        pieces[:] = [told[at : at + _MOST_CHARACTERS] for at in range(0, len(told), _MOST_CHARACTERS)]
        return _told(pieces, 0)

    def piece(number: int) -> HookCallback:
        async def later_piece(_: Any, __: str | None, ___: Any) -> HookJSONOutput:
            return _told(pieces, number)

        return later_piece

    return cast(
        "dict[HookEvent, list[HookMatcher]]",  # the CLI knows more events than the SDK has types for
        {
            "PreCompact": [HookMatcher(hooks=[before_it])],
            "SessionStart": [
                HookMatcher("compact", hooks=[first_piece, *(piece(n) for n in range(1, _MOST_PIECES))])
            ],
        },
    )


def _told(pieces: list[str], number: int) -> HookJSONOutput:
    if number >= len(pieces):
        return {}
    told = {"hookEventName": "SessionStart", "additionalContext": pieces[number]}
    return cast("HookJSONOutput", {"hookSpecificOutput": told})
