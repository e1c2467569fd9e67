"""Unknown scores are predicted from known ones, with intervals that hold, from nothing but what was shown."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from benchmarks.predict_paper import cold_folds, cold_start, fit_gaps, model, validate, verdict
from neuco_core.errors import DataError, NeucoError, UsageError
from neuco_extensions.predict import predictor
from neuco_extensions.predict.evaluate import MODELS, Fold, cross_validate, difference, folds
from neuco_extensions.predict.predictor import Predictor
from neuco_extensions.predict.process import ScoreProcess, factorise
from neuco_extensions.predict.suggest import pick, suggest
from neuco_extensions.predict.table import ScoreTable, gaps, ranges


def as_table(values: np.ndarray) -> ScoreTable:
    methods, tasks = (tuple(f"{side}{i}" for i in range(size)) for side, size in zip("mt", values.shape, strict=True))
    return ScoreTable(methods, tasks, values)


def made(methods: int = 30, tasks: int = 14, seed: int = 0, share: float = 0.7) -> ScoreTable:
    """Two skills of methods, wanted by tasks in different amounts; each task has its own unit; scores have noise."""
    random = np.random.default_rng(seed)
    z = random.normal(size=(methods, 2)) @ random.normal(size=(2, tasks)) + 0.3 * random.normal(size=(methods, tasks))
    values = 50 + random.normal(0, 40, tasks) + z * np.exp(random.normal(0, 1, tasks))
    values[random.random(values.shape) > share] = np.nan
    return as_table(values)


def written(path: Path, table: ScoreTable) -> Path:
    """A table as a CSV file with a row per method."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["method", *table.tasks])
        for name, values in zip(table.methods, table.values, strict=True):
            rows.writerow([name, *("" if value != value else f"{value:.6f}" for value in values)])
    return path


def test_gap_is_the_paper_s() -> None:
    assert gaps(np.array([[94.1], [89.7], [85.0]]))[1, 0] == pytest.approx(0.4835, abs=5e-5)
    assert gaps(np.full((3, 1), 7.0)).tolist() == [[0.0]] * 3


def test_filter_goes_on_until_nothing_has_to_go() -> None:
    values = np.full((7, 6), np.nan)
    values[:5, :5] = 1.0
    values[5, :4] = 1.0  # too few, so the last task loses its fifth result
    values[5, 5] = values[:4, 5] = 1.0
    table = ScoreTable(tuple("abcdefg"), tuple("uvwxyz"), values)
    left = table.filtered(5)
    assert (left.methods, left.tasks) == (tuple("abcdef"), tuple("uvwxyz"))
    values[5, 3] = np.nan
    assert replace(table, values=values).filtered(5).tasks == tuple("uvwxy")


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_factors_find_what_has_that_rank(rank: int) -> None:
    random = np.random.default_rng(1)
    truth = (
        random.normal(size=(30, 1))
        + random.normal(size=20)
        + random.normal(size=(30, rank)) @ random.normal(size=(rank, 20))
    )
    known = random.random(truth.shape) < 0.8
    factored = factorise(np.where(known, truth, np.nan), known, rank, 1e-6).every
    assert np.abs(factored - truth)[~known].mean() < 0.05


@pytest.mark.slow
def test_better_than_sums_and_intervals_hold() -> None:
    table = made()
    ours, additive = (cross_validate(table, MODELS[name]) for name in ("neuco", "additive"))
    more, low, _ = difference([additive], [ours])
    assert more > low > 0
    assert ours.coverage == pytest.approx(0.95, abs=0.05)
    low, high = ranges(table.values)
    at_end = np.isin(table.values[table.cells], np.concatenate([low, high]))[ours.cells]
    assert ours.covered is not None
    assert ours.coverage_of_ends == ours.covered[at_end].mean()


def test_hidden_scores_change_nothing() -> None:
    table = made(8, 6)
    hidden = folds(table)[0].hidden
    rows, columns = (numbers[hidden] for numbers in table.cells)
    other = table.values.copy()
    other[rows, columns] += 1000.0
    first, second = (Predictor().fit(t.without(hidden)).predict() for t in (table, replace(table, values=other)))
    assert np.array_equal(first, second)


