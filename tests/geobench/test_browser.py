"""The real board by capabilities in a real browser, with a frozen submission of somebody who means no good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec import structs

from neuco_core.site.page_data import from_published
from neuco_core.site.write import write_site
from neuco_extensions.geobench.facts import CAPABILITIES, DATASETS
from neuco_extensions.geobench.submission import Model, from_folder
from tests.geobench.parts import board_of, good_info, good_rows, write
from tests.site.conftest import Reader, reading
from tests.site.test_browser import column, header, shown

BOARD = "boards/geobench-2/index.html"
EVIL = "=HYPERLINK(1)</title><img src=x onerror=alert(1)><script>alert(2)</script>"
MINE, LEADER = "evil_net-mine", "clay_v1_base-2ce4a907"


@pytest.fixture(scope="module")
def board_site(tmp_path_factory: pytest.TempPathFactory, committed_registry: Path) -> Path:
    folder, rows, info = tmp_path_factory.mktemp("capabilities"), good_rows(tuple(DATASETS)), good_info()
    rows = [row | {"backbone": "evil_net", "decoder": "linear"} for row in rows if row["backbone"] == "resnet50"]
    info["New model info"] = [
        {"model_display_name": "Harmless", "model_size": "7M", "unique_backbone_key": "evil_net"},
    ]
    mine = from_folder(write(folder / "in", rows, info), "mine")
    # Such texts are refused at the gate; the page must not rely on that.
    named = structs.replace(
        mine.about,
        title=EVIL,
        source="javascript:alert(5)",
        paper="javascript:alert(3)",
        license='"><img src=x onerror=alert(4)>',
        models={"evil_net": Model(EVIL, "7M")},
    )
    published = board_of(committed_registry, replace(mine, about=named))
    quick = structs.replace(published, options={**published.options, "replicates": 200})
    write_site([from_published(quick)], folder / "out")
    return folder / "out"


@pytest.fixture
def board_reader(browser: Any, board_site: Path) -> Iterator[Reader]:
    yield from reading(browser, board_site)  # which fails on any dialog


def test_capabilities_come_first_and_datasets_on_demand(board_reader: Reader) -> None:
    page = board_reader.open(BOARD)
    for key in ("classification", "rgb-nir", "overall"):
        assert header(page, key).is_visible()
    assert not header(page, "task:benv2").is_visible()
    assert not page.locator("#choose").is_visible()
    header(page, "classification").locator("button").click()
    values = column(page, "classification")
    assert values == sorted(values, reverse=True)
    page.check("#far")
    assert header(page, "task:benv2").is_visible()
    assert page.locator("#choose").is_visible()
    assert "far=show" in page.url


def test_a_tab_for_each_capability(board_reader: Reader) -> None:
    page = board_reader.open(f"{BOARD}#geobench-capabilities")
    links = page.locator(".tabs.inner a")
    assert links.all_inner_texts() == [*CAPABILITIES, "Overall"]
    assert page.locator(".part:visible h3").all_inner_texts() == ["Core"]
    links.nth(4).click()
    assert page.locator(".part:visible h3").all_inner_texts() == ["Classification"]
    rows = page.locator(".part:visible tbody tr")
    assert rows.count() == 22
    assert rows.first.locator("td").first.inner_text() == "1"
    assert rows.first.locator("line.whisker").count() == 1
    assert "4 tasks: benv2" in page.locator(".part:visible").inner_text()
    assert "another rank" in page.locator(".part:visible").inner_text()
    page.reload()
    assert page.locator(".part:visible h3").all_inner_texts() == ["Classification"]
    for link, opened in (("tab=geobench-capabilities&part=nonsense", "Core"), ("capability-rgb-nir", "RGB/NIR")):
        page = board_reader.open(f"{BOARD}#{link}")
        page.reload()
        assert page.locator(".part:visible h3").all_inner_texts() == [opened]


def test_a_profile_of_one_or_two_methods(board_reader: Reader, tmp_path: Path) -> None:
    page = board_reader.open(f"{BOARD}#geobench-profiles")
    names = page.locator(".chosen .method-name")
    assert sum(text.startswith(f"{EVIL} · mine, rank 1") for text in names.all_text_contents()) == 1
    assert EVIL in page.locator("#profile > svg").get_attribute("aria-label")
    assert names.count() == 2
    selects = page.locator("#profile-tools select")
    selects.nth(0).select_option(LEADER)
    selects.nth(1).select_option("")
    (name,) = names.all_text_contents()
    assert name.startswith("Clay-V1 ViT-B · 2ce4a907, rank ")
    assert page.locator(".chosen .between").count() == page.locator(".chosen .dodge .at").count() == 10
    assert page.locator("#profile > svg").get_attribute("aria-label").endswith("columns: Clay-V1 ViT-B · 2ce4a907")
    for end in ("svg", "png"):
        with page.expect_download() as download:
            page.click(f"#profile-tools >> text=Save as {end.upper()}")
        assert download.value.suggested_filename == f"geobench-2-profile.{end}"
        download.value.save_as(tmp_path / f"saved.{end}")
    drawn = (tmp_path / "saved.svg").read_text(encoding="utf-8")
    texts = ["".join(node.itertext()) for node in ElementTree.fromstring(drawn).iter() if node.tag.endswith("text")]
    assert "RGB/NIR" in texts
    assert len([text for text in texts if "(" in text and "–" in text]) == 11  # ten figures, one name with its ranks
    assert not ElementTree.fromstring(drawn).findall(".//{*}script")
    assert (tmp_path / "saved.png").read_bytes().startswith(b"\x89PNG")
    page.click("#tabs a[href='#ranking']")
    assert page.locator("#board tr.picked").count() == 1  # one choice for the whole page


def test_a_filter_finds_one_of_several_decoders(board_reader: Reader) -> None:
    assert shown(board_reader.open(f"{BOARD}#is-decoder=linear")) == [MINE]
    methods = shown(board_reader.open(f"{BOARD}#is-decoder=mask-rcnn"))
    assert (MINE in methods, len(methods)) == (False, 17)


def test_strangers_words_are_words(board_reader: Reader) -> None:
    page = board_reader.open(BOARD)
    banner = page.locator(".banner").first.inner_text()
    assert "Ranks, intervals and groups were computed from them here." in banner
    assert "imported as it was printed" not in banner
    assert page.locator("#board .label", has_text="HYPERLINK").inner_text() == f"{EVIL} · mine"
    for tab in ("geobench-capabilities", "geobench-profiles", "compare", "robustness", "reading", "submit"):
        page.click(f"#tabs a[href='#{tab}']")
    assert page.locator("img, a[href^='javascript:']").count() == 0
    page = board_reader.open(f"boards/geobench-2/method/{MINE}.html")
    assert page.locator("h1").inner_text().startswith("=HYPERLINK")
    assert page.locator("#geobench-profile .chosen").count() == 1
    assert page.locator("img, a[href^='javascript:']").count() == 0


def test_nothing_reaches_beyond_a_phone_and_without_scripts_all_is_there(browser: Any, board_site: Path) -> None:
    for reader in reading(browser, board_site, viewport={"width": 390, "height": 844}):
        for tab in ("ranking", "geobench-capabilities", "geobench-profiles", "robustness"):
            page = reader.open(f"{BOARD}#{tab}")
            page.reload()
            assert page.evaluate("document.documentElement.scrollWidth") == 390, tab
    for reader in reading(browser, board_site, java_script_enabled=False):
        page = reader.open(BOARD)
        assert page.locator(".part:visible").count() == 10
        assert page.locator(".chosen .method-name:visible").count() == 2
        assert page.locator("th.task:visible").count() == 19
