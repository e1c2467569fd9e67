"""The table in a real browser, opened from a file. The fixture also asserts: no complaint, no request to elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.boards.conftest import Reader
from tests.boards.site_source import IMAGE, MARKUP

BOARD = "boards/made/index.html"
ODD = "boards/odd/index.html"


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
        "return rows.map(r => r.cells[i].firstChild.textContent); }",
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
    assert page.locator("#theme, .pick").first.is_visible()
    assert page.locator("[data-needs-script][hidden]").count() == 0
    arrow = "getComputedStyle(document.querySelector('[aria-sort=ascending] button'), '::after').content"
    assert page.evaluate(arrow) == '" ▲" / ""'  # the state is said by aria-sort, not by the name of the button
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
    for words, expected in (("onerror m000", ["m000"]), (" M003  m00 ", ["m003"]), ("m003 m004", [])):
        page.fill("#search", words)
        assert shown(page) == expected
    page.fill("#search", "nothing of that name")
    assert shown(page) == []
    assert page.inner_text("#parallel-says") == page.inner_text("#scatter-says") == "No ranked method is shown."
    page.keyboard.press("Escape")
    assert len(shown(page)) == 12


def test_filters_are_shown_while_on_and_ranks_stay(reader: Reader) -> None:
    page = reader.open(BOARD)
    before = dict(zip(shown(page), page.locator("td.rank").all_inner_texts(), strict=True))
    page.check("#no-baselines")
    page.select_option("#max-dim", "64")
    assert "m002" not in shown(page)
    assert set(shown(page)) < set(before)
    assert "not recomputed" in page.locator("#status").inner_text()
    chips = page.locator("#chips button")
    assert chips.all_inner_texts() == ["no baselines ×", "Size at most 64 ×", "Remove all"]
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
    for nonsense in (
        "sort=__proto__&dir=up&show=constructor&base=1&kind=x&max-dim=NaN&pick=%00,x",
        "sort=task:x&max-dim=17",
    ):
        page = reader.open(f"{BOARD}#{nonsense}")
        page.reload()
        said = page.evaluate("Object.entries(neuco.state).filter(([, value]) => value).sort()")
        assert said == [["show", "score"], ["sort", "rank"]]
        assert header(page, "rank").get_attribute("aria-sort") == "ascending"
        assert len(shown(page)) == 12
        assert page.locator("#parallel path").count() == 11
        assert page.locator("#chips button").count() == 0
    page = reader.open(BOARD + "#q=%3Cimg%20src%3Dx%20onerror%3Dalert(3)%3E")
    assert page.locator("#chips button").first.inner_text().startswith("name contains “<img")
    assert page.locator("main img").count() == 0


def test_a_place_on_the_page_is_not_a_view(reader: Reader) -> None:
    page = reader.open(BOARD)
    page.evaluate("location.hash = 'certainty'")
    page.wait_for_function("location.hash === '#certainty'")
    page.fill("#search", "m00")
    header(page, "mean_q").locator("button").click()
    before, address = shown(page), page.url
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(address)
    assert page.evaluate("document.activeElement.id") == "main"
    page.evaluate("location.hash = 'show'")  # the id of a control, and a word of the view's address
    page.wait_for_url(address)
    assert shown(page) == before
    assert page.input_value("#search") == "m00"
    page.evaluate("location.hash = 'q=m003'")
    page.wait_for_function("document.querySelector('#search').value === 'm003'")


def test_the_best_comes_first(odd_reader: Reader) -> None:
    page = odd_reader.open(ODD)
    by_rank = shown(page)
    for key, direction in (("task:t00", "descending"), ("task:t02", "ascending")):
        header(page, key).locator("button").click()
        assert header(page, key).get_attribute("aria-sort") == direction
    for value, direction in (("q", "descending"), ("rank", "ascending")):
        page.select_option("#show", value)
        assert header(page, "task:t02").get_attribute("aria-sort") == direction
    page.select_option("#kind", "regression")  # the column is gone
    assert header(page, "rank").get_attribute("aria-sort") == "ascending"
    assert shown(page) == by_rank


def test_focus_is_neither_lost_nor_covered(reader: Reader) -> None:
    page = reader.open(BOARD + "#q=m0&base=hide&max-dim=64")
    assert page.locator("#chips").get_attribute("role") == "group"
    page.locator("#chips button").first.focus()
    for expected in ("no baselines ×", "Size at most 64 ×", ""):
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.textContent") == expected
    assert page.evaluate("document.activeElement.id") == "search"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Control+/")
    assert page.evaluate("document.activeElement.id") == ""
    page.set_viewport_size({"width": 1300, "height": 420})
    page.locator("#board tbody a").last.focus()
    for _ in range(11):
        page.keyboard.press("ArrowUp")
        assert page.evaluate(
            "document.activeElement.getBoundingClientRect().top >= "
            "document.querySelector('#board thead th').getBoundingClientRect().bottom"
        )
    page.set_viewport_size({"width": 700, "height": 420})
    page.locator("#board thead button").last.focus()
    for _ in range(9):
        page.keyboard.press("Shift+Tab")
        assert page.evaluate(
            "document.activeElement.getBoundingClientRect().left >= "
            "document.querySelector('#board thead .name').getBoundingClientRect().right - 1"
        )


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
