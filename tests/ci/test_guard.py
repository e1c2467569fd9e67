"""What publishing takes: records that hold, boards of their suites, ids that are one plugin's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ci.apply import decide
from ci.guard import next_boards, registered
from ci.stub import read_json, read_rows, write_stub
from neuco_core.boards.store import board_path
from neuco_core.errors import DataError
from neuco_core.plugins.catalog import load_dataset, load_method, load_protocol, load_task
from neuco_core.records.fingerprint import Identity
from neuco_core.records.model import fingerprint, summary
from neuco_core.records.store import find_record
from neuco_core.specs import to_json
from tests.ci.helpers import ROOT


@pytest.mark.parametrize("name", ["averaging_notebook", "averaging-notebook"])
def test_two_plugins_with_one_id_are_refused(name: str, tmp_path: Path) -> None:
    """Neither would be registered any more, and whoever was ranked under that id would be gone."""
    for folder, own in (("neuco_methods/averaging", name), ("neuco_methods/averaging_notebook", "averaging_notebook")):
        (tmp_path / folder).mkdir(parents=True)
        rows = [{"noun": "method", "spec": {"id": own}}]
        (tmp_path / folder / "_describe.json").write_text(json.dumps(rows))
    with pytest.raises(DataError, match="neuco_methods/averaging and neuco_methods/averaging_notebook"):
        registered(tmp_path)


def described(**fields: Any) -> dict[str, Any]:
    """A good row of a description, with other fields."""
    row = {"noun": "dataset", "spec": to_json(load_dataset("digits")), "cubes": CUBES}
    return row | fields


CUBES = {"version": "1", "bands": ["grey/0"], "seasons": ["scene"]}
BAD_ROWS: dict[str, Any] = {
    "cubes that are a number": described(cubes=7),
    "cubes of which nothing is said": described(cubes=None),
    "cubes without a version": described(cubes={"bands": [], "seasons": []}),
    "a version that is a number": described(cubes={**CUBES, "version": 1}),
    "a version and an error": described(cubes={**CUBES, "error": "no"}),
    "bands that are text": described(cubes={**CUBES, "bands": "grey/0"}),
    "code that is no text": described(code=["x"]),
    "one field more": described(more=1),
    "text that cannot be written": described(cubes={"error": "\ud800"}),
    "a row that is no object": "dataset",
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_bad_row_of_a_description_is_refused(name: str, tmp_path: Path) -> None:
    """Otherwise it would break what is done with all plugins together, and nobody could publish."""
    path = tmp_path / "describe.json"
    path.write_text(json.dumps([described(), described(cubes={"error": "no copy"})]))
    assert [row["cubes"]["error"] for row in read_rows(path)] == ["", "no copy"]
    path.write_text(json.dumps([BAD_ROWS[name]]))
    with pytest.raises(DataError, match="not a description"):
        read_rows(path)


def test_a_number_that_is_not_finite_is_refused_however_it_is_spelled(tmp_path: Path) -> None:
    for number in ("1e999", "-1e999", "NaN"):
        (tmp_path / "x.json").write_text(f'{{"x": [{number}]}}')
        with pytest.raises(DataError, match=number):
            read_json(tmp_path / "x.json")


def test_files_of_a_plugin_do_not_stand_in_the_way_of_its_description(tmp_path: Path) -> None:
    plugin, made = tmp_path / "plugin", tmp_path / "made"
    (plugin / "_describe.json").mkdir(parents=True)
    (plugin / "_describe.json" / "x.csv").touch()
    (plugin / "_made").touch()
    (made / "labels").mkdir(parents=True)
    write_stub(tmp_path / "stub", plugin, [described()], made)
    assert sorted(path.name for path in (tmp_path / "stub").iterdir()) == ["__init__.py", "_describe.json", "_made"]
    assert (tmp_path / "stub/_made/labels").is_dir()


FORGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no board": (lambda made: board_path(made, "mini").unlink(), "there is no board"),
    "not a board": (lambda made: board_path(made, "mini").write_text("{}"), "not a board of schema"),
    "the board of another suite": (
        lambda made: shutil.copyfile(board_path(made, "olinda"), board_path(made, "mini")),
        "is the board of 'olinda'",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_only_the_next_version_of_a_board_is_taken(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "registry" / "leaderboards", tmp_path / "leaderboards")
    (tmp_path / "leaderboards" / "mine.json").write_text("{}")  # of no suite: never looked at
    boards, staying = next_boards(tmp_path, ROOT / "registry")
    assert staying == []
    assert {path: content for path, content in boards.items() if path.read_bytes() != content} == {}
    assert all(path.name != "mine.json" for path in boards)
    forge, words = FORGED[name]
    forge(tmp_path)
    with pytest.raises(DataError, match=words):
        next_boards(tmp_path, ROOT / "registry")


def test_a_score_of_a_method_that_has_nothing_for_the_dataset_is_left_out() -> None:
    """Written by hand, with every input as it would be; what cannot be compared here does not give it away."""
    method, task = load_method("torchgeo_resnet50_moco"), load_task("digits_class")
    real = find_record(ROOT / "registry", ("averaging", "digits_class", "ridge"))
    now = Identity(load_protocol("ridge")).inputs(method, task)
    inputs = {**real.inputs, **now, "embeddings_from": now["embeddings_from"] or "0" * 64}
    more = {"method": method.id, "method_version": method.version, "baseline": method.baseline}
    record = msgspec.structs.replace(real, **more, inputs=inputs, fingerprint=fingerprint(inputs))
    decision = decide(ROOT / "registry", [record])
    assert (decision.kept, "left out torchgeo_resnet50_moco on digits_class" in decision.lines[0]) == ((), True)


def test_a_record_is_replaced_only_by_another_score() -> None:
    """Same inputs and another score: somebody's code is not what it says, and the run on main is the truth."""
    real = find_record(ROOT / "registry", ("averaging", "digits_class", "ridge"))
    assert decide(ROOT / "registry", [real]).lines[0] == "unchanged: averaging on digits_class"
    splits = tuple(value and value - 0.1 for value in real.per_split)
    mean, std, q = summary(splits, True) or (0, 0, 0)
    worse = msgspec.structs.replace(real, per_split=splits, mean=mean, std=std, q=q, metrics={})
    assert decide(ROOT / "registry", [worse]).kept == (real.key,)
