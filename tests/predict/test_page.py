"""Maps and predictions on the page of a real board, looked at in a browser."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from neuco_core.boards.facts import extra_cells
from neuco_core.boards.published import list_published
from neuco_core.site.page_data import from_published
from neuco_core.site.render import panels
from neuco_core.site.write import write_site
from tests.site.conftest import Reader, reading
from tests.site.made_pages import made_source

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
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for name, heads in ((f"method/{LACKING}", 4), ("task/everwatch", 4)):
        page.goto(f"file://{site}/boards/geobench-2/{name}.html")
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
    page.goto(f"file://{site}/boards/geobench-2/method/{COMPLETE}.html")
    assert page.locator("#estimated").count() == 0
    context.close()


def test_predictions_are_in_no_file(site: Path) -> None:
    for name in ("board.json", "board.csv"):
        text = (site / "boards/geobench-2" / name).read_text(encoding="utf-8")
        assert "estimated" not in text
        assert "≈" not in text


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_a_map_names_all_its_points(browser: Any, site: Path, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    other = Reader(context, site)
    page = other.open(f"{BOARD}#predict-map")
    # Each of 40 points has its number, and the number and a name in the list.
    assert page.locator("#predict-map .map:visible .name").count() == 120
    assert page.locator("#predict-map .map:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert "distances are distorted" in page.locator("#predict-map .banner").inner_text()
    page.click("#predict-map summary")
    assert page.locator("#predict-map tbody tr:visible").count() == 40
    context.close()
    assert other.troubles == []


def test_a_small_board_has_neither_and_the_map_of_strangers_words_does_nothing() -> None:
    small = made_source(4, 3, replicates=10)
    assert panels(small, "board") == []
    assert extra_cells(small.board) is None
    (panel,) = panels(made_source(8, 5, replicates=10), "board")
    assert (panel.id, panel.title) == ("predict-map", "Map")
    assert "<img" not in panel.html
    assert " style=" not in panel.html  # the page's policy would refuse it
