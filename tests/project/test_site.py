"""The documentation as a web site: built strictly, closed in itself, and the same from a file as from a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from click import Context
from markdown import Markdown
from mkdocs.exceptions import PluginError

import neuco_core
from ci.changed import RUNNING, is_core
from ci.docs import BOARDS, Links, Plain, as_page, moved, on_config, on_files, on_page_markdown, places, spaced
from neuco_core.cli import cli
from tests.command import python
from tests.site.conftest import reading


class Page(HTMLParser):
    """What a page links to, what it loads, and which names it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif (tag == "link" and values.get("rel") != "canonical") or "src" in values:
            self.loads.append(values.get("src", values.get("href", "")))


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documentation")
    done = python("-m", "mkdocs", "build", "--strict", "--site-dir", folder, cwd=root, env={"NO_MKDOCS_2_WARNING": "1"})
    assert done.code == 0, done.text
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_every_page_and_every_card_is_on_the_site(site: Path, root: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    wanted = {target.replace(".md", ".html") for target in places(root).values() if target.endswith(".md")}
    assert wanted == built - {"404.html"}
    assert {"index.html", "maintain/maintaining.html", "tasks/olinda.html", "methods/mosaiks.html"} <= wanted


def test_every_link_leads_to_a_page_and_to_a_name_on_it(site: Path, pages: dict[Path, Page]) -> None:
    inside = [(path, urlsplit(link)) for path, page in pages.items() for link in page.links + page.loads]
    inside = [(path, parts) for path, parts in inside if parts.scheme != "https"]
    assert len(inside) > 1000
    for path, parts in inside:
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target == (site / BOARDS).resolve():
            continue  # the boards are put beside it
        assert target.is_file(), f"{path}: {parts.geturl()}"
        assert not parts.fragment or unquote(parts.fragment) in pages[target].names, f"{path}: {parts.geturl()}"


def test_every_public_name_and_every_command_has_its_entry(site: Path, pages: dict[Path, Page]) -> None:
    names = {name.removeprefix("neuco_core.") for name in pages[site / "ref/api.html"].names}
    assert set(neuco_core.__all__) <= names
    shown = re.findall(r"<h3 id=[^>]*>([\w-]+)<", (site / "ref/cli.html").read_text(encoding="utf-8"))
    assert shown == sorted(cli.list_commands(Context(cli)))


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert [load for page in pages.values() for load in page.loads if urlsplit(load).netloc] == []


@pytest.fixture
def reader(browser: Any, site: Path) -> Iterator[Any]:
    yield from reading(browser, site)


def test_a_reader_with_a_file_can_search(reader: Any) -> None:
    page = reader.open("index.html")
    page.locator(".md-search__input").click()
    page.keyboard.type("mirrors")
    page.locator(".md-search-result__item a[href*='data.html']").first.wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    for name in ("ref/tasks.html", "ref/methods.html", "ref/cli.html", "ref/api.html", "tasks/olinda.html"):
        reader.open(name)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide for a phone"


def test_make_docs_puts_the_boards_where_the_menu_leads(root: Path) -> None:
    target = yaml.safe_load(re.sub(r"!\S+", "", (root / "mkdocs.yml").read_text()))["site_dir"]
    assert f"leaderboard site --out {target}/{BOARDS.split('/')[0]}" in (root / "Makefile").read_text()


@pytest.mark.parametrize(
    ("link", "page", "there"),
    [
        ("docs/maintain/ci.md#the-sandbox", "README.md", "maintain/ci.md#the-sandbox"),
        ("../../README.md", "docs/maintain/ci.md", "../index.md"),
        ("../../docs/howto/data.md", "neuco_tasks/olinda/README.md", "../howto/data.md"),
        ("../../neuco_tasks/olinda/README.md", "docs/ref/tasks.md", "../tasks/olinda.md"),
        ("https://example.org/x", "README.md", "https://example.org/x"),
        ("#here", "README.md", "#here"),
        ("Makefile", "README.md", None),
    ],
)
def test_links_follow_their_pages(link: str, page: str, there: str | None, root: Path) -> None:
    assert moved(link, page, places(root), root) == there


def test_a_file_that_is_not_on_the_site_is_linked_once_the_repository_is_known(root: Path) -> None:
    code = "https://example.org/neuco/blob/main"
    assert moved("../../Makefile", "docs/maintain/ci.md", places(root), root, code) == f"{code}/Makefile"


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "http://example.org", "//example.org", "../gone.md", "/etc/passwd"]
)
def test_other_links_end_the_build(link: str, root: Path) -> None:
    with pytest.raises(PluginError, match="leads nowhere"):
        moved(link, "docs/maintain/ci.md", places(root), root)


