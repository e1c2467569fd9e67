"""A folder in the layout of SSL4EO-S12-downstream, from cubes to scores, as a user would do it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from neuco_tasks.ssl4eo_s12_downstream import fake

TASKS = {
    "biomass_mean",
    "biomass_std",
    "clouds",
    "crops",
    "heatisland_mean",
    "heatisland_std",
    "landcover_agriculture",
    "landcover_forest",
    "nodata",
    "random_cls",
    "random_reg",
}
SAMPLES = 24


class User:
    """Somebody with a folder and a terminal."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "SSL4EO-S12-downstream"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("NEUCO_")}
        own = {f"NEUCO_{name}": str(home / name.lower()) for name in ("CACHE", "CONFIG", "PINS")}
        self.env = kept | own | {"NEUCO_OFFLINE": "1"}

    def run(self, *arguments: str, code: int = 0) -> Any:
        command = [sys.executable, "-m", "neuco_core.cli", *arguments]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == code, done.stderr + done.stdout
        if code:
            return done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    """The folder is linked and embedded once; the tests look at what came of it."""
    someone = User(tmp_path_factory.mktemp("user"))
    fake.write_folder(someone.folder, count=SAMPLES)
    someone.run("data", "link", "ssl4eo_s12_downstream", str(someone.folder))
    out = str(someone.home / "averaging.csv")
    someone.run("embed", "--method", "averaging", "--dataset", "ssl4eo_s12_downstream", "--out", out)
    return someone


def test_embed_gives_1024_numbers_per_sample(user: User) -> None:
    lines = (user.home / "averaging.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == SAMPLES + 1
    assert lines[0].split(",")[:2] == ["id", "0"]
    assert lines[0].endswith(",1023")
    user.run("validate", str(user.home / "averaging.csv"), "--dataset", "ssl4eo_s12_downstream")


def test_score_reads_every_task_in_either_spelling(user: User) -> None:
    """The labels follow the brightness of the cubes, so a probe that is fitted rightly must find them."""
    names = {path.name for path in (user.folder / "labels").iterdir()}
    assert {"heat-island_mean__regr.csv", "heatisland_std__regr.csv"} <= names
    rules = ("--protocol", "ridge+k=5,test_size=0.25")
    found = user.run("score", "--embeddings", str(user.home / "averaging.csv"), *rules, "--json")
    scores = {cell["task"]: cell for cell in found["cells"] if cell["status"] == "ok"}
    assert set(scores) == TASKS
    for name, cell in scores.items():
        assert cell["score"]["samples"]["used"] == SAMPLES
        if name != "random_cls":
            assert cell["score"]["mean"] > 0.99, name


def test_score_by_method_uses_the_linked_cubes(user: User) -> None:
    table = user.run("score", "--method", "averaging", "--task", "biomass_mean", "--k", "3")
    assert "biomass_mean" in table
    assert "-0.552" in table or "−0.552" in table


def test_without_the_link_it_says_what_to_do(user: User, tmp_path: Path) -> None:
    stranger = User(tmp_path)
    out = str(tmp_path / "x.csv")
    error = stranger.run("embed", "--method", "averaging", "--dataset", "ssl4eo_s12_downstream", "--out", out, code=4)
    assert "neuco data link ssl4eo_s12_downstream FOLDER" in error
    assert len(error.strip().splitlines()) == 1
