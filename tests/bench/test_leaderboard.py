"""The leaderboard over a phase."""

from __future__ import annotations

import csv
import json
import math
from datetime import datetime
from pathlib import Path

from neuco_extensions.bench.leaderboard import BenchRun, rank, read_runs, write_leaderboard
from tests.bench.helpers import bench


def test_ranks_are_weighted_by_the_spread_of_the_tasks() -> None:
    """By hand: spreads 1 and 3, so weights 1/4 and 3/4; A is first on x, B first on y."""
    board = rank([BenchRun("a", {"x": 3.0, "y": 4.0}), BenchRun("b", {"x": 1.0, "y": 10.0})])
    assert board.weights == {"x": 0.25, "y": 0.75}
    assert [(row["experiment"], row["weighted_score"], row["aggregated_rank"]) for row in board.rows] == [
        ("b", 0.25 * 2 + 0.75 * 1, 1),
        ("a", 0.25 * 1 + 0.75 * 2, 2),
    ]
    assert [row["mean_score"] for row in board.rows] == [5.5, 3.5]
    same = rank([BenchRun(name, {"x": 1.0, "y": 2.0}) for name in "ab"])
    assert same.weights == {"x": 0.5, "y": 0.5}
    assert {row["aggregated_rank"] for row in same.rows} == {1}


def test_a_run_that_lacks_a_task_is_named_and_not_ranked() -> None:
    scores = {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 1.0}, "c": {"x": 1.0, "y": math.nan}}
    board = rank([BenchRun(name, q) for name, q in scores.items()])
    assert [row["experiment"] for row in board.rows] == ["a"]
    assert board.incomplete == {"b": ("y",), "c": ("y",)}
    nobody = rank([BenchRun("a", {"x": 1.0}), BenchRun("b", {"y": 1.0})])
    assert (nobody.rows, nobody.incomplete) == ((), {"a": ("y",), "b": ("x",)})


def test_a_run_whose_name_is_a_formula_is_text_in_the_file(tmp_path: Path) -> None:
    board = rank([BenchRun("=1+2", {"x": -1.0})])
    path = write_leaderboard(board, tmp_path, "dev", datetime(2026, 1, 2, 3, 4, 5))
    assert path.read_text().splitlines()[1].startswith("'=1+2,-1.0,")


def test_folders_of_neuco_bench_itself_are_read(tmp_path: Path) -> None:
    old = {"experiment": "old", "overall_score": 1.0, "task_results": {"x": 1.0}}
    new = {"experiment": "new", "task_q_scores": {"x": 2.0}, "task_acc_scores": {"x": 0.5}}
    for data in (old, new):
        (tmp_path / "dev" / str(data["experiment"])).mkdir(parents=True)
        (tmp_path / "dev" / str(data["experiment"]) / "results_summary.json").write_text(json.dumps(data))
    (tmp_path / "dev" / "unfinished").mkdir()
    runs = read_runs(tmp_path, "dev")
    assert [run.experiment for run in runs] == ["new", "old"]
    path = write_leaderboard(rank(runs), tmp_path, "dev", datetime(2026, 1, 2, 3, 4, 5))
    assert path == tmp_path / "leaderboards" / "dev" / "leaderboard_20260102_030405.csv"
    rows = list(csv.DictReader(path.read_text().splitlines()))
    head = "experiment mean_score weighted_score aggregated_rank q::x acc::x overall_q_score overall_acc_score"
    assert list(rows[0]) == head.split()
    assert [(row["experiment"], row["aggregated_rank"], row["acc::x"]) for row in rows] == [
        ("new", "1", "0.5"),
        ("old", "2", ""),
    ]


def test_bench_updates_it_and_a_broken_neighbour_does_not_hide_the_results(case: Path, tmp_path: Path) -> None:
    config = {"update_leaderboard": "true", "task_filter": "[beta]"}
    first = bench(case, tmp_path / "out", "--method_name", "one", **config)
    second = bench(case, tmp_path / "out", "--method_name", "two", **config, epochs="1")
    assert first.code == second.code == 0
    board = second.out[second.out.index("weighted rank") :]
    assert board.index("one_") < board.index("two_")
    assert len(list((tmp_path / "out" / "leaderboards" / "results").iterdir())) >= 1
    (tmp_path / "out" / "results" / "bad").mkdir()
    (tmp_path / "out" / "results" / "bad" / "results_summary.json").write_text("{")
    ran = bench(case, tmp_path / "out", **config)
    assert ran.code == 4
    assert "results in" in ran.out
    assert "bad/results_summary.json" in ran.err
