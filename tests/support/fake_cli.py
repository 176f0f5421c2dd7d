"""A CLI that says what a test wants, for what the real one cannot be made to do.

Run as a program by :func:`write`; it records its arguments and speaks just enough of the protocol.
"""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = """#!{python}
import json, os, sys, uuid
if "-v" in sys.argv or "--version" in sys.argv:
    print("2.1.332 (Claude Code)")
    sys.exit()
with open({record!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if {complaint!r} and any(word.startswith("--resume") for word in sys.argv):
    print({complaint!r}, file=sys.stderr)
    sys.exit(1)
given = [word.partition("=")[2] for word in sys.argv if word.startswith(("--session-id=", "--resume="))]
asked = given[0] if given else ""
session = {session!r} or asked
folder = os.environ["CLAUDE_CONFIG_DIR"] + "/projects/x/"
def say(**message):
    print(json.dumps(message), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "control_request":
        answer = dict(subtype="success", request_id=message["request_id"], response=dict())
        say(type="control_response", response=answer)
    elif message["type"] == "user":
        said = dict(role="assistant", content=[dict(type="text", text="Yes.")], model="fake")
        common = dict(sessionId=session, timestamp="2026-01-01T00:00:00Z", isSidechain=False)
        prompt = dict(common, type="user", uuid=message["uuid"], parentUuid=None)
        prompt.update(message=message["message"])
        answer = dict(common, type="assistant", uuid=str(uuid.uuid4()), parentUuid=message["uuid"])
        answer.update(message=said)
        say(type="transcript_mirror", filePath=folder + session + ".jsonl", entries=[prompt, answer])
        say(type="assistant", message=said, parent_tool_use_id=None, session_id=session)
        say(type="result", subtype="success", duration_ms=1, duration_api_ms=1, is_error=False,
            num_turns=1, session_id=session, result="Yes.", total_cost_usd=0.0)
"""


def write(folder: Path, *, session: str = "", complaint: str = "") -> tuple[Path, Path]:
    """The program, and the file where it records its arguments, one JSON list a line.

    :param session: the session id that it reports; by default the one that it was given.
    :param complaint: printed on standard error instead of resuming anything.
    """
    program, record = folder / "fake-cli", folder / "fake-cli.arguments"
    program.write_text(
        _PROGRAM.format(python=sys.executable, record=str(record), session=session, complaint=complaint)
    )
    program.chmod(0o755)
    return program, record
