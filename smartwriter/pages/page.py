"""The one HTML page, with its style and its policy: it loads nothing, and nothing in it acts."""

from __future__ import annotations

import html
import re

from smartwriter.text.harmless import picture
from smartwriter.text.language import direction_of

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """\
:root { color-scheme: light dark; --ink: #1d1d1f; --paper: #fdfcfa; --soft: #6b6b70;
  --line: #d9d6d0; --box: #f3f1ec; --gained: #dff3e2; --lost: #fae1df; --moved: #e3ebf8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e4e0; --paper: #191a1c; --soft: #a0a0a6; --line: #3a3b3f; --box: #232428;
    --gained: #1f3d26; --lost: #4a2423; --moved: #24344f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1.0625rem/1.75 system-ui,
  "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; }
main { max-width: 42rem; margin: 0 auto; padding: 3rem 1.25rem 5rem; overflow-wrap: anywhere; }
main.wide { max-width: 80rem; }
h1, h2, h3, h4 { line-height: 1.3; margin: 2em 0 .6em; }
header h1, header h2 { margin-top: 0; }
.about { color: var(--soft); font-size: .9rem; margin: .2em 0; }
img { max-width: 100%; height: auto; }
a { color: inherit; text-underline-offset: .2em; }
blockquote { margin: 1em 0; margin-inline: 0; padding-inline-start: 1em;
  border-inline-start: 3px solid var(--line); }
pre { background: var(--box); padding: .8em 1em; border-radius: 6px; white-space: pre-wrap; }
code { font: .9em ui-monospace, Menlo, Consolas, monospace; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .35em .7em; text-align: start; }
hr { border: 0; border-top: 1px solid var(--line); margin: 2.5em 0; }
section.step { border-top: 1px solid var(--line); padding-top: .5em; margin-top: 2em; }
section.step h2 { font-size: 1.1rem; margin: .8em 0 .2em; }
.said { white-space: pre-wrap; unicode-bidi: plaintext; margin: .8em 0; }
.warning { background: var(--lost); padding: .6em 1em; border-radius: 6px; }
summary { cursor: pointer; color: var(--soft); }
.passage { margin: .4em 0; padding: .2em .6em; border-radius: 4px; }
.passage.added, ins { background: var(--gained); text-decoration: none; }
.passage.removed, del { background: var(--lost); }
.passage.moved { background: var(--moved); }
.passage.same { color: var(--soft); }
.row { border-top: 1px solid var(--line); padding: .5rem 0; }
.row.moved > .about, .row.left > .about { background: var(--moved); padding: 0 .4rem; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 2rem; }
.sides > .said { margin: 0; min-width: 0; }
footer { border-top: 1px solid var(--line); padding-top: 1rem; font-weight: bold; }
@media (max-width: 45rem) { .sides { grid-template-columns: 1fr; gap: .5rem; } }
@media print { :root { --paper: #fff; --ink: #000; } body { font-size: 11pt; }
  main { max-width: none; padding: 0; } h1, h2, h3 { break-after: avoid; } }
"""


def page(title: str, language: str, body: str, *, wide: bool = False) -> str:
    """A whole HTML page, which loads nothing.

    :param body: HTML; the title is plain text.
    :param wide: two texts stand side by side in it.
    """
    language = html.escape(language)
    look = ' class="wide"' if wide else ""
    return f"""<!doctype html>
<html lang="{language}" dir="{direction_of(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escaped(title)}</title>
<style>
{_STYLE}</style>
</head>
<body>
<main{look}>
{body}
</main>
</body>
</html>
"""


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escaped(text: str) -> str:
    """A text as HTML that shows it: what no page can hold, and does nothing there, by its picture."""
    return html.escape(printable(_CONTROL.sub(lambda found: picture(found[0]), text)))


def printable(text: str) -> str:
    """A text with LF line ends, and U+FFFD for what neither XML nor UTF-8 can hold."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
