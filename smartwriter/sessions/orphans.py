"""What CLI processes leave whose program died: they live on for a while, and their folders for good.

A CLI gets its session's history from the SDK in a folder ``claude-resume-*`` for temporary files, with
a copy of the credentials, and writes on in there; on a first turn it writes into its configuration's own
projects folder, which for the stand-in is in a temporary home. Whose they are, nothing but these marks
tells, for copies of a workspace have the same sessions:

- a process by a variable of its environment: ``SMARTWRITER_CLI_OF=<workspace>/<session>``;
- the folder of a resumed session by the first line of the transcript in it, which is there as soon as
  anything is: ``{"type":"smartwriter","workspace":"5f0c…"}``;
- a temporary home by a file ``smartwriter-workspace``, there before the first CLI is.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

import smartwriter.storage.reading as reading
from smartwriter.storage.salvage import Entry

CLI_OF = "SMARTWRITER_CLI_OF"
HOMES = "smartwriter-offline-"
"""How the temporary homes of ``--offline`` begin, in the folder for temporary files; then the pid."""

_RESUMED = "claude-resume-"
_MARK = "smartwriter"
_HOME_MARK = "smartwriter-workspace"
_END_S = 5.0  # to come to its end by itself, once it is told to


def cli_mark(workspace: str, session_id: str) -> dict[str, str]:
    """For the environment of a CLI."""
    return {CLI_OF: f"{workspace}/{session_id}"}


def history_mark(workspace: str) -> Entry:
    """The first line of a history that the SDK copies for a CLI. The CLI itself passes over it."""
    return {"type": _MARK, "workspace": workspace}


def mark_home(home: Path, workspace: str) -> None:
    (home / _HOME_MARK).write_text(workspace, encoding="ascii")


# Processes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cli:
    """A CLI process that lives."""

    process: psutil.Process
    workspace: str
    """Empty for one that is not marked."""
    session_id: str
    folders: tuple[str, ...]

    def is_in(self, folder: Path) -> bool:
        return any(Path(mine).is_relative_to(folder) for mine in self.folders)


def living() -> list[Cli]:
    """The CLI processes of this user, of programs that live and of those that died."""
    found = []
    for process in psutil.process_iter(["name"]):
        with contextlib.suppress(psutil.Error, OSError):
            env = process.environ()
            if CLI_OF in env or "claude" in (process.info["name"] or ""):
                workspace, _, session_id = env.get(CLI_OF, "").partition("/")
                folders = tuple(env[name] for name in ("CLAUDE_CONFIG_DIR", "HOME") if env.get(name))
                found.append(Cli(process, workspace, session_id, folders))
    return found


def of_sessions(clis: Iterable[Cli], workspace: str, sessions: Collection[str]) -> list[Cli]:
    """Those that write some sessions of a workspace."""
    return [cli for cli in clis if workspace and cli.workspace == workspace and cli.session_id in sessions]


def is_alive(cli: Cli) -> bool:
    with contextlib.suppress(psutil.Error):
        return cli.process.is_running() and cli.process.status() != psutil.STATUS_ZOMBIE
    return False


def end(clis: Iterable[Cli]) -> None:
    """End processes, first with a request. Blocking."""
    processes = [cli.process for cli in clis]
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    for process in psutil.wait_procs(processes, timeout=_END_S)[1]:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=_END_S)


# Folders ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Folder:
    """A temporary folder in which a CLI works or worked, and that nobody else could have put there."""

    path: Path

    @property
    def is_home(self) -> bool:
        return self.path.name.startswith(HOMES)

    def workspace(self) -> str | None:
        """Whose it is; None: it does not say."""
        if self.is_home:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                return (self.path / _HOME_MARK).read_text(encoding="ascii") or "?"
            return None
        for transcript in self.transcripts():
            with contextlib.suppress(OSError):
                first = next(reading.stream(transcript), (0, Entry()))[1]
                if first.get("type") == _MARK:
                    return str(first.get("workspace") or "?")
        return None

    def sessions(self) -> set[str]:
        return {path.stem for path in self.transcripts()}

    def transcripts(self, session_id: str = "*") -> list[Path]:
        """Those of all sessions, or of one."""
        return [
            path
            for config in (self.path, self.path / ".claude")
            for path in transcripts_in(config, session_id)
        ]

    def is_used(self, clis: Iterable[Cli]) -> bool:
        """Whether a process that lives works in it."""
        if self.is_home:
            pid = self.path.name.removeprefix(HOMES).partition("-")[0]
            if pid.isdigit() and psutil.pid_exists(int(pid)):
                return True
        return any(cli.is_in(self.path) for cli in clis)


def folders() -> Iterator[Folder]:
    """Every one there is, of whatever workspace."""
    temporary = Path(tempfile.gettempdir())
    for prefix in (_RESUMED, HOMES):
        for path in sorted(temporary.glob(f"{prefix}*")):
            if is_private(path):
                yield Folder(path)


def transcripts_in(config: Path, session_id: str = "*") -> list[Path]:
    """The transcripts in a configuration folder of the CLI, of all sessions or of one."""
    with contextlib.suppress(OSError):  # another process removes it, or a CLI writes there
        found = sorted(config.glob(f"projects/*/{session_id}.jsonl"))
        return [path for path in found if all(map(_is_own, (path, path.parent, path.parent.parent)))]
    return []


def is_private(folder: Path) -> bool:
    """Whether a folder is a real one of this user's, into which no other one can write.

    Anybody may make a folder of any name among temporary files, or a link to one.
    """
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_mine(status) and not status.st_mode & 0o022


def _is_own(path: Path) -> bool:
    """Whether something in a folder that is private is no link, and of this user."""
    status = path.lstat()
    return not stat.S_ISLNK(status.st_mode) and _is_mine(status)


def _is_mine(status: os.stat_result) -> bool:
    return os.name == "nt" or status.st_uid == os.geteuid()
