"""What scripts show is what Python computes: ranks of a choice of a board, and the differences of `neuco compare`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from msgspec import structs

from neuco_core.boards.cells import Cells, from_records
from neuco_core.boards.stats.ranking import SPREADS, WEIGHTS, Rule, rank
from neuco_core.boards.store import current, stored_board
from neuco_core.cli import cli
from neuco_core.site import item_pages
from neuco_core.site.board_page import rerank_data
from neuco_core.site.page_data import PageData
from tests.site.conftest import Reader
from tests.site.made_pages import made_source

BOARD = "boards/made/index.html"
BOARDS = 600
RULES = [Rule(weights, spread, ghost) for weights in WEIGHTS for spread in SPREADS for ghost in (0.0, 0.5)]
RANK = "cases => cases.map(({q, rule, baselines}) => rankMethods(q, rule, baselines))"


def test_a_browser_ranks_random_boards_as_python_does(reader: Reader) -> None:
    rng = np.random.default_rng(7)
    cases: list[dict[str, Any]] = []
    expected = []
    for number in range(BOARDS):
        q = rng.normal(size=rng.integers(1, 14, size=2)) * 10.0 ** rng.integers(-3, 4)
        if number % 3 == 0:
            q = np.round(q, 1)  # ties, and tasks without any spread
        rule, baselines = RULES[rng.integers(len(RULES))], rng.random(q.shape[1]) < 0.3
        expected.append(rank(q, rule, baselines))
        options = {"weights": rule.weights, "spread": rule.spread, "ghost": rule.ghost}
        cases.append({"q": q.tolist(), "rule": options, "baselines": baselines.astype(int).tolist()})
    for got, wanted in zip(reader.open(BOARD).evaluate(RANK, cases), expected, strict=True):
        assert got["final"] == wanted.final.tolist()
        assert got["ranks"] == wanted.ranks.tolist()
        assert got["weights"] == pytest.approx(wanted.weights, abs=1e-12)
        assert got["weighted"] == pytest.approx(wanted.weighted, abs=1e-9)
        assert got["ghost"] == pytest.approx(float(wanted.ghost), abs=1e-12)


def test_the_page_ranks_a_choice_as_python_does(reader: Reader) -> None:
    data = rerank_data(made_source().board)
    assert data is not None
    off, out = {"t01", "t03"}, {"m002", "m005"}
    tasks = [t for t, name in enumerate(data["tasks"]) if name not in off]
    methods = [m for m, name in enumerate(data["methods"]) if name not in out]
    q, baselines = np.array(data["q"])[np.ix_(tasks, methods)], np.array(data["baselines"])[methods]
    expected = dict(zip([data["methods"][m] for m in methods], rank(q, Rule(), baselines).final.tolist(), strict=True))
    page = reader.open(f"{BOARD}#off={','.join(off)}&out={','.join(out)}")
    shown = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#board tbody tr')].filter(r => !r.hidden)"
        ".map(r => [neuco.data.rows[r.dataset.i].id, Number(r.querySelector('.rank b')?.textContent || 0)]))"
    )
    assert {name: rank for name, rank in shown.items() if rank} == expected
    assert list(shown)[:-1] == sorted(expected, key=lambda name: (expected[name], data["methods"].index(name)))


def test_a_board_of_another_kind_or_rule_is_not_ranked_anew() -> None:
    board = made_source(methods=4, tasks=2).board
    assert rerank_data(board) is not None
    assert rerank_data(structs.replace(board, kind="wins")) is None
    first, *rest = board.rows
    assert rerank_data(structs.replace(board, rows=(structs.replace(first, rank=3), *rest))) is None


def test_the_page_has_the_numbers_of_the_command(committed_registry: Path) -> None:
    now = current(committed_registry)
    suite = now.suites["olinda"]
    board = stored_board(committed_registry, "olinda")
    source = PageData("olinda", "", board, cells=from_records(now.records, suite, now.why_stale))
    differences = item_pages.differences(source)["averaging"]["pca"]
    ran = CliRunner().invoke(cli, ["compare", "averaging", "pca", "--suite", "olinda", "--json"])
    assert ran.exit_code == 0, ran.output
    printed = {task["task"]: task for task in json.loads(ran.stdout)["tasks"]}
    assert len(differences) == len(printed) == len(source.board.tasks)
    for task, difference in zip(source.board.tasks, differences, strict=True):
        test = printed[task.id]["test"]
        expected = [test["difference"], test["low"], test["high"]]
        assert difference is not None
        assert list(difference[:3]) == pytest.approx(expected, abs=2e-6)  # records are rounded, and so is the page
        assert list(difference[3:]) == pytest.approx([test["p"], printed[task.id]["p_holm"]], rel=0.01, abs=1e-6)
        better = printed[task.id]["verdict"] != "no difference shown"
        assert better == (difference[4] <= 0.05)


def test_the_other_way_round_is_the_same_turned() -> None:
    pairs = item_pages.differences(made_source())
    forward = [d for d in pairs["m002"]["m001"] if d is not None]
    assert [(-d[0], -d[2], -d[1], *d[3:]) for d in forward] == pairs["m001"]["m002"]


def test_splits_of_other_samples_have_no_difference() -> None:
    source = made_source(methods=3, tasks=2)
    assert source.cells is not None
    cells = dict(source.cells.cells)
    cells["m000", "t01"] = replace(cells["m000", "t01"], samples=7)
    moved = replace(source, cells=Cells(source.cells.tasks, source.cells.methods, cells))
    assert [item is None for item in item_pages.differences(moved)["m000"]["m001"]] == [False, True]


def test_of_very_many_methods_pairs_are_left_to_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_pages, "MOST", 2)
    assert item_pages.differences(made_source(methods=3, tasks=2)) == {}


def test_a_browser_shows_them(reader: Reader) -> None:
    differences = item_pages.differences(made_source())["m003"]["m004"]
    page = reader.open(f"{BOARD}#tab=compare&pick=m003,m004")
    page.locator("#compared td.gap").last.wait_for()
    shown = page.locator("#compared td.gap").all_inner_texts()
    for text, test in zip(shown, differences, strict=True):
        assert test is not None
        difference, low, high, _, p = test
        assert f"{difference:+.3f} ({low:.3f} to {high:.3f})".replace("-", "−") in text
        assert ("p < 0.001" if p < 0.001 else f"p = {p:.3f}") in text
        better = "no difference" if p > 0.05 else "A better" if difference > 0 else "B better"
        assert better in text
