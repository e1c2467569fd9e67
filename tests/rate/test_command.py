"""``neuco rate curve`` and ``neuco rate show``: recorded once, shown many times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.plugins.catalog import load_dataset
from neuco_core.records.store import read_method
from neuco_core.tables.embeddings import make_embeddings, write_embeddings
from tests.command import Said
from tests.command import neuco_here as neuco

TASKS = ("--dataset", "olinda", "--k", 2)
FEW = ("--coders", "int8,pca=8+int4,steps=1+entropy")


@pytest.fixture
def registry(committed_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of its own, with a suite of two splits."""
    suite = (committed_registry / "suites/olinda.toml").read_text()
    suite = suite.replace('id = "olinda"', 'id = "two"').replace('protocol = "ridge"', 'protocol = "ridge+k=2"')
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/two.toml").write_text(suite)
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path))
    return tmp_path


def points_of(ran: Said) -> dict[str, dict[str, Any]]:
    """All points of one method, by coder."""
    section = ran.json["sections"][-1]
    keys = [column["key"] for column in section["columns"]]
    return {row[1]: dict(zip(keys, row, strict=True)) for row in section["rows"]}


def test_a_curve_is_scored_once_and_its_first_point_is_the_score(registry: Path) -> None:
    args = ("rate", "curve", "--method", "band_statistics", *TASKS, *FEW, "--fit-all")
    ran = neuco(*args, "--json")
    assert ran.code == 0, ran.text
    points = points_of(ran)
    forms = ["int8", "pca=8+int4", "steps=1+entropy"]
    extra = [f"{form}, learned from all samples" for form in forms]
    assert sorted(points) == sorted(["float32", *forms, *extra])
    sizes = [points[name]["bytes"] for name in ("float32", "int8", "pca=8+int4")]
    assert sizes == [216, 54, 4]
    assert 5 < points["steps=1+entropy"]["bytes"] < 54
    alone = neuco("score", "--method", "band_statistics", *TASKS, "--json")
    q = {cell["task"]: cell["record"]["q"] for cell in alone.json["cells"]}
    assert points["float32"]["q"] == pytest.approx(sum(q.values()) / 3)
    # Each point is a record like any other; the second time nothing is run.
    before = (registry / "records/band_statistics.jsonl").read_bytes()
    assert len(read_method(registry, "band_statistics")) == 3 * 7
    assert neuco(*args, "--json", "--engine", "local").json == ran.json
    assert (registry / "records/band_statistics.jsonl").read_bytes() == before
    table = neuco(*args)
    head, _, *rows = table.out.splitlines()[1:]
    assert head.split()[:3] == ["Method", "Coder", "Bytes"]
    assert [row.split()[1] for row in rows[:2]] == ["pca=8+int4", "pca=8+int4,"]
    assert rows[-1].startswith("Protocol ridge+k=2.")


def test_all_methods_of_a_suite_are_ranked_and_drawn(registry: Path, tmp_path: Path) -> None:
    for method in ("band_statistics", "position"):
        ran = neuco("rate", "curve", "--method", method, "--suite", "two", "--coders", "int8,binary,prefix=16,pq=64")
        assert ran.code == 0, ran.text
    assert "pq=64" not in ran.out  # it has 63 dimensions
    shown = neuco("rate", "show", "two", "--out", tmp_path / "a.csv", "--footprint", 228)
    assert shown.code == 0, shown.text
    assert "The best at a budget" in shown.out
    assert "TB of land" in shown.out
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "method,coder,bytes,q,low,high,tb,shared"
    assert len(lines) == 1 + 4 + 4
    assert neuco("rate", "show", "two", "--out", tmp_path / "a.svg").code == 0
    assert "band_statistics, binary" in (tmp_path / "a.svg").read_text()
    board = neuco("rate", "show", "two", "--json").json
    assert board["kind"] == "rate"
    assert {row["method"] for row in board["rows"]} == {"band_statistics", "position"}
    out = tmp_path / "site"
    assert neuco("leaderboard", "site", "--out", out, "two").code == 0
    page = (out / "boards/two/index.html").read_text()
    assert 'id="rate"' in page
    assert 'id="curves"' in page


def test_a_file_has_a_curve_and_signed_roots_in_it_are_named(registry: Path, tmp_path: Path) -> None:
    ids = load_dataset("olinda").ids()
    values = np.random.default_rng(0).standard_normal((len(ids), 24))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    roots = np.rint(np.sign(values) * np.sqrt(np.abs(values)) * 127.5).astype(np.float32)
    write_embeddings(make_embeddings(list(ids), roots), tmp_path / "roots.npz")
    ran = neuco("rate", "curve", "--embeddings", tmp_path / "roots.npz", *TASKS, "--coders", "int4,pq=4", "--json")
    assert ran.code == 0, ran.text
    assert list(points_of(ran)) == ["pq=4", "int4", "float32"]
    assert "signed roots read linearly. Decode them first" in ran.err
    assert not (registry / "records").exists() or not list((registry / "records").glob("roots*"))


def test_a_point_that_fails_is_told_and_stops_no_other(registry: Path, tmp_path: Path) -> None:
    ids = load_dataset("olinda").ids()
    values = 1e6 * np.random.default_rng(0).standard_normal((len(ids), 8))
    write_embeddings(make_embeddings(list(ids), values.astype(np.float32)), tmp_path / "large.npz")
    args = ("--embeddings", tmp_path / "large.npz", "--task", "olinda_sea_level", "--k", 2, "--coders", "float16,int8")
    ran = neuco("rate", "curve", *args)
    assert ran.code == 1
    assert "values too large for float16" in ran.err
    assert "int8" in ran.out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("curve", "--suite", "olinda"), 2, "nothing to score"),
        (("curve", "--method", "pca", "--coders", "int5"), 2, "no such coder"),
        (("curve", "--method", "pca", "--kind", "classification"), 2, "several protocols"),
        (("show", "olinda", "--out", "x.png"), 2, "expected .svg or .csv, got .png"),
        (("show", "olinda", "--against", "nobody"), 3, "no method on this board 'nobody'"),
        (("show", "nothing"), 3, "no board 'nothing'"),
    ],
)
def test_wrong_use(args: tuple[str, ...], code: int, words: str) -> None:
    ran = neuco("rate", *args)
    assert (ran.code, words in ran.err) == (code, True), ran.err
    assert "Traceback" not in ran.err


def test_the_default_coders_need_no_extra() -> None:
    listed = json.loads(json.dumps(neuco("rate", "curve", "--help").out))
    assert "entropy" not in listed.split("[default:")[1].split("]")[0]
