"""Curves: staircases, areas under them, and the difference between two."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from msgspec import structs

from neuco_core.plugins.catalog import load_protocol
from neuco_extensions.coded.probe import coded_protocol
from neuco_extensions.rate.curves import ALL, Curves, bjontegaard, curve, point_label, rate_cells
from tests.rate.made import SIZES, SUITE, coded_records

BYTES = np.array([16.0, 48, 130, 400, 1024])
Q = np.array([3.0, 9, 14, 17, 17.5])


@pytest.fixture(scope="module")
def curves() -> Curves:
    return Curves(rate_cells(coded_records(), SUITE), replicates=200)


def test_points_come_from_the_records_of_all_protocols(curves: Curves) -> None:
    points = {(p.method, p.coder): p.size for p in curves.points}
    assert len(points) == 9
    assert {key[1]: size for key, size in points.items() if key[0] == "wide"} == SIZES
    assert {p.shared for p in curves.points if p.coder != "float32"} == {100.0}


def test_the_staircase_keeps_what_nothing_smaller_is_as_good_as(curves: Curves) -> None:
    assert [curves.points[at].coder for at in curves.stairs("wide")] == ["binary", "pca=4", "int8", "float32"]
    assert [curves.points[at].coder for at in curves.stairs("steady")] == ["binary"]
    at = curves.at_budget("wide", 63)
    assert at is not None
    assert curves.points[at].coder == "pca=4"
    assert curves.at_budget("lone", 255) is None


def test_what_learned_from_all_samples_is_a_point_and_not_on_the_curve() -> None:
    records = coded_records()
    leaky = [structs.replace(r, protocol=r.protocol.replace("=int8", "=int8,fit=all")) for r in records]
    curves = Curves(rate_cells([*records, *(r for r in leaky if "fit=all" in r.protocol)], SUITE), replicates=20)
    points = [p for p in curves.points if p.method == "wide" and p.coder == f"int8{ALL}"]
    assert [p.size for p in points] == [64]
    assert [curves.points[at].coder for at in curves.stairs("wide")] == ["binary", "pca=4", "int8", "float32"]


def test_the_area_is_the_mean_over_the_logarithm_of_the_bytes(curves: Curves) -> None:
    by_coder = {p.coder: curves.q[at] for at, p in enumerate(curves.points) if p.method == "wide"}
    # From 16 to 64 bytes the four components, to 256 int8, to 1,024 float32: two doublings each.
    by_hand = (by_coder["pca=4"] + by_coder["int8"] + by_coder["float32"]) / 3
    assert curves.q @ curves.shares("wide") == pytest.approx(by_hand)
    assert curves.shares("steady").sum() == pytest.approx(1)
    assert curves.shares("lone").sum() == pytest.approx(1 / 3)  # nothing below 256 bytes: there Q counts as 0


def test_bjontegaard_is_that_of_another_implementation() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pytest.importorskip("bjontegaard")
    other_bytes, other_q = np.array([24.0, 64, 200, 700]), np.array([1.0, 8, 15, 15.5])
    expected = theirs.bd_psnr(BYTES, Q, other_bytes, other_q, method="pchip", require_matching_points=False)
    ours = bjontegaard(other_bytes, other_q, BYTES, Q)
    assert ours == pytest.approx(expected, rel=1e-6)


def test_bjontegaard_of_known_curves() -> None:
    assert bjontegaard(BYTES, Q, BYTES, Q) == 0
    assert bjontegaard(BYTES, Q + 2.5, BYTES, Q) == pytest.approx(2.5)
    assert bjontegaard(BYTES, Q, BYTES, Q + 2.5) == pytest.approx(-2.5)
    many = bjontegaard(BYTES, np.stack([Q, Q + 1]), BYTES, np.stack([Q, Q]))
    assert many == pytest.approx([0, 1])
    assert bjontegaard(BYTES[:1], Q[:1], BYTES, Q) is None
    assert bjontegaard(BYTES, Q, 2000 + BYTES, Q) is None


def test_a_method_differs_from_itself_by_nothing(curves: Curves) -> None:
    assert curves.again is not None
    again = curves.difference("wide", "wide", curves.again)
    assert again is not None
    assert not again.any()


def test_only_protocols_that_are_the_suites_with_a_coder_are_points() -> None:
    base, other = load_protocol("ridge"), load_protocol("ridge").with_(k=5)
    assert point_label(coded_protocol(base, "pca=4+int8"), base) == "pca=4+int8"
    assert point_label(coded_protocol(other, "int8"), base) == ""
    assert point_label(base, base) == ""
    assert point_label(coded_protocol(base, "pq=8", fit="all"), base) == f"pq=8{ALL}"
    assert point_label(coded_protocol(load_protocol("neuco-2025"), "int8"), load_protocol("neuco-2025")) == "int8"


def test_python_gives_the_same_points() -> None:
    results = curve("band_statistics", "olinda_sea_level", coders=("int4", "prefix=9"), k=2)
    assert list(results) == ["float32", "int4", "prefix=9"]
    score = results["int4"].scores["olinda_sea_level"]
    assert set(score.settings["bytes_per_sample"]) == {27.0}
