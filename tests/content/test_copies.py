"""Scores on a copy of the dataset: another place, other times, or another byte. What was scored once stays known."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from neuco_tasks.ssl4eo_s12_downstream import common, fake
from tests.command import Said, neuco
from tests.cubes.test_zips import flip

SUITE = """id = "copies"
title = "Two tasks"
protocol = "ridge+k=3,test_size=0.25"
[tasks]
biomass_mean = 1
clouds = 1
"""


class User:
    """Somebody with a registry of their own, and a copy of the dataset that lies now here, now there."""

    def __init__(self, home: Path) -> None:
        self.home, self.copy = home, home / "one"
        suite = home / "registry" / "suites" / "copies.toml"
        suite.parent.mkdir(parents=True)
        suite.write_text(SUITE)

    def run(self, *arguments: object) -> Said:
        own = {f"NEUCO_{name}": str(self.home / name.lower()) for name in ("CACHE", "CONFIG", "PINS", "REGISTRY")}
        place = {f"NEUCO_DATASET_{common.DATASET.upper()}": str(self.copy)}
        return neuco(*arguments, env={**own, **place, "NEUCO_OFFLINE": "1"})

    def plan(self) -> dict[str, int]:
        return dict(
            self.run("score", "--suite", "copies", "--method", "averaging", "--dry-run", "--json").json["counts"]
        )


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> User:
    """A folder in the true layout, scored; with the board of it."""
    user = User(tmp_path_factory.mktemp("copies"))
    fake.write_folder(user.copy, count=24, files=("biomass_mean__regr.csv", "clouds_reg__regr.csv"), side=16)
    for command in (("score", "--suite", "copies", "--method", "averaging"), ("leaderboard", "build")):
        said = user.run(*command)
        assert said.code == 0, said.text
    return user


@pytest.fixture
def user(scored: User) -> User:
    scored.copy = scored.home / "one"
    return scored


def download_again(source: Path, target: Path) -> None:
    """The same bytes, written anew: other times, inodes and parts."""
    for number, path in enumerate(sorted(path for path in source.rglob("*") if path.is_file())):
        place = target / path.relative_to(source)
        if path.suffix == ".zip":
            place = place.parents[1] / f"part-{number % 3:06d}" / place.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
        os.utime(place, (number, number))


def test_a_copied_moved_and_downloaded_dataset_is_the_same_one(user: User) -> None:
    board = (user.home / "registry" / "leaderboards" / "copies.json").read_bytes()
    user.copy = user.home / "away" / "copied"
    shutil.copytree(user.home / "one", user.copy)
    moved = user.home / "moved"
    user.copy.rename(moved)
    user.copy = moved
    assert user.plan() == {"cached": 2}
    user.copy = user.home / "downloaded"
    download_again(moved, user.copy)
    verified = user.run("verify", "--json")
    assert verified.code == 0, verified.text
    assert [check["verdict"] for check in verified.json["checks"]] == ["same", "same"]
    built = user.run("leaderboard", "build")
    assert (built.code, "copies: unchanged" in built.out) == (0, True), built.text
    assert (user.home / "registry" / "leaderboards" / "copies.json").read_bytes() == board


def test_another_byte_in_a_cube_is_found(user: User, tmp_path: Path) -> None:
    """In the values, by the version; below an unchanged directory, by reading all of it or by scoring again."""
    shutil.copytree(user.home / "one", tmp_path / "changed")
    user.copy = tmp_path / "changed"
    place = next((user.copy / "data" / "s2l2a").rglob(f"{fake.sample_ids(1)[0]}.zarr.zip"))
    whole = place.read_bytes()
    changed = fake.made_up(0, "s2l2a", 12, 16).copy()
    changed[0, 0, 0, 0, 0] += 1
    fake.write_zarr_zip(place, changed)
    assert user.plan() == {"stale": 2}
    place.write_bytes(whole)
    assert user.plan() == {"cached": 2}
    flip(place, b"bands/0.2.0.0.0")
    read = user.run("data", "verify", common.DATASET)
    assert (read.code, str(place) in read.err) == (4, True), read.text
    verified = user.run("verify", "--json")
    assert {check["verdict"] for check in verified.json["checks"]} == {"failed"}
    assert "damaged cube" in verified.json["checks"][0]["reason"]
