"""``scripts/scorecard [--quick] [--seed N] [NAME...]``: trust, as figures anyone can reproduce.

Exit code 0: all of them hold. 1: one falls short. 3: none does, but one could not be measured here.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from figure import Figure, Outcome, Run, file_system

MODULES = (
    "kills",
    "power_cuts",
    "system_calls",
    "disk_faults",
    "call_faults",
    "full_turns",
    "damaged_files",
    "many_writers",
    "schedules",
    "round_trips",
    "read_only",
    "lost_lines",
    "mutations",
    "draft_kills",
    "many_tasks",
    "idle_tasks",
    "articles",
    "host_kills",
    "orphans",
    "two_writers",
    "lease_ends",
    "broken_connections",
    "listeners",
    "quick_commands",
    "comparisons",
    "strangers",
    "books",
    "merging",
    "compactions",
)

_SHORT, _NOT_MEASURED = 1, 3


def main() -> int:
    options = _options()
    figures = [figure for module in MODULES for figure in _figures(module)]
    if options.names:
        figures = [figure for figure in figures if any(name in figure.name for name in options.names)]
    print(f"seed {options.seed}{', quick' if options.quick else ''}", flush=True)
    results = list[dict[str, Any]]()
    for figure in figures:
        outcome, seconds = _measure(figure, options.quick, options.seed)
        mark = {True: "ok      ", False: "SHORT   ", None: "NOT MEASURED\n        "}[outcome.ok]
        print(f"{mark}{figure.name}\n        target  {figure.target}", flush=True)
        print(f"        got     {outcome.got}  ({seconds:.1f} s, {outcome.disk})", flush=True)
        results.append(
            {
                "figure": figure.name,
                "target": figure.target,
                "got": outcome.got,
                "ok": outcome.ok,
                "seconds": round(seconds, 1),
                "disk": outcome.disk,
            }
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2, ensure_ascii=False))
    print("\n".join(summary(results)))
    return exit_code([result["ok"] for result in results])


def exit_code(verdicts: Sequence[bool | None]) -> int:
    return _SHORT if False in verdicts else _NOT_MEASURED if None in verdicts or not verdicts else 0


def summary(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is said at the end, so that nobody has to look for it: what fell short, what was not measured."""
    lines = []
    for ok, mark in ((None, "NOT MEASURED"), (False, "SHORT")):
        lines += [f"{mark}: {each['figure']}: {each['got']}" for each in results if each["ok"] is ok]
    verdicts = [result["ok"] for result in results]
    held = f"{verdicts.count(True)} of {len(results)} figures hold"
    unmeasured = verdicts.count(None)
    return [*lines, f"{held}, {unmeasured} not measured" if unmeasured else held]


def _measure(figure: Figure, quick: bool, seed: int) -> tuple[Outcome, float]:
    folder = Path(tempfile.mkdtemp(prefix="scorecard-"))
    disk = file_system(folder)
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")  # nobody's own settings
    started = time.monotonic()
    try:
        outcome = figure.measure(Run(quick=quick, seed=seed, folder=folder))
    except Exception as error:  # a figure that could not be measured falls short
        outcome = Outcome(f"{type(error).__name__}: {error}", False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return replace(outcome, disk=outcome.disk or disk), time.monotonic() - started


def _figures(module: str) -> list[Figure]:
    return list(importlib.import_module(module).FIGURES)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/scorecard", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a twentieth of everything")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--json", type=Path, help="write the table there too")
    parser.add_argument("names", nargs="*", help="only figures with this in their name")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
