"""Every kind of task on real embedded images, from a table of labels to a board; numbers are scikit-learn's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, cohen_kappa_score, f1_score, r2_score
from sklearn.preprocessing import StandardScaler

from neuco_core import Probe, load_method, load_task, score
from neuco_core.errors import ScoreError
from neuco_core.plugins.catalog import catalog
from neuco_core.records.store import read_all
from neuco_core.scoring.probes.ridge import STRENGTHS
from neuco_core.specs import ONE_LABEL
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels, read_labels
from tests import command
from tests.contract.helpers import quick_neuco

WORDS = ("--title", "A kind", "--description", "Of the scene", "--license", "CC0-1.0", "--caveats", "For a test")
CITED = (*WORDS, "--citation", "arXiv:2510.17914")
TASKS = {
    "cover": ("--column", "high", "--column", "rough", "--column", "wet"),
    "lists": ("--column", "words", "--kind", "multilabel", "--metric", "f1_macro"),
    "halves": ("--column", "metres", "--split-column", "part", "--unit", "m"),
    "stars": ("--column", "stars", "--kind", "classification"),
    "pair": ("--column", "level", "--column", "spread", "--unit", "m"),
    "blocks": ("--column", "height", "--group-column", "tile", "--unit", "m"),
}
KEPT = {"cover": "multilabel", "lists": "multilabel", "stars": "classification"}
METHODS = ("averaging", "band_statistics")


def write_table(path: Path) -> None:
    """Elevations of the real scene, told in several ways, each with noise of its own: no two tasks are the same."""
    metres, spread = (load_task(f"olinda_elevation_{name}").labels() for name in ("mean", "std"))
    assert metres.groups is not None
    random = np.random.default_rng(0)
    high = metres.values + random.normal(0, 5, (5, len(metres)))
    rough = spread.values + random.normal(0, 1, (3, len(metres)))
    fifths = np.searchsorted(np.quantile(high[4], (0.2, 0.4, 0.6, 0.8)), high[4])
    rows = ["place,metres,level,height,spread,high,rough,wet,words,stars,tile,part"]
    for row, name in enumerate(metres.ids):
        first, second = (
            {"high": high[n, row] > 20, "rough": rough[n, row] > 4, "wet": high[n, row] < 2} for n in (0, 1)
        )
        words = "; ".join(mark for mark, present in second.items() if present) or "plain"
        block = str(metres.groups[row])
        part = "test" if block.endswith(("3", "7")) else "train"
        numbers = (f"{value:.3f}" for value in (*high[1:4, row], rough[2, row]))
        cells = (f"{name}.TIF", *numbers, *map(int, first.values()), words, fifths[row] + 1, block, part)
        rows.append(",".join(map(str, cells)))
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of plugins made by ``neuco new task``, and a registry with a suite of them."""
    folder = tmp_path_factory.mktemp("kinds")
    write_table(folder / "table.csv")
    for name, options in TASKS.items():
        args = ("--labels", folder / "table.csv", "--id-column", "place", *CITED, *options, "--into", folder)
        made = command.neuco_here("new", "task", name, *args)
        assert made.code == 0, made.err
        assert "dataset   olinda (guessed: it has all the ids)" in made.out
        assert "the suffix of 1849 ids was taken off" in made.out
        (folder / f"{name}.txt").write_text(made.out)
    tasks = "".join(f"{name} = 1\n" for name in TASKS)
    suites = folder / "registry" / "suites"
    suites.mkdir(parents=True)
    (suites / "kinds.toml").write_text(f'id = "kinds"\ntitle = "Kinds"\nprotocol = "ridge"\n\n[tasks]\n{tasks}')
    return folder


def labels_of(folder: Path, name: str) -> Labels:
    """As the plugin reads them."""
    columns = {"cover": ("high", "rough", "wet"), "halves": ("metres",), "blocks": ("height",)}[name]
    options: dict[str, Any] = {"split_column": "split", "splitter": "fixed"} if name == "halves" else {}
    options |= {"group_column": "group", "splitter": "group"} if name == "blocks" else {}
    path = folder / "neuco_tasks" / name / "labels.csv"
    return read_labels(path, KEPT.get(name, "regression"), columns=columns, **options)


def test_what_new_task_says_of_each_kind(world: Path) -> None:
    outputs = {name: (world / f"{name}.txt").read_text() for name in TASKS}
    assert "multilabel (from the labels: several columns of 0 and 1), metric average_precision" in outputs["cover"]
    assert "columns   high, plain, rough, wet" in outputs["lists"].replace(" and ", ", ")
    assert "splits    fixed, in the place of random ones" in outputs["halves"]
    assert "splits    group, in the place of random ones" in outputs["blocks"]
    assert "kind      classification (given), metric f1" in outputs["stars"]
    assert "regression" in outputs["pair"]
    options = ("--isolated", "--line-length", "120")
    for rules in ("check", "format --check"):
        done = command.python("-m", "ruff", *rules.split(), *options, world / "neuco_tasks")
        assert done.code == 0, done.text


