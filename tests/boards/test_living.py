"""The board of a living suite: a new task takes nobody off it, and is shown with what it lacks."""

from __future__ import annotations

from neuco_core.boards.build import build_board
from neuco_core.boards.cells import pool
from neuco_core.boards.model import Board
from tests.boards.helpers import cells_of, make_records, make_suite, simulate

SCORES = {f"m{number}": {"a": 0.1 * number, "b": 0.2 + 0.1 * number, "c": 0.5} for number in range(4)}


def board(scores: dict[str, dict[str, float]], *tasks: str) -> Board:
    suite = make_suite(*tasks, living=True, options={"coverage": "most", "replicates": 10})
    return build_board(make_records(scores), suite)


def test_a_task_without_scores_is_shown_and_not_counted() -> None:
    before, now = board(SCORES, "a", "b", "c"), board(SCORES, "a", "b", "c", "new")
    assert before.ranks == now.ranks
    assert [task.id for task in now.tasks] == ["a", "b", "c", "new"]
    assert {row.cells["new"].reason for row in now.rows} == {"there is no record"}


def test_a_task_that_one_method_lacks_counts_when_it_is_scored() -> None:
    some = {name: row | ({"new": 0.3} if name != "m1" else {}) for name, row in SCORES.items()}
    now = board(some, "a", "b", "c", "new")
    assert set(now.ranks) == set(SCORES)
    assert [task.id for task in now.tasks if task.values] == ["a", "b", "c"]
    whole = board({name: row | {"new": 0.3} for name, row in SCORES.items()}, "a", "b", "c", "new")
    assert [task.id for task in whole.tasks if task.values] == ["a", "b", "c", "new"]


def test_a_method_with_few_scores_is_shown_and_not_ranked() -> None:
    now = board({**SCORES, "few": {"a": 0.9}}, "a", "b", "c")
    assert set(now.ranks) == set(SCORES)
    assert [row.method for row in now.rows if row.rank is None] == ["few"]


def test_no_pattern_of_gaps_leaves_a_gap_in_the_pool() -> None:
    import numpy as np

    for seed in range(30):
        rng = np.random.default_rng(seed)
        cells = cells_of(simulate(rng, 6, 5)[1])
        for place in list(cells.cells):
            if rng.random() < 0.4:
                del cells.cells[place]  # type: ignore[attr-defined]
        chosen = pool(cells, "most")
        assert all(chosen.scored(method, task) for method in chosen.methods for task in chosen.tasks)
