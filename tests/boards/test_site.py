"""The page's building blocks: escaping, cards, and reports for strangers' names."""

from __future__ import annotations

import dataclasses
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from neuco_core.boards.published import list_published, read_published
from neuco_core.boards.replay import Snapshot, read_past
from neuco_core.boards.views.markup import to_latex, to_markdown
from neuco_core.boards.views.report import grid
from neuco_core.boards.views.site.board_about import bibtex
from neuco_core.boards.views.site.board_page import board_page
from neuco_core.boards.views.site.cards import render
from neuco_core.boards.views.site.html import Safe, data, linked, tag
from neuco_core.boards.views.site.source import from_published
from neuco_core.boards.views.site.write import write_site
from neuco_core.errors import DataError, PluginError
from tests.boards.helpers import board_of
from tests.boards.site_source import made_source

TAGS = ("div", "p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
ALLOWED = {*TAGS, "pre", "code", "strong", "em", "a"}


class Checker:
    """Collects the elements and attributes of a piece of HTML."""

    def __init__(self, source: str) -> None:
        from html.parser import HTMLParser

        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        outer = self

        class Parser(HTMLParser):
            def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
                outer.elements.add(name)
                outer.attributes.update(key for key, _ in attributes)
                outer.links += [value or "" for key, value in attributes if key == "href"]

        Parser().feed(source)


@given(st.text(alphabet=st.sampled_from(list("<>&\"'`*[]()#|-_ \nabc/=:;1")), max_size=80))
def test_a_card_never_brings_an_element_of_its_own(card: str) -> None:
    found = Checker(render(card))
    assert found.elements <= ALLOWED
    assert all(link.startswith(("http://", "https://")) for link in found.links)
    assert found.attributes <= {"class", "scope", "start", "tabindex", "role", "aria-label", "href", "rel"}


@pytest.mark.parametrize(
    "card",
    [
        "[x](javascript:alert(1))",
        "<a href='javascript:alert(1)'>x</a>",
        "![x](https://example.org/x.png)",
        "`<img>`",
        "```\n<script>\n",
        "[" * 5000,
        "*" * 5000,
        "|" * 5000 + "\n|--|\n",
    ],
)
def test_cards_that_try(card: str) -> None:
    found = Checker(render(card))
    assert found.elements <= ALLOWED
    assert all(link == "https://example.org/x.png" for link in found.links)


@pytest.mark.parametrize(
    ("words", "links"),
    [
        ("See https://example.org/a?b=1&c=2.", ["https://example.org/a?b=1&c=2"]),
        ("doi:10.1000/182, arXiv:2510.17914", ["https://doi.org/10.1000/182", "https://arxiv.org/abs/2510.17914"]),
        ("https://doi.org/10.1000/182", ["https://doi.org/10.1000/182"]),
        ('http://x"onmouseover=alert(1)//', ["http://x"]),
        ("javascript:alert(1) ftp://x 10.5 m/s", []),
    ],
)
def test_addresses_in_words_can_be_clicked(words: str, links: list[str]) -> None:
    found = Checker(linked(words))
    assert found.links == links
    assert found.attributes <= {"href", "rel"}


def test_a_board_can_be_cited_by_what_is_known_of_it() -> None:
    source = dataclasses.replace(made_source(methods=4, tasks=2), title="A {made}\\up_suite", history=())
    assert bibtex(source) == (
        "@misc{neuco-made,\n  title = {A madeup\\_suite: neuco leaderboard},\n"
        f"  note = {{suite made version 1, protocol neuco-2025, cells {source.board.cells[:16]}}}\n}}"
    )


def test_a_card_that_is_far_too_long_is_cut_and_says_so() -> None:
    assert "not shown" in render("word " * 20_000)


def test_what_markdown_is_known() -> None:
    html = render("# Title\n\nA *soft* and **bold** `code`.\n\n1. one\n2. two\n   more\n\n```\nx < y\n```")
    assert "<h3>Title</h3>" in html
    assert "<p>A <em>soft</em> and <strong>bold</strong> <code>code</code>.</p>" in html
    assert "<ol><li>one</li><li>two more</li></ol>" in html
    assert "><code>x &lt; y</code></pre>" in html
    mixed = render("- a\n- b\n3. c\n4) d")
    assert '<ul><li>a</li><li>b</li></ul><ol start="3"><li>c</li><li>d</li></ol>' in mixed


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        ("[", "["),
        ("[a](", "[a]("),
        ("[a](b", "[a](b"),
        ("**a", "<strong>a</strong>a"),
        (" *a", "<em>a </em>a"),
        ("\n", ""),
        ("- a\n", "<li>a</li>"),
        ("a\n", "a a"),
        ("- a\nb\n", "<li>a b</li>"),
        ("a|b\n--" + " " * 90 + "\n", "a|b"),
        ("1", "1"),
    ],
)
def test_a_long_card_of_one_piece_is_shown(piece: str, shown: str) -> None:
    html = render(piece * (100_000 // len(piece)))
    assert shown in html
    assert "not shown" in html


def test_text_and_attributes_are_escaped_unless_built_here() -> None:
    assert tag("p", '<b>"', title='"><script>') == '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&quot;</p>'
    assert tag("p", tag("b", "x"), hidden=True, id=None) == "<p hidden><b>x</b></p>"
    assert isinstance(tag("p"), Safe)


def test_text_cannot_steer_a_terminal_or_turn_the_reading_order() -> None:
    assert tag("p", "a\x1b[31m\u202eb\nc") == "<p>a\ufffd[31m\ufffdb\nc</p>"
    source = made_source(methods=4, tasks=2)
    row = structs.replace(source.board.unranked[0], note="\x1b]0;title\x07 two\nlines")
    board = structs.replace(source.board, rows=(*source.board.ranked, row))
    (note,) = [note for note in grid(board).notes if note.startswith("Not ranked")]
    assert note.isprintable()
    assert "two lines" in note


def test_data_cannot_end_its_script() -> None:
    text = data("x", {"name": "</script><script>alert(1)</script><!--"})
    assert text.count("<") == 2
    assert text.count("</script>") == 1


def test_an_id_that_is_a_path_is_never_written(tmp_path: Path) -> None:
    source = dataclasses.replace(made_source(methods=4, tasks=2), id="../outside")
    with pytest.raises(DataError, match="file name"):
        write_site([source], tmp_path / "site")
    assert not (tmp_path / "outside").exists()


def test_reports_escape_names() -> None:
    source = made_source(methods=4, tasks=2)
    rows = [structs.replace(row, title=source.method_title(row.method)) for row in source.board.rows]
    cells = grid(structs.replace(source.board, rows=tuple(rows)))
    markdown, latex = to_markdown(cells), to_latex(cells)
    assert "<img" not in markdown.replace("\\<img", "")
    assert r"\_\_\#bold\|\[e\]" in markdown
    assert r"\_\_\#bold|[e]" in latex


def test_a_board_with_nobody_on_it_has_a_page(tmp_path: Path) -> None:
    source = made_source(methods=1, tasks=2)
    assert source.board.ranked == ()
    assert write_site([source], tmp_path) == 5
    assert "not ranked" in (tmp_path / "boards/made/index.html").read_text(encoding="utf-8")


def test_a_board_of_which_nothing_is_known_has_a_page_without_scripts(tmp_path: Path) -> None:
    source = made_source(methods=3, tasks=2)
    assert source.cells is not None
    empty = board_of(dataclasses.replace(source.cells, methods=(), cells={}))
    assert write_site([dataclasses.replace(source, board=empty)], tmp_path) == 4
    page = (tmp_path / "boards/made/index.html").read_text(encoding="utf-8")
    assert "No method has been scored on this suite yet" in page
    assert "neuco score --all --suite made" in page
    assert "assets/board.js" not in page


def test_one_method_and_one_task(tmp_path: Path) -> None:
    source = made_source(methods=2, tasks=1)
    assert len(source.board.ranked) == 1
    assert write_site([source], tmp_path) == 5


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_site([made_source(methods=5, tasks=2)], tmp_path / name)
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kind": "neuco"', '"kind": "No Id"'),
        ('"schema": 2', '"schema": 1'),
        ("-2.293", "1e999"),
        ("-2.293, ", ""),
        ('"method": "averaging"', '"method": "../averaging"'),
        ('"method": "dofa-pre"', '"method": "dofa-post"'),
        ("{", ""),
    ],
)
def test_a_published_board_that_is_not_right_is_refused(tmp_path: Path, root: Path, old: str, new: str) -> None:
    text = (root / "registry/published/neuco-paper-table-4.json").read_text(encoding="utf-8")
    path = tmp_path / "neuco-paper-table-4.json"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises((DataError, PluginError)):
        read_published(path).board()


