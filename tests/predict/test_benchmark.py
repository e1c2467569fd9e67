"""The paper's encoders and protocols in ``benchmarks/predict_paper.py``: what the documentation's figures rest on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.predict_paper import cold_folds, cold_start, fit_gaps, model, validate, verdict
from neuco_core.errors import UsageError
from neuco_extensions.predict.evaluate import Fold, difference
from neuco_extensions.predict.table import ScoreTable, gaps
from tests.predict.test_predictor import made


@pytest.mark.slow
def test_a_new_method_is_better_known_by_every_result() -> None:
    outcomes = cold_start(made(10, 8, share=1.0), "neuco")
    assert list(outcomes) == [0, 1, 2, 3]
    assert {len(outcome.cells) for outcome in outcomes.values()} == {40}
    assert outcomes[3].mse < outcomes[0].mse


@pytest.mark.slow
def test_results_of_a_new_method_decide_nothing_about_it() -> None:
    """Neither what is predicted of it while they are hidden, nor which of them `suggest` would have first."""
    table = made(9, 5, share=1.0)
    other = replace(table, values=table.values + np.where(np.arange(9) == 4, 1000.0, 0.0)[:, None])
    (first, predicted), (second, again) = (_without(one, 4) for one in (table, other))
    assert [fold.hidden.tolist() for fold in first] == [fold.hidden.tolist() for fold in second]
    assert np.array_equal(predicted, again)


def _without(table: ScoreTable, method: int) -> tuple[list[Fold], np.ndarray]:
    """The folds in which this method is new, and what is predicted where nothing of it is known."""
    parts = {
        known: [part for part in every if (table.cells[0][part.hidden] == method).all()]
        for known, every in cold_folds(table, seed=0, suggested=True).items()
    }
    return [part for every in parts.values() for part in every], model("neuco")(table, parts[0], 0)[0]


def test_verdicts_and_names_of_models() -> None:
    verdicts = [verdict(*ends) for ends in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1))]
    assert verdicts == ["supported", "opposite", "not supported"]
    with pytest.raises(UsageError, match="unknown predictor 'l3-5'"):
        validate(made(6, 5), "l3-5")


@pytest.mark.slow
def test_differences_of_encoders_have_intervals() -> None:
    table = made(6, 5)
    chosen, other = ([validate(table, name, "paper", seed) for seed in range(2)] for name in ("l2-5", "cosine-2"))
    more, low, high = difference(other, chosen)
    assert more == pytest.approx(np.mean([one.mse for one in other]) - np.mean([one.mse for one in chosen]))
    assert low < more < high


@pytest.mark.slow
@pytest.mark.parametrize("distance", ["l2", "cosine", "poincare"])
def test_encoders_learn(distance: str) -> None:
    """Gaps that are distances of points are found again, at least better than their mean tells them."""
    table = made(20, 12)
    known = gaps(table.values)[None]
    fitted = fit_gaps(known, table.known[None], distance, dimension=3)
    assert np.nanmean((fitted - known) ** 2) < 0.5 * np.nanvar(known)
