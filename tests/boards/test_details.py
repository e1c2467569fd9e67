"""What stands behind a board is told in the terminal too."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from neuco_core.boards.model import Board, Section
from neuco_core.boards.published import list_published
from neuco_core.boards.report import details, grid, lines, to_latex
from neuco_core.boards.stats.uncertainty import TaskScores
from neuco_core.boards.store import board_path, read_board, write_board
from neuco_core.errors import UsageError
from neuco_core.site.board_page import board_page
from neuco_core.site.page_data import PageData
from tests.boards.helpers import board_of, cells_of, simulate
from tests.boards.test_cli import run


def section(sections: list[Section], words: str) -> Section:
    (one,) = (entry for entry in sections if words in entry.title)
    return one


def texts(board: Board, words: str) -> list[list[str]]:
    return lines(board, section(details(board), words))


def test_every_number_is_the_boards() -> None:
    _, scores = simulate(np.random.default_rng(1), 8, 4, gap=0.02)
    board = board_of(cells_of(scores, baselines=[0]))
    labels = [column.label for column in section(details(board), "How robust").columns]
    for cells, row in zip(texts(board, "How robust"), board.rows, strict=True):
        named = dict(zip(labels, cells, strict=True))
        assert named["Method"] == row.method
        better = sum(other.values["borda"] > row.values["borda"] for other in board.rows)  # type: ignore[operator]
        assert int(named["Borda"].rstrip("*")) == 1 + better
        assert named["Borda"].endswith("*") == (1 + better != row.rank)
        assert {"No baselines", "Robust", "Equal weights", "Mean Q", "Without a method", "Without a task"} < {*named}
    assert [line[0] for line in texts(board, "indistinguishable")] == [", ".join(group) for group in board.groups or ()]
    assert [line[0] for line in texts(board, "Task diagnostics")] == [task.id for task in board.tasks]
    assert all(len(row) == len(one.columns) for one in details(board) for row in one.rows)


def test_the_sentence_on_top_of_the_matrix_is_what_the_matrix_shows() -> None:
    board = board_of(cells_of(simulate(np.random.default_rng(12), 9, 4, gap=0.02)[1]))
    matrix = section(details(board), "How robust")
    ranks = {str(row[0]): [value for value in row[1:] if isinstance(value, int)] for row in matrix.rows}
    first = board.rows[0].method
    times = sum(rank == 1 for rank in ranks[first])
    count = len(ranks[first])
    assert matrix.lead.startswith(
        f"{first} is first in {'all' if times == count else f'{times} of'} {count} rankings; "
    )
    most = max(ranks, key=lambda name: max(abs(rank - board.ranks[name]) for rank in ranks[name]))
    assert f"{most} moves most, between ranks {min(ranks[most])} and {max(ranks[most])}" in matrix.lead


def test_a_clear_order_depends_on_nothing() -> None:
    scores = [TaskScores(np.random.default_rng(1).normal([[0.9], [0.6], [0.3]], 0.01, (3, 20))) for _ in range(3)]
    lead = section(details(board_of(cells_of(scores))), "How robust").lead
    words = "leaving out any one method moves nobody; leaving out any one task moves nobody."
    assert lead == f"m000 is first in all 7 rankings; {words}"


def test_a_first_that_is_not_the_likeliest_is_explained() -> None:
    scores = simulate(np.random.default_rng(9), 8, 3, gap=0.01)[1]
    board = board_of(cells_of(scores), replicates=300)
    rows = {row.method: row for row in board.ranked}
    assert board.rows[0].method == "m003"
    first, likeliest = rows["m003"], rows["m002"]
    assert likeliest.values["best"] == max(row.values["best"] for row in board.ranked)  # type: ignore[type-var]
    (note_on_first,) = (note for note in board.notes if "is first in more replicates" in note)
    assert note_on_first == (
        "m003 is first by the scores as they are, but m002 is first in more replicates "
        f"({likeliest.values['best']:.0%} against {first.values['best']:.0%}): plausible ranks are m003 1–8 and "
        "m002 1–8. The splits do not tell the two apart."
    )


def test_a_board_without_scores_has_nothing_more_to_tell(committed_registry: Path) -> None:
    (standings,) = (item.board() for item in list_published(committed_registry) if item.kind == "standings")
    assert details(standings) == []


def test_the_option(committed_registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(committed_registry))
    shown = run("show", "mini", "--details").output
    assert "How robust is this ranking?" in shown
    assert "Splits cannot show" in shown
    with pytest.raises(UsageError, match="for the terminal"):
        run("show", "mini", "--details", "--format", "csv")


def test_a_lower_is_better_task_is_marked_in_every_view() -> None:
    cells = cells_of(simulate(np.random.default_rng(3), 4, 2)[1])
    first = structs.replace(cells.tasks[0], greater_is_better=False, metric="rmse")
    board = board_of(replace(cells, tasks=(first, *cells.tasks[1:])))
    assert [line[:2] for line in texts(board, "Task diagnostics")] == [["t00", "rmse, lower is better"], ["t01", "r2"]]
    table = grid(board)
    assert table.headers[-2:] == ("t00 ↓", "t01")
    assert any("lower is better" in note and "t00" in note for note in table.notes)
    assert r"t00 $\downarrow$" in to_latex(table)


def test_a_negative_mean_score_is_marked_wherever_it_stands_and_an_error_is_not() -> None:
    """Below 0 more spread makes Q better: it does not compare these."""
    wild, tame = np.array([[-250.0, 160.0], [-0.5, 0.2], [0.5, 0.7]]), np.array([[0.5, 0.7], [0.2, 0.3], [-0.5, 0.2]])
    cells = cells_of([TaskScores(wild), TaskScores(tame), TaskScores(tame + 1)])
    errors = structs.replace(cells.tasks[2], greater_is_better=False, metric="mae")
    turned = {key: replace(cell, q=-(cell.q or 0)) for key, cell in cells.cells.items() if key[1] == "t02"}
    board = board_of(replace(cells, tasks=(*cells.tasks[:2], errors), cells={**cells.cells, **turned}))
    q = {row.method: row.value("t00", "q") or 0 for row in board.rows}
    assert q["m001"] < q["m000"] < 0 < q["m002"], "−45 stands before −0.15"
    table = grid(board, "q")
    marked = {row[1]: [cell.startswith("†") for cell in row[-3:]] for row in table.rows}
    assert marked == {"m000": [True, False, False], "m001": [True, False, False], "m002": [False, True, False]}
    sentence = "† negative mean score, unreliable: Q does not compare these."
    assert sentence in table.notes
    assert sentence in table.brief
    assert to_latex(table).count(r"$\dagger$-") == 3
    page = board_page(PageData(id="made", title="made", board=board, cells=cells))
    assert page.count('data-doubt="†" title="negative mean score, unreliable') == 3
    assert "<b>†</b> = negative mean score" in page
    assert "does not compare negative scores" in page, "the help of Q"


def test_a_board_without_intervals_says_why() -> None:
    cells = cells_of([TaskScores(np.array([[0.1], [0.2]]))])
    assert any(note.startswith("No intervals") for note in grid(board_of(cells)).notes)
    two = simulate(np.random.default_rng(4), 2, 1)[1]
    assert not any("No intervals" in note for note in grid(board_of(cells_of(two))).notes)


def test_the_weight_of_the_ghost_is_told() -> None:
    board = board_of(cells_of(simulate(np.random.default_rng(4), 2, 1)[1]), ghost=3.0)
    (weights,) = (note for note in grid(board).notes if note.startswith("Weight of the ghost task"))
    rest = 1 - sum(task.values["weight"] or 0 for task in board.tasks)
    assert f"{rest:.3f}" in weights


def test_rows_that_do_not_compete_and_estimated_cells_are_shown_and_marked(tmp_path: Path) -> None:
    """What later kinds of boards need: neither ever has a rank, and every view says why."""
    cells = cells_of(simulate(np.random.default_rng(5), 4, 2)[1])
    guessed = replace(cells.cell("m003", "t01"), status="estimated", reason="from the other tasks")
    board = board_of(replace(cells, cells={**cells.cells, ("m003", "t01"): guessed}))
    hosts = structs.replace(board.rows[0], rank=None, note="baseline of the hosts", intervals={})
    board = structs.replace(board, rows=(hosts, *board.rows[1:]))
    table = grid(board)
    assert [row[0] == "–" for row in table.rows] == [True, False, False, True]
    assert table.rows[3][-1].startswith("≈0.")
    assert f"Not ranked: {hosts.method}: baseline of the hosts" in table.notes
    assert "Not ranked: m003: t01: estimated, from the other tasks" in table.notes
    assert any("≈ marks values that do not count: estimated" in note for note in table.notes)
    page = board_page(PageData(id="made", title="made", board=board, cells=cells))
    assert page.count('class="incomplete"') == 2
    assert re.search(r'<td class="cell marked" title="estimated: from the other tasks">≈0\.', page)
    write_board(tmp_path, board)
    assert read_board(board_path(tmp_path, "made")) == board
