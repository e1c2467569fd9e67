"""``neuco bench``: options, folders, files, failures, the leaderboard over a phase, and Ctrl-C."""

from __future__ import annotations

import csv
import json
import math
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

from neuco_core.errors import DataError
from neuco_core.tables.embeddings import read_embeddings
from neuco_core.tables.labels import read_labels
from neuco_extensions.bench.labels import find_label_files
from neuco_extensions.bench.leaderboard import BenchRun, rank, read_runs, write_leaderboard
from neuco_extensions.bench.outputs import make_run_folder
from tests.bench.helpers import bench, neuco, only, results
from tests.command import python


@pytest.fixture
def labels(case: Path, tmp_path: Path) -> Path:
    """A copy of the case's labels, to be changed."""
    return shutil.copytree(case / "labels", tmp_path / "labels")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_both_spellings_and_defaults(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(case, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    ran = neuco("bench", "--annotation-path", "labels", "--submission-file", "embeddings.csv", "--json")
    assert ran.code == 0, ran.err
    folder = only(tmp_path / "here" / "results" / "results")
    assert folder.name.startswith("embeddings_")
    assert ran.json["folder"] == str(Path("results") / "results" / folder.name)
    more = ("--output-dir", "o", "--method-name", "m", "--exclude-file", "none.txt", "--phase", "p", "--config", "c")
    assert neuco("bench", "--annotation-path", "labels", "--submission-file", "e.csv", *more).code == 4


def test_two_runs_and_any_number_of_threads_give_the_same_bytes(case: Path, tmp_path: Path) -> None:
    runs = []
    for number, threads in enumerate((1, 2, 2)):
        written = files(results(case, tmp_path / str(number), "--threads", threads))
        summary = json.loads(written.pop("results_summary.json"))
        del summary["experiment"]  # the name of the run's folder has the time in it
        runs.append((written, summary))
    assert runs[0] == runs[1] == runs[2]


def test_excluded_ids_are_left_out_and_counted(case: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("s0000\n\ns0001\nnot-there\n")
    ran = bench(case, tmp_path / "out", "--exclude_file", tmp_path / "bad.txt")
    assert ran.code == 0, ran.err
    assert "2 embeddings left out" in ran.err
    score = json.loads((only(tmp_path / "out" / "results") / "delta" / "delta_score.json").read_text())
    assert score["samples"]["used"] == 698


@pytest.mark.parametrize(
    ("more", "code", "word"),
    [
        (("--annotation_path", "nowhere"), 4, "no such folder"),
        (("--submission_file", "none.csv"), 4, "no such file"),
        (("--config", "none.yaml"), 4, "--config"),
        (("--exclude_file", "none.txt"), 4, "exclude"),
        (("--phase", "../up"), 2, "--phase"),
        (("--method_name", "a/b"), 2, "--method_name"),
        (("--method_name", ""), 2, "--method_name"),
        (("--threads", "0"), 2, "threads"),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(
    case: Path, tmp_path: Path, more: tuple[str, str], code: int, word: str
) -> None:
    ran = bench(case, tmp_path / "out", *more)
    assert ran.code == code
    assert word in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["biomass.csv", "biomass__mean.csv", "__regr.csv", "alpha__regression.csv"])
def test_a_label_file_with_a_bad_name(labels: Path, name: str) -> None:
    for hidden in ("._alpha__regr.csv", "..__regr.csv"):  # some systems leave ._name beside name, which is no fault
        (labels / hidden).write_bytes(b"\x00\x05\x16\x07")
    (labels / "beta__regr.csv").rename(labels / "beta__Regr.csv")  # capitals are no fault, either
    assert [file.task for file in find_label_files(labels)] == ["alpha", "beta", "delta", "gamma"]
    shutil.copy(labels / "alpha__regr.csv", labels / name)
    with pytest.raises(DataError, match="two label files for the task 'alpha'" if "alpha" in name else name):
        find_label_files(labels)


def test_folders_of_results(case: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    ran = bench(case, tmp_path / "out")
    assert (ran.code, "cannot create the run's folder" in ran.err) == (2, True)
    long = bench(case, tmp_path / "other", "--method_name", "x" * 300)
    assert (long.code, "too long" in long.err) == (2, True)
    # Of a run that gets no score, no folder stays; of two in one second, each has its own.
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a__regr.csv").write_text("id,label\nx,1\ny,2\nz,3\n")
    ran = bench(case, tmp_path / "none", "--annotation_path", tmp_path / "labels")
    assert (ran.code, "results in" in ran.out) == (1, False)
    assert list((tmp_path / "none" / "results").iterdir()) == []
    names = [make_run_folder(tmp_path, "p", "m", datetime(2026, 1, 2, 3, 4, 5)).name for _ in range(3)]
    assert names == ["m_20260102_030405", "m_20260102_030405-2", "m_20260102_030405-3"]


def test_an_unknown_name_in_the_filter_is_no_empty_run(case: Path, tmp_path: Path) -> None:
    ran = bench(case, tmp_path / "out", task_filter="[alpah]")
    assert (ran.code, "Did you mean 'alpha'?" in ran.err) == (3, True)


def test_an_id_twice_in_the_embeddings_stops_the_run(case: Path, tmp_path: Path) -> None:
    text = (case / "embeddings.csv").read_text()
    (tmp_path / "e.csv").write_text(text + text.splitlines()[-1] + "\n")
    ran = bench(case, tmp_path / "out", "--submission_file", tmp_path / "e.csv")
    assert (ran.code, "s0699" in ran.err, (tmp_path / "out").exists()) == (4, True, False), ran.err


def test_missing_values_are_counted_or_refused(case: Path, tmp_path: Path) -> None:
    lines = (case / "embeddings.csv").read_text().splitlines()
    cells = lines[5].split(",")
    lines[5] = ",".join([*cells[:3], "", *cells[4:]])
    (tmp_path / "e.csv").write_text("\n".join(lines) + "\n")
    ran = bench(case, tmp_path / "out", "--submission_file", tmp_path / "e.csv")
    assert (ran.code, "1 values became 0" in ran.err) == (0, True)
    assert bench(case, tmp_path / "strict", "--submission_file", tmp_path / "e.csv", "--strict").code == 4


def test_plots_under_neuco_benchs_names(case: Path, tmp_path: Path) -> None:
    folder = results(case, tmp_path / "out", enable_plots="true", k_folds="2", task_filter="[beta, gamma]")
    pictures = {name: data for name, data in files(folder).items() if name.endswith(".png")}
    assert set(pictures) == {
        *(f"{t}/loss_curves/{t}_{kind}_loss_curves.png" for t in ("beta", "gamma") for kind in ("train", "validation")),
        *(f"beta/regression_scatter/embeddings_beta_scatter_fold{i}.png" for i in (1, 2)),
        *(f"gamma/confusion_matrices/embeddings_gamma_cm_fold{i}.png" for i in (1, 2)),
    }
    assert all(data.startswith(b"\x89PNG\r\n") and data.endswith(b"IEND\xaeB`\x82") for data in pictures.values())


def test_plots_without_matplotlib(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before the work begins, with both ways out."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ran = bench(case, tmp_path / "out", enable_plots="true")
    assert ran.code == 6
    assert "pip install 'matplotlib" in ran.err
    assert "enable_plots: false" in ran.err
    assert not (tmp_path / "out").exists()


READER = """
import sys
sys.path.insert(0, sys.argv[1])
from load_model import load_model
import numpy as np
model, task_type = load_model()
values = np.load(sys.argv[2])
np.save(sys.argv[3], np.stack([model(values), model(values, split=0)]))
assert not any(name.startswith(("neuco", "torch")) for name in sys.modules)
print(task_type)
"""


@pytest.mark.parametrize(("task", "kind"), [("delta", "regression"), ("gamma", "classification")])
def test_stored_probes_load_without_us_and_predict_what_was_scored(
    case: Path, tmp_path: Path, task: str, kind: str
) -> None:
    folder = results(case, tmp_path / "out", store_probes="true", task_filter=f"[{task}]") / task
    labels = read_labels(next((case / "labels").glob(f"{task}__*.csv")), kind)
    np.save(tmp_path / "x.npy", read_embeddings(case / "embeddings.csv").frame().loc[list(labels.ids)].to_numpy())
    done = python("-I", "-c", READER, folder / "probe", tmp_path / "x.npy", tmp_path / "y.npy", cwd=tmp_path)
    assert done.out.strip() == kind, done.err
    mean, first = np.load(tmp_path / "y.npy")
    _, test = next(ShuffleSplit(8, test_size=0.1, random_state=42).split(labels.ids))
    score = json.loads((folder / f"{task}_score.json").read_text())["per_split"][0]
    truth, predicted = labels.values[test], first[test]
    if kind == "regression":
        r2 = 1 - ((truth - predicted) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
        assert r2 == pytest.approx(score, abs=1e-4)
        assert np.corrcoef(mean, labels.values)[0, 1] > 0.9
    else:
        both = (truth == 1) & (predicted == 1)
        assert 2 * both.sum() / ((truth == 1).sum() + (predicted == 1).sum()) == pytest.approx(score, abs=1e-6)
        assert (mean == labels.values).mean() > 0.8


PATIENCE = 120  # seconds until the test gives up; the run itself would take far longer


@pytest.mark.extensions
def test_bench_leaves_whole_files(case: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    for path in (case / "labels").glob("*.csv"):
        (labels / path.name).write_bytes(path.read_bytes())
    few = (labels / "alpha__regr.csv").read_text().splitlines()[:31]
    (labels / "aaa__regr.csv").write_text("\n".join(few) + "\n")
    (tmp_path / "c.yaml").write_text("k_folds: 100\nepochs: 1500\nenable_plots: false\n")
    words = ["bench", "--annotation_path", labels, "--submission_file", case / "embeddings.csv"]
    words += ["--config", tmp_path / "c.yaml", "--output_dir", tmp_path / "out"]
    command = [sys.executable, "-m", "neuco_core.cli", *map(str, words)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + PATIENCE
    first: list[Path] = []
    while not first and time.monotonic() < end and child.poll() is None:
        first = list((tmp_path / "out").glob("results/*/aaa/aaa_result.json"))
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, err
    assert err.strip() == "neuco: interrupted"
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.name for path in left} == {"aaa_result.json", "aaa_score.json"}
    assert all(json.loads(path.read_text()) for path in left)
    assert first[0] in left


def test_ranks_are_weighted_by_the_spread_of_the_tasks() -> None:
    """By hand: spreads 1 and 3, so weights 1/4 and 3/4; A is first on x, B first on y."""
    board = rank([BenchRun("a", {"x": 3.0, "y": 4.0}), BenchRun("b", {"x": 1.0, "y": 10.0})])
    assert board.weights == {"x": 0.25, "y": 0.75}
    assert [(row["experiment"], row["weighted_score"], row["aggregated_rank"]) for row in board.rows] == [
        ("b", 0.25 * 2 + 0.75 * 1, 1),
        ("a", 0.25 * 1 + 0.75 * 2, 2),
    ]
    assert [row["mean_score"] for row in board.rows] == [5.5, 3.5]
    same = rank([BenchRun(name, {"x": 1.0, "y": 2.0}) for name in "ab"])
    assert same.weights == {"x": 0.5, "y": 0.5}
    assert {row["aggregated_rank"] for row in same.rows} == {1}


def test_a_run_that_lacks_a_task_is_named_and_not_ranked() -> None:
    scores = {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 1.0}, "c": {"x": 1.0, "y": math.nan}}
    board = rank([BenchRun(name, q) for name, q in scores.items()])
    assert [row["experiment"] for row in board.rows] == ["a"]
    assert board.incomplete == {"b": ("y",), "c": ("y",)}
    nobody = rank([BenchRun("a", {"x": 1.0}), BenchRun("b", {"y": 1.0})])
    assert (nobody.rows, nobody.incomplete) == ((), {"a": ("y",), "b": ("x",)})


def test_a_run_whose_name_is_a_formula_is_text_in_the_file(tmp_path: Path) -> None:
    board = rank([BenchRun("=1+2", {"x": -1.0})])
    path = write_leaderboard(board, tmp_path, "dev", datetime(2026, 1, 2, 3, 4, 5))
    assert path.read_text().splitlines()[1].startswith("'=1+2,-1.0,")


def test_folders_of_neuco_bench_itself_are_read(tmp_path: Path) -> None:
    old = {"experiment": "old", "overall_score": 1.0, "task_results": {"x": 1.0}}
    new = {"experiment": "new", "task_q_scores": {"x": 2.0}, "task_acc_scores": {"x": 0.5}}
    for data in (old, new):
        (tmp_path / "dev" / str(data["experiment"])).mkdir(parents=True)
        (tmp_path / "dev" / str(data["experiment"]) / "results_summary.json").write_text(json.dumps(data))
    (tmp_path / "dev" / "unfinished").mkdir()
    runs = read_runs(tmp_path, "dev")
    assert [run.experiment for run in runs] == ["new", "old"]
    path = write_leaderboard(rank(runs), tmp_path, "dev", datetime(2026, 1, 2, 3, 4, 5))
    assert path == tmp_path / "leaderboards" / "dev" / "leaderboard_20260102_030405.csv"
    rows = list(csv.DictReader(path.read_text().splitlines()))
    head = "experiment mean_score weighted_score aggregated_rank q::x acc::x overall_q_score overall_acc_score"
    assert list(rows[0]) == head.split()
    assert [(row["experiment"], row["aggregated_rank"], row["acc::x"]) for row in rows] == [
        ("new", "1", "0.5"),
        ("old", "2", ""),
    ]


def test_bench_updates_it_and_a_broken_neighbour_does_not_hide_the_results(case: Path, tmp_path: Path) -> None:
    config = {"update_leaderboard": "true", "task_filter": "[beta]"}
    first = bench(case, tmp_path / "out", "--method_name", "one", **config)
    second = bench(case, tmp_path / "out", "--method_name", "two", **config, epochs="1")
    assert first.code == second.code == 0
    board = second.out[second.out.index("weighted rank") :]
    assert board.index("one_") < board.index("two_")
    assert len(list((tmp_path / "out" / "leaderboards" / "results").iterdir())) >= 1
    (tmp_path / "out" / "results" / "bad").mkdir()
    (tmp_path / "out" / "results" / "bad" / "results_summary.json").write_text("{")
    ran = bench(case, tmp_path / "out", **config)
    assert ran.code == 4
    assert "results in" in ran.out
    assert "bad/results_summary.json" in ran.err
