"""What stands behind a board is told in the terminal too: its rules, and the facts of methods, which change no rank."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from ci.stub_tree import rebuild
from neuco_core import Dataset, Method, list_datasets, list_methods, load_dataset, load_method
from neuco_core.boards import report
from neuco_core.boards.facts import overlap, with_facts
from neuco_core.boards.model import Board, Section
from neuco_core.boards.published import list_published
from neuco_core.boards.report import details, grid, lines, to_latex
from neuco_core.boards.stats.uncertainty import TaskScores
from neuco_core.boards.store import Current, board_path, current, read_board, write_board
from neuco_core.errors import SpecError, UsageError
from neuco_core.site.board_page import board_page
from neuco_core.site.page_data import PageData
from neuco_core.specs import to_json
from tests.boards.helpers import board_of, cells_of, simulate
from tests.boards.test_cli import run
from tests.command import neuco_here as neuco


def section(sections: list[Section], words: str) -> Section:
    (one,) = (entry for entry in sections if words in entry.title)
    return one


def texts(board: Board, words: str) -> list[list[str]]:
    return lines(board, section(details(board), words))


def test_every_number_is_the_boards() -> None:
    _, scores = simulate(np.random.default_rng(1), 8, 4, gap=0.02)
    board = board_of(cells_of(scores, baselines=[0]))
    labels = [column.label for column in section(details(board), "How robust").columns]
    for cells, row in zip(texts(board, "How robust"), board.rows, strict=True):
        named = dict(zip(labels, cells, strict=True))
        assert named["Method"] == row.method
        better = sum(other.values["borda"] > row.values["borda"] for other in board.rows)  # type: ignore[operator]
        assert int(named["Borda"].rstrip("*")) == 1 + better
        assert named["Borda"].endswith("*") == (1 + better != row.rank)
        assert {"No baselines", "Robust", "Equal weights", "Mean Q", "Without a method", "Without a task"} < {*named}
    assert [line[0] for line in texts(board, "order of methods in a group")] == [
        ", ".join(group) for group in board.groups or ()
    ]
    assert [line[0] for line in texts(board, "Task diagnostics")] == [task.id for task in board.tasks]
    assert all(len(row) == len(one.columns) for one in details(board) for row in one.rows)


def test_the_sentence_on_top_of_the_matrix_is_what_the_matrix_shows() -> None:
    board = board_of(cells_of(simulate(np.random.default_rng(12), 9, 4, gap=0.02)[1]))
    matrix = section(details(board), "How robust")
    ranks = {str(row[0]): [value for value in row[1:] if isinstance(value, int)] for row in matrix.rows}
    first = board.rows[0].method
    times = sum(rank == 1 for rank in ranks[first])
    count = len(ranks[first])
    assert matrix.lead.startswith(
        f"{first} is first in {'all' if times == count else f'{times} of'} {count} rankings; "
    )
    most = max(ranks, key=lambda name: max(abs(rank - board.ranks[name]) for rank in ranks[name]))
    assert f"{most} moves most, between ranks {min(ranks[most])} and {max(ranks[most])}" in matrix.lead


def test_a_clear_order_depends_on_nothing() -> None:
    scores = [TaskScores(np.random.default_rng(1).normal([[0.9], [0.6], [0.3]], 0.01, (3, 20))) for _ in range(3)]
    lead = section(details(board_of(cells_of(scores))), "How robust").lead
    words = "leaving out any one method moves nobody; leaving out any one task moves nobody."
    assert lead == f"m000 is first in all 7 rankings; {words}"


def test_a_first_that_is_not_the_likeliest_is_explained() -> None:
    scores = simulate(np.random.default_rng(9), 8, 3, gap=0.01)[1]
    board = board_of(cells_of(scores), replicates=300)
    rows = {row.method: row for row in board.ranked}
    assert board.rows[0].method == "m003"
    first, likeliest = rows["m003"], rows["m002"]
    assert likeliest.values["best"] == max(row.values["best"] for row in board.ranked)  # type: ignore[type-var]
    (note_on_first,) = (note for note in board.notes if "is first in more replicates" in note)
    assert note_on_first == (
        "m003 is first by the scores as they are, but m002 is first in more replicates "
        f"({likeliest.values['best']:.0%} against {first.values['best']:.0%}): plausible ranks are m003 1–8 and "
        "m002 1–8. The splits do not tell the two apart."
    )


def test_a_board_without_scores_has_nothing_more_to_tell(committed_registry: Path) -> None:
    (standings,) = (item.board() for item in list_published(committed_registry) if item.kind == "standings")
    assert details(standings) == []


def test_the_option(committed_registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUCO_REGISTRY", str(committed_registry))
    shown = run("show", "mini", "--details").output
    assert "How robust is this ranking?" in shown
    assert "Splits cannot show" in shown
    with pytest.raises(UsageError, match="for the terminal"):
        run("show", "mini", "--details", "--format", "csv")


def test_a_lower_is_better_task_is_marked_in_every_view() -> None:
    cells = cells_of(simulate(np.random.default_rng(3), 4, 2)[1])
    first = structs.replace(cells.tasks[0], greater_is_better=False, metric="rmse")
    board = board_of(replace(cells, tasks=(first, *cells.tasks[1:])))
    assert [line[:2] for line in texts(board, "Task diagnostics")] == [["t00", "rmse, lower is better"], ["t01", "r2"]]
    table = grid(board)
    assert table.headers[-2:] == ("t00 ↓", "t01")
    assert any("lower is better" in note and "t00" in note for note in table.notes)
    assert r"t00 $\downarrow$" in to_latex(table)


def test_a_negative_mean_score_is_marked_wherever_it_stands_and_an_error_is_not() -> None:
    """Below 0 more spread makes Q better: it does not compare these."""
    wild, tame = np.array([[-250.0, 160.0], [-0.5, 0.2], [0.5, 0.7]]), np.array([[0.5, 0.7], [0.2, 0.3], [-0.5, 0.2]])
    cells = cells_of([TaskScores(wild), TaskScores(tame), TaskScores(tame + 1)])
    errors = structs.replace(cells.tasks[2], greater_is_better=False, metric="mae")
    turned = {key: replace(cell, q=-(cell.q or 0)) for key, cell in cells.cells.items() if key[1] == "t02"}
    board = board_of(replace(cells, tasks=(*cells.tasks[:2], errors), cells={**cells.cells, **turned}))
    q = {row.method: row.value("t00", "q") or 0 for row in board.rows}
    assert q["m001"] < q["m000"] < 0 < q["m002"], "−45 stands before −0.15"
    table = grid(board, "q")
    marked = {row[1]: [cell.startswith("†") for cell in row[-3:]] for row in table.rows}
    assert marked == {"m000": [True, False, False], "m001": [True, False, False], "m002": [False, True, False]}
    sentence = "† negative mean score, unreliable: Q does not compare these."
    assert sentence in table.notes
    assert sentence in table.brief
    assert to_latex(table).count(r"$\dagger$-") == 3
    page = board_page(PageData(id="made", title="made", board=board, cells=cells))
    assert page.count('data-doubt="†" title="negative mean score, unreliable') == 3
    assert "<b>†</b> = negative mean score" in page
    assert "does not compare negative scores" in page, "the help of Q"


def test_a_board_without_intervals_says_why() -> None:
    cells = cells_of([TaskScores(np.array([[0.1], [0.2]]))])
    assert any(note.startswith("No intervals") for note in grid(board_of(cells)).notes)
    two = simulate(np.random.default_rng(4), 2, 1)[1]
    assert not any("No intervals" in note for note in grid(board_of(cells_of(two))).notes)


def test_the_weight_of_the_ghost_is_told() -> None:
    board = board_of(cells_of(simulate(np.random.default_rng(4), 2, 1)[1]), ghost=3.0)
    (weights,) = (note for note in grid(board).notes if note.startswith("Weight of the ghost task"))
    rest = 1 - sum(task.values["weight"] or 0 for task in board.tasks)
    assert f"{rest:.3f}" in weights


def test_rows_that_do_not_compete_and_estimated_cells_are_shown_and_marked(tmp_path: Path) -> None:
    """What later kinds of boards need: neither ever has a rank, and every view says why."""
    cells = cells_of(simulate(np.random.default_rng(5), 4, 2)[1])
    guessed = replace(cells.cell("m003", "t01"), status="estimated", reason="from the other tasks")
    board = board_of(replace(cells, cells={**cells.cells, ("m003", "t01"): guessed}))
    hosts = structs.replace(board.rows[0], rank=None, note="baseline of the hosts", intervals={})
    board = structs.replace(board, rows=(hosts, *board.rows[1:]))
    table = grid(board)
    assert [row[0] == "–" for row in table.rows] == [True, False, False, True]
    assert table.rows[3][-1].startswith("≈0.")
    assert f"Not ranked: {hosts.method}: baseline of the hosts" in table.notes
    assert "Not ranked: m003: t01: estimated, from the other tasks" in table.notes
    assert any("≈ marks values that do not count: estimated" in note for note in table.notes)
    page = board_page(PageData(id="made", title="made", board=board, cells=cells))
    assert page.count('class="incomplete"') == 2
    assert re.search(r'<td class="cell marked" title="estimated: from the other tasks">≈0\.', page)
    write_board(tmp_path, board)
    assert read_board(board_path(tmp_path, "made")) == board


FACTS: dict[str, Any] = {
    "pretraining": ("ImageNet", "self"),
    "n_parameters": 12,
    "preprocessing": "halved",
    "machine_spread": 0.01,
}


@pytest.fixture(scope="module")
def now(committed_registry: Path) -> Current:
    return current(committed_registry)


@pytest.fixture(scope="module")
def board(now: Current) -> Board:
    return now.board(now.suites["olinda"])


def test_facts_of_every_shipped_method_and_dataset_survive_the_description_that_ci_makes() -> None:
    made = Method(id="m", encoder=dict, **FACTS)
    for method in (made, Method(id="m", encoder=dict, pretraining=()), Method(id="m", encoder=dict), *list_methods()):
        again = rebuild("method", to_json(method), **({"encoder": method.encoder} if method.encoder else {}))
        assert to_json(again) == {**to_json(method), "origin": None}
    for dataset in list_datasets():
        assert to_json(rebuild("dataset", to_json(dataset), cubes=dataset.cubes)) == {
            **to_json(dataset),
            "origin": None,
        }


@pytest.mark.parametrize(
    ("pretraining", "words"),
    [
        (("self",), "fitted on these samples, without their labels"),
        (("SSL4EO-S12",), "trained on SSL4EO-S12, which may share samples with this dataset"),
        (("ImageNet", "ssl4eo_s12"), "trained on ssl4eo_s12, which may share samples with this dataset"),
        (("SSL4EO-S12-downstream",), "trained on SSL4EO-S12-downstream: these very samples"),
        (("ImageNet", "SSL4EO-L"), ""),
        ((), ""),
        (None, ""),
    ],
)
def test_an_overlap_is_named_however_the_dataset_is_spelled(pretraining: Any, words: str) -> None:
    method = Method(id="m", encoder=dict, pretraining=pretraining)
    assert overlap(method, load_dataset("ssl4eo_s12_downstream")) == words


@pytest.mark.extensions
def test_what_ships_says_what_is_known() -> None:
    """The networks trained on SSL4EO-S12 are marked on SSL4EO-S12-downstream; who learns from the samples says so."""
    downstream = load_dataset("ssl4eo_s12_downstream")
    assert overlap(Method(id="m", encoder=dict, pretraining=("---",)), Dataset(id="d")) == "", "related to nothing"
    words = "trained on SSL4EO-S12, which may share samples with this dataset"
    for name in ("torchgeo_resnet18_moco", "torchgeo_vit_small_moco", "torchgeo_vit_small_dino"):
        assert overlap(load_method(name), downstream) == words
    for method in list_methods():
        assert ("fitted-on-dataset" in method.tags) == ("self" in (method.pretraining or ()))
        assert "no-training" not in method.tags or method.pretraining in ((), ("self",))


@pytest.mark.slow
def test_the_parameters_of_the_network_are_counted() -> None:
    pytest.importorskip("torch")
    from neuco_methods.efficientnet.model import EfficientNetLite0

    model = EfficientNetLite0()
    used = (model._conv_stem, model._bn0, model._blocks)
    assert sum(p.numel() for part in used for p in part.parameters()) == load_method("efficientnet").n_parameters


def test_facts_change_no_rank_and_only_the_known_ones_are_columns(board: Board, now: Current) -> None:
    known = ["pretraining", "n_parameters", "preprocessing", "trust", "machine_spread", "encode_ms", "encode_mb"]
    assert [column.key for column in board.fact_columns] == known
    rows = {row.method: row for row in board.rows}
    assert rows["random"].facts["pretraining"] == "nothing"
    assert rows["pca"].overlaps == {"olinda": "fitted on these samples, without their labels"}
    assert rows["efficientnet"].overlaps == {}
    (sentence,) = [
        note for note in report.overlaps(board) if note.endswith("fitted on these samples, without their labels.")
    ]
    assert sentence.startswith("Overlap of training data and samples: ")
    assert "pca (olinda)" in sentence
    assert "pretraining" not in rows["challenge_404"].facts, "what nobody knows is not said"
    bare = structs.replace(board, rows=tuple(structs.replace(row, facts={}, overlaps={}) for row in board.rows))
    of_suite = [r for r in now.records if r.task in bare.suite.tasks and r.protocol == bare.suite.protocol]
    assert with_facts(bare, of_suite).rows == board.rows
    assert bare.ranks == board.ranks


def test_methods_whose_numbers_depend_on_the_machine_are_named_on_the_board(board: Board) -> None:
    rows = {row.method: row.facts.get("machine_spread") for row in board.rows}
    dependent = {name for name, spread in rows.items() if spread}
    assert (
        dependent
        == {"autoencoder", "autoencoder_post", "autoencoder_pre"}
        == {m.id for m in list_methods() if m.machine_spread}
    )
    (note,) = (note for note in board.notes if note.startswith("Scores that vary between CPUs"))
    assert all(f"{name} by up to {rows[name]:g}" in note for name in dependent)
    spread = load_method("autoencoder").machine_spread
    assert f"machine_spread     {spread}" in neuco("show", "autoencoder").out
    card = (Path(__file__).resolve().parents[2] / "neuco_methods/autoencoder/README.md").read_text(encoding="utf-8")
    assert f"`machine_spread={spread}`" in card


def test_cost_is_what_records_measured(board: Board, now: Current) -> None:
    one = next(r for r in now.records if r.method == "pca")
    odd = ({"samples": "many", "seconds": 1}, {"samples": 0, "seconds": 1.0}, 7, None)
    costs = [{"samples": 100, "seconds": 0.5, "peak_memory": 300_000_000}, {"samples": 10, "seconds": 0.2}, *odd]
    records = [structs.replace(one, provenance={"encoding": cost}) for cost in costs]
    measured = {row.method: row for row in with_facts(board, records).rows}
    assert (measured["pca"].facts["encode_ms"], measured["pca"].facts["encode_mb"]) == (20.0, 300)
    assert "encode_ms" not in measured["random"].facts
    with pytest.raises(SpecError, match="machine_spread"):  # a spread that excuses everything
        Method(id="m", encoder=dict, machine_spread=0.5)


def test_a_run_measures_what_encoding_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neuco_core.records.store import read_all

    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    monkeypatch.setenv("NEUCO_CACHE", str(tmp_path / "cache"))
    words = ("score", "--method", "band_statistics", "--task", "olinda_sea_level", "--k", "2")
    assert neuco(*words).code == 0
    (record,) = read_all(tmp_path / "registry")
    cost = record.provenance["encoding"]
    assert cost["samples"] == 1849
    assert 0 < cost["seconds"] < record.provenance["seconds"] + 3600
    assert cost["peak_memory"] is None or cost["peak_memory"] > 1_000_000
    # What comes out of the cache took no time to encode, and says nothing of the method but what it was made with.
    assert neuco(*words, "--task", "olinda_elevation_std").code == 0
    other = next(r for r in read_all(tmp_path / "registry") if r.task == "olinda_elevation_std")
    assert other.provenance["encoding"] == {key: cost[key] for key in ("device", "precision", "packages")}


def test_csv_details_and_show_tell_the_facts(board: Board) -> None:
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(report.to_csv(report.grid(board))))}
    assert rows["efficientnet"]["pretraining"] == "ImageNet"
    assert rows["efficientnet"]["n_parameters"] == "2958848"
    assert rows["pca"]["overlap"] == "olinda: fitted on these samples, without their labels"
    assert rows["efficientnet"]["overlap"] == ""
    section = report.details(board)[0]
    shown = {line[0]: line for line in report.lines(board, section)}
    assert shown["efficientnet"][1:3] == ["ImageNet", "2,958,848"]
    names = [row[1] for row in report.grid(board).rows]
    assert "pca (overlap)" in names
    assert "efficientnet" in names
    assert any(note.startswith("Overlap of training data and samples: ") for note in report.grid(board).notes)
    assert "pretraining        nothing" in neuco("show", "random").out
    assert "n_parameters       2958848" in neuco("show", "efficientnet").out
    assert "pretraining" not in neuco("show", "challenge_404").out
    listed = {row["id"]: row for row in neuco("methods", "--json").json}
    assert listed["efficientnet"]["pretraining"] == ["ImageNet"]
    assert (listed["random"]["pretraining"], listed["challenge_404"]["pretraining"]) == ([], None)