def test_each_kind_keeps_the_contract(world: Path) -> None:
    done = quick_neuco(world, "check", *TASKS, "--json")
    findings = json.loads(done.out)
    assert {row["subject"] for row in findings} == set(TASKS)
    # One column told in several ways correlates, and somebody should look at that.
    assert {row["check"] for row in findings if row["status"] not in ("ok", "skipped")} <= {"task-novelty"}, done.text
    assert done.code == 0


def test_each_kind_is_scored_and_on_a_board(world: Path) -> None:
    registry = world / "registry"
    env = {"NEUCO_REGISTRY": str(registry), "NEUCO_CACHE": str(world / "cache")}
    here: dict[str, Any] = {"path": world, "env": env}
    picks = [word for method in METHODS for word in ("--method", method)]
    done = command.neuco("score", *picks, "--suite", "kinds", **here)
    assert done.code == 0, done.err
    assert "protocol ridge: 1 split or 40 splits, seed 42" in done.out
    records = read_all(registry)
    assert len(records) == len(TASKS) * len(METHODS)
    assert {record.task: len(record.per_split) for record in records} == {**dict.fromkeys(TASKS, 40), "halves": 1}
    splitters = {**dict.fromkeys(TASKS, "shuffle"), "halves": "fixed", "blocks": "group"}
    assert {record.task: record.inputs["splitter"] for record in records} == splitters
    board = command.neuco("leaderboard", "show", "kinds", **here)
    assert board.code == 0, board.err
    assert "No intervals: they need scores of the same splits from all methods, at least two." in board.text
    assert all(name in board.out for name in (*TASKS, *METHODS))
    again = command.neuco("score", *picks, "--suite", "kinds", **here)
    assert "12 scores from cache" in again.out


def band_statistics(labels: Labels) -> tuple[Embeddings, np.ndarray]:
    """Embeddings of the scene, and their rows in the order of the labels."""
    embeddings = load_method("band_statistics").embeddings("olinda")
    rows = {name: row for row, name in enumerate(embeddings.ids)}
    return embeddings, embeddings.values[[rows[name] for name in labels.ids]].astype(np.float64)


