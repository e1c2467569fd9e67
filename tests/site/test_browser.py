"""The table in a real browser, opened from a file. The fixture also asserts: no complaint, no request to elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.site.conftest import Reader
from tests.site.made_pages import IMAGE, MARKUP

BOARD = "boards/made/index.html"
ODD = "boards/odd/index.html"
FACTS = "boards/facts/index.html"


def shown(page: Any) -> list[str]:
    """The ids of the methods in the table, in the order on the screen."""
    methods: list[str] = page.evaluate(
        "Array.from(document.querySelectorAll('#board tbody tr')).filter(r => !r.hidden && r.offsetParent)"
        ".map(r => neuco.data.rows[r.dataset.i].id)"
    )
    return methods


def column(page: Any, key: str) -> list[float]:
    """The numbers of a column, from top to bottom."""
    texts = page.evaluate(
        "key => { const i = [...document.querySelectorAll('#board thead th')].findIndex(h => h.dataset.key === key);"
        "const rows = [...document.querySelectorAll('#board tbody tr')].filter(r => !r.hidden);"
        "return rows.map(r => (r.cells[i].querySelector('.figure') || r.cells[i].firstChild).textContent); }",
        key,
    )
    return [float(text.replace("−", "-")) for text in texts if text != "–"]


def header(page: Any, key: str) -> Any:
    return page.locator(f"th[data-key='{key}']")


def test_every_page_opens_without_complaint(reader: Reader, site: Path) -> None:
    for path in sorted(site.rglob("*.html")):
        page = reader.open(str(path.relative_to(site)))
        assert page.locator("h1").count() == 1
        if "made" in path.parts:  # its names are hostile
            assert page.locator("main img, main script:not([type='application/json'])").count() == 0
    assert len(reader.requests) > 40


def test_the_table_starts_by_rank_without_any_filter(page: Any) -> None:
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


def test_filters_are_shown_while_on_and_ranks_stay(page: Any) -> None:
    before = dict(zip(shown(page), page.locator("td.rank").all_inner_texts(), strict=True))
    page.check("#no-baselines")
    page.click("summary:text('Filters')")
    page.select_option("#max-dim", "64")
    page.click("summary:text('Filters')")
    assert "m002" not in shown(page)
    assert set(shown(page)) < set(before)
    assert "those of the whole board" in page.locator("#status").inner_text()
    chips = page.locator("#chips button")
    assert chips.all_inner_texts() == ["no baselines ×", "Size at most 64 ×", "Remove all"]
    visible = page.locator("#board tbody tr:visible td.rank").all_inner_texts()
    assert visible == [before[name] for name in shown(page)]
    chips.first.click()
    assert "m002" in shown(page)
    page.locator("#chips button").first.click()
    assert len(shown(page)) == 12
    assert page.locator("#chips button").count() == 0


def test_a_cell_opens_what_is_behind_it(page: Any) -> None:
    cell = page.locator("tr[data-i='3'] td.cell").nth(1)
    cell.click()
    page.locator("#cell[open]").wait_for()
    assert page.locator("#cell .split").count() == 40
    assert page.locator("#cell h2").inner_text().endswith("on t01")
    assert page.locator("#cell dd").first.inner_text() == cell.inner_text()
    page.keyboard.press("Escape")
    page.wait_for_function("document.activeElement.className.startsWith('cell')")  # where the reader was, a task later
    assert not page.locator("#cell").is_visible()
    page.locator("#board .name a").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.locator("#cell[open]").wait_for()  # what is behind the cell has been loaded
    second = page.evaluate("neuco.data.rows[1].title")
    assert page.locator("#cell h2").inner_text() == f"{second} on t01"
    page.click("#cell-close")
    assert page.evaluate("document.activeElement.className").startswith("cell")


def test_tasks_and_methods_can_be_left_out(page: Any) -> None:
    before = page.locator("td.rank").all_inner_texts()
    page.click("#choose summary")
    page.uncheck("[data-task=t00]")
    page.click("#choose summary")
    assert not header(page, "task:t00").is_visible()
    assert "Ranked anew on 4 of 5 tasks among 11 methods" in page.inner_text("#status")
    page.locator(".pick").first.check()
    page.click("#go-without")
    assert "Ranked anew on 4 of 5 tasks among 10 methods" in page.inner_text("#status")
    assert page.locator("tr[data-i='0']").is_hidden()
    assert "was " in page.locator("#board tbody tr:visible .range").first.inner_text()
    page.click("#chips button:last-child")
    assert page.locator("td.rank").all_inner_texts() == before
    assert page.locator("#board.anew").count() == 0


def test_methods_are_compared_in_pairs(page: Any) -> None:
    for line in (2, 5, 7):
        page.locator(f"tr[data-i='{line}'] .pick").check()
    page.click("#go-compare")
    names = page.evaluate("[2, 5, 7].map(i => neuco.data.rows[i].title)")
    table = page.locator("#compared table")
    assert [head.split(" ", 1)[1] for head in table.locator(".named").all_inner_texts()] == names
    assert table.locator("td.gap").count() == 2 * 5
    assert page.locator("#compared select").count() == 4
    page.locator("#compared select").last.select_option("m001")
    page.locator("#compared td.gap").nth(14).wait_for()
    assert "pick=" in page.url


def test_a_place_on_the_page_is_not_a_view(page: Any) -> None:
    page.evaluate("location.hash = 'ranking-title'")
    page.wait_for_function("location.hash === '#ranking-title'")
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
    for key, direction in (("task:t00", "descending"), ("task:t02", "ascending")):
        header(page, key).locator("button").click()
        assert header(page, key).get_attribute("aria-sort") == direction
    for value, direction in (("q", "descending"), ("rank", "ascending")):
        page.select_option("#show", value)
        assert header(page, "task:t02").get_attribute("aria-sort") == direction
    page.click("#choose summary")
    page.click("[data-kind=regression]")  # the column is gone
    assert header(page, "rank").get_attribute("aria-sort") == "ascending"
    assert page.locator("td.rank b").all_inner_texts() == ["1", "2", "3", "4"]


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
    page.locator("#board thead button:visible").last.focus()
    for _ in range(9):
        page.keyboard.press("Shift+Tab")
        assert page.evaluate(
            "document.activeElement.getBoundingClientRect().left >= "
            "document.querySelector('#board thead .name').getBoundingClientRect().right - 1"
        )


def test_columns_sort_both_ways(reader: Reader) -> None:
    page = reader.open(f"{BOARD}#more=show")
    for key in ("mean_q", "task:t01", "weighted_rank", "dim"):
        header(page, key).locator("button").click()
        first = column(page, key)
        ascending = header(page, key).get_attribute("aria-sort") == "ascending"
        assert first == sorted(first, reverse=not ascending)
        header(page, key).locator("button").click()
        assert column(page, key) == sorted(first, reverse=ascending)
        assert header(page, "rank").get_attribute("aria-sort") == "none"


def test_search_finds_by_id_title_and_tag(page: Any) -> None:
    expected = {"m003": ["m003"], "ONERROR": ["m000"], "first-tag": ["m000"], "[e]": ["m001"]}
    several_words = {"onerror m000": ["m000"], " M003  m00 ": ["m003"], "m003 m004": [], "nothing of that name": []}
    for words, methods in (expected | several_words).items():
        page.fill("#search", words)
        assert shown(page) == methods, words
    for tab, figure in (("tasks", "#parallel ~ .says"), ("size", "#scatter ~ .says")):
        page.click(f"#tabs a[href='#{tab}']")
        assert page.inner_text(figure) == "No ranked method is shown."
    page.keyboard.press("/")  # opens the ranking, too
    page.keyboard.press("Escape")
    assert len(shown(page)) == 12


def test_text_colour_and_outline_follow_the_value_shown(page: Any) -> None:
    values = {}
    for key, best in (("score", max), ("std", min), ("q", max), ("rank", min)):
        page.select_option("#show", key)
        values[key] = column(page, "task:t00")
        marked = page.locator("#board td.cell:nth-child(5).h10").all_inner_texts()  # the first task
        assert {float(text) for text in marked} == {best(values[key])}
    assert sorted(values["rank"]) == list(range(1, 12))
    assert max(values["q"]) > 5


def test_tabs_have_an_address_and_one_is_open(reader: Reader) -> None:
    page = reader.open(BOARD)
    names = page.locator("#tabs a").all_inner_texts()
    assert names[:5] == ["Ranking", "Compare", "Mean Q against size", "Tasks", "Robustness"]
    assert names[-2:] == ["How to read this", "Submit"]  # panels of extensions are between
    for link in page.locator("#tabs a").all():
        link.click()
        assert page.locator("main > section:visible").count() == 1
        assert link.get_attribute("aria-current") == "true"
    assert page.url.endswith("#submit")
    for address, tab in (("robustness", "robustness"), ("q=m00&tab=tasks", "tasks")):
        assert reader.open(f"{BOARD}#{address}").locator(f"#{tab}").is_visible()


def test_a_link_shows_the_same_view_and_one_made_up_by_a_stranger_does_no_harm(reader: Reader) -> None:
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
    assert (page.input_value("#search"), page.input_value("#show")) == ("m0", "q")
    assert page.locator("tr.picked").count() == 1
    assert header(page, "mean_q").get_attribute("aria-sort") == "descending"
    for nonsense in (
        "sort=__proto__&dir=up&show=constructor&base=1&tab=x&max-dim=NaN&pick=%00,x&off=t9&out=x",
        "sort=task:x&max-dim=17",
    ):
        page = reader.open(f"{BOARD}#{nonsense}")
        page.reload()
        state = page.evaluate("Object.entries(neuco.state).filter(([, value]) => value).sort()")
        assert state == [["show", "score"], ["sort", "rank"], ["tab", "ranking"]]
        assert header(page, "rank").get_attribute("aria-sort") == "ascending"
        assert len(shown(page)) == 12
        assert page.locator("#chips button").count() == 0
    page = reader.open(BOARD + "#q=%3Cimg%20src%3Dx%20onerror%3Dalert(3)%3E")
    assert page.locator("#chips button").first.inner_text().startswith("name contains “<img")
    assert page.locator("main img").count() == 0


def test_the_keyboard_alone_is_enough(page: Any) -> None:
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
    assert {IMAGE, MARKUP} <= {*reader.open(BOARD).locator("#board .name a").all_inner_texts()}
    for path, title in (("method/m001", MARKUP), ("task/t00", f"First task {IMAGE}"), ("method/m000", IMAGE)):
        page = reader.open(f"boards/made/{path}.html")
        assert page.locator("h1").inner_text() == title
    card = page.locator(".card-text")
    assert "<script>alert(2)</script>" in card.inner_text()
    assert [link.get_attribute("href") for link in card.locator("a").all()] == ["https://example.org/x"]
    assert card.locator("strong").inner_text() == "bold"
    assert "alert" not in page.content().replace("&lt;", "").split("onerror=")[0]


# Facts of methods: columns on demand, filters, and the mark of an overlap.


def test_facts_are_columns_on_demand_and_an_overlap_is_marked(odd_reader: Reader) -> None:
    page = odd_reader.open(FACTS)
    assert page.locator("#board .warn").all_inner_texts() == ["overlap"]
    assert page.locator("#board .warn").get_attribute("title") == f"made: seen {IMAGE}"
    assert page.locator("#reading", has_text="Overlap of training data and samples: m000 (made)").count() == 1
    cell = page.locator("#board tbody tr", has=page.locator(".warn")).locator("td.cell").last
    cell.hover()
    assert f"The method was seen {IMAGE}" in cell.get_attribute("title")
    assert not header(page, "pretraining").is_visible()
    page.locator("#more").check()
    assert header(page, "pretraining").is_visible()
    header(page, "n_parameters").locator("button").click()
    assert shown(page) == ["m002", "m001", "m000", "m003"], "what is not known comes last"
    assert column(page, "encode_ms") in ([1.2], [1.3])
    assert "more=show" in page.url
    assert page.locator("td.words", has_text=IMAGE).count() == 1
    assert "neuco leaderboard show facts --with mine.parquet" in page.locator("#submit").text_content()
    page = odd_reader.open("boards/facts/method/m000.html")
    assert page.locator("dd", has_text="5,000,000").count() == 1
    assert page.locator("dt", has_text="Overlap with made").count() == 1


def test_facts_filter_by_address_and_by_hand(odd_reader: Reader) -> None:
    everybody = ["m000", "m001", "m002", "m003"]
    for choice, left in {
        "is-trust=copied": ["m000"],
        "is-trust=unknown": ["m002", "m003"],
        "is-pretraining=nothing": ["m002"],
        "max-n_parameters=7": ["m001", "m002"],
        "lap=hide": ["m001", "m002", "m003"],
        "is-pretraining=who+knows": everybody,
    }.items():
        page = odd_reader.open(f"{FACTS}#{choice}")
        page.reload()
        assert sorted(shown(page)) == left, choice
        assert page.locator("#chips button").count() == (left != everybody)
    page.click("summary:text('Filters')")
    page.locator("#is-trust").select_option("self-reported")
    assert shown(page) == ["m001"]
    assert page.locator("#chips button").first.inner_text() == "How it came about: self-reported ×"
    page.locator("#chips button").first.click()
    page.locator("#no-overlap").check()
    assert "m000" not in shown(page)