def test_misses_are_those_of_scores_left_out() -> None:
    """Each from all others, with the variances and spreads as they are."""
    process = ScoreProcess(made(8, 6)).fit()
    z = process._rest / process.spreads[process.cells[1]]
    covariance = np.linalg.inv(process._inverse)
    for cell in (0, 7, len(z) - 1):
        others = np.arange(len(z)) != cell
        predicted = covariance[cell, others] @ np.linalg.solve(covariance[np.ix_(others, others)], z[others])
        assert process.misses[cell] == pytest.approx(z[cell] - predicted)


def test_a_new_method_is_predicted_from_its_group() -> None:
    table = made(12, 8, share=1.0)
    values = table.values + np.where(np.arange(12) % 2, 30.0, 0.0)[:, None]
    facts = {name: {"family": "odd" if number % 2 else "even"} for number, name in enumerate(table.methods)}
    values[0] = values[1] = np.nan
    scores = Predictor().fit(replace(table, values=values, method_facts=facts)).predict()
    assert isinstance(scores, np.ndarray)
    assert (scores[1] > scores[0]).all()


def test_large_tables_are_factorised_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table, whole = made(60, 20), Predictor().fit(made(8, 6))
    monkeypatch.setattr(predictor, "LARGEST", 100)
    large = Predictor().fit(table)
    assert (whole.limits, "factorisation alone" in large.limits) == ("", True)
    low, high = large.interval()
    truth = made(60, 20, share=1.0).values  # the same draws; what is hidden there is known here
    hidden = ~table.known
    assert np.mean(((low <= truth) & (truth <= high))[hidden]) == pytest.approx(0.95, abs=0.05)
    spread = np.nanstd(table.values, 0)
    error = np.abs(large.predict() - truth)[hidden] / np.broadcast_to(spread, truth.shape)[hidden]
    assert np.median(error) < 0.5
    again = Predictor().refit(table, large.mix)
    assert np.array_equal(again.predict(), large.predict())


@pytest.mark.slow
def test_ten_thousand_methods_are_not_a_matter_of_pairs() -> None:
    """A tenth of them here; names, cells and factors are all linear in their number."""
    scores, spread = Predictor().fit(made(1000, 100, share=0.95)).predict(return_std=True)
    assert np.isfinite([scores, spread]).all()
    with pytest.raises(DataError, match="too many scores"):
        cross_validate(made(1000, 100), MODELS["mean"])


def test_nothing_is_said_that_a_metric_cannot_give() -> None:
    table = made(10, 6)
    bounded = replace(table, allowed={"t0": (-np.inf, np.nanmax(table.values[:, 0])), "t1": (0.0, 1.0)})
    (free, *ends), (kept, *cut) = ((one.scores, *one.interval()) for one in map(Predictor().fit, (table, bounded)))
    top = np.nanmax(table.values[:, 0])
    assert ends[1][:, 0].max() > top
    assert cut[1][:, 0].max() == top >= kept[:, 0].max()
    assert np.array_equal(kept[:, 1:], free[:, 1:]), "scores outside of what is allowed are in another unit"


@pytest.mark.parametrize("shape", [(1, 6), (6, 1), (2, 3)])
@pytest.mark.parametrize("constant", [False, True])
def test_small_tables_are_defined_and_something_is_suggested(shape: tuple[int, int], constant: bool) -> None:
    values = np.random.default_rng(0).normal(size=shape) * (not constant)
    values[0, 0] = np.nan
    fitted = Predictor().fit(as_table(values))
    assert np.isfinite(fitted.predict(return_std=True)).all()
    (one,) = suggest(fitted, "m0")
    assert (one.task, one.ranks_after) == ("t0", 1 if not constant else shape[0])
    assert np.isfinite([one.predicted, one.low, one.high, one.before, one.after]).all()
    if shape[0] > 1:
        assert [(cell.method, cell.task) for cell in pick(fitted, 2)] == [("m0", "t0")]
    else:
        with pytest.raises(DataError, match="one method has no ranking"):
            pick(fitted)


def test_a_constant_task_is_predicted_as_it_is() -> None:
    table = made(8, 5, share=1.0)
    values = table.values.copy()
    values[:, 0] = 42.0
    values[0, 0] = np.nan
    scores = Predictor().fit(replace(table, values=values)).predict()
    assert isinstance(scores, np.ndarray)
    assert scores[0, 0] == pytest.approx(42.0)


def skills(random: np.random.Generator, methods: int, tasks: int) -> np.ndarray:
    noise = 0.3 * random.normal(size=(methods, tasks))
    return np.asarray(random.normal(size=(methods, 2)) @ random.normal(size=(2, tasks)) + noise)


KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "nearly perfect": lambda z: 1 - 10.0 ** -(3 + 0.4 * z).clip(1, 8),
    "nearly nothing": lambda z: expit(0.8 * z - 5),
    "shares and percentages": lambda z: expit(z) * np.where(np.arange(z.shape[1]) % 2, 1, 100),
    "as they are": lambda z: z,
}


@pytest.mark.parametrize(
    ("kind", "size", "known", "tries"),
    [
        ("nearly perfect", (20, 12), 0.8, 2),
        pytest.param("nearly perfect", (20, 12), 0.8, 4, marks=pytest.mark.slow),
        pytest.param("nearly nothing", (20, 12), 0.8, 4, marks=pytest.mark.slow),
        pytest.param("shares and percentages", (20, 12), 0.8, 4, marks=pytest.mark.slow),
        pytest.param("as they are", (15, 10), 0.15, 6, marks=pytest.mark.slow),
        pytest.param("as they are", (5, 4), 0.85, 25, marks=pytest.mark.slow),
    ],
)
def test_they_hold(kind: str, size: tuple[int, int], known: float, tries: int) -> None:
    inside: list[bool] = []
    for seed in range(tries):
        random = np.random.default_rng(seed)
        truth, hidden = KINDS[kind](skills(random, *size)), random.random(size) > known
        predictor = Predictor().fit(as_table(np.where(hidden, np.nan, truth)))
        low, high = predictor.interval()
        assert (low <= predictor.scores).all()
        assert (predictor.scores <= high).all()
        if kind.startswith("nearly"):
            assert 0 < low.min() < high.max() < 1, "shares stay shares"
        inside += ((low <= truth) & (truth <= high))[hidden].tolist()
    assert len(inside) > 50
    assert np.mean(inside) > 0.88  # 95 %, less three errors of a draw this small


def test_few_results_that_look_like_shares_are_none() -> None:
    values = np.random.default_rng(0).normal(size=(12, 6))
    values[:, 0] = [0.2, 0.7, *[np.nan] * 10]
    low, high = Predictor().fit(as_table(values)).interval()
    assert low[2:, 0].min() < 0
    assert high[2:, 0].max() > 1


def test_equal_scores_are_hidden_together_where_that_is_asked() -> None:
    values = np.random.default_rng(0).normal(size=(10, 6))
    values[5:] = values[:5]
    values[:, 5] = np.round(values[:, 5])
    plain, apart = (folds(as_table(values), equal=equal) for equal in (False, True))
    assert all(set(fold.hidden) == set(fold.asked) for fold in plain)
    for before, fold in zip(plain, apart, strict=True):
        assert np.array_equal(before.asked, fold.asked)
        left = as_table(values).without(fold.hidden).values
        rows, columns = (numbers[fold.asked] for numbers in as_table(values).cells)
        assert not any(
            (left[:, column] == values[row, column]).any() for row, column in zip(rows, columns, strict=True)
        )
        assert len(fold.hidden) > len(fold.asked)


REFUSED: list[tuple[Callable[[], object], type[NeucoError], str]] = [
    (lambda: Predictor().predict(), UsageError, "fit"),
    (lambda: Predictor().fit(np.eye(4)), UsageError, "expected a ScoreTable, got ndarray"),  # type: ignore[arg-type]
    (lambda: as_table(np.full((3, 3), np.nan)), DataError, "no score is known"),
    (lambda: as_table(np.array([[1.0, np.inf]])), DataError, "too large; expected numbers up to 1e\\+50"),
    (lambda: Predictor().fit(as_table(np.array([[1.0, 2.0, np.nan]]))), DataError, "too few results"),
    (lambda: ScoreTable(("a", "a"), ("t",), np.ones((2, 1))), DataError, "method a is there twice"),
    (lambda: as_table(np.ones((1, 6))).filtered(2), DataError, "no method and task has"),
    (lambda: as_table(np.ones((6, 1))).filtered(2), DataError, "no method and task has"),
    (lambda: cross_validate(as_table(np.ones((2, 2))), MODELS["neuco"]), DataError, "too few results"),
]


@pytest.mark.parametrize(("attempt", "error", "words"), REFUSED)
def test_what_cannot_be_learnt_from_is_refused(
    attempt: Callable[[], object], error: type[NeucoError], words: str
) -> None:
    with pytest.raises(error, match=words):
        attempt()


def test_scikit_learn_can_copy_it() -> None:
    assert clone(Predictor(3)).seed == 3


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
