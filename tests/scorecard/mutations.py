"""Mutations: the code with one promise taken out of it, and whether the tests notice.

Each mutation in ``planted.py`` names one test. It is run against a copy of the package, where it must be
green, and against a copy with the mutation, where it must fail. A quick run takes those mutations that are
always to be taken, and some others, by its seed.
"""

from __future__ import annotations

import ast
import compileall
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from py_compile import PycInvalidationMode

from figure import Figure, Outcome, Run
from planted import MUTATIONS, Mutation

_ROOT = Path(__file__).parent.parent.parent
_QUICK_OTHERS = 11  # beside those that are always taken
_TIMEOUT_S = 120
_WIDE = "400"  # columns, else pytest cuts the names of tests


def _measure(run: Run) -> Outcome:
    taken = MUTATIONS
    if run.quick:
        others = [one for one in MUTATIONS if not one.always]
        taken = [one for one in MUTATIONS if one.always] + run.random().sample(others, _QUICK_OTHERS)
    whole = _copy(run.folder / "whole")
    imported = _run(whole, "-c", "import smartwriter; print(smartwriter.__file__)")[1].strip()
    if Path(imported) != whole / "smartwriter" / "__init__.py":
        return Outcome(f"not the copy was imported but {imported}", False)
    places = _Places(whole / "smartwriter")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(partial(_try, run.folder, places), taken))
        tests = list(dict.fromkeys(one.test for one in taken))
        # A quick run has no time to start each of them by itself.
        parts = (
            [tests[n :: os.cpu_count()] for n in range(os.cpu_count() or 1)]
            if run.quick
            else [[t] for t in tests]
        )
        red = set(chain.from_iterable(pool.map(partial(_red, whole), filter(None, parts))))
    short = [f"{one.name}: {result}" for one, result in zip(taken, results, strict=True) if result]
    got = f"{len(taken) - len(short)} of {len(taken)} turn their test red"
    short += [f"without any mutation, red: {test}" for test in sorted(red)]
    return Outcome("\n                ".join([got, *short]), not short)


