"""A folder in the layout of SSL4EO-S12-downstream, as a user has it: linked, scored, copied, moved, damaged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from neuco_core.plugins.catalog import list_tasks
from neuco_tasks.ssl4eo_s12_downstream import common, fake
from tests.command import Said, neuco
from tests.cubes.test_zips import flip

EMBED = ("embed", "--method", "averaging", "--dataset", common.DATASET, "--out")
SAMPLES = 24
MEANT = "--allow-labels"  # the labels are made of the brightness, as the embeddings are
SUITE = """id = "copies"
title = "Two tasks"
protocol = "ridge+k=3,test_size=0.25"
[tasks]
biomass_mean = 1
clouds = 1
"""


class User:
    """Somebody with a registry, a cache and a ``folder`` of cubes of their own, and no network."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home / "one"
        suite = home / "registry" / "suites" / "copies.toml"
        suite.parent.mkdir(parents=True)
        suite.write_text(SUITE)
        self.env = {f"NEUCO_{name}": str(home / name.lower()) for name in ("CACHE", "CONFIG", "PINS", "REGISTRY")}
        self.env["NEUCO_OFFLINE"] = "1"

    def run(self, *arguments: object) -> Said:
        return neuco(*arguments, env=self.env)

    def run_on_copy(self, *arguments: object) -> Said:
        """With the folder named by a variable."""
        place = {f"NEUCO_DATASET_{common.DATASET.upper()}": str(self.folder)}
        return neuco(*arguments, env={**self.env, **place})

    def plan(self) -> dict[str, int]:
        planned = self.run_on_copy("score", "--suite", "copies", "--method", "averaging", "--dry-run", "--json")
        return dict(planned.json["counts"])


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    """The folder is linked and embedded once; the tests look at what came of it."""
    someone = User(tmp_path_factory.mktemp("user"))
    fake.write_folder(someone.folder, count=SAMPLES)
    linked = someone.run("data", "link", common.DATASET, someone.folder)
    made = someone.run(*EMBED, someone.home / "averaging.csv")
    assert (linked.code, made.code) == (0, 0), linked.text + made.text
    return someone


def test_embed_gives_1024_numbers_per_sample(user: User) -> None:
    lines = (user.home / "averaging.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == SAMPLES + 1
    assert lines[0].split(",")[:2] == ["id", "0"]
    assert lines[0].endswith(",1023")
    assert user.run("check", user.home / "averaging.csv", "--dataset", common.DATASET, MEANT).code == 0


def test_score_reads_every_task_in_either_spelling(user: User) -> None:
    """The labels follow the brightness of the cubes, so a probe that is fitted rightly must find them."""
    names = {path.name for path in (user.folder / "labels").iterdir()}
    assert {"heat-island_mean__regr.csv", "heatisland_std__regr.csv"} <= names
    protocol = ("--protocol", "ridge+k=5,test_size=0.25")
    scored = user.run("score", "--embeddings", user.home / "averaging.csv", *protocol, MEANT, "--json").json
    scores = {cell["task"]: cell for cell in scored["cells"] if cell["status"] == "ok"}
    assert set(scores) == {task.id for task in list_tasks(dataset=common.DATASET)}
    assert len(scores) == len(fake.FILES) == 11
    for name, cell in scores.items():
        assert cell["record"]["samples"]["used"] == SAMPLES
        if name != "random_cls":
            assert cell["record"]["mean"] > 0.99, name


def test_score_by_method_uses_the_linked_cubes(user: User) -> None:
    table = user.run("score", "--method", "averaging", "--task", "biomass_mean", "--k", "50", "--lr", "0.0001").out
    assert "biomass_mean" in table
    assert "-0.5520 " in table, "the paper's baseline, under the paper's settings"
    assert "averaging*" not in table
    assert "averaging*" in user.run("score", "--method", "averaging", "--task", "biomass_mean", "--k", "3").out


def test_without_the_link_it_says_what_to_do(tmp_path: Path) -> None:
    refused = User(tmp_path).run(*EMBED, tmp_path / "x.csv")
    assert (refused.code, refused.err.count("\n")) == (4, 1)
    assert "neuco data link ssl4eo_s12_downstream FOLDER" in refused.err


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> User:
    """Smaller cubes, scored; with the board of it."""
    owner = User(tmp_path_factory.mktemp("copies"))
    fake.write_folder(owner.folder, count=SAMPLES, files=("biomass_mean__regr.csv", "clouds_reg__regr.csv"), side=16)
    for command in (("score", "--suite", "copies", "--method", "averaging"), ("leaderboard", "build")):
        said = owner.run_on_copy(*command)
        assert said.code == 0, said.text
    return owner


def download_again(source: Path, target: Path) -> None:
    """The same bytes, written anew: other times, inodes and parts."""
    for number, path in enumerate(sorted(path for path in source.rglob("*") if path.is_file())):
        place = target / path.relative_to(source)
        if path.suffix == ".zip":
            place = place.parents[1] / f"part-{number % 3:06d}" / place.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
        os.utime(place, (number, number))


def test_a_copied_moved_and_downloaded_dataset_is_the_same_one(scored: User) -> None:
    board = scored.home / "registry" / "leaderboards" / "copies.json"
    before = board.read_bytes()
    copied, moved = scored.home / "away" / "copied", scored.home / "moved"
    shutil.copytree(scored.home / "one", copied)
    scored.folder = copied.rename(moved)
    assert scored.plan() == {"cached": 2}
    scored.folder = scored.home / "downloaded"
    download_again(moved, scored.folder)
    verified = scored.run_on_copy("verify", "--json")
    assert verified.code == 0, verified.text
    assert [check["verdict"] for check in verified.json["checks"]] == ["same", "same"]
    built = scored.run_on_copy("leaderboard", "build")
    assert (built.code, "copies: unchanged" in built.out) == (0, True), built.text
    assert board.read_bytes() == before


def test_another_byte_in_a_cube_is_found(scored: User, tmp_path: Path) -> None:
    """In the values, by the version; below an unchanged directory, by reading all of it or by scoring again."""
    scored.folder = tmp_path / "changed"
    shutil.copytree(scored.home / "one", scored.folder)
    place = next((scored.folder / "data" / "s2l2a").rglob(f"{fake.sample_ids(1)[0]}.zarr.zip"))
    whole = place.read_bytes()
    changed = fake.made_up(0, "s2l2a", 12, 16).copy()
    changed[0, 0, 0, 0, 0] += 1
    fake.write_zarr_zip(place, changed)
    assert scored.plan() == {"stale": 2}
    place.write_bytes(whole)
    assert scored.plan() == {"cached": 2}
    flip(place, b"bands/0.2.0.0.0")
    read = scored.run_on_copy("data", "check", common.DATASET)
    assert (read.code, str(place) in read.err) == (4, True), read.text
    verified = scored.run_on_copy("verify", "--json")
    assert {check["verdict"] for check in verified.json["checks"]} == {"failed"}
    assert "damaged cube" in verified.json["checks"][0]["reason"]
