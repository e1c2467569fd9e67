"""A site on disk, and a real browser to look at it. Without a browser the tests are skipped, except with CI=true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuco_core.site.write import write_site
from tests.site.made_pages import all_sources, facts_source, made_source, odd_source, without_scores


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, committed_registry: Path) -> Path:
    """A made-up board, and the published ones."""
    folder = tmp_path_factory.mktemp("site")
    write_site(all_sources(committed_registry), folder)
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


def reading(browser: Any, site: Path, **options: Any) -> Iterator[Reader]:
    """A page of a site; when the test has ended, nothing was complained of and nothing was asked from elsewhere."""
    context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, "accept_downloads": True} | options)
    reader = Reader(context, site)
    yield reader
    context.close()
    assert reader.troubles == []
    assert all(url.startswith((f"file://{site}/", "data:", "blob:")) for url in reader.requests), reader.requests


@pytest.fixture
def reader(browser: Any, site: Path) -> Iterator[Reader]:
    yield from reading(browser, site)


@pytest.fixture
def page(reader: Reader) -> Any:
    return reader.open("boards/made/index.html")


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long names, one task, facts; one method, nobody ranked, and nobody with a score."""
    folder, few = tmp_path_factory.mktemp("odd"), [made_source(2, 1, "alone"), made_source(1, 2, "nobody")]
    failed = without_scores(made_source(3, 2, "failed"))
    write_site([odd_source("odd", 3), odd_source("one", 1), facts_source(), *few, failed], folder)
    return folder


@pytest.fixture
def odd_reader(browser: Any, odd: Path) -> Iterator[Reader]:
    yield from reading(browser, odd)