def test_a_published_board_is_marked_and_has_its_source(root: Path) -> None:
    for path in sorted((root / "registry/published").glob("*.json")):
        board = read_published(path).board()
        assert board.published is not None
        assert board.published.source
        assert "2510.17914" in board.published.citation
        assert board.suite is None
        assert board.uncertainty is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"rank": 4', '"rank": "4<b>"', r"got `str`, at `\.rows\[3\]\.values"),
        ('"rank": 4', '"rank": true', r"got `bool`, at `\.rows\[3\]"),
        ('"mean_q": 14.874', '"mean_q": "14"', r"got `str`, at `\.rows\[0\]"),
        ('"weighted_rank": 2.31', '"weighted_rank": NaN', "JSON is malformed"),
        ('"title": "KTH and Friends"', '"title": 5', r"Expected `str`, got `int`, at `\.rows\[1\]\.title"),
        ('"title": "KTH and Friends"', '"title": "\\ud800"', "surrogate|malformed"),
        ('"baseline": false', '"baseline": 0', r"Expected `bool`, got `int`, at `\.rows\[0\]\.baseline"),
        ('"kind": "standings"', '"kind": ["standings"]', "got `array`, at `.kind"),
        ('"rows": [', '"rows": 5, "other": [', "at `.rows|unknown field"),
        ('{"baseline"', '5, {"baseline"', r"got `int`, at `\.rows\[0\]"),
        ('"schema": 2', '"schema": true', "at `.schema"),
        ('"id": "earth', '"id": "mars', "bad id; expected the name of the file"),
        ('"label": "Mean Q"', '"label": 5', r"at `\.columns\[0\]\.label"),
    ],
)
def test_a_published_field_of_a_wrong_type_is_named(tmp_path: Path, root: Path, old: str, new: str, words: str) -> None:
    text = (root / "registry/published/earthvision-2025-challenge.json").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "earthvision-2025-challenge.json"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_published(path)


