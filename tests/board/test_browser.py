"""The page in a real browser, opened from a file. The fixture also asserts: no complaint, no request to elsewhere."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.leaderboard.build import rank_table
from neuco_core.leaderboard.ranking import Rule
from neuco_core.leaderboard.site.source import BoardSource, Words
from neuco_core.leaderboard.site.write import write_site
from neuco_core.leaderboard.table import Entrant, Table
from neuco_core.results.record import summary
from tests.board.conftest import Reader
from tests.board.helpers import simulate, table_of
from tests.board.site_source import IMAGE, MARKUP, finish

BOARD = "boards/made/index.html"
PAPER = "boards/neuco-paper-table-4/index.html"
ODD = "boards/odd/index.html"
LONG = "Averylongnamewithoutanyspace" * 8


def odd_source(name: str, tasks: int) -> BoardSource:
    """A method called "constructor", long names, and a last task where less is better and classes are told apart."""
    _, scores = simulate(np.random.default_rng(5), 4, tasks, splits=8)
    made = table_of(scores)
    last = replace(made.events[-1], kind="classification", greater_is_better=False)
    cells = {}
    for (method, task), cell in made.cells.items():
        q = summary(list(cell.splits), False)[2] if task == last.id else cell.q  # type: ignore[index]
        cells["constructor" if method == "m003" else method, task] = replace(cell, q=q)
    table = Table((*made.events[:-1], last), (*made.entrants[:-1], Entrant("constructor", dim=8)), cells)
    board = finish(rank_table(table, Rule(), replicates=50), name)
    words = Words(title=LONG, description=LONG, tags=(LONG,), citation=LONG)
    return BoardSource(
        id=name, title=LONG, board=board, table=table, methods={"m001": words}, tasks={"t00": Words(title=LONG)}
    )


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    write_site([odd_source("odd", 3), odd_source("one", 1)], folder)
    return folder


@pytest.fixture
def odd_reader(browser: Any, odd: Path) -> Iterator[Reader]:
    context = browser.new_context(viewport={"width": 1300, "height": 900}, accept_downloads=True)
    found = Reader(context, odd)
    yield found
    context.close()
    assert found.troubles == []


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
    for nonsense in ("sort=__proto__&dir=up&show=constructor&base=1&kind=x&dim=NaN&pick=%00,x", "sort=task:x&dim=17"):
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
    page = reader.open(BOARD + "#q=m0&base=hide&dim=64")
    assert page.locator("#chips").get_attribute("role") == "group"
    page.locator("#chips button").first.focus()
    for expected in ("no baselines ×", "size at most 64 ×", ""):
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


def contrast(first: str, second: str) -> float:
    """The ratio of WCAG between two colours as browsers write them."""

    def light(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    ends = sorted((light(first), light(second)))
    return ends[1] / ends[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_drawn_can_be_seen(reader: Reader, scheme: str) -> None:
    reader.page.emulate_media(color_scheme=scheme)
    page = reader.open(BOARD)
    style = "([path, name, part]) => getComputedStyle(document.querySelector(path), part)[name]"
    card = page.evaluate(style, ["section", "backgroundColor", None])
    for path, name in (
        ("#search", "borderTopColor"),
        ("#theme", "borderTopColor"),
        ("rect.bar", "fill"),
        ("path.profile:not(.d0)", "stroke"),
    ):
        assert contrast(page.evaluate(style, [path, name, None]), card) >= 3, path
        assert page.evaluate(style, [path, "opacity", None]) == "1"
    assert contrast(page.evaluate(style, ["#search", "color", "::placeholder"]), card) >= 4.5


def test_paper_is_light_and_holds_the_whole_table(reader: Reader) -> None:
    page = reader.open(BOARD)
    style = "([path, name]) => getComputedStyle(document.querySelector(path))[name]"
    light = page.evaluate(style, ["body", "color"])
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    for path, name, expected in (
        ("body", "color", light),
        (".board", "overflow", "visible"),
        (".board", "maxHeight", "none"),
        ("#board thead th", "position", "static"),
        ("#board tbody .name", "position", "static"),
        (".pick", "display", "none"),
        (".controls", "display", "none"),
        ("td.h10", "printColorAdjust", "exact"),
        ("section", "breakInside", "auto"),
        ("#board tbody tr", "breakInside", "avoid"),
    ):
        assert page.evaluate(style, [path, name]) == expected, (path, name)
    assert page.locator("#status").is_visible()  # a selection on paper says that it is one


@pytest.mark.parametrize(
    "path", [BOARD, PAPER, "index.html", "boards/made/method/m000.html", "boards/made/task/t00.html"]
)
def test_a_phone_scrolls_tables_and_not_the_page(browser: Any, site: Path, path: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    other = Reader(context, site)
    page = other.open(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if path == BOARD:
        assert page.locator("#parallel svg").get_attribute("viewBox").split()[2] == str(
            page.evaluate("document.querySelector('#parallel').clientWidth")
        )
        assert not page.locator("svg.ranks").first.is_visible()
        assert page.locator("td.rank .range:visible").count() == page.locator("td.rank .range").count()
        for box in (page.locator("#no-baselines").bounding_box(), page.locator(".pick").first.bounding_box()):
            assert min(box["width"], box["height"]) >= 24
    if page.locator(".strips").count():
        assert page.locator("svg.strip").first.bounding_box()["width"] > 280
        assert page.evaluate(
            "(box => box.scrollWidth <= box.clientWidth)(document.querySelector('.strips').parentNode)"
        )
    context.close()
    assert other.troubles == []


@pytest.mark.parametrize("path", [ODD, "index.html", "boards/odd/method/m001.html", "boards/odd/task/t00.html"])
def test_long_names_are_broken_and_not_the_page(odd_reader: Reader, path: str) -> None:
    for width in (1300, 390):
        odd_reader.page.set_viewport_size({"width": width, "height": 844})
        assert odd_reader.open(path).evaluate("document.documentElement.scrollWidth") <= width


def test_figures_show_what_the_table_shows(reader: Reader) -> None:
    page = reader.open(BOARD)
    assert page.locator("#parallel path.profile").count() == 11
    assert page.locator("#scatter .spot").count() == 11
    page.check("#no-baselines")
    assert page.locator("#parallel path.profile").count() == 10
    page.locator("tr[data-i='4'] .pick").check()
    assert page.locator("#parallel path.c0").count() == 1
    page.set_viewport_size({"width": 800, "height": 900})
    width = page.evaluate("document.querySelector('#parallel').clientWidth")
    page.wait_for_function(f"document.querySelector('#parallel svg').viewBox.baseVal.width === {width}")
    page = reader.open(PAPER)
    assert "No sizes" in page.inner_text("#scatter-says")


def test_pointing_at_a_dot_leaves_the_legend(reader: Reader) -> None:
    page = reader.open(BOARD + "#pick=" + ",".join(f"m{i:03}" for i in range(8)))
    page.locator("#scatter .spot circle").first.hover()
    pointed = page.locator("#scatter-says + .pointed")
    assert re.search(r": size \d+, mean Q .*, rank \d+$", pointed.inner_text())
    page.locator("#figures h2").hover()
    assert pointed.inner_text() == ""
    for name in ("#scatter-says", "#parallel-says"):
        keys = page.evaluate(f"[...document.querySelectorAll('{name} .key')].map(key => key.className)")
        assert len(set(keys)) == 8  # no two look the same, though there are six colours


def test_one_task_is_drawn_as_dots(odd_reader: Reader) -> None:
    page = odd_reader.open("boards/one/index.html")
    page.locator("#parallel").scroll_into_view_if_needed()
    assert page.locator("#parallel path.one").count() == 4
    assert page.evaluate(
        "[...document.querySelectorAll('#parallel path.one')].every(dot => { const box = dot.getBoundingClientRect();"
        "return document.elementFromPoint(box.x + box.width / 2 + 4, box.y + box.height / 2) === dot; })"
    )
    classes = page.evaluate("[...document.querySelectorAll('#parallel path')].map(dot => dot.getAttribute('class'))")
    assert sorted(classes) == ["one profile ", "one profile c0 d0", "one profile c1 d0", "one profile c2 d0"]


def test_rank_intervals_have_words(reader: Reader) -> None:
    page = reader.open(BOARD)
    labels = [svg.get_attribute("aria-label") for svg in page.locator("#board svg.ranks").all()]
    assert len(labels) == 11
    assert all(re.fullmatch(r"rank \d+, between \d+ and \d+", label or "") for label in labels)


def test_downloads(reader: Reader) -> None:
    page = reader.open(BOARD)
    page.fill("#search", "m00")
    rows = view(page)
    assert len(rows) == 10
    assert IMAGE in [row["title"] for row in rows]
    assert all(0 < int(row["rank_low"]) <= int(row["rank"]) <= int(row["rank_high"]) < 12 for row in rows)
    assert "t00 (score)" in rows[0]
    for name in ("board.json", "board.csv"):
        assert (reader.site / "boards/made" / name).stat().st_size > 100
        assert page.locator(f"a[href='{name}']").count() == 1


def view(page: Any) -> list[dict[str, str]]:
    """The rows of the view as it is downloaded."""
    with page.expect_download() as waiting:
        page.click("#download")
    return list(csv.DictReader(Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()))


def test_the_downloaded_view_is_what_is_shown(odd_reader: Reader) -> None:
    page = odd_reader.open(ODD + "#kind=regression&show=rank&sort=task:t01")
    rows = view(page)
    assert [name for name in rows[0] if name.startswith("t0")] == ["t00 (rank)", "t01 (rank)"]
    assert [float(row["t01 (rank)"]) for row in rows] == column(page, "task:t01") == [1, 2, 3, 4]
    assert [row["method"] for row in rows] == shown(page)


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
    assert page.locator("[data-needs-script]:visible").count() == 0
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
