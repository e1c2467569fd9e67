"""The board of bytes, its page and its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from neuco_core.boards.build import build_board
from neuco_core.boards.model import Board
from neuco_core.errors import UnknownIdError
from neuco_core.plugins.catalog import load_dataset
from neuco_core.records.model import Record
from neuco_core.site.board_page import board_page
from neuco_core.site.page_data import About, PageData
from neuco_core.site.write import standalone
from neuco_extensions.rate.board import LAND, footprint_of, front
from neuco_extensions.rate.command import points_csv
from neuco_extensions.rate.figure import curves_of_board, drawing
from tests.rate.made import MEANS, SUITE, coded_records
from tests.site.made_pages import IMAGE, Elements


@pytest.fixture(scope="module")
def board() -> Board:
    return build_board(coded_records(), SUITE, {"replicates": 300})


def section(board: Board, title: str) -> list[tuple[object, ...]]:
    return next(list(part.rows) for part in board.sections if part.title == title)


def test_methods_rank_by_area_with_intervals_and_groups(board: Board) -> None:
    assert [(row.rank, row.method) for row in board.rows] == [(1, "wide"), (2, "steady"), (None, "lone")]
    assert board.rows[2].note.startswith("no scores with a coder: `neuco rate curve")
    first, steady = board.rows[:2]
    assert steady.values["area"] == pytest.approx(steady.values["q64"])
    low, high = first.intervals["area"].low, first.intervals["area"].high
    assert low is not None
    assert high is not None
    assert low < float(first.values["area"] or 0) < high
    assert first.intervals["rank"].low == 1
    assert board.groups is not None
    assert sum(float(row.values["best"] or 0) for row in board.ranked) == pytest.approx(1, abs=1e-3)


def test_the_best_at_each_budget_and_the_front(board: Board) -> None:
    winners = {row[2]: row[:2] for row in section(board, "The best at a budget")}
    assert winners == {
        **dict.fromkeys((16, 32), ("steady", "binary")),
        **dict.fromkeys((64, 128), ("wide", "int8")),
        **dict.fromkeys((256, 512, 1024), ("wide", "float32")),
    }
    kept = [row[:3] for row in section(board, "Nothing smaller is as good")]
    assert kept == [("steady", "binary", 8.0), ("wide", "int8", 64.0), ("wide", "float32", 256.0)]
    assert front([3, 1, 2, 1], [9, 4, 4, 5]) == [3, 0]  # type: ignore[arg-type]


def test_the_difference_is_to_the_first_or_to_whom_the_reader_names() -> None:
    means = {name: {c: q + 0.01 * len(c) for c, q in MEANS["wide"].items()} for name in ("a", "b")}
    means["b"] = {coder: q - 0.05 for coder, q in means["a"].items()}
    first = build_board(coded_records(means), SUITE, {"replicates": 300})
    assert first.rows[0].values["bd"] == 0
    assert float(first.rows[1].values["bd"] or 0) < 0
    high = first.rows[1].intervals["bd"].high
    assert high is not None
    assert high < 0
    named = build_board(coded_records(means), SUITE, {"replicates": 300, "against": "b"})
    assert float(named.rows[0].values["bd"] or 0) == pytest.approx(-float(first.rows[1].values["bd"] or 0))
    with pytest.raises(UnknownIdError, match="no method on this board 'c'"):
        build_board(coded_records(means), SUITE, {"against": "c"})


def test_terabytes_of_the_land_at_a_footprint(board: Board) -> None:
    small = build_board(coded_records(), SUITE, {"footprint": 10.0, "replicates": 300})
    assert section(small, "The best at a budget")[2][-1] == pytest.approx(64 * LAND / 100 / 1e12)
    assert "tb" not in [column.key for part in board.sections for column in part.columns]


def test_the_footprint_is_that_of_the_datasets_if_they_agree(board: Board) -> None:
    olinda, digits = (structs.replace(board.tasks[0], dataset=name) for name in ("olinda", "digits"))
    assert footprint_of([olinda, olinda]) == 228
    assert footprint_of([olinda, digits]) == 0
    assert load_dataset("ssl4eo_s12_downstream").footprint == 264 * 10


def test_fronts_against_what_was_measured_when_a_method_encoded() -> None:
    made = {"wide": {"samples": 10, "seconds": 0.5, "flops": 4000}, "steady": {"samples": 10, "seconds": 0.1}}
    records = [structs.replace(r, provenance={"encoding": made.get(r.method)}) for r in coded_records()]
    found = build_board(records, SUITE, {"replicates": 100})
    times = [row[:2] for row in section(found, "Front of Q against ms per sample")]
    assert times == [("steady", 10), ("wide", 50)]
    assert [row[:2] for row in section(found, "Front of Q against FLOPs")] == [("wide", 4000)]
    assert not [part for part in found.sections if part.title.endswith("parameters")]


def test_a_stale_point_and_one_of_another_protocol_are_not_on_the_curve() -> None:
    records = coded_records()

    def stale(record: Record) -> str:
        return "its coder changed" if "coder=int8" in record.protocol else ""

    board = build_board(records, SUITE, {"replicates": 100}, stale=stale)
    assert "int8" not in [row[1] for row in section(board, "All points")]
    assert board.notes[1].startswith("Scores that no longer hold are left out: steady, wide. `neuco rate curve`")
    other = [structs.replace(r, protocol=r.protocol.replace("ridge+", "ridge+k=7,")) for r in records]
    none = build_board(records, SUITE, {"replicates": 100}, stale=lambda r: "old" if "coder" in r.protocol else None)
    assert not none.ranked
    without = build_board(other, SUITE)
    assert not without.ranked
    assert without.notes[0] == "No scores with a coder: `neuco rate curve --all --suite …` makes them."


def page_of(board: Board) -> PageData:
    titles = {row.method: About(title=IMAGE if row.method == "wide" else row.method.title()) for row in board.rows}
    return PageData("made", "Made up", board, registry=Path("none"), methods=titles)


def test_the_page_has_the_curves_and_escapes_names(board: Board) -> None:
    page = board_page(page_of(board))
    assert 'id="curves"' in page
    paths = [attributes for name, attributes in Elements(page).started if name == "path"]
    drawn = [
        attributes
        for attributes in paths
        if str(attributes.get("d", "")).endswith("H98") and "H" in str(attributes.get("d"))
    ]
    assert sorted(str(attributes["data-method"]) for attributes in drawn) == ["steady", "wide"]
    assert "Steady, binary: 8.0 bytes, mean Q" in page
    assert IMAGE not in page
    assert "The best at a budget" in page


def test_a_board_without_coded_scores_has_no_tab(board: Board) -> None:
    plain = build_board([r for r in coded_records() if "coded" not in r.protocol], SUITE)
    assert curves_of_board(page_of(plain)) is None


def test_the_figure_and_the_points_as_files(board: Board) -> None:
    svg = standalone(drawing(board, str))
    assert svg.startswith("<svg xmlns=")
    assert svg == standalone(drawing(board, str))
    lines = points_csv(board).splitlines()
    assert lines[0] == "method,coder,bytes,q,low,high,shared"
    assert len(lines) == 9
    assert [line.split(",")[0] for line in lines[1:5]] == ["wide"] * 4
