"""Each call on the disk that an operation makes fails once: opening, reading, writing, syncing, renaming,
unlinking, linking, making folders, truncating, listing; in whatever module it stands.

The operation runs in a forked process that is traced (``ptrace``), and in place of the n-th of its calls on
the folder, for every n, the kernel answers with an error. Then it must either have said so, with an error
of the system's or of ours and the folder in one of the states that it allows; or it said that it was done,
and was. The same operation again, without a fault, must complete. All is read by plain means (``oracle``).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, product
from pathlib import Path

import anyio
import system_calls
from cut_writers import KINDS, Live, Steps, Wrong, prepare
from figure import Figure, Outcome, Run, file_system
from oracle import Disk
from system_calls import Operation
from writers import forget_folders, in_memory, in_parallel, start

import smartwriter.files.whole as whole_file
import smartwriter.memory.files as memories
from smartwriter.errors import SmartWriterError
from smartwriter.workspace import Workspace

_RARE = ("rename", "unlink", "link", "truncate")
_QUICK_STEPS = {True: 2, False: 12}
"""Of the rare ones, one in so many; and of the others."""
_ERRORS = (errno.EIO, errno.EACCES, errno.ENOSPC)
_SAID_SO, _FAILED = 3, 4
"""Exit codes of the operation: it raised what it may, or something else."""

# Of x86-64: the numbers of the calls, and which of their arguments are paths (after their folders) and files.
_BY_PATH = {
    2: ("open", (None, 0)),
    82: ("rename", (None, 0)),
    83: ("mkdir", (None, 0)),
    86: ("link", (None, 0)),
    87: ("unlink", (None, 0)),
    257: ("open", (0, 1)),
    258: ("mkdir", (0, 1)),
    263: ("unlink", (0, 1)),
    264: ("rename", (0, 1)),
    265: ("link", (0, 1)),
    316: ("rename", (0, 1)),
}
_BY_FILE = {
    0: "read",
    1: "write",
    17: "read",
    18: "write",
    74: "sync",
    75: "sync",
    77: "truncate",
    217: "list",
}


class _Registers(ctypes.Structure):
    _names = (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
        "fs_base gs_base ds es fs gs"
    )
    _fields_ = [(name, ctypes.c_ulonglong) for name in _names.split()]


_GET_REGISTERS, _SET_REGISTERS = 12, 13


@dataclass(frozen=True)
class _Fault:
    """The n-th call on a folder, of the rare ones or of the others, ends with an error."""

    number: int
    rare: bool
    error: int
    folder: str


@dataclass(frozen=True)
class _Ended:
    """How a traced operation came to its end."""

    call: str
    """That failed; empty: there were not so many."""
    status: int


def _measure(run: Run) -> Outcome:
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return Outcome("it answers system calls as on Linux on x86-64 only", None)
    return in_parallel([partial(_measure_apart, run)])[0]


def _measure_apart(run: Run) -> Outcome:
    """In a process of its own, because of what it sets."""
    anyio.run(anyio.sleep, 0)
    for module in (memories, whole_file):
        vars(module)["SETTLED_S"] = 0.0  # nobody edits by hand here: nobody is waited for
    tempfile.tempdir, os.environ["HOME"] = str(run.folder / "none"), str(run.folder / "none")
    steps = _QUICK_STEPS if run.quick else {True: 1, False: 1}
    calls, wrong, random = Counter[str](), list[str](), run.random()
    with in_memory(run.folder) as folder:
        disk = file_system(folder)
        for operation, (rare, step) in product(
            [*system_calls.OPERATIONS, *_of_workspaces(folder)], steps.items()
        ):
            for number in count(random.randint(1, step), step):
                call, faults = _fault_at(operation, folder, number, rare)
                wrong += [f"{operation.name}, call {number} ({call}) failing: {fault}" for fault in faults]
                if not call:
                    break
                calls[call] += 1
    how = ", ".join(f"{times} {call}" for call, times in sorted(calls.items()))
    got = f"{'some' if run.quick else 'each'} of the calls failed: {how}: "
    got += "\n                ".join([f"{len(wrong)} faults", *wrong[:5]])
    needed = {"open", "read", "write", "sync", "rename", "unlink"}
    return Outcome(got, not wrong and needed <= calls.keys(), disk)


def _fault_at(operation: Operation, root: Path, number: int, rare: bool) -> tuple[str, list[str]]:
    """The call that failed, and what was wrong then."""
    template, folder = root / operation.name, root / "trial"
    forget_folders()
    if not template.exists():
        operation.prepare(template)
    shutil.copytree(template, folder)
    forget_folders()
    fault = _Fault(number, rare, _ERRORS[number % len(_ERRORS)], str(folder))
    ended = _with_fault(fault, partial(operation.run, folder))
    forget_folders()
    faults = list(_faults(operation, folder, ended))
    shutil.rmtree(folder)
    return ended.call, faults


def _faults(operation: Operation, folder: Path, ended: _Ended) -> Iterator[str]:
    if ended.status not in (0, _SAID_SO):
        yield f"it ended with {ended.status}"
    if fault := operation.fault(folder):
        yield fault
    if ended.status == 0:
        if undone := operation.undone(folder):
            yield f"said to be done: {undone}"
    else:
        start(lambda report: operation.run(folder)).wait()
        if undone := operation.undone(folder):
            yield f"again: {undone}"


# --- all that a workspace keeps -----------------------------------------------------------------


def _of_workspaces(root: Path) -> Iterator[Operation]:
    """The second and third step of each of the writers that are also there when the power is cut."""
    for kind in KINDS:
        if kind is not Live:
            for number in (2, 3):
                yield Operation(
                    f"{kind.name}, step {number}",
                    partial(_prepare, kind, number),
                    partial(_step, kind, number),
                    changes=".*",
                    makes=".*",
                    fault=partial(_step_fault, kind, (number - 1, number)),
                    undone=partial(_step_fault, kind, (number,)),
                )


def _prepare(kind: type[Steps], number: int, folder: Path) -> None:
    prepare(folder)
    for earlier in range(2, number):
        _step(kind, earlier, folder)


def _step(kind: type[Steps], number: int, folder: Path) -> None:
    workspace = Workspace(folder)
    steps = kind()
    task = workspace.tasks.find(kind.name)
    if steps.found(Disk(folder), next(_lines(folder, kind)), 0) < number:
        steps.step(workspace, task, number)
    else:
        steps.made_up_for(workspace, task, number)


def _lines(folder: Path, kind: type[Steps]) -> Iterator[dict[str, object]]:
    return (line for line in Disk(folder).tasks() if line["title"] == kind.name)


def _step_fault(kind: type[Steps], allowed: tuple[int, ...], folder: Path) -> str:
    try:
        found = kind().found(Disk(folder), next(_lines(folder, kind)), min(allowed))
    except (Wrong, OSError, ValueError, LookupError) as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    return "" if found in allowed else f"step {found} of {allowed} is there"


# --- tracing ------------------------------------------------------------------------------------


def _with_fault(fault: _Fault, work: Callable[[], None]) -> _Ended:
    """Run in another process, one of whose calls fails."""
    pid = os.fork()
    if not pid:
        status = _FAILED
        try:
            signal.alarm(60)
            system_calls.trace_me()
            with system_calls.one_thread():
                work()
            status = 0
        except (OSError, SmartWriterError):
            status = _SAID_SO
        except BaseException:
            pass
        finally:
            os._exit(status)
    try:
        os.waitpid(pid, 0)
        system_calls.begin_tracing(pid)
        return _trace(pid, fault)
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _trace(pid: int, fault: _Fault) -> _Ended:
    passed_on, failed, enters, number = 0, "", True, fault.number
    while True:
        system_calls.go_on(pid, passed_on)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return _Ended(failed, os.waitstatus_to_exitcode(status))
        if not system_calls.is_at_a_call(status):
            passed_on = os.WSTOPSIG(status)
            continue
        passed_on = 0
        if not enters and number == 0:
            _change(pid, rax=(1 << 64) - fault.error)
            number = -1
        elif enters and number > 0 and (call := _call(pid, fault.folder)):
            number -= (call in _RARE) is fault.rare
            if number == 0:
                failed = call
                _change(pid, orig_rax=(1 << 64) - 1)  # there is no such call: nothing is done
        enters = not enters


def _registers(pid: int) -> _Registers:
    registers = _Registers()
    system_calls.ptrace(_GET_REGISTERS, pid, ctypes.addressof(registers))
    return registers


def _change(pid: int, **values: int) -> None:
    registers = _registers(pid)
    for name, value in values.items():
        setattr(registers, name, value)
    system_calls.ptrace(_SET_REGISTERS, pid, ctypes.addressof(registers))


def _call(pid: int, folder: str) -> str:
    """The name of the call that is entered, if it is one on the folder."""
    registers = _registers(pid)
    arguments = [registers.rdi, registers.rsi, registers.rdx]
    if name := _BY_FILE.get(registers.orig_rax):
        return name if _is_in(_opened(pid, arguments[0]), folder) else ""
    name, (base, path) = _BY_PATH.get(registers.orig_rax, ("", (None, 0)))
    if not name:
        return ""
    place = _string(pid, arguments[path])
    if base is not None and not place.startswith("/"):
        place = f"{_opened(pid, arguments[base])}/{place}"
    return name if _is_in(place, folder) else ""


def _is_in(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder}/")


def _opened(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{ctypes.c_int(fd).value}")  # noqa: PTH115
    except OSError:
        return ""


def _string(pid: int, address: int) -> str:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        data = b""
        while b"\0" not in data and len(data) < 8192:
            data += memory.read(4096 - (address + len(data)) % 4096)
    return os.fsdecode(re.split(b"\0", data)[0])


FIGURES = [
    Figure(
        "each call on the disk failing once: open, read, write, sync, rename, unlink, mkdir, truncate, list",
        "said so, with a valid state, or done; again without the fault it completes",
        _measure,
    )
]
