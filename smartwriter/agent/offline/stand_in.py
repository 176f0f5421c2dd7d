"""What the stand-in replies where no script says otherwise: it repeats what it was asked."""

from __future__ import annotations

import re

from smartwriter.agent.offline.script import Reply, Request, Text, ToolUse, asks_for_summary

BANNER = "This is SmartWriter's offline stand-in, not a model: it only repeats what it was asked."
_CJK = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")

_DRAFT = """\
What was asked for here: {words}

No model has written this. The offline stand-in repeats the request,
so that there is a text to keep, compare and fork.
"""

_CHINESE_DRAFT = """\
这里要写的是：{words}

这段文字不是模型写的。离线替身只把要求复述一遍，好让这里有一份可以保存、比较和分叉的文稿。
"""


def stand_in(request: Request) -> Reply:
    """Who it is and what it was asked, a draft that repeats it, and what became of the draft."""
    if asks_for_summary(request):
        return [Text(f"<summary>{BANNER}</summary>")]
    words = " ".join(request.asked.split())[:400]
    chinese = _CJK.search(words) is not None
    if request.tool_results:
        answer = request.tool_results[-1].partition("\n")[0][:200]
        return [Text(f"{'草稿工具答复：' if chinese else 'The draft tool answered: '}{answer}")]
    asked = f"它收到的要求是：“{words}”。" if chinese else f"It was asked: “{words}”."
    spoken = Text(f"{BANNER}\n{asked}", pause_s=0.02)
    write_draft = request.tool("write_draft")
    if write_draft is None:
        return [spoken]
    draft = _CHINESE_DRAFT if chinese else _DRAFT
    return [spoken, ToolUse(write_draft, {"text": draft.format(words=words)})]
