"""A team's way through the page in a real browser: it signs in, uploads, sees its state and the board."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from neuco_extensions.challenge.host import Host
from tests.challenge.parts import embed
from tests.challenge.server import Server, open_challenge, serving
from tests.site.conftest import Reader

TITLE = '<img src=x onerror=alert(1)> & "A toy" challenge'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = open_challenge(
        tmp_path_factory.mktemp("page"),
        {'title = "A toy challenge"': f"title = '{TITLE}'"},
        teams=("alpha", "beta", "base"),
    )
    with serving(folder, workers=1) as running:
        running.put(embed(folder / "b.npz", 0.5, 1).read_bytes(), "beta")
        running.put(embed(folder / "c.npz", 3.0, 2).read_bytes(), "base")
        yield running


def visit(browser: Any, server: Server, **options: Any) -> Reader:
    reader = Reader(browser.new_context(**options), server.folder)
    reader.page.set_default_timeout(15_000)  # scores are waited for
    reader.page.goto(server.address)
    reader.page.wait_for_selector(".phase")
    return reader


def test_a_team_goes_through(browser: Any, server: Server, tmp_path: Path) -> None:
    with Host(server.folder) as host:
        host.amend("test", host.challenge.phase("test").end + timedelta(days=7))
    reader = visit(browser, server, viewport={"width": 1440, "height": 900})
    page = reader.page
    assert page.inner_text("h1") == TITLE
    assert re.match(r"\d+ d \d+ h \d\d min left", page.inner_text("[data-phase=dev] .clock"))
    assert "until it starts" in page.inner_text("[data-phase=test] .clock")
    assert "2101-03-08 00:00 UTC" in page.inner_text("[data-phase=test]")
    assert "it was to end at 2101-03-01 00:00 UTC" in page.inner_text("[data-phase=test]")
    page.wait_for_selector("#board-table tbody tr")

    page.get_by_label("Your team's token").fill("wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("#said.bad")
    assert page.inner_text("#said") == "No team has this token. Check that it is whole."
    assert page.evaluate("document.activeElement.id") == "token"
    assert len(reader.troubles) == 1  # the browser tells of a 401
    reader.troubles.clear()

    page.get_by_label("Your team's token").fill("alpha")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("#team:not([hidden])")
    assert page.inner_text("#team-title") == "Team alpha"
    assert page.locator("#login").is_hidden()
    assert page.evaluate("document.activeElement.id") == "file"
    assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    assert page.inner_text("#left-note") == "You have 3 submissions left today, 6 in all."

    page.get_by_label("Embeddings").set_input_files(embed(tmp_path / "mine.npz", 0.1))
    page.get_by_role("button", name="Upload").click()
    page.locator("#said", has_text="mine.npz is submission 3.").wait_for()
    page.wait_for_selector("#own-table .state")
    page.wait_for_selector("#own-table .state.scored")  # at a tick, without a click
    page.wait_for_selector("#board-table tr.mine")
    mean_q = page.inner_text("#own-table td.number")
    assert re.fullmatch(r"\d+\.\d\d", mean_q)
    rows = [row.split("\t") for row in page.inner_text("#board-table tbody").split("\n") if "\t" in row]
    assert rows[0][:1] == ["1"]
    assert "Team alpha" in page.inner_text("#board-table tr.mine")
    assert mean_q in page.inner_text("#board-table tr.mine")
    assert "not competing" in page.inner_text("#board-table tbody")

    page.get_by_label("Embeddings").set_input_files(embed(tmp_path / "mine.npz", 0.1))
    page.get_by_role("button", name="Upload").click()
    page.locator("#said", has_text="counts once").wait_for()
    page.get_by_label("Embeddings").set_input_files({"name": "<b>big</b>", "mimeType": "", "buffer": bytes(100_001)})
    page.get_by_role("button", name="Upload").click()
    assert page.inner_text("#said") == "The file is larger than the challenge allows."
    page.get_by_label("Embeddings").set_input_files({"name": "<b>x</b>", "mimeType": "", "buffer": b"no"})
    page.get_by_role("button", name="Upload").click()
    page.wait_for_selector("#own-table .state.failed")
    assert page.locator("#own-table tbody tr").count() == 2
    # The file that cannot be read has cost nothing.
    page.locator("#left-note", has_text="You have 2 submissions left today, 5 in all.").wait_for()
    assert re.fullmatch("[0-9a-f]{64}", page.locator("#own-table .receipt").last.inner_text())  # to be kept whole

    page.reload()  # the tab keeps the token
    page.wait_for_selector("#own-table .state.scored")
    page.get_by_role("button", name="Sign out").click()
    assert page.evaluate("sessionStorage.length") == 0
    assert page.locator("#own").is_hidden()
    assert page.text_content("#left-note") == ""
    assert page.locator("#own-table tbody tr").count() == 0
    assert reader.troubles == []
    assert all(url.startswith(server.address) for url in reader.requests)
    assert not [url for url in reader.requests if "alpha" in url]  # a token stands in no address
    page.context.close()


def test_a_team_signs_in_although_the_board_cannot_be_had(browser: Any, server: Server) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.route("**/board", lambda route: route.abort())
        page.goto(server.address)
        page.wait_for_selector(".phase")
        page.get_by_label("Your team's token").fill("alpha")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("#team:not([hidden])")
        assert page.url == server.address.rstrip("/") + "/"


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.slow), 390])
def test_the_page_fits_and_can_be_read(browser: Any, server: Server, root: Path, width: int, scheme: str) -> None:
    reader = visit(browser, server, viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = reader.page
    page.get_by_label("Your team's token").fill("beta")
    page.keyboard.press("Enter")
    page.wait_for_selector("#own-table .state.scored")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    board = page.locator("#standings .scroll")
    assert board.evaluate("box => box.scrollWidth <= box.clientWidth")
    for name in ("#send", "#logout", "#board-phase", "#theme"):
        box = page.locator(name).bounding_box()
        assert min(box["width"], box["height"]) >= 24, name
    axe = root / "build/axe/node_modules/axe-core/axe.min.js"
    if axe.is_file():  # `make test-axe` gets it
        page.evaluate(axe.read_text(encoding="utf-8"))
        assert page.evaluate("axe.run().then(found => found.violations.map(v => [v.id, v.nodes[0].html]))") == []
    assert reader.troubles == []
    page.context.close()
