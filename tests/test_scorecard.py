from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

_FOLDER = Path(__file__).parent / "scorecard"


@pytest.fixture(autouse=True)
def its_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of the scorecard import each other by their bare names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(_FOLDER))
    yield
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if Path(file).parent == _FOLDER:
            del sys.modules[name]


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"scorecard_{name.strip('_')}", _FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def result(name: str, ok: bool | None) -> dict[str, object]:
    return {"figure": name, "got": f"the {name}", "ok": ok}


@pytest.mark.parametrize(
    ("verdicts", "last", "code"),
    [
        ([True, True], "2 of 2 figures hold", 0),
        ([True, None, None], "1 of 3 figures hold, 2 not measured", 3),
        ([True, None, False], "1 of 3 figures hold, 1 not measured", 1),
        ([False], "0 of 1 figures hold", 1),
        ([], "0 of 0 figures hold", 3),
    ],
)
def test_not_measured_never_counts_as_held(verdicts: list[bool | None], last: str, code: int) -> None:
    """A figure that could not be measured is counted as such, said again at the end, and is an exit code."""
    main = module("__main__")
    results = [result(f"figure {number}", ok) for number, ok in enumerate(verdicts)]
    *notes, summary = main.summary(results)
    assert (summary, main.exit_code(verdicts)) == (last, code)
    assert notes == [
        f"{mark}: figure {number}: the figure {number}"
        for wanted, mark in ((None, "NOT MEASURED"), (False, "SHORT"))
        for number, ok in enumerate(verdicts)
        if ok is wanted
    ]


@pytest.mark.parametrize(
    ("wrong", "not_measured", "ok"),
    [
        ({}, "it needs root", None),
        ({"raised": 1}, "it needs root", False),
        ({"full": 3}, "", True),
        ({}, "", False),
    ],
)
def test_half_a_figure_is_not_ok(wrong: dict[str, int], not_measured: str, ok: bool | None) -> None:
    """The disk-faults figure without its full tmpfs is not measured, and SHORT where a fault is wrong."""
    outcome = module("disk_faults").outcome(10, Counter(wrong), not_measured)
    assert outcome.ok is ok
    assert not_measured in outcome.got


def test_every_mutation_fits() -> None:
    """What is taken out of the code to see whether the tests notice is in the code, exactly once, and so is
    the test that is named for it: a change of either has to go on with it."""
    mutations, tests = module("mutations"), Path(__file__).parent
    places = mutations._Places(tests.parent / "smartwriter")
    for mutation in mutations.MUTATIONS:
        places.place_of(mutation)
        file, _, name = mutation.test.partition("::")
        (path,) = tests.rglob(file)
        assert f"def {name.partition('[')[0]}(" in path.read_text(), mutation.test
    assert len(mutations.MUTATIONS) == len({mutation.name for mutation in mutations.MUTATIONS})


@pytest.mark.parametrize(
    ("changed", "ok"), [({}, True), ({"turns acknowledged": 0}, None), ({"turns lost": 1}, False)]
)
def test_a_cut_that_reached_nothing_proves_nothing(changed: dict[str, int], ok: bool | None) -> None:
    """A quick run of power cuts in which nothing of some kind was acknowledged is not measured."""
    power_cuts = module("power_cuts")
    totals = Counter({**dict.fromkeys(power_cuts._NEEDED, 1), **changed})
    assert power_cuts.outcome(totals, quick=True).ok is ok
