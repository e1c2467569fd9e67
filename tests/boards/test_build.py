"""Boards from records: who is ranked, and who is not and why; living suites, and copies, which are ranked once."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from neuco_core.boards.build import TooManyCellsError, build_board
from neuco_core.boards.cells import Cell, Cells, fold, from_records, pool
from neuco_core.boards.model import Board, number, plain
from neuco_core.boards.report import grid, notes
from neuco_core.boards.store import read_board
from neuco_core.errors import UsageError
from neuco_core.files import dump
from tests.boards.helpers import SCORES, SUITE, board_of, cells_of, make_record, make_records, make_suite, simulate


def dumped(board: Board) -> bytes:
    return dump(plain(board))


def test_rows_are_in_order_and_hold_everything() -> None:
    board = build_board(make_records(SCORES), SUITE)
    assert [row.method for row in board.rows][-1] == "gamma"
    row = board.rows[0]
    assert set(row.values) == {"best", "weighted_rank", "mean_q", "mean_score", "borda", "dim"}
    assert set(row.cells) == {"first", "second"}
    cell = row.cells["first"]
    assert cell.intervals["score"].low < cell.values["score"]  # type: ignore[operator]
    assert sum(task.values["weight"] or 0 for task in board.tasks) == pytest.approx(1)
    assert board.kind == "neuco"
    assert board.options["coverage"] == "complete"
    assert "every task" in board.rule
    assert sum(row.values["best"] or 0 for row in board.rows) == pytest.approx(1, abs=1e-3)


def test_renaming_methods_in_the_same_order_changes_names_only() -> None:
    board = build_board(make_records(SCORES), SUITE)
    renamed = build_board(make_records({f"x-{name}": row for name, row in SCORES.items()}), SUITE)
    first, second = plain(board.rows), plain(renamed.rows)
    assert [row.pop("method") for row in second] == ["x-" + row.pop("method") for row in first]
    for row in (*first, *second):
        for cell in row["cells"].values():
            cell.pop("fingerprint")
    assert first == second


def test_a_method_that_lacks_a_task_is_shown_with_the_reason() -> None:
    failed = make_record("delta", "second", status="failed", failure="memory", reason="needed 9 GB")
    records = [*make_records(SCORES), *make_records({"delta": {"first": 0.5}}), failed]
    board = build_board(records, SUITE)
    assert "delta" not in board.ranks
    (row,) = board.unranked
    assert [(task, cell.status, cell.reason) for task, cell in row.lacks.items()] == [
        ("second", "failed", "memory: needed 9 GB")
    ]
    assert row.cells["first"].values
    assert row in board.shown


def test_the_common_subset_ranks_everybody_on_fewer_tasks() -> None:
    records = [*make_records(SCORES), *make_records({"delta": {"first": 0.95}})]
    board = build_board(records, SUITE, {"coverage": "common"})
    assert board.ranks["delta"] == 1
    assert [task.id for task in board.tasks] == ["first"]
    assert "Not counted: task second, which delta lack" in board.notes
    assert board.options["coverage"] == "common"


@pytest.mark.parametrize(
    ("field", "words"), [("task_version", "version 2 of the task"), ("method_version", "there is")]
)
def test_another_version_is_stale(field: str, words: str) -> None:
    other = make_record("alpha", "second", (0.5, 0.6), **{field: 2})
    records = [record for record in make_records(SCORES) if (record.method, record.task) != ("alpha", "second")]
    board = build_board([*records, other], SUITE)
    (row,) = board.unranked
    (cell,) = row.lacks.values()
    assert (row.method, cell.status) == ("alpha", "stale")
    assert words in cell.reason


def test_an_old_version_stays_until_its_successor_is_there() -> None:
    records = make_records(SCORES)
    second = [make_record("alpha", task, (0.8, 0.9), method_version=2) for task in ("first", "second")]
    board = build_board([*records, second[0]], SUITE)
    assert board.ranks == build_board(records, SUITE).ranks
    assert {row.version for row in board.rows if row.method == "alpha"} == {1}
    board = build_board([*records, *second], SUITE)
    assert {row.version for row in board.rows if row.method == "alpha"} == {2}
    assert len(board.ranks) == len(SCORES)
    # As many scores, but not where the old version has them.
    partly = [r for r in records if (r.method, r.task) != ("alpha", "second")]
    board = build_board([*partly, second[1]], SUITE)
    assert {row.version for row in board.rows if row.method == "alpha"} == {1}
    outdated = build_board([*records, *second], SUITE, stale=lambda r: "x" if r.method_version == 2 else None)
    assert outdated.ranks == build_board(records, SUITE).ranks


def test_neither_the_order_of_records_nor_other_protocols_and_tasks_matter() -> None:
    records = make_records(SCORES)
    others = [make_record("alpha", "first", (0.1, 0.2), protocol="ridge"), make_record("omega", "third", (0.1, 0.2))]
    board = dumped(build_board(records, SUITE))
    assert dumped(build_board(records[::-1], SUITE)) == board
    assert dumped(build_board([*records, *others], SUITE)) == board


def test_baselines_can_be_kept_out_of_the_weights() -> None:
    records = [
        *make_records(SCORES),
        *(make_record("base", t, (-9.0, -8.0), baseline=True) for t in ("first", "second")),
    ]
    board = build_board(records, SUITE, {"weights": "no-baselines"})
    assert "no baselines" in board.rule
    assert board.ranks["base"] == 4
    board = build_board(records, SUITE)
    assert "No baselines" in [column.label for column in board.sections[0].columns]


def test_a_board_of_nobody_and_of_one_method_with_one_split() -> None:
    board = build_board([], SUITE)
    assert board.rows == ()
    assert [task.values for task in board.tasks] == [{}, {}]
    dumped(board)
    board = build_board([make_record("solo", task, (0.5,)) for task in ("first", "second")], SUITE)
    assert board.ranks == {"solo": 1}
    assert board.uncertainty is None


def test_two_records_of_one_cell_are_refused() -> None:
    with pytest.raises(UsageError, match="two records"):
        build_board([*make_records(SCORES), *make_records(SCORES)], SUITE)


def test_no_nan_and_no_minus_zero() -> None:
    assert number(math.nan) is None
    assert math.copysign(1, number(-0.0) or 0.0) == 1
    with pytest.raises(ValueError, match="JSON"):
        dump({"x": math.nan})


def test_a_board_of_too_many_cells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuco_core.boards.build.LARGEST", 5)
    with pytest.raises(TooManyCellsError, match=r"at most 5, got 6.*fewer tasks"):
        build_board(make_records(SCORES), SUITE)


LIVING = {f"m{number}": {"a": 0.1 * number, "b": 0.2 + 0.1 * number, "c": 0.5} for number in range(4)}


def living_board(scores: dict[str, dict[str, float]], *tasks: str) -> Board:
    suite = make_suite(*tasks, living=True, options={"coverage": "most", "replicates": 10})
    return build_board(make_records(scores), suite)


def test_a_task_without_scores_is_shown_and_not_counted() -> None:
    before, now = living_board(LIVING, "a", "b", "c"), living_board(LIVING, "a", "b", "c", "new")
    assert before.ranks == now.ranks
    assert [task.id for task in now.tasks] == ["a", "b", "c", "new"]
    assert {row.cells["new"].reason for row in now.rows} == {"there is no record"}


def test_a_task_that_one_method_lacks_counts_when_it_is_scored() -> None:
    some = {name: row | ({"new": 0.3} if name != "m1" else {}) for name, row in LIVING.items()}
    now = living_board(some, "a", "b", "c", "new")
    assert set(now.ranks) == set(LIVING)
    assert [task.id for task in now.tasks if task.values] == ["a", "b", "c"]
    whole = living_board({name: row | {"new": 0.3} for name, row in LIVING.items()}, "a", "b", "c", "new")
    assert [task.id for task in whole.tasks if task.values] == ["a", "b", "c", "new"]


def test_a_method_with_few_scores_is_shown_and_not_ranked() -> None:
    now = living_board({**LIVING, "few": {"a": 0.9}}, "a", "b", "c")
    assert set(now.ranks) == set(LIVING)
    assert [row.method for row in now.rows if row.rank is None] == ["few"]


def test_no_pattern_of_gaps_leaves_a_gap_in_the_pool() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        cells = cells_of(simulate(rng, 6, 5)[1])
        for key in list(cells.cells):
            if rng.random() < 0.4:
                del cells.cells[key]  # type: ignore[attr-defined]
        chosen = pool(cells, "most")
        assert all(chosen.scored(method, task) for method in chosen.methods for task in chosen.tasks)


@pytest.fixture(scope="module")
def cells() -> Cells:
    """Five methods with embeddings of their own."""
    made = cells_of(simulate(np.random.default_rng(3), 5, 3)[1], baselines=[4])
    return replace(made, cells={key: replace(cell, embeddings=key[0]) for key, cell in made.cells.items()})


def with_copy(cells: Cells, name: str, of: str, **others: Cell) -> Cells:
    """One more method with the cells of another; ``others`` are cells of its own, by task."""
    method = next(m for m in cells.methods if m.id == of)
    copied = {(name, t): replace(c, fingerprint="f" * 64) for (m, t), c in cells.cells.items() if m == of}
    copied |= {(name, t): cell for t, cell in others.items()}
    return replace(cells, methods=(*cells.methods, replace(method, id=name)), cells={**cells.cells, **copied})


def test_the_five_copies_on_olindas_board(committed_registry: Path) -> None:
    board = read_board(committed_registry / "leaderboards/olinda.json")
    assert board.copies["mosaiks"] == ["mosaiks_pre"]
    assert board.copies["autoencoder"] == ["autoencoder_post", "autoencoder_pre"]
    assert not {copy for copies in board.copies.values() for copy in copies} & board.ranks.keys()
    (sentence,) = (note for note in notes(board) if "mosaiks = mosaiks_pre" in note)
    assert sentence.startswith("5 methods with the same embeddings as another, not ranked: ")


def test_the_copy_is_the_one_that_came_later(cells: Cells) -> None:
    days = {"m001": "2025-03-01", "aa": "2025-03-02", "ab": ""}
    both = with_copy(with_copy(cells, "aa", "m001"), "ab", "m001")
    dated = replace(both, methods=tuple(replace(m, since=days.get(m.id, "")) for m in both.methods))
    assert fold(dated)[1] == {"aa": "m001", "ab": "m001"}
    assert fold(both)[1] == {"ab": "aa", "m001": "aa"}


def test_a_method_is_as_old_as_its_oldest_record() -> None:
    made = [make_record("m", task, [0.1, 0.2, 0.3]) for task in ("t0", "t1", "t2")]
    times = ("2025-03-02T10:00:00+00:00", "2025-03-01T23:00:00+00:00", {"not": "a time"})
    records = [structs.replace(r, provenance={"time": time}) for r, time in zip(made, times, strict=True)]
    (method,) = from_records(records, make_suite("t0", "t1", "t2")).methods
    assert method.since == "2025-03-01"


def test_a_copy_changes_nothing_for_anybody(cells: Cells) -> None:
    alone, both = board_of(cells), board_of(with_copy(cells, "zz", "m001"))
    assert both.rows[:-1] == alone.rows
    assert (both.tasks, both.sections, both.groups) == (alone.tasks, alone.sections, alone.groups)
    copy, first = both.rows[-1], next(row for row in both.rows if row.method == "m001")
    assert (copy.method, copy.same_as, copy.rank, copy.intervals) == ("zz", "m001", None, {})
    assert {task: cell.values for task, cell in copy.cells.items()} == {t: c.values for t, c in first.cells.items()}
    assert {cell.fingerprint for cell in copy.cells.values()} == {"f" * 16}
    table = grid(both)
    assert len(table.rows) == 5
    line = dict(zip(table.plain[0], table.plain[-1], strict=True))
    assert (line["method"], line["reason"]) == ("zz", "the same embeddings as m001")


def test_a_baseline_is_never_the_copy(cells: Cells) -> None:
    both = with_copy(cells, "aa", "m004")
    one_baseline = replace(both, methods=tuple(replace(m, baseline=m.id == "m004") for m in both.methods))
    assert board_of(one_baseline).copies == {"m004": ["aa"]}


@pytest.mark.parametrize(
    ("why", "cell"),
    [
        ("one task was not scored", Cell(status="missing")),
        ("one score differs", Cell(1.0, 0.5, 0.1, (0.4, 0.6) * 20, embeddings="m001")),
        ("other embeddings with the same score", None),
    ],
)
def test_what_is_no_copy(cells: Cells, why: str, cell: Cell | None) -> None:
    cell = cell or replace(cells.cell("m001", "t01"), embeddings="other")
    assert board_of(with_copy(cells, "zz", "m001", t01=cell)).copies == {}, why


def test_printed_scores_that_happen_to_be_the_same_are_ranked(cells: Cells) -> None:
    """Nobody knows whether the embeddings were the same."""
    bare = replace(cells, cells={key: replace(cell, embeddings="") for key, cell in cells.cells.items()})
    assert len(board_of(with_copy(bare, "zz", "m001")).ranked) == 6
