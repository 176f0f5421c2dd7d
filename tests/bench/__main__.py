"""``scripts/bench [--json FILE] [NAME...]``: how fast the store is, side by side with its peers.

Each figure is the median of runs that were interleaved with those of its peer, with the lowest
and the highest. They are figures, not assertions: exit code 1 only says that something could not
be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import anyio

from bench import appending, listing, loading, records, texts, turns
from bench.ratio import Got, Row
from smartwriter.agent.offline.environment import clean_environment

_TEMPORARY = Path(__file__).parents[2] / ".tmp"  # on the real disk
_ROWS = [*appending.ROWS, *loading.ROWS, *listing.ROWS, *turns.ROWS, *records.ROWS, *texts.ROWS]


def main() -> int:
    options = _options()
    rows = [row for row in _ROWS if not options.names or any(name in row.name for name in options.names)]
    results = []
    for row in rows:
        started = time.monotonic()
        with _folder() as folder:
            try:
                got: Got | str = anyio.run(row.measure, folder)
            except Exception as error:
                got = f"{type(error).__name__}: {error}"
        results.append(_result(row, got, time.monotonic() - started))
        _print(results[-1])
    if options.json:
        options.json.write_text(json.dumps(results, indent=2, ensure_ascii=False))
    return 1 if any(result["met"] is None for result in results) else 0


def _result(row: Row, got: Got | str, seconds: float) -> dict[str, object]:
    result: dict[str, object] = {"work": row.name, "target": str(row.target), "seconds": round(seconds, 1)}
    if isinstance(got, str):
        return result | {"met": None, "got": "not measured", "absolute": got}
    values, unit = got.figure.values, row.target.unit
    cpu = f"; in CPU time {median(got.figure.cpu):.3g}" if got.figure.cpu else ""
    return result | {
        "met": row.target.met_by(got.figure.middle),
        "got": f"{got.figure.middle:.3g}{unit} ({min(values):.3g}-{max(values):.3g}{cpu})",
        "absolute": ", ".join(f"{name} {amount}" for name, amount in got.absolute.items()),
        "values": values,
        "cpu_values": got.figure.cpu,
    }


def _print(result: dict[str, object]) -> None:
    mark = {True: "ok", False: "MISSED", None: "FAILED"}[result["met"]]  # type: ignore[index]
    print(f"{mark:8}{result['work']}\n        target  {result['target']}", flush=True)
    print(f"        got     {result['got']}; {result['absolute']}  ({result['seconds']} s)", flush=True)


@contextmanager
def _folder() -> Iterator[Path]:
    """An empty folder, which is the home folder too; what points at anything real is gone."""
    _TEMPORARY.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=_TEMPORARY))
    before = dict(os.environ)
    try:
        with clean_environment():
            home, measured = folder / "home", folder / "measured"
            home.mkdir()
            measured.mkdir()
            os.environ.update(HOME=str(home), TMPDIR=str(home))
            tempfile.tempdir = None
            yield measured
    finally:
        os.environ.clear()
        os.environ.update(before)
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the table there too")
    parser.add_argument("names", nargs="*", help="only rows with this in their name")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