def swapped(before: Snapshot, after: Snapshot) -> bool:
    """Whether two teams swapped places though neither had another number."""
    was, now = before.teams, after.teams
    same = [name for name in now if name in was and was[name].value == now[name].value]
    pairs = combinations(same, 2)
    return any(((was[a].rank or 0) < (was[b].rank or 0)) != ((now[a].rank or 0) < (now[b].rank or 0)) for a, b in pairs)


def test_the_past_of_the_real_challenge_is_replayed(root: Path) -> None:
    past = read_past(root / "registry", "earthvision-2025-challenge")
    assert past is not None
    item = next(item for item in list_published(root / "registry") if item.id == "earthvision-2025-challenge")
    last = past.phases["test"][-1].teams
    printed = {row.name: (row.values["rank"], row.values["mean_q"]) for row in item.rows if not row.baseline}
    assert {name: (own.rank, own.value) for name, own in last.items() if "aseline" not in name} == printed
    page = board_page(from_published(item, past))
    versions = past.versions()
    assert page.count("<polyline") == sum(len({n for v in own for n in v.ranks}) for own in versions.values())
    assert "caused by others: " in page
    assert "embed2scale-challenge-supplement" in page
    assert sum(map(swapped, *zip(*(pair for own in past.phases.values() for pair in pairwise(own)), strict=True))) == 29
    assert read_past(root / "registry", "geobench-2") is None
