"""Every point of a conversation that was compacted, forked or rewound: what the model is sent there.

Conversations with 0, 1, 2 and 3 compactions, by command, and by the CLI itself before a turn and in the
middle of one. A draft is started at every turn of each, by a fork or by going back, and takes the next
turn's prompt: all that the API is sent must be, message for message, what it was sent in the origin. The
origin must be as it was, and the doctor must find nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "support"))

from compacted import LONG, Origin, early, says
from figure import Figure, Outcome, Run
from stage import stage

from smartwriter.doctor.examine import examine
from smartwriter.open_draft import OpenDraft

BY_COMMAND = [
    ["First.", "Second.", "Third."],
    ["First.", "Second.", "/compact", "Third.", "Fourth."],
    ["First.", "Second.", "/compact", "Third.", "/compact keep the names", "Fourth."],
    ["First.", "Second.", "/compact", "Third.", "/compact", "Tools.", "/compact", "Fourth."],
]
BY_ITSELF = [
    ["First.", "Tools.", "Third."],
    ["First.", "Tools.", f"Third. {LONG} {LONG}", "Fourth."],
    ["First.", "Tools.", f"Third. {LONG} {LONG}", f"Tools again. {LONG}", "Fifth."],
]
QUICK = (BY_COMMAND[2], BY_ITSELF[0])


def _measure(run: Run) -> Outcome:
    points, wrong, counts = 0, [], []
    with stage(run, says) as here:
        for asked in QUICK if run.quick else [*BY_COMMAND, *BY_ITSELF]:
            claude = early(here.claude) if asked in BY_ITSELF else here.claude
            origin = Origin(here.workspace, claude, here.model, asked)
            path = OpenDraft(here.workspace, origin.task, "main").transcript.path
            before = path.read_bytes()
            points += len(asked)
            wrong += [f"turn {at} of {len(asked)}" for at in origin.differing()]
            wrong += ["an origin changed"] if path.read_bytes() != before else []
            counts.append(origin.compactions())
        wrong += [f"doctor: {finding.what}" for finding in examine(here.workspace)]
    many = ", ".join(map(str, counts))
    got = f"{points} points of {len(counts)} conversations with {many} compactions; wrong: {wrong or 0}"
    return Outcome(got, not wrong)


FIGURES = [
    Figure(
        "what a fork or rewind is sent, at every turn of compacted conversations",
        "what the origin was sent there, message for message; nothing for the doctor",
        _measure,
    )
]
