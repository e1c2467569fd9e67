"""Facts about the methods in a real browser: columns on demand, filters, and the mark of an overlap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.conftest import Reader
from tests.site.made_pages import IMAGE
from tests.site.test_browser import column, header, shown

BOARD = "boards/facts/index.html"
ALL = ["m000", "m001", "m002", "m003"]


def test_facts_are_columns_on_demand(odd_reader: Reader) -> None:
    page = odd_reader.open(BOARD)
    assert not header(page, "pretraining").is_visible()
    page.locator("#more").check()
    assert header(page, "pretraining").is_visible()
    header(page, "n_parameters").locator("button").click()
    numbers = page.evaluate(
        "[...document.querySelectorAll('#board tbody tr')].map(r => neuco.data.rows[r.dataset.i].id)"
    )
    assert numbers == ["m002", "m001", "m000", "m003"], "what is not known comes last"
    assert column(page, "encode_ms") == [1.2] or column(page, "encode_ms") == [1.3]
    assert "more=show" in page.url
    assert page.locator("td.words", has_text=IMAGE).count() == 1


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ("is-confirmed=yes", ["m000"]),
        ("is-confirmed=unknown", ["m002", "m003"]),
        ("is-pretraining=nothing", ["m002"]),
        ("max-n_parameters=7", ["m001", "m002"]),
        ("lap=hide", ["m001", "m002", "m003"]),
        ("is-pretraining=who+knows", ALL),
    ],
)
def test_facts_filter_and_are_kept_in_the_address(odd_reader: Reader, choice: str, left: list[str]) -> None:
    page = odd_reader.open(f"{BOARD}#{choice}")
    assert sorted(shown(page)) == left
    assert page.locator("#chips button").count() == (left != ALL)


def test_choosing_by_hand_is_the_same_as_the_address(odd_reader: Reader) -> None:
    page = odd_reader.open(BOARD)
    page.click("summary:text('Filters')")
    page.locator("#is-confirmed").select_option("no")
    assert shown(page) == ["m001"]
    assert page.locator("#chips button").first.inner_text() == "Confirmed: no ×"
    page.locator("#chips button").first.click()
    page.locator("#no-overlap").check()
    assert "m000" not in shown(page)


def test_an_overlap_is_marked_in_the_row_and_told_in_the_cell(odd_reader: Reader) -> None:
    page = odd_reader.open(BOARD)
    assert page.locator("#board .warn").all_inner_texts() == ["overlap"]
    assert page.locator("#board .warn").get_attribute("title") == f"made: seen {IMAGE}"
    assert page.locator("#reading", has_text="Overlap of training data and samples: m000 (made)").count() == 1
    cell = page.locator("#board tbody tr", has=page.locator(".warn")).locator("td.cell").last
    cell.hover()
    assert f"The method was seen {IMAGE}" in cell.get_attribute("title")
    page = odd_reader.open("boards/facts/method/m000.html")
    assert page.locator("dd", has_text="5,000,000").count() == 1
    assert page.locator("dt", has_text="Overlap with made").count() == 1


def test_a_phone_has_room_and_the_page_names_the_command(odd_reader: Reader, odd: Path) -> None:
    odd_reader.page.set_viewport_size({"width": 390, "height": 844})
    page = odd_reader.open(f"{BOARD}#more=show")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert "neuco leaderboard show facts --with mine.parquet" in page.locator("#submit").text_content()
