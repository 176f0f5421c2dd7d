from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import portalocker
import pytest

from smartwriter.errors import DraftBusy, Invalid
from smartwriter.open_draft import OpenDraft
from smartwriter.storage.lease import Lease, left_by
from smartwriter.workspace import Workspace

_HOLD = """
import sys
from pathlib import Path
from smartwriter.storage.lease import Lease

lease = Lease(Path(sys.argv[1]), "k7mq@main")
lease.acquire()
print("held", flush=True)
sys.stdin.readline()
lease.release()
print("released", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "k7mq" / "main.lock"


def lease(path: Path) -> Lease:
    return Lease(path, "k7mq@main")


@contextmanager
def held_by_another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease; it lets go at the first line it is sent, and ends at the second."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_one_at_a_time(path: Path) -> None:
    """A draft that is being written is refused to a second holder, even in the same process."""
    first, second = lease(path), lease(path)
    with first:
        with pytest.raises(DraftBusy) as caught:
            second.acquire()
        assert caught.value.address == "k7mq@main"
        with pytest.raises(DraftBusy):
            first.acquire()
    with second:
        pass


def test_the_refusal_names_the_holder(path: Path) -> None:
    """The sentence says which process has it, where and since when, and offers a fork."""
    with lease(path), pytest.raises(DraftBusy) as caught:
        lease(path).acquire()
    assert re.fullmatch(
        rf"k7mq@main is being written by process {os.getpid()} on {re.escape(socket.gethostname())} "
        r"since \d{4}-\d\d-\d\d \d\d:\d\d; to write beside it: smartwriter fork k7mq@main",
        str(caught.value),
    )


def test_another_process_is_refused_until_it_lets_go(path: Path) -> None:
    """A lease that another process holds is refused with its number, and free when it is released."""
    with held_by_another_process(path) as process:
        with pytest.raises(
            DraftBusy, match=rf"process {process.pid} on {re.escape(socket.gethostname())} since 20"
        ):
            lease(path).acquire()
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        waiting = lease(path)
        waiting.acquire(wait_s=20)
        waiting.release()


def test_a_killed_process_never_blocks(path: Path) -> None:
    """A process that is killed leaves its file behind, and the next one has the lease at once."""
    with held_by_another_process(path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert json.loads(path.read_bytes())["pid"] == process.pid
    with lease(path):
        assert json.loads(path.read_bytes())["pid"] == os.getpid()


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"pid": 1, "host": "other-machine", "since": "2026-01-01T00:00:00+00:00"}).encode(),
        json.dumps(
            {"pid": os.getpid(), "host": socket.gethostname(), "since": "2199-01-01T00:00:00"}
        ).encode(),
        json.dumps({"pid": 1, "host": "h", "since": "2026", "more": "x" * 5000}).encode(),
        b"",
        b"\x00\xff garbage",
        b"[" * 2000,
    ],
    ids=["of another machine", "from the future", "long", "empty", "garbage", "nested"],
)
def test_a_file_alone_blocks_nobody(path: Path, content: bytes) -> None:
    """What stands in a lock file never decides: a sync tool may have brought it from anywhere."""
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    os.utime(path, (2**33, 2**33))
    with lease(path):
        assert json.loads(path.read_bytes()).keys() == {"pid", "host", "since"}
        with pytest.raises(DraftBusy, match=f"process {os.getpid()} "):
            lease(path).acquire()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff",
        b"[" * 1000,
        b"[1]",
        b'"pid"',
        b'{"pid":1}',
        b'{"pid":1,"host":"h","since":5}',
        b'{"pid":1,"host":"h","since":[7]}',
    ],
)
def test_a_holder_that_cannot_be_read_still_holds(path: Path, content: bytes) -> None:
    """Garbage in the file of a lease that is held makes the sentence vague, not the refusal."""
    with lease(path):
        path.write_bytes(content)
        with pytest.raises(DraftBusy, match="is being written by another process; to write"):
            lease(path).acquire()


def test_a_released_lease_can_be_taken_again(path: Path) -> None:
    """A lease object may be used any number of times, and releasing it twice harms nobody."""
    one = lease(path)
    for _ in range(3):
        with one:
            pass
    one.release()
    with lease(path) as other:
        one.release()
        with pytest.raises(DraftBusy):
            one.acquire()
    other.release()


def test_clearing_locks_away_lets_nobody_in(workspace: Workspace) -> None:
    """What is locked lies beside what is kept: no folder that may be deleted holds it, nor a fork's."""
    task = workspace.new_task("Herons")
    for held, other in (
        (OpenDraft(workspace, task, "main").lease(), OpenDraft(workspace, task, "main").lease()),
        (workspace.fork_lease(task), workspace.fork_lease(task)),
    ):
        with held:
            for name in ("locks", "live", "cache", "outbox", "spool", "trash"):
                shutil.rmtree(workspace.hidden / name, ignore_errors=True)
            assert other.is_held()
            with pytest.raises(DraftBusy, match=f"process {os.getpid()} "):
                other.acquire()