@pytest.mark.parametrize("text", ["[x][y]\n\n[y]: javascript:alert(1)", "![x](https://example.org/count.png)"])
def test_however_they_are_written(text: str, root: Path) -> None:
    with pytest.raises(PluginError):
        convert(text, root)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"ci.md": "", "x.js": "", "y.html": ""}, r"docs/: x\.js, y\.html: expected pages and pictures"),
        ({"ci.md": "", "why/a.svg": "<svg onload='x()'/>"}, r"docs/why/a\.svg: not a plain drawing"),
    ],
)
def test_only_pages_and_pictures_are_taken_from_the_folder_of_pages(
    files: dict[str, str], message: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    config: Any = SimpleNamespace(docs_dir=str(tmp_path))
    listed: Any = [SimpleNamespace(src_uri=name, src_dir=str(tmp_path)) for name in files]
    with pytest.raises(PluginError, match=message):
        on_files(listed, config)


def test_a_list_under_a_line_of_text_is_a_list() -> None:
    assert spaced("Text.\n- a\n  more\n- b\n") == "Text.\n\n- a\n  more\n- b\n"
    code = "```\nx\n- y\n```\n"
    assert spaced(code) == code


def test_markup_in_a_card_is_shown_and_not_used(root: Path) -> None:
    made = convert("A <b onclick=x>card</b>\n\n<script>alert(1)</script>\n\n<img src=x onerror=y>", root)
    assert made.count("&lt;") == 5
    assert not re.search(r"<(b|script|img)\b", made)


def test_a_card_gives_no_element_attributes(root: Path) -> None:
    text = "# Card {: onclick=x }\n\nText\n{: onclick=x }\n\n``` { .python onclick=x }\n1\n```\n\n[a](#b){: onclick=x }"
    assert " onclick=" not in re.sub(">[^<]*<", "><", convert(text, root))


@pytest.mark.parametrize(
    "line", ["::: mkdocs-click\n    :module: x", "> - ::: x", "```\n::: mkdocs-click\n```", "## ::: x"]
)
def test_only_reference_pages_import_code_as_the_site_is_built(line: str, root: Path) -> None:
    config: Any = SimpleNamespace(
        config_file_path=str(root / "mkdocs.yml"), repo_url="", markdown_extensions=[], docs_dir=str(root / "docs")
    )
    on_config(config)
    for path in ("neuco_methods/mosaiks/README.md", "README.md", "examples/first_score.ipynb"):
        page: Any = SimpleNamespace(file=SimpleNamespace(src_uri=places(root)[path]))
        with pytest.raises(PluginError, match=f"{path}: `:::` imports code"):
            on_page_markdown(f"Text\n\n{line}\n", page)
    for path in RUNNING:
        assert is_core(path)


def test_a_notebook_shows_what_it_prints_and_nothing_else(tmp_path: Path, root: Path) -> None:
    outputs = [{"text": ["no line end"]}, {"data": {"image/png": "…"}}, {"ename": "Error", "traceback": []}]
    cells = [{"cell_type": "code", "source": ["x"], "outputs": outputs}, {"cell_type": "markdown", "source": ["After"]}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    page = as_page(tmp_path / "a.ipynb")
    assert page == "```python\nx\n```\n\n```text\nno line end\n```\n\nAfter"


def convert(text: str, root: Path) -> str:
    """As the site does: with the extensions of its settings."""
    links = Links()
    links.page, links.root, links.where, links.code = "docs/maintain/ci.md", root, places(root), ""
    settings = yaml.safe_load(re.sub(r"!\S+", "", (root / "mkdocs.yml").read_text()))
    names = [next(iter(item)) if isinstance(item, dict) else item for item in settings["markdown_extensions"]]
    return Markdown(extensions=[*names, Plain(links)]).convert(text)