def ridge(x: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """scikit-learn's ridge, each output with the strength that generalised cross-validation prefers."""
    scaler = StandardScaler().fit(x[train])
    seen, unseen, count = scaler.transform(x[train]), scaler.transform(x[test]), len(train)
    sizes = np.linalg.eigvalsh(seen.T @ seen)
    columns = []
    for output in y.T:
        best = (np.inf, np.empty(0))
        for strength in STRENGTHS * count:
            model = Ridge(alpha=strength).fit(seen, output[train])
            freedom = count - 1 - (sizes / (sizes + strength)).sum()
            error = np.square(model.predict(seen) - output[train]).sum() / freedom**2
            best = min(best, (error, model.predict(unseen)), key=lambda item: item[0])
        columns.append(best[1])
    return np.stack(columns, axis=1)


def test_a_fixed_split_gives_scikit_learns_number(world: Path) -> None:
    labels = labels_of(world, "halves")
    embeddings, x = band_statistics(labels)
    assert labels.split is not None
    train, test = (np.flatnonzero(labels.split == part) for part in ("train", "test"))
    y = labels.values.reshape(-1, 1)
    expected = r2_score(y[test, 0], ridge(x, y, train, test)[:, 0])
    result = score(embeddings, labels, "ridge", metric="r2")
    assert (result.samples["train"], result.samples["test"]) == (len(train), len(test))
    assert result.per_split == (pytest.approx(expected, abs=1e-3),)
    assert (result.std, result.q) == (0, pytest.approx(100 * result.mean))
    whole = score(embeddings, labels, "ridge+splitter=shuffle,k=2", metric="r2")
    assert len(whole.per_split) == 1, "random splits give way to the task's own"


def test_groups_of_a_task_are_kept_together_under_any_protocol(world: Path) -> None:
    labels = labels_of(world, "blocks")
    embeddings, _ = band_statistics(labels)
    grouped = score(embeddings, labels, "ridge", metric="r2")
    assert grouped.per_split == score(embeddings, labels, "ridge+splitter=group", metric="r2").per_split
    # What a random split leaks: neighbours of the test part.
    assert grouped.mean < score(embeddings, replace(labels, splitter=""), "ridge", metric="r2").mean - 0.02


def test_multilabel_gives_scikit_learns_numbers(world: Path) -> None:
    labels = labels_of(world, "cover")
    embeddings, x = band_statistics(labels)
    result = score(embeddings, labels, "ridge+k=2", metric="average_precision", keep_models=True)
    for split, model in enumerate(result.models):
        test = model["test"]
        train = np.setdiff1d(np.arange(len(labels)), test)
        truth, chances = labels.values[test], ridge(x, labels.values, train, test)
        shift = model["prediction"].mean(axis=0) - chances.mean(axis=0)  # each label's cut is moved to one half
        chances += shift
        assert np.allclose(model["prediction"], chances, atol=1e-3)
        assert 0 < abs(shift).max() < 0.2
        for name, expected in (
            ("average_precision", average_precision_score(truth, chances, average="macro")),
            ("f1_macro", f1_score(truth, chances > 0.5, average="macro", zero_division=0)),
            ("f1_micro", f1_score(truth, chances > 0.5, average="micro")),
        ):
            assert result.metrics[name][split] == pytest.approx(expected, abs=5e-3), name
    assert result.confusion is None


@pytest.mark.parametrize("protocol", ["neuco-2025+k=2,epochs=30", "neuco-strict+k=2,epochs=30", "mlp-1+k=2,epochs=5"])
def test_trained_probes_learn_several_labels_about_as_scikit_learn_does(protocol: str, world: Path) -> None:
    if protocol.startswith("mlp"):
        pytest.importorskip("torch")
    labels = labels_of(world, "cover")
    embeddings, x = band_statistics(labels)
    result = score(embeddings, labels, protocol, metric="average_precision", keep_models=True)
    for split, model in enumerate(result.models):
        test, chances = model["test"], model["prediction"]
        train = np.setdiff1d(np.arange(len(labels)), test)
        truth, scaler = labels.values[test], StandardScaler().fit(x[train])
        assert chances.shape == truth.shape
        assert ((chances >= 0) & (chances <= 1)).all()
        expected = average_precision_score(truth, chances, average="macro")
        assert result.per_split[split] == pytest.approx(expected, abs=1e-6)
        each = [
            LogisticRegression(max_iter=500).fit(scaler.transform(x[train]), column[train])
            for column in labels.values.T
        ]
        one_by_one = np.stack([single.predict_proba(scaler.transform(x[test]))[:, 1] for single in each], axis=1)
        assert expected > average_precision_score(truth, one_by_one, average="macro") - 0.1
        assert expected > truth.mean() + 0.1, "better than a guess"


def test_support_vectors_learn_each_label_by_itself(world: Path) -> None:
    """The first label of several gets what it gets alone, from scikit-learn's own machine."""
    labels, embeddings = labels_of(world, "cover"), load_method("averaging").embeddings("olinda")
    some = np.random.default_rng(1).permutation(len(labels))[:200]
    few = replace(labels, ids=tuple(labels.ids[i] for i in some), values=labels.values[some], groups=None)
    alone = replace(few, kind="classification", values=few.values[:, 0], columns=("high",))
    both = score(embeddings, few, "svm+k=1", metric="f1_macro", keep_models=True)
    one = score(embeddings, alone, "svm+k=1", metric="f1", keep_models=True)
    assert np.array_equal(both.models[0]["prediction"][:, 0], one.models[0]["prediction"][:, 1])
    assert both.settings["C.0"] == one.settings["C"]


def test_a_probe_that_is_not_for_multilabel_says_so(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a plugin's may be, which does not say that it is."""
    monkeypatch.setitem(vars(catalog().load(Probe, "linear")), "kinds", ONE_LABEL)
    with pytest.raises(Exception, match=r"probe 'linear' is not for multilabel; .*--protocol ridge"):
        score(load_method("averaging").embeddings("olinda"), labels_of(world, "cover"), "neuco-2025")


def test_grades_are_judged_by_a_kappa_with_scikit_learns_value(world: Path) -> None:
    stars = read_labels(world / "neuco_tasks" / "stars" / "labels.csv", "regression", columns=("stars",))
    embeddings = load_method("band_statistics").embeddings("olinda")
    result = score(embeddings, stars, "ridge+k=2", metric="kappa", keep_models=True)
    for split, model in enumerate(result.models):
        predicted = np.rint(model["prediction"]).astype(int)
        grades = list(range(min(predicted.min(), 1), max(predicted.max(), 5) + 1))
        expected = cohen_kappa_score(model["truth"].astype(int), predicted, weights="quadratic", labels=grades)
        assert result.per_split[split] == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ScoreError, match="kappa is for grades; expected labels that are whole numbers"):
        score(embeddings, labels_of(world, "halves"), "ridge+k=2", metric="kappa")
