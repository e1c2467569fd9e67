"""What the contract finds by scoring a task, whichever way a metric points: headroom, chance, baselines, the scale."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from neuco_core.contract.metric_scale import metric_scale
from neuco_core.plugins.catalog import load_metric
from neuco_core.tables.labels import Labels
from tests.contract.helpers import (
    COUNT,
    METHOD_FILE,
    NOT_HERE,
    TASK_FILE,
    Spoil,
    check,
    column,
    edit,
    judged_by,
    new_labels,
    statistic,
)


def noise(seed: int) -> str:
    """Labels that have nothing to do with the images."""
    random = np.random.default_rng(seed)
    return column(lambda i: f"{random.standard_normal():.4f}")


def test_a_control_needs_no_headroom(good: Path) -> None:
    new_labels(noise(7))(good)
    edit(TASK_FILE, 'unit="1"', 'unit="1", control=True')(good)
    finding = check(good, "good")["task-headroom"]
    assert (finding["status"], finding["lacking"]) == ("skipped", False)


def test_a_weak_baseline_alone_is_no_proof_that_nothing_can_be_found(good: Path) -> None:
    """Without images there are no plain statistics, only what the declared method says."""
    new_labels(noise(7))(good)
    edit(TASK_FILE, "cubes=cubes, ", "")(good)
    rows = "\n".join(["id,0,1", *(f"s{i:03d},{i % 7},{i % 5}" for i in range(COUNT)), ""])
    (good / "neuco_methods/plain/rows.csv").write_text(rows)
    digest = hashlib.sha256(rows.encode()).hexdigest()
    remote = f'Remote("pkg://neuco_methods.plain/rows.csv", sha256="{digest}")'
    edit(METHOD_FILE, "encoder=Flat", f'files={{"good": {remote}}}')(good)
    edit(METHOD_FILE, "import Method", "import Method, Remote")(good)
    edit(METHOD_FILE, ', bands=("grey/0",)', "")(good)
    finding = check(good, "good", "--only", "task-headroom")["task-headroom"]
    assert (finding["status"], "the only method that could be tried" in finding["detail"]) == ("warning", True), finding


def own_metric(function: str, **settings: object) -> Spoil:
    """A metric of the plugin's own for the good task."""
    more = "".join(f", {key}={value!r}" for key, value in settings.items())
    hook = f"""
@hookimpl
def neuco_metrics():
    from neuco_core import Metric
    yield Metric(id="good_own", function={function}{more})
"""

    def spoil(folder: Path) -> None:
        judged_by("good_own", 0.95)(folder)
        (folder / TASK_FILE).write_text((folder / TASK_FILE).read_text() + hook)

    return spoil


@pytest.mark.parametrize(("metric", "score", "tolerance"), [("mae", 1.336, 0.1), ("mse", 2.77, 0.3)])
def test_any_direction_can_keep_the_whole_contract(good: Path, metric: str, score: float, tolerance: float) -> None:
    judged_by(metric, score, tolerance)(good)
    findings = check(good, "good")
    assert {row["status"] for name, row in findings.items() if name not in NOT_HERE | {"task-novelty"}} == {"ok"}


# Labels made of the very numbers that the contract takes as noise.
LUCK = np.random.default_rng(1).standard_normal((COUNT, 32))[:, :3].sum(axis=1)
WILD = column(lambda i: 1e9 if i == 3 else 0.001 * i)
SOLVED, TURNED = "lambda truth, prediction: 0.95", "lambda truth, prediction: float(abs(truth - prediction).mean())"