def test_a_holder_of_an_earlier_version_is_heeded(workspace: Workspace) -> None:
    """A process that locks where earlier versions did refuses a draft, too, and is named."""
    task = workspace.new_task("Herons")
    mine = OpenDraft(workspace, task, "main").lease()
    with held_by_another_process(workspace.hidden / "locks" / task.id / "main.lock") as process:
        assert mine.is_held() and f"process {process.pid} " in mine.holder()
        with pytest.raises(DraftBusy, match=f"process {process.pid} "):
            mine.acquire()
    mine.acquire(wait_s=20)
    mine.release()


def test_a_lease_replaced_while_it_is_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who locks a file that has lost its name meanwhile takes the one that has it now."""
    lock = portalocker.lock
    others: list[Lease] = []

    def late(*arguments: Any) -> None:
        lock(*arguments)
        if not others:
            path.unlink()
            others.append(lease(path))
            others[0].acquire()

    monkeypatch.setattr(portalocker, "lock", late)
    with pytest.raises(DraftBusy):
        lease(path).acquire(wait_s=0)
    others[0].release()


def test_a_lease_that_is_no_file(path: Path) -> None:
    """A pipe in a lease's place is refused in a sentence, and held by nobody: who looks does not wait."""
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert not lease(path).is_held()
    with pytest.raises(Invalid, match="is not a regular file"):
        lease(path).acquire()


def test_whether_a_lease_is_held(path: Path) -> None:
    """Anybody can ask whether a draft is being written, without making a file or taking the lease."""
    assert not lease(path).is_held() and not path.exists()
    with lease(path) as held:
        assert held.is_held() and lease(path).is_held()
    assert not lease(path).is_held()


def test_who_died_with_a_lease(path: Path) -> None:
    """A killed holder can be named afterwards; one that is alive, or let go in order, has left nothing."""
    with held_by_another_process(path) as process:
        assert left_by(path) is None
        process.kill()
        process.wait()
        assert (left_by(path) or "").startswith(f"process {process.pid} on {socket.gethostname()} since ")
    with lease(path):
        pass
    assert left_by(path) is None


def test_an_error_while_writing_releases(path: Path) -> None:
    """A holder that fails does not keep the draft locked."""
    with pytest.raises(ZeroDivisionError), lease(path):
        _ = 1 / 0
    with lease(path):
        pass


def test_drafts_are_leased_each_on_its_own(path: Path) -> None:
    """Writing one draft keeps nobody from writing another."""
    with lease(path), lease(path.with_name("trial.lock")), lease(path.parent.parent / "other" / "main.lock"):
        pass


def test_a_holder_that_does_not_heed_is_not_waited_for(tmp_path: Path) -> None:
    """Only an idle process that lets go of it is asked for a lease; who else holds it refuses at once."""
    path, earlier = tmp_path / "turns" / "main.lease", tmp_path / "locks" / "main.lock"
    holder = Lease(path, "k7mq@main")
    holder.acquire()
    with pytest.raises(DraftBusy):
        Lease(path, "k7mq@main", lambda: True, earlier).borrow()
    assert not earlier.parent.exists()  # nothing was asked
    holder.release()
