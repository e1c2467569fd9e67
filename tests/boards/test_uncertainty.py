"""Intervals of scores and of ranks, and what training adds to F1: they hold what they promise where truth is known."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from neuco_core.boards.stats.rank_intervals import (
    Contrasts,
    Pairs,
    error_of_differences,
    groups,
    percentiles,
    rank_ranges,
    share_behind,
)
from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.boards.stats.uncertainty import (
    Assessment,
    TaskScores,
    assess,
    assess_tasks,
    differences,
    mean_interval,
    replicate_board,
    replicate_q,
)
from neuco_core.scoring.f1_variance import (
    LARGEST,
    UNCORRECTED,
    is_binary,
    of_f1,
    share_of_positives,
    variance_factor,
)
from neuco_core.scoring.metrics import accuracy, f1, precision, recall
from tests.boards.helpers import RHO, simulate

NOISE = 0.05


def expected_q(truth: np.ndarray, splits: int, noise: np.ndarray | float = NOISE) -> np.ndarray:
    """Q of the true mean and the standard deviation that so many splits show on average."""
    from scipy.special import gammaln

    shown = np.sqrt(2 / splits) * np.exp(gammaln(splits / 2) - gammaln((splits - 1) / 2))
    q: np.ndarray = 2 * truth / (noise * np.sqrt(1 - RHO) * shown + 0.02)
    return q


def share_inside(low: np.ndarray, high: np.ndarray, truth: np.ndarray) -> float:
    return float(((low <= truth) & (truth <= high)).mean())


def assessed(scores: list[TaskScores], seed: int = 0) -> Assessment:
    sure = assess(scores, Rule(), seed=seed, replicates=300)
    assert sure is not None
    return sure


@pytest.mark.parametrize(
    ("methods", "tasks", "splits", "gap"),
    [
        (8, 4, 40, 0.05),
        (6, 3, 20, 0.1),
        *(
            pytest.param(*world, marks=pytest.mark.slow)
            for world in ((12, 6, 40, 0.01), (12, 11, 40, 0.02), (30, 5, 40, 0.03), (20, 6, 40, 0.003))
        ),
    ],
)
def test_95_percent_intervals_hold_and_those_of_ranks_rather_too_often(
    methods: int, tasks: int, splits: int, gap: float
) -> None:
    rng = np.random.default_rng(2025)
    inside: dict[str, list[float]] = {"mean": [], "q": [], "rank": []}
    for board in range(120):
        truth, scores = simulate(rng, methods, tasks, splits, gap, NOISE)
        q = expected_q(truth, splits)
        means = [mean_interval(task) for task in scores]
        sure = assessed(scores, board)
        inside["mean"].append(np.mean([share_inside(m.low, m.high, t) for m, t in zip(means, truth, strict=True)]))
        inside["q"].append(share_inside(sure.q.low, sure.q.high, q))
        inside["rank"].append(share_inside(sure.rank.low, sure.rank.high, rank(q).final))
    covered = {name: float(np.mean(shares)) for name, shares in inside.items()}
    assert all(0.93 <= covered[name] <= 0.97 for name in ("mean", "q")), covered
    assert 0.95 <= covered["rank"] <= 0.995, covered


def test_the_plain_bootstrap_over_overlapping_splits_would_be_too_sure() -> None:
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(100):
        truth, (scores,) = simulate(rng, 10, 1, noise=NOISE)
        plain = mean_interval(replace(scores, test_to_train=0.0))
        shares.append(share_inside(plain.low, plain.high, truth[0]))
    assert np.mean(shares) < 0.8


def test_two_equal_methods_cannot_be_told_apart_and_a_better_one_can() -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for board in range(40):
        _, scores = simulate(rng, 3, 4, gap=0.0)
        lifted = [TaskScores(task.splits + np.array([[0.0], [0.0], [0.3]]), task.test_to_train) for task in scores]
        sure = assessed(lifted, board)
        wrong += bool(sure.apart[0, 1])
        assert sure.apart[2, :2].all()
        assert sure.best[2] > 0.99
        assert sure.rank.low[2] == sure.rank.high[2] == 1
    assert wrong <= 2  # 5 % of 40


def test_methods_are_compared_on_the_same_splits() -> None:
    """A small lead on every single split is a sure one, however much the splits themselves differ."""
    hard = np.random.default_rng(5).normal(0.5, 0.2, 40)
    sure = assessed([TaskScores(np.stack([hard, hard + 0.01]))])
    assert sure.apart[0, 1]


def test_two_tasks_that_say_the_same_are_no_more_than_one() -> None:
    splits = np.random.default_rng(9).normal([[0.4], [0.5]], 0.05, (2, 40))
    one, same, apart = (
        (ends := assessed([TaskScores(splits, dataset=name) for name in names]).mean_q).high - ends.low
        for names in ("x", "xx", "xy")
    )
    assert same == pytest.approx(one)
    assert (apart < 0.85 * one).all()


def test_without_splits_there_is_no_uncertainty_to_tell() -> None:
    assert assess([TaskScores(np.empty((3, 0)))], Rule()) is None
    assert assess([TaskScores(np.ones((3, 1)))], Rule()) is None


def test_undefined_splits_are_left_out() -> None:
    rng = np.random.default_rng(6)
    splits = rng.normal(0.5, 0.05, (2, 40))
    splits[0, :5] = np.nan
    q = replicate_q(TaskScores(splits), np.random.RandomState(0), 400)
    assert np.isfinite(q).all()
    assert mean_interval(TaskScores(splits)).low[0] < np.nanmean(splits[0])


def test_less_is_better_turns_the_order_round() -> None:
    splits = np.random.default_rng(7).normal([[0.1], [0.9]], 0.01, (2, 40))
    sure = assessed([TaskScores(splits, greater_is_better=False)])
    assert sure.best.tolist() == [1.0, 0.0]


def test_a_method_that_is_first_everywhere_stays_so_with_other_tasks() -> None:
    q = np.array([[9.0, 1.0, 2.0], [9.0, 2.0, 1.0], [9.0, 3.0, 1.0]])
    found = assess_tasks(rank(q))
    assert (found.low[0], found.high[0]) == (1, 1)
    assert (found.low[1], found.high[1]) == (2, 3)


def test_groups_are_the_longest_runs() -> None:
    apart = np.zeros((4, 4), dtype=bool)
    apart[0, 2:] = apart[2:, 0] = True
    apart[1, 3] = apart[3, 1] = True
    assert groups([0, 1, 2, 3], apart) == [[0, 1], [1, 2], [2, 3]]
    assert groups([0, 1, 2, 3], ~apart & ~np.eye(4, dtype=bool)) == []
    assert groups([0, 1, 2, 3], np.zeros((4, 4), dtype=bool)) == [[0, 1, 2, 3]]


def nobody(methods: int) -> Pairs:
    """Every pair is undecided."""
    return Pairs(np.where(np.eye(methods), 0.0, 0.5), np.zeros((methods, methods), dtype=bool))


def test_percentiles_of_bootstrapped_ranks_would_be_too_sure_where_methods_are_close() -> None:
    rng = np.random.default_rng(1)
    shares: dict[str, list[float]] = {"plain": [], "united": []}
    for board in range(30):
        truth, scores = simulate(rng, 20, 6, gap=0.003, noise=NOISE)
        final = rank(expected_q(truth, 40)).final
        plain = percentiles(rank(replicate_board(scores, seed=board, replicates=300)).final, 0.95, "inverted_cdf")
        for name, ends in (("plain", plain), ("united", assessed(scores, board).rank)):
            shares[name].append(share_inside(*ends, final))
    assert np.mean(shares["plain"]) < 0.9
    assert 0.93 < np.mean(shares["united"]) < 0.99


@pytest.mark.parametrize("methods", [2, 3, 4])
def test_on_small_boards_intervals_are_rather_too_wide(methods: int) -> None:
    rng = np.random.default_rng(2)
    shares = []
    for board in range(30):
        truth, scores = simulate(rng, methods, 4, gap=0.02, noise=NOISE)
        shares.append(share_inside(*assessed(scores, board).rank, rank(expected_q(truth, 40)).final))
    assert np.mean(shares) >= 0.95


def test_a_weak_method_does_not_make_the_others_surer() -> None:
    """What a method is good at on one task is not noise, however far another method is behind on all of them."""
    rng = np.random.default_rng(4)
    shares: dict[float, list[float]] = {0.0: [], 1.0: []}
    for board in range(30):
        truth, scores = simulate(rng, 13, 8, gap=0.0, noise=NOISE)
        own = 0.03 * rng.standard_normal(truth.shape)
        for fall, held in shares.items():
            lift = own - np.where(np.arange(13) == 0, fall, 0.0)
            lifted = [TaskScores(s.splits + by[:, None], s.test_to_train) for s, by in zip(scores, lift, strict=True)]
            held.append(share_inside(*assessed(lifted, board).rank, rank(expected_q(truth + lift, 40)).final))
    assert all(np.mean(held) > 0.94 for held in shares.values()), shares


@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-6, 1e-9, 1e-15, 0.0])
def test_a_task_on_which_methods_are_level_takes_nothing_from_the_others(gap: float) -> None:
    rng = np.random.default_rng(9)
    tasks = [TaskScores(rng.normal([[0.9], [0.7], [0.5]], 0.05, (3, 50)), dataset=str(t)) for t in range(9)]
    shared = rng.normal(0.5, 0.05, 50)
    level = TaskScores(np.stack([shared + gap * place for place in range(3)]), dataset="level")
    sure = assessed([*tasks, level])
    assert sure.best.tolist() == [1, 0, 0]
    assert sure.rank.low.tolist() == sure.rank.high.tolist() == [1, 2, 3]


def test_a_lead_on_every_task_is_a_signal_however_noisy_each_is() -> None:
    rng = np.random.default_rng(10)
    noise = rng.normal(size=(10, 2, 40))
    noise = 0.2 * (noise - noise.mean(axis=2, keepdims=True)) / noise.std(axis=2, keepdims=True)
    tasks = [TaskScores(own + np.array([[0.56], [0.5]]), dataset=str(t)) for t, own in enumerate(noise)]
    assert assessed(tasks).best[0] > 0.85


def test_one_method_and_equal_methods_do_no_harm() -> None:
    alone = assessed([TaskScores(np.random.default_rng(5).normal(0.5, 0.05, (1, 40)))])
    assert (alone.rank.low.tolist(), alone.rank.high.tolist(), alone.best.tolist()) == ([1], [1], [1.0])
    splits = np.tile(np.random.default_rng(4).normal(0.5, 0.05, 40), (4, 1))
    for tasks in ([TaskScores(np.full((4, 40), 0.3))], [TaskScores(splits), TaskScores(splits + 0.1)]):
        level = assessed(tasks)
        assert level.rank.low.tolist() == level.rank.high.tolist() == [1] * 4, "they share the place, surely"
        assert level.best.tolist() == [0.25] * 4
        assert not level.apart.any()


@pytest.mark.parametrize(("methods", "gap"), [(10, 0.03), (30, 0.02), (30, 0.1)])
def test_intervals_groups_and_chances_do_not_contradict_each_other(methods: int, gap: float) -> None:
    rng = np.random.default_rng(6)
    for board in range(20):
        sure = assessed(simulate(rng, methods, 4, gap=gap, noise=NOISE)[1], board)
        low, high = sure.rank
        for a, b in combinations(range(methods), 2):
            assert sure.apart[a, b] or (low[a] <= high[b] and low[b] <= high[a])
        assert (low[sure.best > 0.025] == 1).all()


def test_the_ranks_of_the_replicates_and_that_of_the_board_are_inside() -> None:
    # Method 0: rank 1 in 96 of 100 replicates. Methods 1 and 2 change places; method 3 is sure.
    final = np.array([[1, 2, 3, 4]] * 50 + [[1, 3, 2, 4]] * 46 + [[3, 1, 2, 4]] * 4)
    everybody = Pairs(np.tri(4, k=-1), ~np.eye(4, dtype=bool))  # surely in this order
    low, high = rank_ranges(np.array([1, 2, 3, 4]), final, everybody, 0.95)
    assert list(zip(low, high, strict=True)) == [(1, 3), (1, 3), (2, 3), (4, 4)]
    low, high = rank_ranges(np.array([2, 2, 3, 4]), final[:50], everybody, 0.95)
    assert list(zip(low, high, strict=True)) == [(1, 2), (2, 2), (3, 3), (4, 4)]


def test_places_that_nobody_surely_takes_are_open() -> None:
    final = np.tile([1, 2, 3, 4], (50, 1))
    low, high = rank_ranges(final[0], final, nobody(4), 0.95)
    assert (low.tolist(), high.tolist()) == ([1] * 4, [4] * 4)
    behind = nobody(4).behind
    behind[3, :2], behind[:2, 3] = 1, 0  # the last is surely worse than the first two
    low, high = rank_ranges(final[0], final, Pairs(behind, behind == 1), 0.95)
    assert (low.tolist(), high.tolist()) == ([1, 1, 1, 3], [3, 3, 4, 4])


def test_intervals_of_methods_that_are_not_told_apart_meet() -> None:
    final = np.tile(np.arange(1, 7), (50, 1))
    apart = ~np.eye(6, dtype=bool)
    apart[1, 4] = apart[4, 1] = False
    low, high = rank_ranges(final[0], final, Pairs(np.tri(6, k=-1), apart), 0.95)
    assert list(zip(low, high, strict=True)) == [(1, 1), (2, 3), (3, 3), (4, 4), (3, 5), (6, 6)]


def test_a_pair_is_sure_by_itself_sooner_than_among_many() -> None:
    rng = np.random.default_rng(8)
    values = rng.standard_normal((2000, 12))
    values[:, 0] -= 4.0  # 2.8 standard errors
    behind = share_behind(values)
    assert (behind[1:, 0] > 0.975).all()
    assert (behind + behind.T + np.eye(12) == 1).all()
    mean, error = values.mean(axis=0), error_of_differences(np.cov(values, rowvar=False))
    assert not Contrasts(mean - mean[:, None], error, 39).sure(0.95).any()
    assert Contrasts(mean[:2] - mean[:2, None], error[:2, :2], 39).sure(0.95)[0, 1]


@pytest.mark.parametrize(("methods", "tasks", "splits"), [(12, 1, 40), (12, 4, 10), (30, 3, 40), (2, 4, 40)])
def test_of_equal_methods_none_is_told_apart_on_95_percent_of_boards(methods: int, tasks: int, splits: int) -> None:
    rng = np.random.default_rng(11)
    boards = [simulate(rng, methods, tasks, splits, gap=0.0, noise=NOISE)[1] for _ in range(300)]
    wrong = [differences(scores, np.ones(tasks)).sure(0.95).any() for scores in boards]
    assert np.mean(wrong) < 0.08


def test_related_tasks_of_one_dataset_are_no_further_evidence() -> None:
    """Their errors are the same, so eight of them tell as much as one."""
    rng = np.random.default_rng(12)
    wrong = []
    for _ in range(300):
        (task,) = simulate(rng, 12, 1, gap=0.0, noise=NOISE)[1]
        wrong.append(differences([replace(task, dataset="one")] * 8, np.ones(8)).sure(0.95).any())
    assert np.mean(wrong) < 0.08


def test_methods_that_differ_are_told_apart_by_their_scores_sooner_than_by_q() -> None:
    rng = np.random.default_rng(13)
    found = []
    for board in range(20):
        scores = simulate(rng, 12, 5, gap=0.0, noise=NOISE)[1]
        skill = 0.02 * (np.arange(12) % 3)
        lifted = [replace(task, splits=task.splits + skill[:, None]) for task in scores]
        differing = skill[:, None] != skill
        found.append(assessed(lifted, board).apart[differing].mean())
    assert np.mean(found) > 0.3


def test_a_pair_whose_scores_and_ranks_disagree_is_not_told_apart() -> None:
    z = np.random.default_rng(14).standard_normal(40)
    task = TaskScores(np.stack([0.6 + 0.1 * z, 0.45 + 0.01 * z]))  # the first is better, the second has the higher Q
    assert differences([task], np.ones(1)).sure(0.95)[0, 1]
    assert not assessed([task]).apart.any()


SPLITS, SAMPLES, TEST = 20, 500, 50
RATIO = TEST / (SAMPLES - TEST)


def drawn(positives: float, distance: float, sets: int = 400) -> tuple[np.ndarray, float, float]:
    """F1 of data sets and splits, of a line through two normal classes; and what the model says to its mean."""
    rng = np.random.default_rng(1)
    y = (rng.random((sets, 1, SAMPLES)) < positives).astype(float)
    x = rng.standard_normal(y.shape) + distance * y
    order = rng.permuted(np.broadcast_to(np.arange(SAMPLES), (sets, SPLITS, SAMPLES)), axis=2)
    y, x = (np.take_along_axis(np.broadcast_to(a, order.shape), order, 2) for a in (y, x))
    trained, labels = x[..., TEST:], y[..., TEST:]
    centre, share = trained.mean(axis=2, keepdims=True), labels.mean(axis=2, keepdims=True)
    slope = ((trained - centre) * (labels - share)).sum(axis=2, keepdims=True) / ((trained - centre) ** 2).sum(
        axis=2, keepdims=True
    )
    named, true = share + slope * (x[..., :TEST] - centre) > 0.5, y[..., :TEST] > 0.5
    scores = 2 * (named & true).sum(axis=2) / np.maximum(named.sum(axis=2) + true.sum(axis=2), 1)
    needed = scores.mean(axis=1).var(ddof=1) / scores.var(axis=1, ddof=1).mean() - 1 / SPLITS
    return scores, needed / RATIO, variance_factor(float(scores.mean()), positives, TEST / SAMPLES)


@pytest.mark.parametrize(("positives", "distance"), [(0.5, 2.0), (1 / 3, 2.0), (1 / 3, 1.2), (0.2, 2.5)])
def test_the_factor_is_what_data_sets_really_show(positives: float, distance: float) -> None:
    _, needed, factor = drawn(positives, distance)
    assert factor == pytest.approx(needed, rel=0.3)


@pytest.mark.parametrize("positives", [0.5, 1 / 3])
def test_intervals_of_f1_hold_the_truth_as_often_as_they_say(positives: float) -> None:
    scores, _, factor = drawn(positives, 1.2)
    task = TaskScores(scores, RATIO, samples=SAMPLES, factors=np.full(len(scores), factor), lower=0.0, upper=1.0)
    truth = scores.mean()

    def held(own: TaskScores) -> float:
        ends = mean_interval(own)
        return float(((ends.low <= truth) & (truth <= ends.high)).mean())

    assert 0.92 <= held(task) <= 0.99
    assert held(replace(task, factors=1.0, lower=None, upper=None)) < held(task)


def test_training_matters_less_the_better_the_classes_are_told_apart() -> None:
    factors = [variance_factor(score, 1 / 3, 0.1) for score in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] > 2
    assert factors[-1] == pytest.approx(1, abs=0.01)
    assert (variance_factor(0.0, 0.3, 0.1), variance_factor(1.0, 0.3, 0.1)) == (LARGEST, 1.0)


def test_the_share_of_positives_follows_from_recorded_metrics() -> None:
    rng = np.random.default_rng(0)
    told: dict[str, list[float | None]] = {"f1": [], "accuracy": [], "precision": [], "recall": []}
    shares = []
    for _ in range(30):
        truth = rng.random(60) < 0.3
        guess = np.where(rng.random(60) < 0.8, truth, ~truth).astype(float)
        prediction = np.stack([1 - guess, guess], axis=1)
        for name, metric in (("f1", f1), ("accuracy", accuracy), ("precision", precision), ("recall", recall)):
            told[name].append(metric(truth.astype(int), prediction))
        shares.append(truth.mean())
    found = share_of_positives(told["accuracy"], told["precision"], told["recall"])
    assert found == pytest.approx(np.mean(shares))
    assert is_binary(told["f1"], told["precision"], told["recall"])
    factor, trials = of_f1(told, RATIO)
    assert 1 < factor < LARGEST
    assert found / 2 < trials < 2 * found
    assert share_of_positives([0.9, None], [None, 0.5], [0.0, 0.5]) == pytest.approx(0.1)
    assert share_of_positives([1.0], [1.0], [1.0]) is None


def test_what_records_do_not_tell_changes_nothing() -> None:
    several = {"f1": [0.62], "accuracy": [0.8], "precision": [0.7], "recall": [0.6]}  # a mean over classes
    assert of_f1(several, RATIO) == UNCORRECTED
    assert of_f1({"f1": [0.5]}, RATIO) == UNCORRECTED


def test_intervals_stay_between_the_ends_and_no_spread_is_not_no_doubt() -> None:
    rng = np.random.default_rng(2)
    splits = np.stack([np.zeros(40), np.ones(40), np.clip(rng.normal(0.98, 0.03, 40), 0, 1)])
    task = TaskScores(splits, samples=200, lower=0.0, upper=1.0)
    ends = mean_interval(task)
    assert ends.low[0] == 0 < ends.high[0] < 0.05
    assert 0.95 < ends.low[1] < ends.high[1] == 1
    assert 0.9 < ends.low[2] < splits[2].mean() < ends.high[2] < 1
    q = replicate_q(task, np.random.RandomState(0), 300)
    assert np.isfinite(q).all()
    assert (q >= 0).all()
    assert q[:, 0].std() > 0
