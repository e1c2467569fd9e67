"""The tab in a real browser: methods can be switched, and the figure saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuco_core.boards.build import build_board
from neuco_core.site.write import write_site
from tests.rate.made import SUITE, coded_records
from tests.rate.test_board import page_of
from tests.site.conftest import reading


def test_a_reader_chooses_methods_and_saves_the_figure(browser: Any, tmp_path: Path) -> None:
    write_site([page_of(build_board(coded_records(), SUITE, {"replicates": 100}))], tmp_path)
    for reader in reading(browser, tmp_path):
        page = reader.open("boards/made/index.html")
        page.locator("tr[data-i='1'] .pick").check()
        page.locator("a[href='#rate']").first.click()
        figure = page.locator("#curves")
        assert figure.is_visible()
        looks = {
            name: figure.locator(f"path[data-method={name}]").get_attribute("class") for name in ("steady", "wide")
        }
        assert [" c0" in look for look in looks.values()] == [True, False]
        with page.expect_download() as saved:
            page.locator("#rate .saves button").first.click()
        assert saved.value.suggested_filename.endswith("curves.svg")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1300
