"""What methods were trained on, how large they are and what they cost: declared, measured, shown, and no rank."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ci.stub_tree import rebuild
from neuco_core import Dataset, Method, list_datasets, list_methods, load_dataset, load_method
from neuco_core.boards import report
from neuco_core.boards.facts import overlap, with_facts
from neuco_core.boards.model import Board
from neuco_core.boards.store import Current, current
from neuco_core.errors import SpecError
from neuco_core.specs import to_json
from tests.command import neuco_here as neuco

FACTS: dict[str, Any] = {
    "pretraining": ("ImageNet", "self"),
    "n_parameters": 12,
    "preprocessing": "halved",
    "confirmed": True,
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
        assert method.confirmed is None, "nobody has confirmed anything yet"


@pytest.mark.slow
def test_the_parameters_of_the_network_are_counted() -> None:
    pytest.importorskip("torch")
    from neuco_methods.efficientnet.model import EfficientNetLite0

    model = EfficientNetLite0()
    used = (model._conv_stem, model._bn0, model._blocks)
    assert sum(p.numel() for part in used for p in part.parameters()) == load_method("efficientnet").n_parameters


def test_facts_change_no_rank_and_only_the_known_ones_are_columns(board: Board, now: Current) -> None:
    known = ["pretraining", "n_parameters", "preprocessing", "machine_spread", "encode_ms", "encode_mb"]
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
    assert with_facts(bare, [r for r in now.records if r.task in bare.suite.tasks]).rows == board.rows
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
