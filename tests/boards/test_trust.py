"""Every cell says how its score came about; only what runs on main sets the marks that CI or an author stand for."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from ci.changed import sort_out
from neuco_core.boards.cells import trust_of
from neuco_core.boards.facts import CONFIRMED
from neuco_core.boards.model import TRUST, plain
from neuco_core.boards.published import list_published
from neuco_core.boards.store import current, stored_board
from neuco_core.records.model import Record
from neuco_core.records.store import read_all, write_records
from neuco_core.site.board_page import board_page
from neuco_core.site.item_pages import expectations
from neuco_core.site.page_data import gather
from tests.registry import copy_registry


def made_by_ci(record: Record, made_from: str) -> Record:
    return structs.replace(record, provenance={**record.provenance, "commit": "0" * 40, "made_from": made_from})


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """PCA was run by CI, mosaiks too and its author has confirmed it, the bands' statistics were a file."""
    registry = copy_registry(tmp_path / "registry")
    how = {"pca": "code", "mosaiks": "code", "band_statistics": "file"}
    chosen = [made_by_ci(record, how[record.method]) for record in read_all(registry) if record.method in how]
    write_records(registry, chosen)
    (registry / CONFIRMED).write_text('{"mosaiks": "https://example.org/issues/1#answer"}\n')
    return registry


def test_the_mark_follows_from_what_is_recorded(registry: Path) -> None:
    now = current(registry)
    board = now.board(now.suites["olinda"])
    marks = {row.method: {cell.trust for cell in row.cells.values() if cell.status == "ok"} for row in board.rows}
    assert marks["pca"] == {"re-run"}
    assert marks["mosaiks"] == {"confirmed"}
    assert marks["band_statistics"] == {"scored"}
    assert marks["averaging"] == {"self-reported"}
    facts = {row.method: row.facts["trust"] for row in board.rows if marks.get(row.method)}
    assert facts["mosaiks"] == "confirmed by the model's author"
    record = next(record for record in now.records if record.method == "pca")
    assert trust_of(structs.replace(record, registered=False)) == "self-reported"


def test_every_score_of_every_board_has_a_mark(root: Path) -> None:
    boards = [stored_board(root / "registry", path.stem) for path in (root / "registry/leaderboards").glob("*.json")]
    published = [item.board() for item in list_published(root / "registry")]
    assert len(boards) > 5
    assert len(published) > 1, "those that come with the core"
    for board in (*boards, *published):
        for row in board.rows:
            for task, cell in row.cells.items():
                if cell.status == "ok":
                    assert cell.trust in TRUST, f"{board.about.id}: {row.method} on {task}"
                    assert (cell.trust == "copied") == (board.published is not None)


def test_marks_are_on_the_page_and_can_be_chosen_by(registry: Path) -> None:
    (page,) = gather(registry, ["olinda"])
    html = board_page(page)
    assert 'data-trust="r"' in html
    assert "<sup>a</sup> = confirmed by the model&#39;s author." in html
    assert 'id="is-trust"' in html, "the filters have it"
    assert plain(page.board)["rows"][0]["cells"]["olinda_sea_level"]["trust"] in TRUST


def test_what_is_expected_of_a_result_is_computed(registry: Path) -> None:
    (page,) = gather(registry, ["olinda"])
    rows = {row.method: row for row in page.board.rows}
    met = {name: is_met for name, is_met, _ in expectations(page, rows["pca"])}
    assert met == dict.fromkeys(met, True)
    assert len(met) == 6
    lacking = next(row for row in page.board.rows if row.lacks and row.rank is None)
    assert not {name: is_met for name, is_met, _ in expectations(page, lacking)}["All core tasks"]
    (printed,) = [page for page in gather(registry) if page.id == "neuco-paper-table-4"]
    of_paper = {name: is_met for name, is_met, _ in expectations(printed, printed.board.rows[0])}
    assert not of_paper["One harness"]
    assert of_paper["Copied or re-run"]


@pytest.mark.parametrize(
    "path", ["registry/records/pca.jsonl", "registry/leaderboards/olinda.json", "registry/confirmed.json"]
)
def test_a_pull_request_cannot_set_a_mark(path: str) -> None:
    assert sort_out([path], (), ()).protected == (path,)
