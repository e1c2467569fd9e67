"""Predictions on boards: in empty cells only, marked, with intervals, without influence on ranks; also in a browser."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from neuco_core.boards.facts import extra_cells, filled
from neuco_core.boards.model import Board, BoardCell, ExtraCells
from neuco_core.boards.published import list_published
from neuco_core.site.page_data import from_published
from neuco_core.site.render import panels
from neuco_core.site.write import write_site
from neuco_extensions.predict.fill import MOST_SCORES, predicted_cells, why_not
from neuco_extensions.predict.read import from_board
from tests.command import neuco_here as neuco
from tests.site.conftest import Reader, reading
from tests.site.made_pages import made_source

EMPTY = BoardCell(status="missing", reason="there is no record")


def with_holes(methods: int = 8, tasks: int = 5, turned: bool = False) -> Board:
    """A made board without the first score of each of the first two methods; on the first task less may be better."""
    board = made_source(methods, tasks, replicates=10).board
    rows = []
    for number, row in enumerate(board.rows):
        cells = {t: structs.replace(c, values={"score": -c.values["score"]}) for t, c in row.cells.items() if c.values}
        cells = {**row.cells, **({"t00": cells["t00"]} if turned and "t00" in cells else {})}
        rows.append(structs.replace(row, cells={**cells, "t00": EMPTY} if number < 2 else cells))
    turned_tasks = tuple(
        structs.replace(task, greater_is_better=task.greater_is_better != (turned and task.id == "t00"))
        for task in board.tasks
    )
    return structs.replace(board, rows=tuple(rows), tasks=turned_tasks)


def predicted(board: Board) -> ExtraCells:
    extra = predicted_cells(board)
    assert extra is not None
    return extra


def test_only_empty_cells_are_filled_nothing_else_changes_and_predictions_are_never_learnt_from() -> None:
    board = with_holes()
    extra = predicted(board)
    after = filled(board, extra)
    assert {cell.status for cell in extra.cells.values()} == {"estimated"}
    assert len(extra.cells) == sum(cell.status != "ok" for row in board.shown for cell in row.cells.values())
    assert after.ranks == board.ranks
    for row, new in zip(board.rows, after.rows, strict=True):
        same = {task: cell for task, cell in new.cells.items() if (row.method, task) not in extra.cells}
        assert same == {task: cell for task, cell in row.cells.items() if task in same}
        assert structs.replace(new, cells={}) == structs.replace(row, cells={})
    for cell in extra.cells.values():
        interval = cell.intervals["score"]
        assert (interval.low or -np.inf) < (cell.values["score"] or 0) < (interval.high or np.inf)
    assert np.array_equal(from_board(after).values, from_board(board).values, equal_nan=True)


def test_where_lower_is_better_a_prediction_is_a_score_of_that_kind() -> None:
    plain, turned = predicted(with_holes()), predicted(with_holes(turned=True))
    first = with_holes().rows[0].method, "t00"
    one, other = plain.cells[first], turned.cells[first]
    assert other.values["score"] == pytest.approx(-(one.values["score"] or 0))
    assert [other.intervals["score"].low, other.intervals["score"].high] == pytest.approx(
        [-(one.intervals["score"].high or 0), -(one.intervals["score"].low or 0)]
    )


def test_complete_small_and_huge_boards_have_none() -> None:
    board = structs.replace(with_holes(), groups=None)
    full = structs.replace(board, rows=tuple(row for row in board.rows if not row.lacks))
    assert "no cell of a method with a score is empty" in why_not(full)
    assert "5 methods with a score and 4 tasks are needed, and there are 8 and 3" in why_not(with_holes(8, 3))
    many = tuple(structs.replace(board.rows[0], method=f"n{i}", rank=None) for i in range(MOST_SCORES // 5))
    assert "would take long" in why_not(structs.replace(board, rows=(*board.rows, *many)))


def test_in_the_terminal() -> None:
    shown = neuco("leaderboard", "show", "geobench-2", "--estimated")
    assert shown.out.count("≈0.") == 16
    assert "≈ marks values that do not count: estimated." in shown.out
    assert "16 scores predicted from 383 that are known: no scores, and never ranked. Where known scores" in shown.out
    refused = neuco("leaderboard", "show", "geobench-2", "--estimated", "--format", "csv")
    assert refused.code == 2
    assert "CSV cannot mark an estimate" in refused.err
    assert "no estimates: no cell" in neuco("leaderboard", "show", "neuco-paper-table-4", "--estimated").err


BOARD = "boards/geobench-2/index.html"
LACKING, COMPLETE = "dofa_base_patch16_224-114be1f0", "clay_v1_base-2ce4a907"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, committed_registry: Path) -> Path:
    (item,) = (item for item in list_published(committed_registry) if item.id == "geobench-2")
    # Few replicates: only intervals of ranks depend on their number.
    page = from_published(structs.replace(item, options={**item.options, "replicates": 100}))
    folder = tmp_path_factory.mktemp("estimates")
    write_site([replace(page, extra=extra_cells(page.board))], folder)
    return folder


@pytest.fixture
def reader(browser: Any, site: Path) -> Iterator[Reader]:
    yield from reading(browser, site)


def test_predictions_are_off_until_asked_for_and_never_sorted_among_scores(reader: Reader) -> None:
    page = reader.open(BOARD)
    assert page.locator("#board .estimated").count() == 16
    assert page.locator("#board .estimated:visible, #estimated-said:visible").count() == 0
    order = page.evaluate("[...document.querySelectorAll('#board tbody tr')].map(row => row.dataset.i)")
    page.check("#estimated")
    assert page.locator("#board .estimated:visible").count() == 16
    assert page.locator("#board .none abbr:visible").count() == 0
    cells = page.locator("#board td:has(.estimated)")  # what a screen reader calls them
    assert all("estimated ≈" in cells.nth(number).aria_snapshot() for number in (0, 15))
    box = page.locator("#board .estimated").first.bounding_box()
    assert 0 < box["x"] < box["x"] + box["width"] < 1300  # far to the right as it is, it is seen
    assert page.locator("#estimated-said").inner_text().startswith("≈ Estimated, with a 95 % interval. 16 scores")
    assert "less than" in page.locator("#estimated-said").inner_text()
    assert page.evaluate("[...document.querySelectorAll('#board tbody tr')].map(row => row.dataset.i)") == order
    assert page.url.endswith("#far=show&est=show")
    for direction in (1, 2):  # both ways round they come last, as what is not known does
        page.click("th[data-key='task:everwatch'] button")
        rows = page.locator("#board tbody tr")
        has = [rows.nth(number).locator(".estimated").count() > 0 for number in range(rows.count())]
        assert has == [False] * 17 + [True] * 4, direction
    page.select_option("#show", "std")
    assert page.locator("#board .estimated:visible").count() == 0
    page.select_option("#show", "score")
    with page.expect_download() as waiting:
        page.click("#download")
    view = list(csv.DictReader(Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()))
    assert sum(row["everwatch (score)"] == "" for row in view) == 4


def test_pages_of_methods_and_tasks_list_predictions_apart_from_scores(browser: Any, site: Path) -> None:
    """Folded away, by name, without scripts; nothing where all was run."""
    for reader in reading(browser, site, java_script_enabled=False):
        for name, heads in ((f"method/{LACKING}", 4), ("task/everwatch", 4)):
            page = reader.open(f"boards/geobench-2/{name}.html")
            assert not page.locator("#estimated table").is_visible()
            page.click("#estimated summary")
            rows = page.locator("#estimated tbody tr")
            assert rows.count() == heads
            titles = rows.locator("th").all_inner_texts()
            assert titles == sorted(titles)
            values, intervals = (rows.locator(f"td:nth-child({column})").all_inner_texts() for column in (2, 3))
            for value, interval in zip(values, intervals, strict=True):
                low, high = map(float, interval.split("–"))
                assert value[0] == "≈"
                assert low < float(value[1:]) < high
            text = page.locator("#estimated").inner_text()
            assert "4 scores estimated, not run" in text
            assert "never ranked" in text
            assert "≈" not in page.locator("#scores table.strips").inner_text()
        rows.locator("a").first.click()
        assert page.locator("h1").inner_text() == titles[0]
        page = reader.open(f"boards/geobench-2/method/{COMPLETE}.html")
        assert page.locator("#estimated").count() == 0


def test_predictions_are_in_no_file(site: Path) -> None:
    for name in ("board.json", "board.csv"):
        text = (site / "boards/geobench-2" / name).read_text(encoding="utf-8")
        assert "estimated" not in text
        assert "≈" not in text


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_a_map_names_all_its_points(browser: Any, site: Path, width: int, scheme: str) -> None:
    for other in reading(browser, site, viewport={"width": width, "height": 900}, color_scheme=scheme):
        page = other.open(f"{BOARD}#predict-map")
        # Each of 40 points has its number, and the number and a name in the list.
        assert page.locator("#predict-map .map:visible .name").count() == 120
        assert page.locator("#predict-map .map:visible").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert "distances are distorted" in page.locator("#predict-map .banner").inner_text()
        page.click("#predict-map summary")
        assert page.locator("#predict-map tbody tr:visible").count() == 40


def test_a_small_board_has_neither_and_the_map_of_strangers_words_does_nothing() -> None:
    small = made_source(4, 3, replicates=10)
    assert panels(small, "board") == []
    assert extra_cells(small.board) is None
    (panel,) = panels(made_source(8, 5, replicates=10), "board")
    assert (panel.id, panel.title) == ("predict-map", "Map")
    assert "<img" not in panel.html
    assert " style=" not in panel.html  # the page's policy would refuse it
