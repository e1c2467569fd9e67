"""Strangers' words: cards, addresses, names and data never become anything but text."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from msgspec import structs

from neuco_core.boards.report import grid, to_latex, to_markdown
from neuco_core.errors import DataError
from neuco_core.site.board_page import bibtex
from neuco_core.site.cards import linked, render_card
from neuco_core.site.figures import tag
from neuco_core.site.render import literal, render
from neuco_core.site.write import write_site
from tests.boards.helpers import board_of
from tests.site.made_pages import Elements, made_source

TAGS = ("div", "p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
ALLOWED = {*TAGS, "pre", "code", "strong", "em", "a", "blockquote", "hr", "br"}


@given(st.text(alphabet=st.sampled_from(list("<>&\"'`*[]()#|-_ \nabc/=:;1")), max_size=80))
def test_a_card_never_brings_an_element_of_its_own(card: str) -> None:
    html = Elements(render_card(card))
    assert html.names <= ALLOWED
    assert all(link.startswith(("http://", "https://")) for link in html.links)
    assert html.attributes <= {"class", "scope", "start", "tabindex", "role", "aria-label", "href", "rel"}


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
    html = Elements(render_card(card))
    assert html.names <= ALLOWED
    assert all(link == "https://example.org/x.png" for link in html.links)


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
    html = Elements(linked(words))
    assert html.links == links
    assert html.attributes <= {"href", "rel"}


def test_a_board_can_be_cited_by_what_is_known_of_it() -> None:
    source = dataclasses.replace(made_source(methods=4, tasks=2), title="A {made}\\up_suite")
    assert bibtex(source) == (
        "@misc{neuco-made,\n  title = {A madeup\\_suite: neuco leaderboard},\n"
        f"  note = {{suite made version 1, protocol neuco-2025, cells {source.board.cells[:16]}}}\n}}"
    )


def test_what_markdown_is_known_and_the_address_of_a_link_is_shown() -> None:
    html = render_card("# Title\n\nA *soft* and **bold** `code`.\n\n1. one\n2. two\n   more\n\n```\nx < y\n```")
    assert "<h3>Title</h3>" in html
    assert "<p>A <em>soft</em> and <strong>bold</strong> <code>code</code>.</p>" in html
    assert re.search(r"<ol>\s*<li>one</li>\s*<li>two\s+more</li>\s*</ol>", html)
    assert "><code>x &lt; y</code></pre>" in html
    html = render_card("[here](https://example.org/x), https://example.org/y, [z](ftp://z), ![p](https://e.org/p.png)")
    assert ">here (https://example.org/x)</a>" in html
    assert ">https://example.org/y</a>" in html
    assert "[z](ftp://z)" in html
    assert "<img" not in html


@pytest.mark.parametrize(
    "piece", ["[", "[a](", "[a](b", "![", "**a", " *a", "\n", "- a\n", "a\n", "- a\nb\n", "<", "1"]
)
def test_a_far_too_long_card_of_one_piece_is_cut_says_so_and_takes_no_time(piece: str) -> None:
    before = time.process_time()
    html = render_card(piece * (100_000 // len(piece)))
    assert "not shown" in html
    assert Elements(html).names <= ALLOWED
    assert time.process_time() - before < 5


def test_text_and_attributes_are_escaped_and_nothing_may_be_missing() -> None:
    assert tag("p", '<b>"', title='"><script>') == '<p title="&#34;&gt;&lt;script&gt;">&lt;b&gt;&#34;</p>'
    assert tag("p", tag("b", "x"), id=None) == "<p><b>x</b></p>"
    assert render("<p title='{{ x }}'>{{ x }}</p>", x="<b>'") == "<p title='&lt;b&gt;&#39;'>&lt;b&gt;&#39;</p>"
    with pytest.raises(UndefinedError):
        render("{{ missing }}")


def test_text_cannot_steer_a_terminal_or_turn_the_reading_order() -> None:
    assert tag("p", "a\x1b[31m\u202eb\nc") == "<p>a\ufffd[31m\ufffdb\nc</p>"
    assert render("{{ x }}{{ x|card }}", x="\u202eb") == "\ufffdb<p>\ufffdb</p>\n"
    source = made_source(methods=4, tasks=2)
    row = structs.replace(source.board.unranked[0], note="\x1b]0;title\x07 two\nlines")
    board = structs.replace(source.board, rows=(*source.board.ranked, row))
    (note,) = [note for note in grid(board).notes if note.startswith("Not ranked")]
    assert note.isprintable()
    assert "two lines" in note


def test_data_cannot_end_its_script() -> None:
    text = literal({"name": "</script><script>alert(1)</script><!--\u2028"})
    assert "<" not in text
    assert "\u2028" not in text


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


def test_a_board_of_which_nothing_is_known_has_a_page_without_scripts(tmp_path: Path) -> None:
    source = made_source(methods=3, tasks=2)
    assert source.cells is not None
    empty = board_of(dataclasses.replace(source.cells, methods=(), cells={}))
    assert write_site([dataclasses.replace(source, board=empty)], tmp_path) == 4
    page = (tmp_path / "boards/made/index.html").read_text(encoding="utf-8")
    assert "No scores yet" in page
    assert "neuco score --all --suite made" in page
    assert "assets/board.js" not in page


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_site([made_source(methods=5, tasks=2)], tmp_path / name)
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
