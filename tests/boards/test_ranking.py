"""The ranking is the paper's: its Table 4 to 1e-9, and what must hold for any board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from neuco_core.boards.published import read_published
from neuco_core.boards.stats.diagnostics import without_each
from neuco_core.boards.stats.ranking import Rule, aggregations, positions, rank
from neuco_core.errors import UsageError

# What eq. 2 and 4 of the paper give for its Table 4 with Q = 100 R², in the table's order.
WEIGHTS = np.fromstring(
    """
    0.09987421612499482 0.07598895599528527 0.09719051843255277 0.24794877539590685 0.08939404162087716
    0.10701354269144209 0.14229789731348083 0.1402920524254603
    """,
    sep=" ",
)
WEIGHTED = np.fromstring(
    """
    18.0 10.480524897235059 10.181912591870631 12.195446476587193 11.399391566325612 14.651649029977287
    14.402606597088603 11.020250951839927 8.319216449969684 13.568541713695591 9.810437436934166 9.501233642337418
    7.6697480133032645 4.959180196849562 2.388240827821367 1.0000000000000002 6.133859372901832 4.76413640982529
    """,
    sep=" ",
)
FINAL = [18, 11, 10, 14, 13, 17, 16, 12, 7, 15, 9, 8, 6, 4, 2, 1, 5, 3]
WEIGHTS_ALONE = np.fromstring(
    """
    0.11627649561054172 0.08823216276414643 0.117256801471129 0.13597195081254276 0.11200648125937895
    0.15537048843925155 0.11082348643684133 0.16406213320616828
    """,
    sep=" ",
)
FINAL_ALONE = [12, 11, 14, 13, 17, 16, 10, 6, 15, 9, 8, 7, 3, 2, 1, 5, 4]

boards = arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(1, 7)), elements=st.integers(-30, 30).map(lambda n: n / 4)
)


@pytest.fixture
def table4(committed_registry: Path) -> np.ndarray:
    return read_published(committed_registry / "published/neuco-paper-table-4.json").cells().numbers("q")


def test_table_4(table4: np.ndarray) -> None:
    ranking = rank(table4)
    assert ranking.weights == pytest.approx(WEIGHTS, abs=1e-9)
    assert ranking.weighted == pytest.approx(WEIGHTED, abs=1e-9)
    assert ranking.final.tolist() == FINAL


def test_table_4_without_the_averaging_baseline(table4: np.ndarray) -> None:
    baselines = np.arange(18) == 0
    alone = rank(table4[:, 1:])
    assert alone.weights == pytest.approx(WEIGHTS_ALONE, abs=1e-9)
    assert alone.final.tolist() == FINAL_ALONE
    assert rank(table4, Rule(weights="no-baselines"), baselines).weights == pytest.approx(WEIGHTS_ALONE, abs=1e-9)


def test_other_weights(table4: np.ndarray) -> None:
    assert rank(table4, Rule(weights="equal")).weights == pytest.approx([1 / 8] * 8)
    clouds = 3  # where one entry is very bad
    assert rank(table4, Rule(spread="robust")).weights[clouds] < rank(table4).weights[clouds] / 1.5
    for q in ([[3.0], [1.0]], [[2.0, 2.0], [5.0, 5.0]]):  # without spread all tasks count the same
        ranking = rank(np.array(q))
        assert ranking.weights.tolist() == [0.5, 0.5]
        assert (ranking.final == 1).all()
    on_paper = np.array([[3.0, 1.0, 2.0], [2.0, 3.0, 1.0], [1.0, 2.0, 3.0]])  # its ties are ties here
    assert rank(on_paper, Rule(weights="equal")).final.tolist() == [1, 1, 1]


def test_what_leaving_out_a_method_or_a_task_moves(table4: np.ndarray) -> None:
    moved = sorted(without_each("method", table4, Rule(), np.zeros(18, bool))[0].values())
    assert moved == [(3, 4), (4, 3), (6, 7), (7, 6), (10, 11), (11, 12), (12, 10)]
    q = np.array([[9.0, 1.0], [2.0, 3.0]])
    assert without_each("task", q, Rule(), np.zeros(2, bool)) == {0: {0: (1, 2), 1: (2, 1)}}
    assert without_each("task", q[:1], Rule(), np.zeros(2, bool)) == {}


def test_a_ghost_task_takes_weight_and_gives_rank_0(table4: np.ndarray) -> None:
    plain, ghost = rank(table4), rank(table4, Rule(ghost=50.0))
    assert ghost.weights.sum() + ghost.ghost == pytest.approx(1)
    assert ghost.weighted == pytest.approx(plain.weighted * (1 - ghost.ghost))
    assert ghost.ghost == pytest.approx(50 / (50 + table4.std(axis=1).sum()))


@given(boards)
def test_ties_share_the_better_rank(q: np.ndarray) -> None:
    expected = [[1 + sum(other > value for other in row) for value in row] for row in q]
    assert positions(-q).tolist() == expected


@given(boards, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_of_tasks_does_not_matter(q: np.ndarray, random: object) -> None:
    ranking = rank(q)
    methods, tasks = list(range(q.shape[1])), list(range(q.shape[0]))
    random.shuffle(methods)  # type: ignore[attr-defined]
    random.shuffle(tasks)  # type: ignore[attr-defined]
    again = rank(q[np.ix_(tasks, methods)])
    assert again.final.tolist() == ranking.final[methods].tolist()
    assert again.weights == pytest.approx(ranking.weights[tasks])


@given(boards, st.floats(0, 100), st.sampled_from(["all", "no-baselines", "equal"]), st.sampled_from(["std", "robust"]))
def test_weights_sum_to_1(q: np.ndarray, ghost: float, weights: str, spread: str) -> None:
    baselines = np.arange(q.shape[1]) % 3 == 0
    ranking = rank(q, Rule(weights, spread, ghost), baselines)
    assert ranking.weights.sum() + ranking.ghost == pytest.approx(1)
    assert (ranking.weights >= 0).all()


@given(boards)
@settings(max_examples=30)
def test_many_boards_at_once_are_ranked_like_each_alone(q: np.ndarray) -> None:
    both = rank(np.stack([q, -q]))
    assert both.final.tolist() == [rank(q).final.tolist(), rank(-q).final.tolist()]


def test_aggregations_side_by_side() -> None:
    q = np.array([[10.0, 10.0, 5.0], [1.0, 2.0, 3.0]])
    values = aggregations(q, q / 100, rank(q))
    assert values["mean_q"].tolist() == [5.5, 6.0, 4.0]
    assert values["borda"].tolist() == [1.5, 2.5, 2.0]
    assert values["mean_score"] == pytest.approx([0.055, 0.06, 0.04])


@pytest.mark.parametrize("bad", [{"weights": "some"}, {"spread": "var"}, {"ghost": -1.0}, {"ghost": float("nan")}])
def test_a_rule_that_is_none(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Rule(**bad)  # type: ignore[arg-type]