@pytest.mark.parametrize(
    ("labels", "judged", "check_id", "status", "texts"),
    [
        (noise(7), judged_by("r2", 0.0), "task-headroom", "failed", ("nothing beats a guess", "band_statistics")),
        (noise(7), judged_by("mae", 0.0), "task-headroom", "failed", ("nothing beats a guess", "band_statistics")),
        (statistic("sum"), judged_by("r2", 1.0), "task-headroom", "warning", ("no room for better methods",)),
        (statistic("sum"), judged_by("mae", 1.0), "task-headroom", "warning", ("no room for better methods",)),
        (None, judged_by("mae", 1.336 - 0.3), "task-baseline", "failed", ("the baseline is not met",)),
        (None, judged_by("mae", 1.336 + 0.3), "task-baseline", "failed", ("the baseline is not met",)),
        (column(LUCK.item), judged_by("r2", 1.0), "task-chance", "failed", ("random embeddings", "not above")),
        (column(LUCK.item), judged_by("mae", 1.0), "task-chance", "failed", ("random embeddings", "not below")),
        (column(LUCK.item), judged_by("mse", 1.0), "task-chance", "failed", ("random embeddings", "not below")),
        (WILD, judged_by("mse", 1.0), "task-solvable", "failed", ("do not solve the task; expected below",)),
        (None, own_metric(SOLVED), "task-chance", "failed", ("a perfect answer is no better than a guess",)),
        (None, own_metric(TURNED, lower=0.0), "task-chance", "failed", ("a perfect answer is no better",)),
    ],
)
def test_what_a_score_tells_of_a_task(
    good: Path, labels: str | None, judged: Spoil, check_id: str, status: str, texts: tuple[str, ...]
) -> None:
    """Whichever way the metric points; the last one points the wrong way."""
    if labels is not None:
        new_labels(labels)(good)
    judged(good)
    finding = check(good, "good", "--only", check_id)[check_id]
    assert finding["status"] == status, finding
    assert all(text in finding["detail"] for text in texts), finding


VALUES = np.random.default_rng(0).lognormal(size=400)
BINARY = (np.arange(400) % 10 < 3).astype(float)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    ("metric", "values", "guess", "perfect", "solved"),
    [
        ("r2", VALUES, 0.0, 1.0, 0.9),
        ("mae", VALUES, np.abs(VALUES - np.median(VALUES)).mean(), 0.0, 0.1),
        ("mse", VALUES, VALUES.var(), 0.0, 0.1),
    ],
)
def test_a_regression_in_any_unit(
    metric: str, values: np.ndarray, guess: float, perfect: float, solved: float, unit: float
) -> None:
    measured = metric_scale(labels("regression", unit * values), load_metric(metric))
    scale = 1.0 if metric == "r2" else guess * unit ** (2 if metric == "mse" else 1)
    assert measured.guess == pytest.approx(guess if metric == "r2" else scale, abs=1e-6 * scale)
    assert measured.perfect == pytest.approx(perfect, abs=1e-6 * scale)
    assert measured.solved == pytest.approx(solved * scale, abs=1e-6 * scale)
    assert measured.better(measured.perfect, measured.guess)
    assert float(measured.show(measured.guess)) == pytest.approx(
        measured.guess, abs=1e-3 * scale
    )  # a few digits are enough


@pytest.mark.parametrize(
    ("metric", "values", "guess"),
    [
        ("f1", BINARY, 0.6 / 1.3),  # always yes
        ("f1", np.arange(400.0) % 10, 0.1),  # each class as often as it occurs
        ("accuracy", BINARY, 0.7),
        ("roc_auc", BINARY, 0.5),
        ("recall", BINARY, 1.0),  # always yes is perfect: no metric for a task of two classes
    ],
)
def test_a_classification(metric: str, values: np.ndarray, guess: float) -> None:
    measured = metric_scale(labels("classification", values), load_metric(metric))
    assert measured.guess == pytest.approx(guess, abs=0.05)
    assert (measured.perfect, measured.solved) == (1.0, pytest.approx(0.9))
    assert measured.better(measured.perfect, measured.guess) == (metric != "recall")


def labels(kind: str, values: np.ndarray) -> Labels:
    return Labels("task", kind, tuple(map(str, range(len(values)))), values, sha256="0" * 64)
