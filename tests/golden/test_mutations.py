"""What a change of neuco's own code makes stale, and that golden numbers accuse a change without a version.

A raised version makes exactly the records stale that it decides. What the code of a plugin makes stale is tested on
its key, in ``tests/plugins/test_code_key.py``, and by scoring again, in ``tests/runs/test_truth.py``.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from neuco_core import builtin, encoders, versions
from neuco_core.plugins.catalog import list_suites
from neuco_core.records.fingerprint import stale_records
from neuco_core.records.model import Record
from neuco_core.records.store import read_all
from neuco_core.scoring import kernel, metrics, splits
from neuco_core.scoring.probes import knn, logistic, retrieval, ridge, shots
from tests.golden.numbers import FILE, components, problem

GOLDEN = json.loads(FILE.read_text())
GROUP = "ridge+splitter=group"
PIXELLESS = ("random", "position")


# Component → which of the shipped records are stale if its version is raised.
RAISED: dict[str, Callable[[Record], bool]] = {
    "scoring.scorer:score": lambda record: True,
    "scoring.probes.ridge:RidgeProbe": lambda record: True,
    "scoring.probes.linear:LinearProbe": lambda record: False,  # all of them are of ridge
    "scoring.metrics:f1": lambda record: record.metric == "f1",
    "scoring.metrics:strict_r2": lambda record: True,  # an input of every record
    "scoring.splits:group": lambda record: record.protocol == GROUP,
    "encoders:region": lambda record: record.method in ("averaging", "averaging_notebook"),
    "encoders:Standardizer": lambda record: record.method not in PIXELLESS,  # behind another tool
    "encoders:encode_each": lambda record: record.method not in PIXELLESS,
}


@pytest.fixture
def no_versions_kept() -> Iterator[None]:
    """Versions are read once in a process."""
    versions.parts_of.cache_clear()
    versions.behind.cache_clear()
    yield
    versions.parts_of.cache_clear()
    versions.behind.cache_clear()


@pytest.fixture
def records(committed_registry: Path) -> list[Record]:
    """Those of the shipped suites: records of tasks that are in none are not kept up."""
    tasks = {task for suite in list_suites() for task in suite.tasks}
    return [record for record in read_all(committed_registry) if record.ok and record.task in tasks]


def test_a_component_names_those_of_other_modules_that_it_uses() -> None:
    """A few labels are learned by ridge: whoever raises ridge makes their records stale, too."""
    ridge = versions.behind("neuco_core.scoring.probes.ridge", "RidgeProbe")
    few = versions.behind("neuco_core.scoring.probes.shots", "FewShots")
    assert ridge.items() < few.items()


@pytest.mark.parametrize(("name", "version"), components().items())
def test_a_component_gives_the_numbers_of_its_version(name: str, version: int) -> None:
    assert problem(name, version, GOLDEN) == ""


def test_every_metric_probe_and_splitter_that_ships_is_versioned() -> None:
    specs = [*builtin.neuco_metrics(), *builtin.neuco_probes(), *builtin.neuco_splitters()]
    targets = [getattr(spec, "factory", None) or spec.function for spec in specs]  # type: ignore[union-attr]
    assert {str(target).partition(":")[2] for target in targets} <= components().keys()


def test_numbers_of_a_version_are_never_taken_back() -> None:
    """Each component has numbers for every version up to the present one."""
    for name, version in components().items():
        assert [int(number) for number in GOLDEN[name]] == list(range(1, version + 1))


def test_without_a_change_nothing_is_stale(records: list[Record]) -> None:
    assert len(records) >= 12 * 3
    assert stale_records(records) == {}


@pytest.mark.usefixtures("no_versions_kept")
@pytest.mark.parametrize("component", RAISED)
def test_a_raised_version_makes_stale_what_it_decides_and_nothing_else(
    component: str, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = f"neuco_core.{component}".partition(":")
    file = Path(versions.PACKAGE.parent, *module.split(".")).with_suffix(".py")
    source, read = file.read_text(), Path.read_text
    raised = re.sub(rf"versioned\(\d+\)(\n(@.*\n)?(def|class) {name}\b)", r"versioned(99)\1", source)
    assert raised != source
    monkeypatch.setattr(Path, "read_text", lambda path, *a, **k: raised if path == file else read(path, *a, **k))
    expected = {record.key for record in records if RAISED[component](record)}
    assert stale_records(records).keys() == expected


def slower(fit: Callable[..., None]) -> Callable[..., None]:
    """The linear probe with half of the learning rate."""
    kernel.warm()
    return lambda *given: fit(*given[:8], given[8] / 2, *given[9:])


def farthest(order: np.ndarray, wanted: np.ndarray, count: int) -> np.ndarray:
    return FIRST(order[:, ::-1], wanted, count)


FIRST, MEASURES = knn.first_of, retrieval.measures_of


# What is changed without a version → the components that the golden numbers accuse.
CHANGED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...]]] = {
    "a constant of ridge": (lambda p: p.setattr(ridge, "STRENGTHS", ridge.STRENGTHS[::11]), ("RidgeProbe",)),
    "the training of the linear probe": (lambda p: p.setattr(kernel, "fit", slower(kernel.fit)), ("LinearProbe",)),
    "which samples are near": (lambda p: p.setattr(knn, "first_of", farthest), ("NearestNeighbors",)),
    "the costs of logistic": (lambda p: p.setattr(logistic, "COSTS", (1e-5,)), ("logistic_probe", "FewShots")),
    "which labels are drawn": (lambda p: p.setattr(shots, "spread_over", lambda y, n: np.arange(n)), ("FewShots",)),
    "what is retrieved": (
        lambda p: p.setattr(retrieval, "measures_of", lambda ranked, at: MEASURES(ranked[:, ::-1], at)),
        ("Retrieval",),
    ),
    "what is positive": (lambda p: p.setattr(metrics, "decide", lambda x: (x[..., 1] > 0.6).astype(int)), ("f1",)),
    "a splitter": (lambda p: p.setattr(splits, "math", SimpleNamespace(ceil=math.floor)), ("shuffle", "group")),
    "a table of the toolkit": (
        lambda p: p.setitem(encoders.PUBLISHED_STATISTICS, "s2l1c/B01", (1600.0, 780.0)),  # type: ignore[arg-type]
        ("fit_standardizer",),
    ),
}


@pytest.mark.parametrize("change", CHANGED)
def test_other_numbers_without_a_version_are_accused(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    edit, accused = CHANGED[change]
    current = components()
    edit(monkeypatch)
    for name in accused:
        assert problem(name, current[name], GOLDEN).startswith(f"{name} gives other numbers than its version ")
        assert "has no golden numbers for version 99" in problem(name, 99, GOLDEN)


# Edits of a copy of the project: file, pattern, what takes its place; the component, and whether it is accused.
EDITS: dict[str, tuple[str, str, str, str, bool]] = {
    "a name": ("scoring/probes/ridge.py", r"\b_solve\b", "_weights_of", "RidgeProbe", False),
    "a constant of the kernel": ("scoring/kernel.py", r"32\(0\.999\)", "32(0.99)", "LinearProbe", True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
def test_an_edited_source_is_judged_by_its_numbers(name: str, root: Path, tmp_path: Path) -> None:
    for part in ("neuco_core", "neuco_tasks", "neuco_methods", "tests/golden"):
        shutil.copytree(root / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    file, pattern, instead, component, accused = EDITS[name]
    path = tmp_path / "neuco_core" / file
    text = path.read_text()
    path.write_text(re.sub(pattern, instead, text))
    assert path.read_text() != text
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    command = [sys.executable, "-m", "tests.golden.numbers", component]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == accused, done.stderr
    assert done.stdout.startswith(f"{component} gives other numbers") == accused
