"""Differences on the page are those of ``neuco compare``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from neuco_core.boards.cells import Cells, from_records
from neuco_core.boards.from_registry import current
from neuco_core.boards.store import stored_board
from neuco_core.cli import cli
from neuco_core.site import cell_details
from neuco_core.site.page_data import PageData
from tests.site.conftest import Reader
from tests.site.made_pages import made_source

BOARD = "boards/made/index.html"


def test_the_page_has_the_numbers_of_the_command(committed_registry: Path) -> None:
    now = current(committed_registry)
    suite = now.suites["olinda"]
    board = stored_board(committed_registry, "olinda")
    source = PageData("olinda", "", board, cells=from_records(now.records, suite, now.why_stale))
    found = cell_details.differences(source)["averaging"]["pca"]
    ran = CliRunner().invoke(cli, ["compare", "averaging", "pca", "--suite", "olinda", "--json"])
    assert ran.exit_code == 0, ran.output
    told = {task["task"]: task for task in json.loads(ran.stdout)["tasks"]}
    assert len(found) == len(told) == len(source.board.tasks)
    for task, own in zip(source.board.tasks, found, strict=True):
        test = told[task.id]["test"]
        expected = [test["difference"], test["low"], test["high"]]
        assert own is not None
        assert list(own[:3]) == pytest.approx(expected, abs=2e-6)  # records are rounded, and so is the page
        assert list(own[3:]) == pytest.approx([test["p"], told[task.id]["p_holm"]], rel=0.01, abs=1e-6)
        better = told[task.id]["verdict"] != "no difference shown"
        assert better == (own[4] <= 0.05)


def test_the_other_way_round_is_the_same_turned() -> None:
    found = cell_details.differences(made_source())
    for one, other in zip(found["m001"]["m002"], found["m002"]["m001"], strict=True):
        assert one is not None
        assert other is not None
        assert (-other[0], -other[2], -other[1], *other[3:]) == one


def test_splits_of_other_samples_have_no_difference() -> None:
    source = made_source(methods=3, tasks=2)
    assert source.cells is not None
    cells = dict(source.cells.cells)
    cells["m000", "t01"] = replace(cells["m000", "t01"], samples=7)
    moved = replace(source, cells=Cells(source.cells.tasks, source.cells.methods, cells))
    assert [item is None for item in cell_details.differences(moved)["m000"]["m001"]] == [False, True]


def test_of_very_many_methods_pairs_are_left_to_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_details, "MOST", 2)
    assert cell_details.differences(made_source(methods=3, tasks=2)) == {}


def test_a_browser_shows_them(reader: Reader) -> None:
    source = made_source()
    found = cell_details.differences(source)["m003"]["m004"]
    page = reader.open(f"{BOARD}#tab=compare&pick=m003,m004")
    page.locator("#compared td.gap").last.wait_for()
    shown = page.locator("#compared td.gap").all_inner_texts()
    assert len(shown) == len(found)
    for text, own in zip(shown, found, strict=True):
        assert own is not None
        difference, low, high, _, p = own
        assert f"{difference:+.3f} ({low:.3f} to {high:.3f})".replace("-", "−") in text
        assert ("p < 0.001" if p < 0.001 else f"p = {p:.3f}") in text
        better = "no difference" if p > 0.05 else "A better" if difference > 0 else "B better"
        assert better in text
