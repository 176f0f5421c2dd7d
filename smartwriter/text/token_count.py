"""How many tokens a text is, by a rule of thumb: nobody outside the model knows it exactly."""

from __future__ import annotations

import re

BUDGET_TOKENS = 20_000
"""What the memory of a session may have, unless the workspace says otherwise."""

RULE = "one token for each Chinese, Japanese or Korean character, and one for each four bytes of other text"

_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff]+"
)


def tokens(text: str) -> int:
    """An estimate, for comparing texts and keeping to a budget; see :data:`RULE`.

    Punctuation and full-width forms count as the characters they stand between.
    """
    wide = narrow_bytes = at = 0
    for run in _WIDE.finditer(text):
        wide += run.end() - run.start()
        narrow_bytes += len(text[at : run.start()].encode("utf-8", "surrogatepass"))
        at = run.end()
    narrow_bytes += len(text[at:].encode("utf-8", "surrogatepass"))
    return wide + -(-narrow_bytes // 4)
