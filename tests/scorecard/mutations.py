"""Mutations: the code with one promise taken out of it, and whether the tests notice.

Each mutation is one textual replacement, which must fit exactly once, in a copy of the package. The
tests of the store are copied beside it and run against it until the first of them fails; then the
failed one is run against a copy without the mutation, where it must pass: else the suite would be
red anyhow. A quick run takes two of the mutations.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from figure import Figure, Outcome, Run

_ROOT = Path(__file__).parent.parent.parent
_QUICK_MUTATIONS = 2
_PROCESSES = 2
_TIMEOUT_S = 180
_TESTS = [f"tests/test_{name}.py" for name in ("session_store", "cases", "journal", "damage")]


@dataclass(frozen=True)
class Mutation:
    name: str
    old: str
    new: str
    first: str = "session_store"
    """Whose tests are run first, because they notice soonest."""
    module: str = "journal"


MUTATIONS = [
    Mutation(
        "no sync",
        "def _sync_data(fd: int) -> None:\n",
        "def _sync_data(fd: int) -> None:\n    return\n",
    ),
    Mutation(
        "no lock",
        "portalocker.lock(fd, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)",
        "pass",
    ),
    Mutation(
        "no tail isolation",
        'self.size - 1) == b"\\n":\n            return b""\n        return b"\\n"\n',
        'self.size - 1) == b"\\n":\n            return b""\n        return b""\n',
        first="cases",
    ),
    Mutation("no rollback", "os.ftruncate(self._fd, self.size)", "pass"),
    Mutation(
        "no de-dup",
        "new = self._without_known(batch) if journal._unique else batch",
        "new = batch",
        first="cases",
    ),
    Mutation(
        "no folder sync",
        "    fd = os.open(folder, os.O_RDONLY)\n",
        "    return\n    fd = os.open(folder, os.O_RDONLY)\n",
    ),
    Mutation(
        "no salvage",
        "entries, damage = salvage(line, before, decode(next_line))",
        "entries, damage = list[Entry](), [Damage(0, len(line))]",
        first="cases",
    ),
    Mutation(
        "no clean-up of a created file",
        "if self._created and self.size == 0:",
        "if False:",
    ),
]


def _measure(run: Run) -> Outcome:
    mutations = run.random().sample(MUTATIONS, _QUICK_MUTATIONS) if run.quick else MUTATIONS
    missing = [name for name in _TESTS if not (_ROOT / name).exists()]
    if missing:
        return Outcome(f"no {', '.join(missing)}", False)
    with ThreadPoolExecutor(_PROCESSES) as pool:
        results = list(pool.map(partial(_try, run.folder), mutations))
    short = [
        f"{mutation.name}: {result}" for mutation, result in zip(mutations, results, strict=True) if result
    ]
    names = ", ".join(mutation.name for mutation in mutations)
    got = f"red for {len(mutations) - len(short)} of {len(mutations)} ({names})"
    return Outcome("\n                ".join([got, *short]), not short)


def _try(folder: Path, mutation: Mutation) -> str:
    """Why the mutation does not count as noticed; empty where it does."""
    place = folder / mutation.name.replace(" ", "-")
    mutated, whole = _copy(place / "mutated"), _copy(place / "whole")
    module = mutated / "smartwriter" / f"{mutation.module}.py"
    source = module.read_text()
    if (fits := source.count(mutation.old)) != 1:
        return f"its text stands {fits} times in {module.name}, and must stand there once"
    module.write_text(source.replace(mutation.old, mutation.new))
    first = f"tests/test_{mutation.first}.py"
    output = _run_tests(mutated, first, *(name for name in _TESTS if name != first))
    failed = re.search(r"^FAILED (\S+?::.+?)(?: - .*)?$", output, re.MULTILINE)
    if failed is None:
        return f"no test failed: {output[-300:]}"
    output = _run_tests(whole, failed[1])
    return (
        "" if re.search(r"^1 passed", output, re.MULTILINE) else f"{failed[1]} is red anyhow: {output[-300:]}"
    )


def _copy(place: Path) -> Path:
    """What the tests need of the repository, in a folder of its own."""
    ignore = shutil.ignore_patterns("__pycache__", "scorecard", "bench")
    for name in ("smartwriter", "tests", "collections"):
        shutil.copytree(_ROOT / name, place / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(_ROOT / name, place / name)
    return place


def _run_tests(place: Path, *tests: str) -> str:
    """What pytest says, run in a copy: its package comes before the one that is installed."""
    imported = _run(place, "-c", "import smartwriter; print(smartwriter.__file__)").strip()
    if Path(imported) != place / "smartwriter" / "__init__.py":
        return f"not the copy was imported but {imported}"
    options = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", "--basetemp", str(place / "base"))
    return _run(place, "-m", "pytest", *options, *tests)


def _run(place: Path, *arguments: str) -> str:
    home = place / "home"
    home.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "TMPDIR": str(home),
        "COLUMNS": "400",  # else pytest cuts the names of tests
    }
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=_TIMEOUT_S)[0]
    except subprocess.TimeoutExpired:
        # The tests' own processes too: they hold the pipe, and would outlive their parent.
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + f"\nstopped after {_TIMEOUT_S} s"


FIGURES = [
    Figure(
        "mutations of the code",
        "the suite turns red for each: " + ", ".join(mutation.name for mutation in MUTATIONS),
        _measure,
    )
]
