"""The likeliest mistakes at the command line, each with the words that lead out of it; those in Python are in
``tests/studies/test_evaluate.py``, those in files in ``tests/tables``. Nothing here scores anything.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from neuco_core import load_task
from neuco_core.errors import EXIT_CODES
from tests.command import neuco_here

FILE = "score --task olinda_sea_level --embeddings "
METHOD = "score --method averaging --task olinda_sea_level "
NOT_A_FORMAT = "not a format of embeddings; expected a .csv, .parquet, .npz or .npy file, got "

MISTAKES = {
    # What to score, on what, and how.
    "score": (2, "nothing to score. Give --method ID, --embeddings FILE or --all"),
    "score averaging olinda_sea_level": (2, "got averaging olinda_sea_level. Write `neuco score --method ID --task"),
    "score mine.csv": (2, "or --embeddings FILE"),
    "score --method averagin": (3, "no method 'averagin'. Did you mean 'averaging'"),
    "score --method averaging,pcaa": (3, "no method 'pcaa'. Did you mean 'pca'?"),
    "score --method averaging --task olinda_sea": (3, "Did you mean 'olinda_sea_level'"),
    "score --method averaging --suite olind": (3, "no suite 'olind'. Did you mean 'olinda'"),
    "score --method averaging --dataset olind": (3, "no dataset 'olind'. Did you mean 'olinda'?"),
    "score --method averaging --kind regresion": (2, "expected one of regression, classification"),
    "score --method averaging --tag nothing": (3, "no tag 'nothing'. Tags of tasks: agriculture"),
    "score --metod averaging": (2, "Did you mean one of: '--method'"),
    METHOD + "--protocol rigde": (3, "no protocol 'rigde'. Did you mean 'ridge'?"),
    METHOD + "--protocol ridge+k": (2, "expected field=value, each field once, got 'k'"),
    METHOD + "--k 0": (2, "'--k': 0 is not in the range x>=1"),
    METHOD + "--engine lokal": (3, "no engine 'lokal'. Did you mean 'local'?"),
    METHOD + "--memory-limit lots": (2, "'lots' is not a size; write 4GB or 500MB"),
    METHOD + "--time-limit 0": (2, "0 is not a number of seconds above 0"),
    # Files.
    FILE + "nowhere.csv": (4, "nowhere.csv: no such file"),
    FILE + "suffix.csv": (1, "no id of suffix.csv has a label in it: ids such as '{id}.tif', and the task has '{id}'"),
    FILE + "noid.csv": (4, "no column named 'id'; got '0', '1'. Rename the column that holds the ids"),
    FILE + "unnamed.csv": (4, "column 1: a column has no name. Write the file without its row index"),
    FILE + "words.csv --strict": (4, "value is not a number; got 'x'. Without strict it becomes 0"),
    FILE + "words.csv": (4, "text in every row of a column; got '0' … Leave '0' out of the file"),
    FILE + "allwords.csv": (4, "no value is numeric; got 30 rows, 2 columns"),
    FILE + "broken.parquet": (4, "damaged Parquet file"),
    FILE + "broken.npz": (4, "damaged NPZ file"),
    FILE + "numbers.parquet": (4, "ids are not strings; expected strings, got int64. With pandas: frame['id'] ="),
    FILE + "mine.pkl": (4, NOT_A_FORMAT + ".pkl. A pickle runs code when it is opened; … with numpy.savez"),
    FILE + "model.pt": (4, NOT_A_FORMAT + ".pt. Write the tensor with numpy.savez"),
    FILE + "image.tif": (4, NOT_A_FORMAT + ".tif. That is an image"),
    FILE + "mine.json": (4, NOT_A_FORMAT + ".json. Write a table with the column id"),
    FILE + "bare.npy": (4, "an NPY file has no ids; … Write the ids, one per line, to bare.ids.txt"),
    FILE + "folder": (4, "no embeddings in the folder; expected embeddings.csv or embeddings.parquet"),
    FILE + "mine.csv --name Mine!": (2, "bad --name; expected 1 to 64 of a-z"),
    FILE + "mine.csv --name averaging": (2, "there is a method 'averaging' already … Choose another --name"),
    # Protocols that no cell could be scored by.
    "score --method averaging --suite olinda --protocol ridge+foo=3": (2, "has 'foo'; … has fields such as k, seed"),
    "score --method averaging --suite olinda --protocol mlp-1+depth=3": (2, "has 'depth'; expected layers, width"),
    "score --method averaging --suite olinda --protocol ridge+probe=rigde": (3, "Did you mean 'ridge'"),
    "score --method averaging --suite olinda --protocol ridge+splitter=groups": (3, "Did you mean 'group'"),
    # Other commands.
    "scor": (2, "No such command 'scor'. Did you mean 'score'"),
    "qqq": (2, "No such command 'qqq'."),
    "tasks --suite nonsense": (3, "no suite 'nonsense'"),
    "leaderboard shaw": (2, "No such command 'shaw'. Did you mean 'show'?"),
    "data lss": (2, "No such command 'lss'. Did you mean 'ls'?"),
    "show olinda_see_level": (3, "Did you mean 'olinda_sea_level'"),
    "compare averaging": (2, "Missing argument 'B'"),
    "compare averaging pcaa": (3, "no method 'pcaa'. Did you mean 'pca'?"),
    "compare averaging mine.cvs": (4, "mine.cvs: no such file"),
    "embed --method averaging --dataset olinda": (2, "no file to write; expected --out FILE"),
    "embed --method averaging --dataset olinda --out x.pkl": (2, "a name that ends in .csv, .parquet, .npz"),
    "embed --method averaging --dataset olinda --out x.npz --param size=7.5": (2, "expected a whole number, got 7.5"),
    "embed --method averaging --dataset olinda --out x.npz --param colour=red": (2, "no parameter colour; it has:"),
    "embed --method averaging --dataset digit --out x.npz": (3, "Did you mean 'digits'"),
    "embed --method averaging --dataset digits --out no/x.npz": (2, "no: no such folder"),
    "embed --method random --dataset digits --out x.npz --param dim": (2, "expected NAME=VALUE"),
    "embed --method challenge_404 --dataset digits --out x.npz": (4, "has no embeddings of dataset"),
    "leaderboard show olind": (3, "no board 'olind'. Did you mean 'olinda'"),
    "leaderboard show": (2, "name one board; got none. See `neuco leaderboard list`"),
    "leaderboard show olinda --with suffix.csv": (2, "expected ids of olinda, got ids such as '{id}.tif', and the"),
    "leaderboard show olinda --colour red": (2, "has no option 'colour'; expected weights"),
    "data fetch olinda_see": (3, "no task 'olinda_see'. Did you mean 'olinda_sea_level'"),
    "data pin": (2, "no task given. Give tasks, or a suite with --suite"),
    "check mine.csv": (3, "with its dataset: neuco check mine.csv --dataset ID"),
    "check olinda_see": (3, "no task or method 'olinda_see'. Did you mean 'olinda_sea_level'"),
    "explain averagin olinda_sea_level": (3, "no method 'averagin'. Did you mean 'averaging'"),
    "new tusk x": (2, "No such command 'tusk'. Did you mean 'task'?"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files as they are brought: nearly right."""
    made = tmp_path_factory.mktemp("mistakes")
    ids = load_task("olinda_sea_level").labels().ids[:30]
    values = np.random.default_rng(0).standard_normal((30, 2))
    table = pd.DataFrame(values, columns=["0", "1"])
    table.insert(0, "id", ids)
    tables = {
        "mine": table,
        "suffix": table.assign(id=[f"{name}.tif" for name in ids]),
        "noid": table.drop(columns="id"),
        "words": table.assign(**{"0": "x"}),
        "allwords": table.assign(**{"0": "x", "1": "x"}),
    }
    for name, content in tables.items():
        content.to_csv(made / f"{name}.csv", index=False)
    table.rename(columns={"0": "a", "1": "b"}).to_csv(made / "unnamed.csv")
    table.assign(id=range(30)).to_parquet(made / "numbers.parquet")
    for name in ("mine.pkl", "model.pt", "image.tif", "mine.json", "broken.parquet", "broken.npz"):
        (made / name).write_text("nothing of the kind")
    np.save(made / "bare.npy", values)
    (made / "folder").mkdir()
    return made


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_told_with_the_way_out(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, words = MISTAKES[line]
    monkeypatch.chdir(folder)
    done = neuco_here(*shlex.split(line))
    assert (done.code, "Traceback" in done.err) == (code, False), done.err
    assert not done.out or code == 1  # then it has run, and what has no score is listed
    assert code in EXIT_CODES
    position = 0
    for part in words.format(id=load_task("olinda_sea_level").labels().ids[0]).split("…"):
        position = done.err.find(part.strip(), position)
        assert position >= 0, f"{part!r} is not in {done.err!r}"


def test_there_are_sixty_of_them() -> None:
    assert len(MISTAKES) >= 60


def test_a_column_of_labels_is_told_before_it_is_scored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    labels = load_task("olinda_elevation_mean").labels().frame()
    features = np.random.default_rng(0).standard_normal((len(labels), 2))
    table = pd.DataFrame({"f0": features[:, 0], "f1": features[:, 1], "truth": labels.iloc[:, 0]}, index=labels.index)
    table.to_csv(tmp_path / "mine.csv")
    score = ("score", "--embeddings", tmp_path / "mine.csv", "--dataset", "olinda", "--k", 2, "--jobs", 1)
    refused = neuco_here(*score)
    assert (refused.code, refused.out) == (4, "")
    for other in (("compare", tmp_path / "mine.csv", "averaging"), ("check", tmp_path / "mine.csv")):
        same = neuco_here(*other, "--dataset", "olinda")
        assert (same.code, same.out) == (4, ""), other
        assert same.err.splitlines()[-1] == refused.err.splitlines()[-1]
    assert neuco_here("check", tmp_path / "mine.csv", "--dataset", "olinda", "--allow-labels").code == 0
    done = neuco_here(*score, "--allow-labels")
    first, second, *_ = done.err.splitlines()
    assert first == "mine.csv: 3 columns (f0, f1, truth)"
    assert second.startswith("neuco: warning: mine.csv: column 'truth' is the label of olinda_elevation_mean")
    assert "mean Q of mine: " in done.out
    assert "over 3 tasks" in done.out


def test_parts_of_one_set_are_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ids = load_task("olinda_elevation_mean").labels().ids
    features = np.random.default_rng(0).standard_normal((len(ids), 2))
    table = pd.DataFrame(features, index=pd.Index(ids, name="id"), columns=["0", "1"])
    for number in range(3):
        table.iloc[number::3].to_csv(tmp_path / f"part{number}.csv")
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    words = ("--task", "olinda_elevation_mean", "--k", 2, "--jobs", 1, "--protocol", "ridge")
    done = neuco_here("score", "--embeddings", tmp_path, *words)
    told = [line for line in done.err.splitlines() if line.startswith("neuco: warning: ")]
    assert [line for line in told if "no embedding for" in line] == []
    assert sum("these 3 files hold parts of one set of ids" in line for line in told) == 1, done.err


def test_the_first_value_that_counts_as_0_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ids = load_task("olinda_elevation_mean").labels().ids
    features = np.random.default_rng(0).standard_normal((len(ids), 2))
    table = pd.DataFrame(features, index=pd.Index(ids, name="id"), columns=["a", "b"])
    table.iloc[3, 1] = np.nan
    table.to_csv(tmp_path / "gaps.csv")
    monkeypatch.setenv("NEUCO_REGISTRY", str(tmp_path / "registry"))
    words = ("--task", "olinda_elevation_mean", "--k", 2, "--protocol", "ridge")
    first = f"id '{ids[3]}', column 'b'"
    assert first in neuco_here("score", "--embeddings", tmp_path / "gaps.csv", "--jobs", 1, *words).out
    assert first in neuco_here("compare", tmp_path / "gaps.csv", "averaging", *words).err
