"""Tables of results in the forms that people keep them in; what is wrong is said with its row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from neuco_core.boards.model import Board, read_part
from neuco_core.errors import ChecksumError, DataError
from neuco_extensions.predict import read
from neuco_extensions.predict.read import allowed_by, fetch_paper, from_board, read_table
from tests.fetch.helpers import own_settings, remote
from tests.fetch.http_server import FileServer

WIDE = 'model,EuroSAT,BigEarthNet\nA,97.5,\nB,"96,2",80\n'
LONG = "method,task,score\nA,EuroSAT,97.5\nB,EuroSAT,96.2\nB,BigEarthNet,80\n"
PAPER = 'dataset,EuroSAT,,DOTA\nvariant,OA,5 samples OA,mAP\nA,"97,5",50,\nB,96.2,,70\n'
PAPER_MODELS = "Model,Architecture,Parameters (M),Date\nA,ViT-B,86,01/07/2022\n,,,\n"
PAPER_TASKS = "Dataset,task\nEuroSAT,classification\nDOTA,object detection\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [WIDE, LONG])
def test_a_row_per_method_or_per_result(tmp_path: Path, text: str) -> None:
    table = read_table(written(tmp_path, text))
    assert (table.methods, table.tasks) == (("A", "B"), ("EuroSAT", "BigEarthNet"))
    assert np.array_equal(table.values, [[97.5, np.nan], [96.2, 80.0]], equal_nan=True)


def test_as_the_paper_s_authors_keep_it(tmp_path: Path) -> None:
    (tmp_path / "models.csv").write_text(PAPER_MODELS)
    (tmp_path / "tasks.csv").write_text(PAPER_TASKS)
    table = read_table(written(tmp_path, PAPER))
    assert table.tasks == ("EuroSAT: OA", "EuroSAT: 5 samples OA", "DOTA: mAP")
    few = {"dataset": "EuroSAT", "labels": "few", "kind": "classification"}
    assert table.task_facts["EuroSAT: 5 samples OA"] == few
    assert table.method_facts["A"] == {"architecture": "ViT-B", "size": pytest.approx(np.log(86)), "date": 2022.5}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no results"),
        ("model\nA\n", "no tasks"),
        ("model,x\nA,good\n", "'good' in row 2"),
        ("model,x\nA,inf\n", "'inf' in row 2"),
        ('model,x\nA,"1,234,5"\n', "not a number"),
        ("model,x\nA,1\nA,2\n", "'A' has two scores on 'x'"),
        ("model,x,x\nA,1,2\n", "'A' has two scores on 'x'"),
        ("model,x\nA,1,2\n", "different lengths"),
        ("model,x\n,1\n", "without a name"),
        ("model,x\nA,\n", "no score is known"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        read_table(written(tmp_path, text))
    assert words in str(caught.value)


def test_a_board_s_scores(committed_registry: Path) -> None:
    board = read_part(committed_registry / "leaderboards" / "mini.json", Board, "a board")
    table = from_board(board)
    assert len(table.tasks) == len(board.tasks)
    assert table.known.sum() == sum(c.status == "ok" for row in board.rows for c in row.cells.values())
    assert table.method_facts["averaging"]["n_parameters"] == 0.0
    assert table.method_facts["pca"] == {
        "pretraining": "the encoded samples",
        "preprocessing": "averaged to 8 × 8",
        "dim": pytest.approx(np.log(257)),
    }
    assert table.limits[1].tolist() == [1.0] * len(table.tasks), "no R² is above 1"


def test_limits_are_turned_with_the_scores() -> None:
    limits = {"f1": (0.0, 1.0), "mae": (-np.inf, 0.0), "r2": (-np.inf, 1.0), "nobody's": (-np.inf, np.inf)}
    assert {name: allowed_by(name) for name in limits} == limits


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    own_settings(tmp_path, monkeypatch)
    with FileServer() as running:
        texts = (PAPER, PAPER_MODELS, PAPER_TASKS)
        files = {name: text.encode() for name, text in zip(read.FILES, texts, strict=True)}
        running.http.files.update({f"/paper/{name}.csv": content for name, content in files.items()})
        served = {name: remote(running.url("paper", f"{name}.csv"), content) for name, content in files.items()}
        monkeypatch.setattr(read, "REMOTES", served)
        yield running


def test_the_three_files_are_one_table(server: FileServer) -> None:
    table = fetch_paper()
    assert (table.methods, len(table.tasks), table.known.sum()) == (("A", "B"), 3, 4)
    assert table.method_facts["A"]["architecture"] == "ViT-B"
    assert table.task_facts["EuroSAT: OA"]["kind"] == "classification"
    fetch_paper()
    assert server.count("paper") == 3, "kept"


def test_another_file_is_refused(server: FileServer) -> None:
    server.http.files["/paper/models.csv"] = PAPER_MODELS.replace("86", "87").encode()
    with pytest.raises(ChecksumError):
        fetch_paper()
