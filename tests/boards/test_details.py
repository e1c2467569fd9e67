"""What stands behind a board is told in the terminal too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuco_core.boards.build import rank_table
from neuco_core.boards.published import list_published
from neuco_core.boards.stats.ranking import Rule
from neuco_core.boards.stats.uncertainty import TaskScores
from neuco_core.boards.views.details import Section, details
from neuco_core.boards.views.report import grid, to_latex
from neuco_core.errors import UsageError
from tests.boards.helpers import simulate, table_of
from tests.boards.test_cli import run


def section(found: list[Section], words: str) -> Section:
    (one,) = (entry for entry in found if words in entry.title)
    return one


def test_every_number_is_the_boards() -> None:
    _, scores = simulate(np.random.default_rng(1), 8, 4, gap=0.02)
    board = rank_table(table_of(scores, baselines=[0]), Rule())
    found = details(board)
    rules = section(found, "other rules")
    for cells, row in zip(rules.rows, board["rows"], strict=True):
        named = dict(zip(rules.headers, cells, strict=True))
        assert named["method"] == row["method"]
        assert int(named["Borda"].rstrip("*")) == row["ranks"]["borda"]
        assert named["Borda"].endswith("*") == (row["ranks"]["borda"] != row["rank"])
        assert int(named["equal weights"].rstrip("*")) == row["ranks"]["mean_rank"]
    assert [line[0] for line in section(found, "told apart").rows] == [", ".join(group) for group in board["groups"]]
    worth = section(found, "tasks are worth")
    assert [line[0] for line in worth.rows] == [task["id"] for task in board["tasks"]]
    assert all(len(line) == len(one.headers) for one in found for line in one.rows)


def test_the_paper_without_its_averaging_baseline(root: Path) -> None:
    (board,) = (item.board() for item in list_published(root / "registry") if item.kind == "scores")
    moves = dict(section(details(board), "without one method").rows)["averaging"]
    for swap in ("dofa-post 3 → 4", "vit-moco-post 4 → 3", "cnn-dino-post 7 → 6", "vit-moco-pre 6 → 7"):
        assert swap in moves


def test_less_is_better_is_said() -> None:
    _, scores = simulate(np.random.default_rng(2), 6, 2)
    table = table_of(scores)
    turned = replace(table, events=tuple(replace(e, greater_is_better=False, metric="rmse") for e in table.events))
    worth = section(details(rank_table(turned, Rule())), "tasks are worth")
    assert {line[1] for line in worth.rows} == {"rmse, less is better"}
    assert {line[-1] for line in worth.rows} == {"–"}


def test_a_board_without_scores_has_nothing_more_to_tell(root: Path) -> None:
    (standings,) = (item.board() for item in list_published(root / "registry") if item.kind == "standings")
    assert details(standings) == []


def test_the_option(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(root / "registry"))
    assert "Who changes places without one task" in run("show", "mini", "--details").output
    with pytest.raises(UsageError, match="for the terminal"):
        run("show", "mini", "--details", "--format", "csv")


def test_a_lower_is_better_task_is_marked_in_every_view() -> None:
    table = table_of(simulate(np.random.default_rng(3), 4, 2)[1])
    events = (replace(table.events[0], greater_is_better=False, metric="rmse"), *table.events[1:])
    found = grid(rank_table(replace(table, events=events), Rule()))
    assert found.headers[-2:] == ("t00 ↓", "t01")
    assert any("less is better" in note and "t00" in note for note in found.notes)
    assert r"t00 $\downarrow$" in to_latex(found)


def test_a_board_without_intervals_says_why() -> None:
    table = table_of([TaskScores(np.array([[0.1], [0.2]]))])
    assert any(note.startswith("No intervals") for note in grid(rank_table(table, Rule())).notes)
    assert not any("No intervals" in note for note in grid(rank_table(table_of(simulate_two()), Rule())).notes)


def simulate_two() -> list[TaskScores]:
    return simulate(np.random.default_rng(4), 2, 1)[1]


def test_the_weight_of_the_ghost_is_told() -> None:
    board = rank_table(table_of(simulate_two()), Rule(ghost=3.0))
    (weights,) = (note for note in grid(board).notes if note.startswith("Weights"))
    assert f"ghost task {board['ghost_weight']:.3f}" in weights
