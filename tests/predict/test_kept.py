"""A fitted model is kept as JSON and restored for the very table that it was fitted on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuco_core.errors import DataError
from neuco_extensions.predict.kept import keep, learnt, read, restore, table_hash, write
from neuco_extensions.predict.predictor import Predictor
from tests.command import neuco_here as neuco
from tests.predict.test_predictor import made, written


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    write(path, keep(Predictor().fit(made(10, 6)), "known.csv", 1))
    return path


def test_it_predicts_as_it_did(kept: Path) -> None:
    fitted, restored = Predictor().fit(made(10, 6)), restore(kept, made(10, 6))
    spread = np.nanstd(made(10, 6).values, axis=0)
    assert np.abs((fitted.scores - restored.scores) / spread).max() < 0.01
    assert restored.mix.error == fitted.mix.error
    before = kept.read_bytes()
    write(kept, keep(fitted, "known.csv", 1))
    assert kept.read_bytes() == before


def test_shares_sum_to_one(kept: Path) -> None:
    shares = learnt(read(kept))
    assert sum(shares.values()) == pytest.approx(1)
    assert {"method", "noise"} <= shares.keys()


def test_another_table_is_refused(kept: Path) -> None:
    table = made(10, 6)
    values = table.values.copy()
    values[tuple(place[0] for place in table.cells)] += 1e-6
    for other in (
        replace(table, values=values),
        replace(table, methods=(*table.methods[:-1], "other")),
        replace(table, method_facts={"m0": {"size": 1.0}}),
    ):
        assert table_hash(other) != table_hash(table)
        with pytest.raises(DataError, match=r"fitted on another table.*neuco predict fit known\.csv --least 1"):
            restore(kept, other)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}', "null"])
def test_what_is_no_model_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not a fitted model"):
        read(path)


def test_a_file_of_another_format_is_refused(kept: Path) -> None:
    text = kept.read_text()
    assert '"format": 1' in text
    kept.write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(DataError, match="not a fitted model"):
        read(kept)


@pytest.mark.parametrize("of", ["variances", "shares"])
def test_one_that_learnt_otherwise_is_refused(kept: Path, of: str) -> None:
    told = json.loads(kept.read_text())
    (told["mix"] if of == "shares" else told["mix"]["learnt"])[of] = [0.5]
    kept.write_text(json.dumps(told))
    with pytest.raises(DataError, match="which learnt otherwise"):
        restore(kept, made(10, 6))


def test_at_the_command_line(tmp_path: Path) -> None:
    path, table = tmp_path / "model.json", written(tmp_path / "known.csv", made(10, 6))
    shown = neuco("predict", "fit", table, "--out", path)
    assert shown.code == 0
    assert "what a score depends on" in shown.out
    words = ("predict", "fill", table, "--json")
    fresh, restored = neuco(*words).json, neuco(*words, "--model", path).json
    for first, second in zip(fresh["cells"], restored["cells"], strict=True):
        assert second["predicted"] == pytest.approx(first["predicted"], abs=0.02 * (first["high"] - first["low"]))
    lacking = fresh["cells"][0]["method"]
    asked = neuco("predict", "suggest", table, "--method", lacking, "--model", path, "--json")
    assert {one["task"] for one in asked.json} <= {cell["task"] for cell in fresh["cells"]}
    written(table, made(10, 6, seed=1))
    refused = neuco("predict", "fill", table, "--model", path)
    assert refused.code == 4
    assert "fitted on another table" in refused.err
