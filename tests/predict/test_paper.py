"""The table of the capabilities-encoding paper: fetched, verified, and read as the issue about it counts it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuco_core.errors import ChecksumError
from neuco_extensions.predict import paper
from neuco_extensions.predict.read import read_table
from tests.fetch.helpers import own_settings, remote
from tests.fetch.http_server import FileServer

DATA = b'dataset,EuroSAT,,DOTA\nvariant,OA,5 samples OA,mAP\nA,"97,5",50,\nB,96.2,,70\n'
MODELS = b"Model,Architecture,Parameters (M),Date\nA,ViT-B,86,01/07/2022\n"
TASKS = b"Dataset,task\nEuroSAT,classification\n"
REAL = Path(__file__).parents[3] / "shared/data/capabilities"  # beside a checkout; not needed


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    own_settings(tmp_path, monkeypatch)
    with FileServer() as running:
        files = dict(zip(paper.FILES, (DATA, MODELS, TASKS), strict=True))
        running.http.files.update({f"/paper/{name}.csv": content for name, content in files.items()})
        served = {name: remote(running.url("paper", f"{name}.csv"), content) for name, content in files.items()}
        monkeypatch.setattr(paper, "REMOTES", served)
        yield running


def test_the_three_files_are_one_table(server: FileServer) -> None:
    table = paper.fetch_paper()
    assert (table.methods, len(table.tasks), table.known.sum()) == (("A", "B"), 3, 4)
    assert table.method_facts["A"]["architecture"] == "ViT-B"
    assert table.task_facts["EuroSAT: OA"]["kind"] == "classification"
    paper.fetch_paper()
    assert server.count("paper") == 3, "kept"


def test_another_file_is_refused(server: FileServer) -> None:
    server.http.files["/paper/models.csv"] = MODELS.replace(b"86", b"87")
    with pytest.raises(ChecksumError):
        paper.fetch_paper()


def test_addresses_are_of_a_commit() -> None:
    assert all(f"/{paper.COMMIT}/data/{name}.csv" in one.url and one.pinned for name, one in paper.REMOTES.items())


# Justified: these files may not ship, and a fresh clone has to pass without them.
@pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not beside this checkout")
def test_the_real_files_are_those_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(tmp_path, monkeypatch)
    for name in paper.FILES:
        shutil.copy(REAL / f"{name}.csv", tmp_path)
    local = {
        name: remote((tmp_path / f"{name}.csv").as_uri(), (tmp_path / f"{name}.csv").read_bytes())
        for name in paper.FILES
    }
    assert {name: (one.sha256, one.size) for name, one in local.items()} == paper.FILES
    monkeypatch.setattr(paper, "REMOTES", local)
    table = paper.fetch_paper()
    assert repr(table) == repr(read_table(tmp_path / "data.csv"))
    assert (len(table.methods), len(table.tasks), table.known.sum()) == (85, 160, 1106)
    left = table.filtered()
    assert (*left.values.shape, left.known.sum()) == (45, 92, 820)
