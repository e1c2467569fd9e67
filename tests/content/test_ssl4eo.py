"""A folder in the layout of SSL4EO-S12-downstream, from cubes to scores, as a user would do it."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuco_core.plugins.catalog import list_tasks
from neuco_tasks.ssl4eo_s12_downstream import fake
from tests.command import Said, neuco

EMBED = ("embed", "--method", "averaging", "--dataset", "ssl4eo_s12_downstream", "--out")
SAMPLES = 24


class User:
    """Somebody with a folder and a terminal."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "SSL4EO-S12-downstream"
        own = {f"NEUCO_{name}": str(home / name.lower()) for name in ("CACHE", "CONFIG", "PINS")}
        self.env = {**own, "NEUCO_OFFLINE": "1"}

    def run(self, *arguments: object) -> Said:
        return neuco(*arguments, env=self.env)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    """The folder is linked and embedded once; the tests look at what came of it."""
    someone = User(tmp_path_factory.mktemp("user"))
    fake.write_folder(someone.folder, count=SAMPLES)
    linked = someone.run("data", "link", "ssl4eo_s12_downstream", someone.folder)
    made = someone.run(*EMBED, someone.home / "averaging.csv")
    assert (linked.code, made.code) == (0, 0), linked.text + made.text
    return someone


def test_embed_gives_1024_numbers_per_sample(user: User) -> None:
    lines = (user.home / "averaging.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == SAMPLES + 1
    assert lines[0].split(",")[:2] == ["id", "0"]
    assert lines[0].endswith(",1023")
    assert user.run("validate", user.home / "averaging.csv", "--dataset", "ssl4eo_s12_downstream").code == 0


def test_score_reads_every_task_in_either_spelling(user: User) -> None:
    """The labels follow the brightness of the cubes, so a probe that is fitted rightly must find them."""
    names = {path.name for path in (user.folder / "labels").iterdir()}
    assert {"heat-island_mean__regr.csv", "heatisland_std__regr.csv"} <= names
    protocol = ("--protocol", "ridge+k=5,test_size=0.25")
    scored = user.run("score", "--embeddings", user.home / "averaging.csv", *protocol, "--json").json
    scores = {cell["task"]: cell for cell in scored["cells"] if cell["status"] == "ok"}
    assert set(scores) == {task.id for task in list_tasks(dataset="ssl4eo_s12_downstream")}
    assert len(scores) == len(fake.FILES) == 11
    for name, cell in scores.items():
        assert cell["record"]["samples"]["used"] == SAMPLES
        if name != "random_cls":
            assert cell["record"]["mean"] > 0.99, name


def test_score_by_method_uses_the_linked_cubes(user: User) -> None:
    table = user.run("score", "--method", "averaging", "--task", "biomass_mean", "--k", "50", "--lr", "0.0001").out
    assert "biomass_mean" in table
    assert "-0.552" in table, "the paper's baseline, under the paper's settings"
    assert "-0.552" not in user.run("score", "--method", "averaging", "--task", "biomass_mean", "--k", "3").out


def test_without_the_link_it_says_what_to_do(user: User, tmp_path: Path) -> None:
    refused = User(tmp_path).run(*EMBED, tmp_path / "x.csv")
    assert (refused.code, refused.err.count("\n")) == (4, 1)
    assert "neuco data link ssl4eo_s12_downstream FOLDER" in refused.err
