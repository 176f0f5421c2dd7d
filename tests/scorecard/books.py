"""Whether every book that is exported is a valid one, by epubcheck, the publishers' own judge."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from figure import Figure, Outcome, Run

from smartwriter.export.document import Document
from smartwriter.export.export import export

_JAR = Path("/usr/share/java/epubcheck.jar")
_ARTICLES = Path(__file__).resolve().parents[2] / "collections"
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415478da63f8cfc00000030101"
    "00c9fe92ef0000000049454e44ae426082"
)

TEXTS = {
    "links and pictures": (
        "# T\n\n![a map](map.png) ![gone](gone.png) ![far](https://example.org/x.png) ![up](../up.png)\n\n"
        "[file](other.md) [there](#nowhere) [two](#two) [web](https://example.org/a?b=c&d=e) "
        "[mail](mailto:ada@example.org) [odd](http://) [odd](mailto:) "
        "[js](javascript:x) [odd](a b) [q](?x)\n\n"
        "## Two\n\nx\n"
    ),
    "tags": (
        "H<sub>2</sub>O <u>u</u> <kbd>Ctrl</kbd> <ruby>漢<rt>かん</rt></ruby> <b class=q>x</b> <br> <p>\n\n"
        "<div>\n\n**a**\n\n</div>\n\n<script>x</script>\n\n<!-- no -->\n"
    ),
    "everything": (
        "---\ntitle: Ferries & fogs <1>\nauthor: [Ada, 阿达]\ndate: 2026-11-30\nlang: en\n---\n\n"
        "Before.\n\n# One\n\n> quote\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n\n- [ ] a\n- [x] b\n\n"
        "1. x\n   - y\n\n"
        "```py\nx < 1 & y\n```\n\nx[^1]\n\n[^1]: note\n\n---\n\n# One\n\nagain\n\n### Deep\n\n`a<b>`\n"
    ),
    "Chinese": "# 渡口\n\n**注意：**这里，**“走吧！”**然后\n\n雾很大。\n",
    "Japanese": "# 渡し場\n\n**「重要」**です。\n",
    "Korean": "# 나루터\n\n여섯 시에\n떠났다.\n",
    "Hebrew": "# המעבורת\n\nשלום *עולם*, abc.\n\nEnglish here.\n",
    "Arabic": "# العبّارة\n\nمرحبا بالعالم.\n",
    "Thai": "# เรือข้ามฟาก\n\nเรือออกสองทุ่ม\n",
    "nothing but a heading": "# Only\n",
    "no heading": "Only words, & < > \" ' \u00a0 \u2028 \U0001f44d\U0001f3fd\n",
    "control characters": "a\x00b\x0bc\ud83d\n",
    "two with one name": "# A\n\n## B\n\n[b](#b) [b](#b-1)\n\n## B\n",
}


def _measure(run: Run) -> Outcome:
    java = shutil.which("java")
    if java is None or not _JAR.exists():
        return Outcome("epubcheck is not installed", None)
    (run.folder / "map.png").write_bytes(_PNG)
    texts = dict(TEXTS)
    for article in sorted(_ARTICLES.glob("*/articles/*.md")):
        texts[article.stem] = article.read_text(encoding="utf-8")
    names = list(texts)[:1] if run.quick else list(texts)
    bad = []
    for number, name in enumerate(names):
        path = run.folder / f"{number}.epub"
        export(Document(name, texts[name], folder=run.folder, root=run.folder), path)
        command = [java, "-XX:TieredStopAtLevel=1", "-jar", str(_JAR), "--quiet", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode or "WARNING" in done.stdout + done.stderr:
            bad.append(f"{name}: {' '.join((done.stderr or done.stdout).split())[:200]}")
    return Outcome(
        f"{len(names)} books: {len(bad)} that epubcheck complains of {'; '.join(bad)}".strip(), not bad
    )


FIGURES = [Figure("exported books by epubcheck", "no error and no warning in any", _measure)]
