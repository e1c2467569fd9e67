"""``neuco score --param`` and ``--limit``: a look, which is told as such and never recorded; the forms of an answer."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from neuco_core.cli.score_show import Answer, PlannedOutcome
from neuco_core.plugins.catalog import load_method, load_task
from neuco_core.runs.plan import PlannedCell
from neuco_core.runs.preview import Preview, shuffled
from tests.command import neuco_here as neuco

TASK = ("--task", "olinda_elevation_mean", "--protocol", "ridge+k=3")
AVERAGING = ("score", "--method", "averaging", *TASK)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    return tmp_path / "registry"


def test_other_parameters_give_the_scores_of_that_file_and_no_record(registry: Path) -> None:
    looked = neuco(*AVERAGING, "--param", "size=4", "--json")
    assert looked.code == 0, looked.err
    (cell,) = looked.json["cells"]
    assert looked.json["look"] == {"params": {"size": 4}, "limit": None}
    assert cell["method"] == "averaging-size-4"
    assert cell["record"]["registered"] is False
    assert not registry.exists()
    neuco("embed", "--method", "averaging", "--dataset", "olinda", "--param", "size=4", "--out", "four.npz")
    (file,) = neuco("score", "--embeddings", "four.npz", *TASK, "--json").json["cells"]
    assert cell["record"]["per_split"] == file["record"]["per_split"]
    (plain,) = neuco(*AVERAGING, "--json").json["cells"]
    assert cell["record"]["per_split"] != plain["record"]["per_split"]


def test_a_limit_takes_the_same_few_samples_of_methods_and_files(registry: Path) -> None:
    looked = neuco(*AVERAGING, "--limit", 60)
    assert looked.code == 0, looked.err
    assert "60 of 1849" in looked.out
    assert "NOT the registered score: 60 samples of each task; nothing was recorded" in looked.out
    assert not registry.exists()
    neuco("embed", "--method", "random", "--dataset", "olinda", "--out", "whole.npz")  # learns nothing from others
    both = neuco("score", "--embeddings", "whole.npz", "--method", "random", *TASK, "--limit", 60, "--json").json
    method, file = (cell["record"]["per_split"] for cell in both["cells"])
    assert method == file
    assert {cell["method"] for cell in both["cells"]} == {"random-quick", "whole-quick"}


def test_a_method_that_learns_sees_only_the_few_samples(registry: Path) -> None:
    ids = shuffled(read_ids())[:60]
    looked = neuco("score", "--method", "pca", *TASK, "--limit", 60, "--json")
    assert looked.code == 0, looked.err
    from neuco_core import load_dataset, load_method
    from neuco_core.encode.run import encode_dataset

    made = encode_dataset(load_method("pca"), load_dataset("olinda"), {}, only=frozenset(ids))
    assert sorted(made.ids) == sorted(ids)
    assert looked.json["cells"][0]["record"]["inputs"]["embeddings"] == made.sha256


def read_ids() -> tuple[str, ...]:
    from neuco_core import load_task

    return load_task("olinda_elevation_mean").labels().ids


@pytest.mark.extensions  # which makes the method that fails
def test_a_method_that_fails_is_told_and_the_others_are_scored(registry: Path) -> None:
    looked = neuco("score", "--method", "random,torchgeo_*", *TASK, "--limit", 20, "--protocol", "ridge+k=2")
    assert "random-quick" in looked.out, looked.text
    assert "torchgeo" in looked.out
    assert not registry.exists(), "not even why there is no score"


def test_the_size_of_batches_changes_no_number(registry: Path) -> None:
    cells = [neuco(*AVERAGING, "--batch-size", size, "--fresh", "--json").json["cells"][0] for size in (1000, 7)]
    assert cells[0]["record"]["inputs"]["embeddings"] == cells[1]["record"]["inputs"]["embeddings"]
    assert cells[0]["record"]["per_split"] == cells[1]["record"]["per_split"]
    assert (registry / "records" / "averaging.jsonl").exists(), "it is recorded as ever"


def test_csv_and_json_and_files_hold_the_same(registry: Path) -> None:
    words = ("score", "--method", "averaging", "--dataset", "olinda", "--protocol", "ridge+k=3")
    neuco(*words)  # from now on they are served from records
    cells = neuco(*words, "--format", "json").json["cells"]
    printed = neuco(*words, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [row["task"] for row in rows] == [cell["task"] for cell in cells]
    assert [float(row["mean"]) for row in rows] == [cell["record"]["mean"] for cell in cells]
    assert {row["splits"] for row in rows} == {"3"}
    shown = neuco(*words, "--out", "scores.csv")
    assert Path("scores.csv").read_text() == printed
    assert shown.out.startswith("task "), "the table is printed all the same"
    neuco(*words, "--out", "scores.json")
    assert json.loads(Path("scores.json").read_text())["cells"] == cells
    neuco(*words, "--out", "scores.txt")
    assert Path("scores.txt").read_text() == neuco(*words).out


def test_a_reason_that_is_a_formula_is_text_in_the_csv() -> None:
    """A plugin's error is its own words."""
    cell = PlannedCell(load_method("averaging"), load_task("clouds"), "failed", "", {"protocol": "ridge"})
    answer = Answer([], [PlannedOutcome(cell, None, "failed", "=HYPERLINK(1)")], [])
    (row,) = csv.DictReader(io.StringIO(answer.text("csv")))
    assert (row["method"], row["reason"]) == ("averaging", "'=HYPERLINK(1)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--param size=4 --save", "a look at size=4 is never recorded; got --save. Write the embeddings with"),
        ("--limit 5 --save", "a look at 5 samples of each task is never recorded"),
        ("--limit 5 --dry-run", "--dry-run lists what records there are"),
        ("--limit 0", "0 is not in the range x>=1"),
        ("--param dim=3", "method 'averaging' has no parameter dim; it has: bands, size"),
        ("--param size=big", "bad parameter size of method 'averaging'; expected a whole number, got 'big'"),
        ("--param size", "bad --param; expected NAME=VALUE, got 'size'"),
        ("--param size=4 --embeddings mine.csv", "--param is for methods with an encoder"),
        ("--out scores.xlsx", "expected a name that ends in .json or .csv or .txt, got .xlsx"),
        ("--format csv --out scores.json", "expected a name that ends in .csv, got .json"),
        ("--json --format csv", "--json and --format contradict each other"),
        ("--out nowhere/scores.csv", "nowhere: no such folder"),
    ],
)
def test_what_is_refused_before_any_work(words: str, message: str, registry: Path) -> None:
    Path("mine.csv").write_text("id,0\na,1\n")
    done = neuco(*AVERAGING, *words.split())
    assert done.code == 2
    assert message in done.err
    assert not registry.exists()


def test_a_look_has_a_name_of_its_own() -> None:
    assert Preview({"rate": 0.5, "kind": "Über!"}, 10).name("averaging") == "averaging-rate-0-5-kind-ber-quick"
    long = Preview({"words": "x" * 200}).name("averaging")
    assert len(long) <= 64
