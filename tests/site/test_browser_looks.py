"""What the page looks like: themes, paper, phones, figures, downloads, screen readers."""

from __future__ import annotations

import csv
import re
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from neuco_core.site import board_table
from neuco_core.site.write import write_site
from tests.site.conftest import Reader, reading
from tests.site.made_pages import IMAGE, made_source
from tests.site.test_browser import BOARD, FACTS, ODD, column, shown

PAPER = "boards/neuco-paper-table-4/index.html"


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
    for other in reading(browser, site, color_scheme="dark"):
        assert other.open(BOARD).evaluate(colour) == dark


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
    card = page.evaluate(style, [".board", "backgroundColor", None])
    page.click("#tabs a[href='#tasks']")
    for path, name in (
        ("#search", "borderTopColor"),
        ("#theme", "borderTopColor"),
        ("line.bar", "stroke"),
        ("path.profile:not(.d0)", "stroke"),
    ):
        assert contrast(page.evaluate(style, [path, name, None]), card) >= 3, path
        assert page.evaluate(style, [path, "opacity", None]) == "1"
    assert contrast(page.evaluate(style, ["#search", "color", "::placeholder"]), card) >= 4.5


def test_paper_is_light_and_holds_the_whole_table(page: Any) -> None:
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
    for other in reading(browser, site, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True):
        page = other.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        if path == BOARD:
            # The rank, its interval in figures and drawn, and the name are on the screen without scrolling.
            for part in ("td.rank .range", "#board svg.ranks", "#board .name a"):
                box = page.locator(part).first.bounding_box()
                assert 0 < box["x"] < box["x"] + box["width"] < 390
                assert page.locator(f"{part}:visible").count() == page.locator(part).count()
            for box in (page.locator("#no-baselines").bounding_box(), page.locator(".pick").first.bounding_box()):
                assert min(box["width"], box["height"]) >= 24
            page.click("#tabs a[href='#tasks']")
            assert page.locator("#parallel > svg").bounding_box()["width"] <= 366
            page.click("#tabs a[href='#submit']")
            box = page.locator("#tabs [aria-current]").bounding_box()  # a phone shows which tab is open
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
        if page.locator(".strips").count():
            assert page.locator("svg.strip").first.bounding_box()["width"] > 280
            assert page.evaluate(
                "(box => box.scrollWidth <= box.clientWidth)(document.querySelector('.strips').parentNode)"
            )


def test_a_phone_shows_where_the_table_goes_on_beyond_the_edge(browser: Any, site: Path) -> None:
    def edge(page: Any) -> float:
        """How dark the right edge of the table is, beside what lies 60 pixels to its left, in an empty line."""
        box = page.locator(".board").bounding_box()
        last = page.locator("#board tbody tr").nth(1).bounding_box()
        clip = {"x": box["x"] + box["width"] - 62, "y": last["y"] + 1, "width": 60, "height": 3}
        picture = np.asarray(Image.open(BytesIO(page.screenshot(clip=clip))).convert("L"), dtype=float)
        return float(picture[:, 0].mean() - picture[:, -2].mean())

    for other in reading(browser, site, viewport={"width": 390, "height": 844}, is_mobile=True):
        page = other.open(BOARD)
        assert page.evaluate("(box => box.scrollWidth > box.clientWidth)(document.querySelector('.board'))")
        assert edge(page) > 20
        page.evaluate("(box => box.scrollLeft = box.scrollWidth)(document.querySelector('.board'))")
        assert abs(edge(page)) < 8


def test_intervals_and_groups_are_drawn(reader: Reader) -> None:
    board = made_source().board
    page = reader.open(BOARD + "#robustness")
    assert page.locator("#forest .interval").count() == len(board.ranked)
    assert board.groups
    lines_of = {row.method: line for line, row in enumerate(board.ranked)}
    pieces = sum(lines_of[group[-1]] - lines_of[group[0]] + 1 for group in board.groups)
    assert page.locator("#forest .together").count() == pieces  # each method has its piece of the bars
    page = reader.open(BOARD + "#tab=robustness&q=m00")
    page.reload()
    lines = page.locator("#forest .row:not(.gone)")
    assert lines.count() == sum("m00" in row.method for row in board.ranked)
    tops = sorted(int(line.get_attribute("y")) for line in lines.all())
    assert all(below - above == 22 for above, below in pairwise(tops))  # they close up


def test_of_many_methods_the_ranks_scroll_and_lines_are_faint(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_table, "LONG", 50)
    write_site([made_source(methods=64, tasks=2, replicates=50)], tmp_path)
    for reader in reading(browser, tmp_path):
        page = reader.open(BOARD + "#robustness")
        assert page.locator("#forest .row").count() == 63
        assert page.locator("#forest .spot[class*=' c']").count() == 3  # the first three
        assert page.evaluate("(box => box.scrollHeight > box.clientHeight)(document.querySelector('#forest'))")
        page.locator("#forest [data-method]").nth(1).locator("text").hover()
        assert page.locator("#forest ~ .pointed").inner_text().startswith("Rank ")
        page.locator("#tabs a", has_text="Compare").click()
        assert "only means are compared" in page.locator("#compared").inner_text()
        page.locator("#tabs a", has_text="Ranking").click()
        page.locator("#board.long.ready").wait_for()  # then the rest of the rows is there, too
        assert page.locator("#board tbody tr:visible").count() == 64


