"""Intervals hold what they promise on boards whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuco_core.boards.stats.rank_intervals import groups
from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.boards.stats.uncertainty import TaskScores, assess, assess_tasks, mean_interval, replicate_q
from tests.boards.helpers import RHO, simulate

NOISE = 0.05


def expected_q(truth: np.ndarray, splits: int) -> np.ndarray:
    """Q of the true mean and the standard deviation that so many splits show on average."""
    from scipy.special import gammaln

    shown = np.sqrt(2 / splits) * np.exp(gammaln(splits / 2) - gammaln((splits - 1) / 2))
    q: np.ndarray = 2 * truth / (NOISE * np.sqrt(1 - RHO) * shown + 0.02)
    return q


def share_inside(low: np.ndarray, high: np.ndarray, truth: np.ndarray) -> float:
    return float(((low <= truth) & (truth <= high)).mean())


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
        sure = assess(scores, Rule(), seed=board, replicates=300)
        assert sure is not None
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
        sure = assess(lifted, Rule(), seed=board, replicates=300)
        assert sure is not None
        wrong += bool(sure.apart[0, 1])
        assert sure.apart[2, :2].all()
        assert sure.best[2] > 0.99
        assert sure.rank.low[2] == sure.rank.high[2] == 1
    assert wrong <= 2  # 5 % of 40


def test_methods_are_compared_on_the_same_splits() -> None:
    """A small lead on every single split is a sure one, however much the splits themselves differ."""
    hard = np.random.default_rng(5).normal(0.5, 0.2, 40)
    sure = assess([TaskScores(np.stack([hard, hard + 0.01]))], Rule())
    assert sure is not None
    assert sure.apart[0, 1]


def test_two_tasks_that_say_the_same_are_no_more_than_one() -> None:
    splits = np.random.default_rng(9).normal([[0.4], [0.5]], 0.05, (2, 40))
    one = assess([TaskScores(splits, dataset="x")], Rule())
    same = assess([TaskScores(splits, dataset="x")] * 2, Rule())
    apart = assess([TaskScores(splits, dataset="x"), TaskScores(splits, dataset="y")], Rule())
    assert one is not None
    assert same is not None
    assert apart is not None
    assert (same.mean_q.high - same.mean_q.low) == pytest.approx(one.mean_q.high - one.mean_q.low)
    assert ((apart.mean_q.high - apart.mean_q.low) < 0.85 * (one.mean_q.high - one.mean_q.low)).all()


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
    sure = assess([TaskScores(splits, greater_is_better=False)], Rule())
    assert sure is not None
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
