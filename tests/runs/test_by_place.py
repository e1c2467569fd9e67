"""``neuco score`` under splits by place: what is said of samples that are lost, and what a record holds."""

from __future__ import annotations

from pathlib import Path

from neuco_core.records.fingerprint import stale_records
from neuco_core.records.store import read_all
from tests.command import neuco

CHOICE = ("score", "--method", "position", "--task", "olinda_elevation_mean", "--jobs", 1, "--protocol")


def test_samples_that_are_lost_are_said_and_recorded(tmp_path: Path) -> None:
    env = {"NEUCO_REGISTRY": str(tmp_path / "registry")}
    rules = "ridge+k=3,margin=3,size=5,splitter=blocks"
    ran = neuco(*CHOICE, rules, env=env)
    assert ran.code == 0, ran.text
    (record,) = [r for r in read_all(tmp_path / "registry") if r.protocol == rules]
    lost = record.samples["lost"]
    assert lost > 100
    assert f"olinda_elevation_mean: {lost} of 1849 samples are in neither part of a split: too near to the" in ran.out
    assert record.inputs["positions_from"]
    assert stale_records([record]) == {}
    assert "1 score from cache" in neuco(*CHOICE, rules, env=env).out


def test_regions_have_as_many_splits_as_there_are_and_a_record_says_so(tmp_path: Path) -> None:
    env = {"NEUCO_REGISTRY": str(tmp_path / "registry")}
    rules = "ridge+regions=4,splitter=region"
    ran = neuco(*CHOICE, rules, env=env)
    assert "4 splits" in ran.out
    (record,) = [r for r in read_all(tmp_path / "registry") if r.protocol == rules]
    assert (len(record.per_split), record.samples["lost"]) == (4, 0)


def test_a_splitter_without_its_size_is_one_line(tmp_path: Path) -> None:
    ran = neuco(*CHOICE, "ridge+splitter=blocks", env={"NEUCO_REGISTRY": str(tmp_path / "registry")})
    assert ran.code == 1
    assert "blocks without a size. Write splitter=blocks,size=" in ran.out
    assert "Traceback" not in ran.text
