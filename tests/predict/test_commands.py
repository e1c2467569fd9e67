"""``neuco predict`` at the command line, and its page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from neuco_extensions.predict import command
from neuco_extensions.predict.command import enough, predict
from tests import console
from tests.command import neuco_here, python
from tests.fetch.helpers import own_settings
from tests.predict.test_fill import with_holes
from tests.predict.test_predictor import made, written

NUMBERS = ("predicted", "low", "high")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "known.csv", made(10, 6))


def test_predictions_are_those_that_are_missing(table: Path) -> None:
    known = made(10, 6)
    filled = neuco_here("predict", "fill", str(table), "--json").json
    assert filled["known"] == known.known.sum()
    assert len(filled["cells"]) == (~known.known).sum()
    assert all(cell["low"] <= cell["predicted"] <= cell["high"] for cell in filled["cells"])
    shown = neuco_here("predict", "fill", str(table), "--method", "m0").out
    assert "no scores, and never ranked" in shown
    assert "m1" not in shown


def test_a_name_with_commas_is_one_name(tmp_path: Path) -> None:
    known = made(8, 5)
    named = replace(known, methods=("net, large", "--help", "<script>", *known.methods[3:]))
    table = written(tmp_path / "named.csv", named)
    for asked, names in (("net, large", {"net, large"}), ("--help", {"--help"}), ("m3,<script>", {"m3", "<script>"})):
        filled = neuco_here("predict", "fill", table, "--json", "--method", asked).json
        assert {cell["method"] for cell in filled["cells"]} == names
    assert "no result of a method ''" in neuco_here("predict", "fill", table, "--method", "m3,").err


def test_where_lower_is_better_on_a_board_predictions_are_scores_of_that_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, turned = with_holes(), with_holes(turned=True)
    lacking = plain.rows[0].method
    cells = []
    for board in (plain, turned):
        monkeypatch.setattr(command, "one_board", lambda *_, board=board: board)
        (cell,) = neuco_here("predict", "fill", "made", "--method", lacking, "--json").json["cells"]
        (one,) = neuco_here("predict", "suggest", "made", "--method", lacking, "--json").json
        assert [cell[key] for key in ("task", *NUMBERS)] == [one[key] for key in ("task", *NUMBERS)]
        cells.append([cell[key] for key in NUMBERS])
    (score, low, high), other = cells
    assert other == pytest.approx([-score, -high, -low])


def test_suggestions_leave_less_and_less_unknown(table: Path) -> None:
    known = made(10, 6)
    row = int((~known.known).sum(1).argmax())
    suggestions = neuco_here("predict", "suggest", table, "--method", f"m{row}", "--number", "9", "--json").json
    assert len(suggestions) == (~known.known)[row].sum() > 1
    assert all(one["after"] < one["before"] for one in suggestions)
    assert enough(2, 1, width=2).startswith("1 more task is exp")
    assert enough(3, 4, width=2).startswith("Not even 4 more tasks are")


def test_a_method_without_a_result_is_told_what_to_run(table: Path) -> None:
    words = ("predict", "suggest", table, "--method", "mine", "--new", "--json")
    suggestions = neuco_here(*words, "--width", "2").json
    assert [one["ranks_after"] <= 2 for one in suggestions] == [False] * (len(suggestions) - 1) + [True]
    assert all(one["ranks_after"] <= one["ranks_before"] for one in suggestions)
    assert len(neuco_here(*words, "--number", "4").json) == 4
    # Of a ranking, which results of any method settle it.
    picks = neuco_here("predict", "suggest", str(table), "--number", "3", "--json").json
    known = made(10, 6)
    assert len({(one["method"], one["task"]) for one in picks}) == 3
    assert not any(known.known[int(one["method"][1:]), int(one["task"][1:])] for one in picks)
    assert all(one["after"] <= one["before"] for one in picks)


def test_models_are_compared(tmp_path: Path) -> None:
    table = written(tmp_path / "known.csv", made(6, 6, share=0.9))
    words = ("predict", "evaluate", table, "--least", "2", "--json")
    result = neuco_here(*words, "--jobs", "2").json
    assert result == neuco_here(*words, "--jobs", "1").json
    assert [row["model"] for row in result["models"]] == ["mean", "additive", "neuco"]
    assert sum(row["worse"] is None for row in result["models"]) == 1
    assert 0 < result["models"][-1]["coverage_of_ends"] <= 1


def test_on_the_board_of_a_suite_the_command_to_run_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    board = with_holes()
    monkeypatch.setattr(command, "one_board", lambda *_: board)
    lacking = board.rows[0].method
    shown = neuco_here("predict", "suggest", "made", "--method", lacking)
    assert f"Run: neuco score --method {lacking} --task t00" in shown.out
    assert "Run: neuco score --method " in neuco_here("predict", "suggest", "made").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fill", "nowhere.csv"), "nowhere.csv"),
        (("fill", "nothing"), "nothing"),
        (("fill", "mini", "--method", "pcaa"), "Did you mean pca?"),
        (("suggest", "mini", "--method", "nobody"), "no result of a method 'nobody'. `suggest --new`"),
        (("suggest", "mini", "--method", "pca", "--new"), "method pca is there twice"),
        (("suggest", "mini", "--width", "2"), "Add --method"),
        (("known.csv",), "Run `neuco predict fill known.csv`"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], message: str) -> None:
    done = neuco_here("predict", *words)
    assert done.code != 0
    assert message in done.err


def test_one_import_is_enough_and_brings_nothing_before_it_is_used() -> None:
    names = "from neuco_extensions.predict import Plane, Predictor, ScoreTable, fit_plane, from_board, read_table"
    light = "import sys, neuco_extensions.predict as c; print('numpy' in sys.modules, c.__all__)"
    assert python("-c", names).code == 0
    assert python("-c", light).out.startswith("False ['Plane', 'Predictor', 'ScoreTable', 'fit_plane'")
    assert "has no attribute 'predictors'" in python("-c", "import neuco_extensions.predict as c; c.predictors").err


@pytest.mark.slow
def test_the_page_does_what_it_says(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (root / "docs/howto/predict.md").read_text(encoding="utf-8")
    run = [step.command for step in console.steps(text)]
    assert [name for name in predict.commands if not any(f"predict {name}" in line for line in run)] == []
    own_settings(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(root))
    failures = console.play(text, tmp_path, {"HOME": str(tmp_path / "home")}, {})
    assert not failures, "\n\n".join(failures)
