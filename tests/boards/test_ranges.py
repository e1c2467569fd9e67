"""Intervals of ranks: what they unite, that they contradict neither groups nor chances, and how often they hold."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from neuco_core.boards.stats.rank_intervals import Pairs, judge_pairs, percentiles, rank_ranges
from neuco_core.boards.stats.ranking import Rule, rank
from neuco_core.boards.stats.uncertainty import Assessment, TaskScores, assess, replicate_board
from tests.boards.helpers import simulate
from tests.boards.test_uncertainty import NOISE, expected_q, share_inside


def assessed(scores: list[TaskScores], seed: int = 0) -> Assessment:
    sure = assess(scores, Rule(), seed=seed, replicates=300)
    assert sure is not None
    return sure


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
    behind, apart = judge_pairs(values, values, 0.95)
    assert (behind[1:, 0] > 0.975).all()
    assert not apart[0, 1:].any()
    assert (behind + behind.T + np.eye(12) == 1).all()
