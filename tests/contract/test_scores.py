"""What the contract finds by scoring a task: headroom, chance and baselines, whichever way a metric points."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tests.contract.helpers import (
    COUNT,
    METHOD_FILE,
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


@pytest.mark.parametrize("metric", ["r2", "mae"])
def test_a_task_of_noise_has_no_headroom(good: Path, metric: str) -> None:
    new_labels(noise(7))(good)
    judged_by(metric, 0.0)(good)
    finding = check(good, "good", "--only", "task-headroom")["task-headroom"]
    assert (finding["status"], "nothing beats a guess" in finding["detail"]) == ("failed", True), finding
    assert "band_statistics" in finding["detail"]


@pytest.mark.parametrize("metric", ["r2", "mae"])
def test_a_task_that_a_baseline_solves_has_no_headroom(good: Path, metric: str) -> None:
    new_labels(statistic("sum"))(good)
    judged_by(metric, 1.0)(good)
    finding = check(good, "good", "--only", "task-headroom")["task-headroom"]
    assert (finding["status"], "no room for better methods" in finding["detail"]) == ("warning", True), finding


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


LOWER = [("mae", 1.336, 0.1), ("mse", 2.77, 0.3), ("r2", 0.84, 0.05)]


@pytest.mark.parametrize(("metric", "score", "tolerance"), LOWER)
def test_any_direction_can_keep_the_whole_contract(good: Path, metric: str, score: float, tolerance: float) -> None:
    judged_by(metric, score, tolerance)(good)
    findings = check(good, "good")
    assert {row["status"] for name, row in findings.items() if name != "task-novelty"} == {"ok"}, findings


@pytest.mark.parametrize("off", [-3, 3])
def test_a_baseline_may_be_missed_on_neither_side(good: Path, off: int) -> None:
    metric, score, tolerance = LOWER[0]
    judged_by(metric, score + off * tolerance, tolerance)(good)
    assert "the baseline is not met" in check(good, "good", "--only", "task-baseline")["task-baseline"]["detail"]


@pytest.mark.parametrize("metric", ["mae", "mse", "r2"])
def test_a_task_that_random_numbers_solve_is_found(good: Path, metric: str) -> None:
    """Labels made of the very numbers that the contract takes as noise."""
    values = np.random.default_rng(1).standard_normal((COUNT, 32))[:, :3].sum(axis=1)
    new_labels(column(lambda i: values[i]))(good)
    judged_by(metric, 1.0)(good)
    detail = check(good, "good", "--only", "task-chance")["task-chance"]["detail"]
    assert "random embeddings solve the task" in detail
    assert ("not below" in detail) == (metric != "r2")


def test_wild_labels_cannot_be_solved_by_squared_error_either(good: Path) -> None:
    new_labels(column(lambda i: 1e9 if i == 3 else 0.001 * i))(good)
    judged_by("mse", 1.0)(good)
    detail = check(good, "good", "--only", "task-solvable")["task-solvable"]["detail"]
    assert "the labels themselves do not solve the task; expected below" in detail


@pytest.mark.parametrize(
    "spoil",
    [
        own_metric("lambda truth, prediction: 0.95"),
        own_metric("lambda truth, prediction: float(abs(truth - prediction).mean())", lower=0.0),  # turned round
    ],
)
def test_a_metric_under_which_nothing_beats_a_guess_is_found(good: Path, spoil: Spoil) -> None:
    spoil(good)
    assert "a perfect answer is no better than a guess" in check(good, "good")["task-chance"]["detail"]
