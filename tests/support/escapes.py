"""Sixty things that a terminal would obey, and what it shows when it is told to in a pty."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
from collections.abc import Mapping, Sequence

_ESC, _BEL, _ST, _CSI = "\x1b", "\x07", "\x1b\\", "\x9b"

ESCAPES: tuple[str, ...] = (
    # the clipboard, the title, the folder, links, colours of the palette, notifications, files
    f"{_ESC}]52;c;ZXZpbA=={_BEL}",
    f"{_ESC}]52;c;?{_ST}",
    f"{_ESC}]0;owned{_BEL}",
    f"{_ESC}]2;owned{_ST}",
    f"{_ESC}]1;icon{_BEL}",
    f"{_ESC}]7;file://elsewhere/etc{_BEL}",
    f"{_ESC}]8;;https://evil.example/{_ST}a link{_ESC}]8;;{_ST}",
    f"{_ESC}]4;1;rgb:00/00/00{_BEL}",
    f"{_ESC}]10;?{_BEL}",
    f"{_ESC}]11;#000000{_BEL}",
    f"{_ESC}]104{_BEL}",
    f"{_ESC}]9;a notification{_BEL}",
    f"{_ESC}]777;notify;title;body{_BEL}",
    f"{_ESC}]1337;File=name=eA==;inline=0:eA=={_BEL}",
    f"{_ESC}]133;A{_BEL}",
    f"{_ESC}]50;fixed{_BEL}",
    # questions that the terminal answers as if it were its user
    f"{_ESC}[6n",
    f"{_ESC}[5n",
    f"{_ESC}[c",
    f"{_ESC}[>c",
    f"{_ESC}[=c",
    f"{_ESC}[21t",
    f"{_ESC}[18t",
    f"{_ESC}[?1$p",
    f"{_ESC}P+q544e{_ST}",
    f"{_ESC}P$qm{_ST}",
    f"{_ESC}Z",
    "\x05",
    # what stands on the screen
    f"{_ESC}[2J",
    f"{_ESC}[3J",
    f"{_ESC}[H",
    f"{_ESC}[1A",
    f"{_ESC}[2K",
    f"{_ESC}[5;5H",
    f"{_ESC}[31;5m",
    f"{_ESC}[8mhidden{_ESC}[0m",
    f"{_ESC}[?1049h",
    f"{_ESC}[?25l",
    f"{_ESC}[?1000h",
    f"{_ESC}[?2004l",
    f"{_ESC}[4i",
    f"{_ESC}[1;1r",
    f"{_ESC}[!p",
    f"{_ESC}c",
    f"{_ESC}7{_ESC}8",
    f"{_ESC}D",
    f"{_ESC}M",
    f"{_ESC}#8",
    f"{_ESC}(0",
    f"{_ESC}^a private message{_ST}",
    f"{_ESC}_Gf=24;AAAA{_ST}",
    f"{_ESC}Xa string{_ST}",
    # the same in one character
    f"{_CSI}6n",
    "\x9d52;c;ZXZpbA==\x9c",
    "\x90$qm\x9c",
    "\x0e",
    "\b\b\b\b",
    "the truth\rsomething else",
    # an order that is not the one of the text, and words that are not shown
    "\u202egnp.exe\u202c",
    "\u2066\u2067(\u2069",
)

OURS = re.compile(
    r"\x1b\[(?:0|1|2|[39][0-7]|1;[39][0-7]|2;[39][0-7]|9;3[0-7])?m"  # click's and rich's colours
    r"|\x1b\[(?:\?25[lh]|2K|1A)"  # rich's live display
)
RAW = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def raw_in(shown: str, *, live: bool = False) -> list[str]:
    """What in a terminal's input acts on it, with what stands around; but for colours of our own.

    :param live: what a live display of ours does, too, does not count.
    """
    own = OURS if live else re.compile(OURS.pattern.partition("|\\x1b")[0])
    rest = own.sub("", shown).replace("\r\n", "\n")
    if live:
        rest = rest.replace("\r", "")
    return [rest[max(0, found.start() - 20) : found.end() + 20] for found in RAW.finditer(rest)] + (
        [rest[max(0, at - 20) : at + 20]] if (at := rest.find("\r")) >= 0 else []
    )


def on_a_terminal(command: Sequence[str], environment: Mapping[str, str], typed: bytes = b"") -> str:
    """All that a command writes to its terminal, run to its end."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**environment, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
        start_new_session=True,
    )
    os.close(follower)
    if typed:
        os.write(leader, typed)
    shown = b""
    with contextlib.suppress(OSError):  # the other side is gone
        while piece := os.read(leader, 65536):
            shown += piece
    os.close(leader)
    process.wait(timeout=60)
    return shown.decode("utf-8", "surrogateescape")
