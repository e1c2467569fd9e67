"""A site on disk, and a real browser to look at it. Without a browser the tests are skipped, except with CI=true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuco_core.site.write import write_site
from tests.site.made_pages import all_sources, facts_source, odd_source


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_site(all_sources(root), folder)
    return folder


class Reader:
    """A page, what it complained about, and what it asked for."""

    def __init__(self, context: Any, site: Path) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(8000)
        self.site = site
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: str) -> Any:
        self.page.goto(f"file://{self.site}/{path}")
        return self.page


def reading(browser: Any, site: Path) -> Iterator[Reader]:
    """A page of a site; when the test has ended, nothing was complained of and nothing was asked from elsewhere."""
    context = browser.new_context(viewport={"width": 1300, "height": 900}, accept_downloads=True)
    found = Reader(context, site)
    yield found
    context.close()
    assert found.troubles == []
    assert all(url.startswith((f"file://{site}/", "data:", "blob:")) for url in found.requests), found.requests


@pytest.fixture
def reader(browser: Any, site: Path) -> Iterator[Reader]:
    yield from reading(browser, site)


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    write_site([odd_source("odd", 3), odd_source("one", 1), facts_source()], folder)
    return folder


@pytest.fixture
def odd_reader(browser: Any, odd: Path) -> Iterator[Reader]:
    yield from reading(browser, odd)