def _try(folder: Path, places: _Places, mutation: Mutation) -> str:
    """Why a mutation does not count as noticed; empty where it does."""
    try:
        module, source = places.mutated(mutation)
    except _Misfit as misfit:
        return str(misfit)
    place = folder / re.sub(r"\W+", "-", mutation.name)
    shutil.copytree(places.package.parent, place, copy_function=os.link)
    path = place / "smartwriter" / module
    path.unlink()  # a link to the one that is whole
    path.write_text(source, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()
    code, output = _run_tests(place, [mutation.test])
    shutil.rmtree(place, ignore_errors=True)
    if code != 1 or not re.search(r"^1 failed", output, re.MULTILINE):
        return f"{mutation.test} does not fail: {_end_of(output)}"
    broken = re.search(r"^E +(?:NameError|UnboundLocalError|ImportError|TypeError): .*", output, re.MULTILINE)
    return f"it breaks the code, and not its promise: {broken[0]}" if broken else ""


def _red(whole: Path, tests: Sequence[str]) -> list[str]:
    """Those of some tests that are not green on the code as it is."""
    code, output = _run_tests(whole, tests)
    if code == 0:
        return []
    return re.findall(r"^(?:FAILED|ERROR) \S*?([\w.]+::\S+)", output, re.MULTILINE) or [_end_of(output)]


def _end_of(output: str) -> str:
    return " ".join(output[-400:].split())


# The code -----------------------------------------------------------------------------------------


class _Misfit(Exception):
    """A mutation that cannot be made, which is never one that was noticed."""


@dataclass(frozen=True)
class _Definition:
    module: str
    first: int
    """Line, from 0."""
    last: int


class _Places:
    """Where everything is defined in a package: a mutation finds its own, whatever module it is in."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self._sources: dict[str, list[str]] = {}
        self._defined: dict[str, list[_Definition]] = {}
        for path in sorted(package.rglob("*.py")):
            module, source = str(path.relative_to(package)), path.read_text(encoding="utf-8")
            self._sources[module] = source.splitlines(keepends=True)
            for name, node in _definitions(ast.parse(source)):
                first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))]) - 1
                place = _Definition(module, first, node.end_lineno or node.lineno)
                self._defined.setdefault(name, []).append(place)

    def place_of(self, mutation: Mutation) -> _Definition:
        """What it is to be made in. :raises _Misfit: unless it fits exactly once."""
        defined = self._defined.get(mutation.where, [])
        if not defined:
            raise _Misfit(f"there is no {mutation.where} any more")
        fits = [(place, self._text(place).count(mutation.old)) for place in defined]
        if sum(times for _, times in fits) != 1:
            raise _Misfit(
                f"its text stands {sum(t for _, t in fits)} times in {mutation.where}, and must once"
            )
        return next(place for place, times in fits if times)

    def mutated(self, mutation: Mutation) -> tuple[str, str]:
        """The module, and its source with the mutation. :raises _Misfit: where it cannot be made."""
        place = self.place_of(mutation)
        lines = self._sources[place.module]
        text = self._text(place).replace(mutation.old, mutation.new)
        before, after = "".join(lines), "".join([*lines[: place.first], text, *lines[place.last :]])
        try:
            changes = ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))
        except SyntaxError as error:
            raise _Misfit(f"it makes no Python: {error}") from None
        if not changes:
            raise _Misfit("it changes nothing")
        return place.module, after

    def _text(self, place: _Definition) -> str:
        return "".join(self._sources[place.module][place.first : place.last])


def _definitions(node: ast.AST, within: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Classes, functions and the variables of modules and classes, by qualified name."""
    for child in getattr(node, "body", []):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{within}{child.name}", child
            yield from _definitions(child, f"{within}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            for target in child.targets if isinstance(child, ast.Assign) else [child.target]:
                if isinstance(target, ast.Name):
                    yield f"{within}{target.id}", child


# Copies and processes -----------------------------------------------------------------------------


def _copy(place: Path) -> Path:
    """What the tests need of the repository, in a folder of its own, and compiled once for all."""
    ignore = shutil.ignore_patterns("__pycache__", "scorecard", "bench")
    for name in ("smartwriter", "tests", "collections"):
        shutil.copytree(_ROOT / name, place / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(_ROOT / name, place / name)
    # Never compared with the source: what differs from it is removed.
    unchecked = PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(place / "smartwriter", quiet=1, invalidation_mode=unchecked)
    return place


def _run_tests(place: Path, tests: Sequence[str]) -> tuple[int, str]:
    """How pytest ends, and what it says, of tests by the names of their files, wherever those are."""
    found = []
    for test in tests:
        file, _, name = test.partition("::")
        paths = list((place / "tests").rglob(file))
        if len(paths) != 1:
            return -1, f"there are {len(paths)} files {file}"
        found.append(f"{paths[0].relative_to(place)}::{name}")
    options = ["-q", "-p", "no:cacheprovider", "--no-header", *(["-x"] if len(tests) == 1 else [])]
    base = tempfile.mkdtemp(prefix="base-", dir=place)  # two may run in a copy at once
    timeout_s = _TIMEOUT_S * len(tests)
    return _run(place, "-m", "pytest", *options, "--basetemp", base, *found, timeout_s=timeout_s)


def _run(place: Path, *arguments: str, timeout_s: float = _TIMEOUT_S) -> tuple[int, str]:
    home = place / "home"
    home.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(place),
        "HOME": str(home),
        "TMPDIR": str(home),
        "COLUMNS": _WIDE,
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
        output = process.communicate(timeout=timeout_s)[0]
    except subprocess.TimeoutExpired:
        # The tests' own processes too: they hold the pipe, and would outlive their parent.
        os.killpg(process.pid, signal.SIGKILL)
        return -1, process.communicate()[0] + f"\nstopped after {timeout_s:.0f} s"
    return process.returncode, output


FIGURES = [
    Figure(
        "mutations of the code",
        f"each of {len(MUTATIONS)} turns the one test red that is named for it; without it that is green",
        _measure,
    )
]
