"""Methods with the same embeddings are ranked once: with one season, variants by season are one method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from neuco_core.boards.cells import BoardMethod, Cell, Cells, fold, from_records
from neuco_core.boards.report import copies, grid, notes
from neuco_core.boards.store import read_board
from tests.boards.helpers import board_of, cells_of, make_record, make_suite, simulate


@pytest.fixture(scope="module")
def cells() -> Cells:
    """Five methods with embeddings of their own."""
    made = cells_of(simulate(np.random.default_rng(3), 5, 3)[1], baselines=[4])
    return replace(made, cells={key: replace(cell, embeddings=key[0]) for key, cell in made.cells.items()})


def with_copy(cells: Cells, name: str, of: str, **others: Cell) -> Cells:
    """One more method with the cells of another; ``others`` are cells of its own, by task."""
    method = next(m for m in cells.methods if m.id == of)
    own = {(name, t): replace(c, fingerprint="f" * 64) for (m, t), c in cells.cells.items() if m == of}
    added = BoardMethod(name, baseline=method.baseline, dim=method.dim)
    return replace(
        cells,
        methods=(*cells.methods, added),
        cells={**cells.cells, **own, **{(name, t): cell for t, cell in others.items()}},
    )


def test_the_five_copies_on_olindas_boards(committed_registry: Path) -> None:
    for suite in ("olinda", "olinda-blocks"):
        board = read_board(committed_registry / "leaderboards" / f"{suite}.json")
        folded = {row.method: row.same_as for row in board.rows if row.same_as}
        assert len(folded) == 5
        assert folded["mosaiks_pre"] == "mosaiks"
        assert folded["autoencoder_post"] == folded["autoencoder_pre"] == "autoencoder"
        assert not folded.keys() & board.ranks.keys()
        (words,) = copies(board)
        assert words.startswith("5 methods with the same embeddings as another, not ranked: ")
        assert "mosaiks = mosaiks_pre" in words
        assert words in notes(board)
    assert list(copies(read_board(committed_registry / "leaderboards" / "mini.json"))) == []


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
    told = dict(zip(table.plain[0], table.plain[-1], strict=True))
    assert (told["method"], told["reason"]) == ("zz", "the same embeddings as m001")


def test_a_baseline_is_never_the_copy(cells: Cells) -> None:
    own = with_copy(cells, "aa", "m004")
    own = replace(own, methods=tuple(replace(m, baseline=m.id == "m004") for m in own.methods))
    assert {row.method: row.same_as for row in board_of(own).rows if row.same_as} == {"aa": "m004"}


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
    board = board_of(with_copy(cells, "zz", "m001", t01=cell))
    assert not any(row.same_as for row in board.rows), why


def test_printed_scores_that_happen_to_be_the_same_are_ranked(cells: Cells) -> None:
    """Nobody knows whether the embeddings were the same."""
    bare = replace(cells, cells={key: replace(cell, embeddings="") for key, cell in cells.cells.items()})
    assert len(board_of(with_copy(bare, "zz", "m001")).ranked) == 6
