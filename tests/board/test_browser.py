"""The page in a real browser, opened from a file. The fixture also asserts: no complaint, no request to elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.board.conftest import Reader
from tests.board.site_source import IMAGE, MARKUP

BOARD = "boards/made/index.html"
PAPER = "boards/neuco-paper-table-4/index.html"


def shown(page: Any) -> list[str]:
    """The ids of the methods in the table, in the order on the screen."""
    found: list[str] = page.evaluate(
        "Array.from(document.querySelectorAll('#board tbody tr')).filter(r => !r.hidden && r.offsetParent)"
        ".map(r => neuco.data.rows[r.dataset.i].id)"
    )
    return found


def column(page: Any, key: str) -> list[float]:
    """The numbers of a column, from top to bottom."""
    texts = page.evaluate(
        "key => { const i = [...document.querySelectorAll('#board thead th')].findIndex(h => h.dataset.key === key);"
        "const rows = [...document.querySelectorAll('#board tbody tr')].filter(r => !r.hidden);"
        "return rows.map(r => r.cells[i].textContent); }",
        key,
    )
    return [float(text.replace("−", "-")) for text in texts if text != "–"]


def header(page: Any, key: str) -> Any:
    return page.locator(f"th[data-key='{key}']")


def test_every_page_opens_without_complaint(reader: Reader, site: Path) -> None:
    for path in sorted(site.rglob("*.html")):
        reader.open(str(path.relative_to(site)))
        assert reader.page.locator("h1").count() == 1
    assert len(reader.requests) > 40


def test_the_table_starts_by_rank_without_any_filter(reader: Reader) -> None:
    page = reader.open(BOARD)
    assert len(shown(page)) == 12
    assert shown(page)[-1] == "m011"  # not ranked
    assert header(page, "rank").get_attribute("aria-sort") == "ascending"
    assert page.locator("#chips button").count() == 0
    assert page.locator("#status").inner_text() == "12 of 12 methods shown."
    assert page.locator("tr.incomplete abbr").first.get_attribute("title").startswith("failed: memory")


@pytest.mark.parametrize("key", ["mean_q", "task:t01", "weighted_rank", "dim"])
def test_columns_sort_both_ways(reader: Reader, key: str) -> None:
    page = reader.open(BOARD)
    header(page, key).locator("button").click()
    first = column(page, key)
    ascending = header(page, key).get_attribute("aria-sort") == "ascending"
    assert first == sorted(first, reverse=not ascending)
    header(page, key).locator("button").click()
    assert column(page, key) == sorted(first, reverse=ascending)
    assert header(page, "rank").get_attribute("aria-sort") == "none"


def test_search_finds_by_id_title_and_tag(reader: Reader) -> None:
    page = reader.open(BOARD)
    for words, expected in (("m003", ["m003"]), ("ONERROR", ["m000"]), ("first-tag", ["m000"]), ("[e]", ["m001"])):
        page.fill("#search", words)
        assert shown(page) == expected
    page.fill("#search", "nothing of that name")
    assert shown(page) == []
    page.keyboard.press("Escape")
    assert len(shown(page)) == 12


def test_filters_are_shown_while_on_and_ranks_stay(reader: Reader) -> None:
    page = reader.open(BOARD)
    before = dict(zip(shown(page), page.locator("td.rank").all_inner_texts(), strict=True))
    page.check("#no-baselines")
    page.select_option("#dim", "64")
    assert "m002" not in shown(page)
    assert set(shown(page)) < set(before)
    assert "not computed anew" in page.locator("#status").inner_text()
    chips = page.locator("#chips button")
    assert chips.all_inner_texts() == ["no baselines ×", "size at most 64 ×", "Remove all"]
    visible = page.locator("#board tbody tr:visible td.rank").all_inner_texts()
    assert visible == [before[name] for name in shown(page)]
    chips.first.click()
    assert "m002" in shown(page)
    page.locator("#chips button").first.click()
    assert len(shown(page)) == 12
    assert page.locator("#chips button").count() == 0


def test_another_value_in_the_cells(reader: Reader) -> None:
    page = reader.open(BOARD)
    page.select_option("#show", "rank")
    assert sorted(column(page, "task:t00")) == list(range(1, 12))
    page.select_option("#show", "q")
    assert max(column(page, "task:t00")) > 5


def test_a_link_shows_the_same_view(reader: Reader) -> None:
    page = reader.open(BOARD)
    page.fill("#search", "m0")
    page.check("#no-baselines")
    page.select_option("#show", "q")
    header(page, "mean_q").locator("button").click()
    page.locator("tr[data-i='3'] .pick").check()
    expected, hash_ = shown(page), page.evaluate("location.hash")
    reader.open("index.html")
    page = reader.open(BOARD + hash_)
    assert shown(page) == expected
    assert page.input_value("#search") == "m0"
    assert page.input_value("#show") == "q"
    assert page.locator("tr.picked").count() == 1
    assert header(page, "mean_q").get_attribute("aria-sort") == "descending"


def test_a_link_made_up_by_a_stranger_does_no_harm(reader: Reader) -> None:
    page = reader.open(
        BOARD + "#sort=__proto__&show=constructor&q=%3Cimg%20src%3Dx%20onerror%3Dalert(3)%3E&pick=%00,x&dim=NaN"
    )
    assert page.locator("#chips button").first.inner_text().startswith("name contains “<img")
    assert page.locator("main img").count() == 0


def test_the_keyboard_alone_is_enough(reader: Reader) -> None:
    page = reader.open(BOARD)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    page.keyboard.type("m00")
    assert len(shown(page)) == 10
    header(page, "mean_q").locator("button").focus()
    page.keyboard.press("Enter")
    assert header(page, "mean_q").get_attribute("aria-sort") == "descending"
    page.locator("#board tbody a").first.focus()
    first = shown(page)
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('href')") == f"method/{first[1]}.html"
    page.keyboard.press("Enter")
    page.wait_for_url("**/method/*.html")


def test_hostile_names_are_text(reader: Reader) -> None:
    page = reader.open(BOARD)
    names = page.locator("#board .name a").all_inner_texts()
    assert IMAGE in names
    assert MARKUP in names
    for path in ("boards/made/method/m000.html", "boards/made/method/m001.html", "boards/made/task/t00.html"):
        page = reader.open(path)
        assert page.locator("main img, main script").count() == 0
        assert page.locator("h1").inner_text() in (IMAGE, MARKUP, f"First task {IMAGE}")
    page = reader.open("boards/made/method/m000.html")
    card = page.locator(".card-text")
    assert "<script>alert(2)</script>" in card.inner_text()
    assert card.locator("a").count() == 0
    assert card.locator("strong").inner_text() == "bold"
    assert "alert" not in page.content().replace("&lt;", "").split("onerror=")[0]


def test_dark_and_light(reader: Reader, browser: Any, site: Path) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    page = reader.open(BOARD)
    light = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) == light
    page.click("#theme")
    dark = page.evaluate(colour)
    assert dark != light
    assert page.inner_text("#theme") == "Theme: dark"
    page.reload()
    assert page.evaluate(colour) == dark
    context = browser.new_context(color_scheme="dark")
    other = Reader(context, site)
    assert other.open(BOARD).evaluate(colour) == dark
    context.close()
    assert other.troubles == []


@pytest.mark.parametrize(
    "path", [BOARD, PAPER, "index.html", "boards/made/method/m000.html", "boards/made/task/t00.html"]
)
def test_a_phone_scrolls_tables_and_not_the_page(browser: Any, site: Path, path: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    other = Reader(context, site)
    page = other.open(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
    assert other.troubles == []


def test_figures_show_what_the_table_shows(reader: Reader) -> None:
    page = reader.open(BOARD)
    assert page.locator("#parallel path.profile").count() == 11
    assert page.locator("#scatter .spot").count() == 11
    page.check("#no-baselines")
    assert page.locator("#parallel path.profile").count() == 10
    page.locator("tr[data-i='4'] .pick").check()
    assert page.locator("#parallel path.c0").count() == 1
    page = reader.open(PAPER)
    assert "No sizes" in page.inner_text("#scatter-says")


def test_rank_intervals_have_words(reader: Reader) -> None:
    page = reader.open(BOARD)
    labels = [svg.get_attribute("aria-label") for svg in page.locator("#board svg.ranks").all()]
    assert len(labels) == 11
    assert all(re.fullmatch(r"rank \d+, between \d+ and \d+", label or "") for label in labels)


def test_downloads(reader: Reader) -> None:
    page = reader.open(BOARD)
    page.fill("#search", "m00")
    with page.expect_download() as waiting:
        page.click("#download")
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert len(text.splitlines()) == 11
    assert f'"{IMAGE}"' in text
    for name in ("board.json", "board.csv"):
        assert (reader.site / "boards/made" / name).stat().st_size > 100
        assert page.locator(f"a[href='{name}']").count() == 1


def test_published_boards_say_so_and_stand_apart(reader: Reader) -> None:
    page = reader.open(PAPER)
    assert page.locator(".banner").inner_text().startswith("Published result")
    page = reader.open("index.html")
    assert page.locator("#computed .tile").count() == 1
    assert page.locator("#published .tile").count() == 2
    page = reader.open("boards/earthvision-2025-challenge/index.html")
    assert column(page, "mean_q")[:2] == [14.874, 15.225]


def test_the_table_is_there_without_scripts(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{site}/{BOARD}")
    assert page.locator("#board tbody tr").count() == 12
    assert not page.locator("#toolbar").is_visible()
    context.close()


def test_names_for_screen_readers(reader: Reader) -> None:
    page = reader.open(BOARD)
    assert page.get_by_role("searchbox", name="Search").count() == 1
    assert page.get_by_role("columnheader", name=re.compile("Mean Q")).count() == 1
    assert page.get_by_role("rowheader").count() >= 12
    assert page.get_by_role("status").count() == 1
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, a, input, select, svg[role=img]')]"
        ".filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label'))).length"
    )
    assert unnamed == 0


def test_pointing_at_a_score_tells_what_it_is_made_of(reader: Reader) -> None:
    page = reader.open(BOARD)
    cell = page.locator("tr[data-i='0'] td").nth(7)
    cell.hover()
    assert re.fullmatch(r"t00|First task .*: 0\.\d+ ± 0\.\d+, Q \d+\.\d+, rank \d+", cell.get_attribute("title") or "")
