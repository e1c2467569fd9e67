"""Plausible ranks: what noise has spread is pulled together, ties stay, and 95 % is kept over the board."""

from __future__ import annotations

import numpy as np
import pytest

from neuco_core.boards.stats.ranges import SLACK, plausible, rank_ranges
from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.boards.stats.uncertainty import TaskScores, assess, observed_q, replicate_board
from tests.boards.helpers import simulate
from tests.boards.test_uncertainty import NOISE, expected_q, share_inside


def plausible_of(scores: list[TaskScores], seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observed Q, its replicates, and the plausible truths."""
    observed = np.stack([observed_q(task) for task in scores])
    q = replicate_board(scores, seed=seed, replicates=300)
    return observed, q, plausible(observed, q, np.array([task.splits.shape[1] for task in scores]))


def test_percentiles_of_bootstrapped_ranks_would_be_too_sure_where_methods_are_close() -> None:
    rng = np.random.default_rng(1)
    shares: dict[str, list[float]] = {"bootstrap": [], "plausible": []}
    for board in range(60):
        truth, scores = simulate(rng, 20, 6, gap=0.003, noise=NOISE)
        _, q, drawn = plausible_of(scores, board)
        final = rank(expected_q(truth, 40)).final
        for name, values in (("bootstrap", q), ("plausible", drawn)):
            shares[name].append(share_inside(*rank_ranges(rank(values).final, 0.95), final))
    assert np.mean(shares["bootstrap"]) < 0.88
    assert np.mean(shares["plausible"]) > 0.93


@pytest.mark.parametrize("methods", [2, 3, 4])
def test_on_small_boards_intervals_are_rather_too_wide(methods: int) -> None:
    rng = np.random.default_rng(2)
    shares = []
    for board in range(60):
        truth, scores = simulate(rng, methods, 4, gap=0.02, noise=NOISE)
        sure = assess(scores, Rule(), seed=board, replicates=300)
        assert sure is not None
        shares.append(share_inside(sure.rank.low, sure.rank.high, rank(expected_q(truth, 40)).final))
    assert np.mean(shares) >= 0.95


def test_a_board_of_noise_is_pulled_together_and_one_of_signal_is_left_alone() -> None:
    rng = np.random.default_rng(3)
    for gap, kept in ((0.0, (0.0, 0.25)), (1.0, (0.97, 1.0))):
        ratios = []
        for board in range(10):
            observed, _, drawn = plausible_of(simulate(rng, 30, 4, gap=gap, noise=NOISE)[1], board)
            ratios.append(drawn.mean(axis=0).std(axis=1) / observed.std(axis=1))
        assert kept[0] <= np.mean(ratios) <= kept[1]


def test_the_pull_is_that_of_the_normal_posterior() -> None:
    """One task, true Q and noise normal with known variances: mean λx, variance λ · noise."""
    rng = np.random.default_rng(8)
    signal, noise, methods = 3.0, 1.0, 4000
    observed = rng.normal(0, np.sqrt(signal + noise), (1, methods))
    replicates = observed + rng.normal(0, np.sqrt(noise), (200, 1, methods))
    drawn = plausible(observed, replicates, np.array([10_000]))[:, 0]
    share = signal / (signal + noise)
    assert np.polyfit(observed[0], drawn.mean(axis=0), 1)[0] == pytest.approx(share, rel=0.03)
    assert drawn.var(axis=0).mean() == pytest.approx(share * noise, rel=0.03)


@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-6, 1e-9, 1e-15, 0.0])
def test_a_task_on_which_methods_are_level_takes_nothing_from_the_others(gap: float) -> None:
    rng = np.random.default_rng(9)
    tasks = [TaskScores(rng.normal([[0.9], [0.7], [0.5]], 0.05, (3, 50)), dataset=str(t)) for t in range(9)]
    shared = rng.normal(0.5, 0.05, 50)
    level = TaskScores(np.stack([shared + gap * place for place in range(3)]), dataset="level")
    sure = assess([*tasks, level], Rule())
    assert sure is not None
    assert sure.best.tolist() == [1, 0, 0]
    assert sure.rank.low.tolist() == sure.rank.high.tolist() == [1, 2, 3]


def test_a_lead_on_every_task_is_a_signal_however_noisy_each_is() -> None:
    rng = np.random.default_rng(10)
    noise = rng.normal(size=(10, 2, 40))
    noise = 0.2 * (noise - noise.mean(axis=2, keepdims=True)) / noise.std(axis=2, keepdims=True)
    tasks = [TaskScores(own + np.array([[0.56], [0.5]]), dataset=str(t)) for t, own in enumerate(noise)]
    sure = assess(tasks, Rule())
    assert sure is not None
    assert sure.best[0] > 0.85


def test_a_weak_baseline_does_not_make_the_others_look_far_apart() -> None:
    rng = np.random.default_rng(4)
    _, scores = simulate(rng, 20, 4, gap=0.003, noise=NOISE)
    weak = [TaskScores(np.vstack([task.splits, task.splits[:1] - 2.0]), task.test_to_train) for task in scores]
    without, with_it = (plausible_of(board)[2].mean(axis=0)[:, :20].std(axis=1) for board in (scores, weak))
    observed = plausible_of(scores)[0].std(axis=1)
    assert (without < 0.6 * observed).all()
    assert (with_it < 0.8 * observed).all()


def test_methods_that_are_level_on_a_task_stay_level_there() -> None:
    _, scores = simulate(np.random.default_rng(5), 6, 3, gap=0.02, noise=NOISE)
    same = scores[0].splits.copy()
    same[1] = same[0]
    drawn = plausible_of([TaskScores(same, scores[0].test_to_train), *scores[1:]])[2]
    assert (drawn[:, 0, 0] == drawn[:, 0, 1]).all()
    assert (drawn[:, 1, 0] != drawn[:, 1, 1]).all()


def test_one_method_and_equal_methods_do_no_harm() -> None:
    one = np.full((50, 2, 1), 3.0)
    assert plausible(one[0], one, np.array([40, 40])) is one
    level = np.full((50, 2, 4), 3.0)
    assert (rank(plausible(level[0], level, np.array([40, 3]))).final == 1).all()


def test_who_may_be_first_has_the_first_rank_in_the_interval() -> None:
    rng = np.random.default_rng(6)
    for board in range(20):
        sure = assess(simulate(rng, 10, 4, gap=0.03, noise=NOISE)[1], Rule(), seed=board, replicates=300)
        assert sure is not None
        assert (sure.rank.low[sure.best > 0.05 + SLACK] == 1).all()


def test_the_shortest_runs_that_hold_the_level() -> None:
    # Method 0: rank 1 in 96 of 100 replicates. Methods 1 and 2 change places; method 3 is sure.
    final = np.array([[1, 2, 3, 4]] * 50 + [[1, 3, 2, 4]] * 46 + [[3, 1, 2, 4]] * 4)
    low, high = rank_ranges(final, 0.95)
    assert list(zip(low, high, strict=True)) == [(1, 1), (2, 3), (2, 3), (4, 4)]


def test_no_interval_holds_less_than_the_slack_allows() -> None:
    final = np.argsort(np.random.default_rng(7).random((1000, 12)), axis=1) + 1
    low, high = rank_ranges(final, 0.95)
    held = ((final >= low) & (final <= high)).mean(axis=0)
    assert held.min() >= 0.95 - SLACK
    assert held.mean() >= 0.95