def test_pointing_at_a_dot_leaves_the_legend(reader: Reader) -> None:
    page = reader.open(BOARD + "#tab=size&pick=" + ",".join(f"m{i:03}" for i in range(8)))
    page.locator("#scatter .spot circle").first.hover()
    pointed = page.locator("#scatter ~ .pointed")
    assert re.search(r": Size \d+, Mean Q .*, rank \d+$", pointed.inner_text())
    page.locator("h1").hover()
    assert pointed.inner_text() == ""
    for tab, name in (("size", "#scatter ~ .says"), ("tasks", "#parallel ~ .says")):
        page.click(f"#tabs a[href='#{tab}']")
        keys = page.evaluate(f"[...document.querySelectorAll('{name} .key')].map(key => key.className)")
        assert len(set(keys)) == 8  # no two look the same, though there are six colours


def test_the_table_is_there_without_scripts(browser: Any, site: Path) -> None:
    for reader in reading(browser, site, java_script_enabled=False):
        page = reader.open(BOARD)
        assert page.locator("#board tbody tr").count() == 12
        assert not page.locator("#toolbar").is_visible()
        assert page.locator("main > section:visible").count() == page.locator("#tabs a").count()  # below each other
        for name in ("forest", "parallel", "scatter"):
            assert page.locator(f"#{name} > svg:visible [data-method]").count() == 11
        assert page.locator("[data-needs-script]:visible, .pick:visible").count() == 0


def test_names_for_screen_readers_and_pointers(page: Any) -> None:
    assert page.get_by_role("searchbox", name="Search").count() == 1
    assert page.locator("#board").get_by_role("columnheader", name=re.compile("Mean Q")).count() == 1
    assert page.get_by_role("rowheader").count() >= 12
    assert page.get_by_role("navigation", name="Parts of this board").count() == 1
    assert page.get_by_role("status").count() == 1
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, a, input, select, svg[role=img]')]"
        ".filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label'))).length"
    )
    assert unnamed == 0
    cell = page.locator("tr[data-i='0'] td.cell").first
    cell.hover()
    made_of = r"First task .*: Mean score 0\.\d+, Std 0\.\d+, Q \d+\.\d+, Rank \d+"
    assert re.fullmatch(made_of, cell.get_attribute("title") or "")
    labels = [svg.get_attribute("aria-label") for svg in page.locator("#board svg.ranks").all()]
    assert len(labels) == 11
    assert all(re.fullmatch(r"rank \d+, between \d+ and \d+", label or "") for label in labels)


def test_long_names_are_broken_and_not_the_page(odd_reader: Reader) -> None:
    for path in (ODD, "index.html", "boards/odd/method/m001.html", "boards/odd/task/t00.html", f"{FACTS}#more=show"):
        for width in (1300, 390):
            odd_reader.page.set_viewport_size({"width": width, "height": 844})
            assert odd_reader.open(path).evaluate("document.documentElement.scrollWidth") <= width, path


def test_figures_show_what_the_table_shows(reader: Reader) -> None:
    page = reader.open(BOARD + "#tab=tasks&base=hide&pick=m004")
    page.reload()
    assert page.locator("#parallel path.profile:not(.gone)").count() == 10
    assert page.locator("#parallel path.c0").count() == 1


def test_one_task_is_drawn_as_dots(odd_reader: Reader) -> None:
    page = odd_reader.open("boards/one/index.html#tasks")
    page.locator("#parallel").scroll_into_view_if_needed()
    assert page.locator("#parallel circle.profile:visible").count() == 4
    assert page.locator("#parallel circle.profile[class*=' c']").count() == 3


def test_published_boards_say_so_and_stand_apart(reader: Reader) -> None:
    page = reader.open(PAPER)
    assert page.locator(".banner").first.inner_text().startswith("Published result")
    assert page.locator("#scatter").count() == 0  # no size is known
    assert page.locator("#board svg.unknown").count() == page.locator("#board svg.ranks").count() == 18
    assert page.locator("#board thead", has_text="100 · R²").count() == 1
    assert not re.search(r"\bQ\b", page.inner_text("#board thead"))
    page = reader.open("index.html")
    assert page.locator("#computed .tile").count() == 1
    assert page.locator("#published .tile").count() == 2
    page = reader.open("boards/earthvision-2025-challenge/index.html")
    assert column(page, "mean_q")[:2] == [14.874, 15.225]


def view(page: Any) -> list[dict[str, str]]:
    """The rows of the view as it is downloaded."""
    with page.expect_download() as waiting:
        page.click("#download")
    return list(csv.DictReader(Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()))


def test_the_downloaded_view_is_what_is_shown(reader: Reader) -> None:
    page = reader.open(BOARD + "#off=t02&show=q&sort=task:t01")
    rows = view(page)
    assert [name for name in rows[0] if name.startswith("t0")] == ["t00 (q)", "t01 (q)", "t03 (q)", "t04 (q)"]
    assert [round(float(row["t01 (q)"]), 2) for row in rows if row["t01 (q)"]] == column(page, "task:t01")
    assert sorted(int(row["rank_anew"]) for row in rows if row["rank_anew"]) == list(range(1, 12))
    assert [row["method"] for row in rows] == shown(page)
    page.fill("#search", "m00")
    rows = view(page)
    assert len(rows) == 10
    assert IMAGE in [row["title"] for row in rows]
    assert all(0 < int(row["rank_low"]) <= int(row["rank"]) <= int(row["rank_high"]) < 12 for row in rows)
    for name in ("board.json", "board.csv"):
        assert (reader.site / "boards/made" / name).stat().st_size > 100
        assert page.locator(f"a[href='{name}']").count() == 1
