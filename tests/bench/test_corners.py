"""Odd label files and settings, beside a loop that does what NeuCo-Bench does: one odd task concerns no other.

And ``probe_type: svm``, beside NeuCo-Bench's search written out.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from sklearn.model_selection import ShuffleSplit
from sklearn.svm import SVC, SVR

from tests.bench import loop
from tests.bench.helpers import SEARCH, only
from tests.command import Said
from tests.command import neuco_here as neuco

SAMPLES, DIM, K, EPOCHS, LR = 120, 12, 3, 4, 0.01
CONFIG = f"k_folds: {K}\nembedding_dim: {DIM}\nprobe_params: {{epochs: {EPOCHS}, learning_rate: {LR}}}\n"


@dataclass
class Setting:
    """Embeddings and label files in a folder, and what NeuCo-Bench's loop makes of the same numbers."""

    folder: Path
    x: np.ndarray
    labels: dict[str, tuple[np.ndarray, str]]

    def write(self, name: str, cells: np.ndarray | list[str], kind: str) -> None:
        suffix = {"regression": "regr", "classification": "cls"}[kind]
        rows = [f"s{i:03d},{cell}" for i, cell in enumerate(cells)]
        (self.folder / "labels" / f"{name}__{suffix}.csv").write_text("\n".join(["id,label", *rows]) + "\n")
        if isinstance(cells, np.ndarray):
            self.labels[name] = (cells, kind)

    def bench(self, more: str = "", *words: str, embeddings: str = "embeddings.csv", base: str = CONFIG) -> Said:
        (self.folder / "config.yaml").write_text(base + "enable_plots: false\noutput_fold_results: true\n" + more)
        inputs = ("--annotation_path", self.folder / "labels", "--submission_file", self.folder / embeddings)
        config = ("--config", self.folder / "config.yaml", "--output_dir", self.folder / "out")
        return neuco("bench", *inputs, *config, *words)

    def loop(self, **options: bool) -> dict[str, list[float]]:
        return loop.run(self.x, self.labels, splits=K, epochs=EPOCHS, lr=LR, **options)

    def results(self, kind: str = "result") -> dict[str, dict[str, Any]]:
        files = sorted(only(self.folder / "out" / "results").glob(f"*/*_{kind}.json"))
        return {path.parent.name: json.loads(path.read_text()) for path in files}

    def scores(self) -> dict[str, list[float]]:
        return {task: result["q_t"] for task, result in self.results().items()}


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """Two ordinary tasks; the names between them are free."""
    rng = np.random.default_rng(7)
    x = np.round(rng.standard_normal((SAMPLES, DIM)), 4)
    (tmp_path / "labels").mkdir()
    lines = [f"s{i:03d}," + ",".join(map(str, row)) for i, row in enumerate(x)]
    for name, header in (("embeddings.csv", range(DIM)), ("gap.csv", [*range(5), *range(6, DIM + 1)])):
        (tmp_path / name).write_text("\n".join(["id," + ",".join(map(str, header)), *lines]) + "\n")
    made = Setting(tmp_path, x, {})
    made.write("a", np.round(x[:, 0] + 0.3 * rng.standard_normal(SAMPLES), 4), "regression")
    made.write("z", np.round(x[:, 1] - x[:, 2] + 0.3 * rng.standard_normal(SAMPLES), 4), "regression")
    return made


def check(setting: Setting, ran: Said, code: int, **options: bool) -> None:
    """The exit code, and the loop's numbers for every task that has a score."""
    assert ran.code == code, ran.out + ran.err
    expected = {name: scores for name, scores in setting.loop(**options).items() if np.isfinite(scores).all()}
    assert setting.scores() == {name: pytest.approx(scores, abs=2e-4) for name, scores in expected.items()}


REGRESSION, CLASSIFICATION = "regression", "classification"
WITH_NAN = np.where(np.arange(SAMPLES) == 4, np.nan, np.linspace(-1, 1, SAMPLES))
CLASSES = np.arange(SAMPLES) % 5 > 2
# The odd task's labels and kind, further lines of the config, options of the loop, exit code, words of the output.
AS_THE_LOOP: dict[str, tuple[np.ndarray, str, str, dict[str, bool], int, str]] = {
    "classes_1_and_2": (1 + CLASSES, CLASSIFICATION, "", {}, 0, "m: classes 1 and 2 are read as 0 and 1"),
    "classes_of_both_signs": (2 * CLASSES - 1, CLASSIFICATION, "", {}, 0, "m: classes -1 and 1 are read as 0 and 1"),
    "classes_0_and_2": (2 * CLASSES, CLASSIFICATION, "", {}, 0, "m: classes 0 and 2 are read as 0 and 1"),
    "constant_labels": (np.full(SAMPLES, 3.5), REGRESSION, "", {}, 1, "failed m"),
    "constant_labels_unscaled": (
        np.ones(SAMPLES), REGRESSION, "normalize_labels: false\n", {"normalize": False}, 0, "",
    ),
    "one_class_unscaled": (
        np.ones(SAMPLES), CLASSIFICATION, "normalize_labels: false\n", {"normalize": False}, 0, "",
    ),
    # NeuCo-Bench trains on it, gets no number, and goes on; the random numbers are drawn all the same.
    "a_label_nan": (WITH_NAN, REGRESSION, "", {}, 1, "not finite"),
    # The tasks behind a stored probe start later in the random stream, as they do there.
    "stored_probes": (np.linspace(-1, 1, SAMPLES), REGRESSION, "store_probes: true\n", {"store": True}, 0, ""),
    "stored_classifiers": (CLASSES * 1, CLASSIFICATION, "store_probes: true\n", {"store": True}, 0, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", AS_THE_LOOP)
def test_as_the_loop(setting: Setting, name: str) -> None:
    cells, kind, config, options, code, words = AS_THE_LOOP[name]
    setting.write("m", cells, kind)
    ran = setting.bench(config)
    check(setting, ran, code, **options)
    assert words in ran.text
    if options.get("store"):
        assert setting.loop(store=True)["z"] != pytest.approx(setting.loop()["z"], abs=2e-4)


def test_constant_labels_of_a_task_that_is_left_out(setting: Setting) -> None:
    setting.write("m", np.full(SAMPLES, 3.5), "regression")
    ran = setting.bench("task_filter: [a]\n")
    assert (ran.code, list(setting.scores())) == (0, ["a"])
    assert setting.scores()["a"] == pytest.approx(setting.loop()["a"], abs=2e-4)


def test_a_task_without_a_sample_draws_no_number(setting: Setting) -> None:
    (setting.folder / "labels" / "m__regr.csv").write_text("id,label\nx,1\ny,2\nz,3\n")
    ran = setting.bench()
    check(setting, ran, 1)
    assert "share no id" in ran.out


def test_column_numbers_with_a_gap(setting: Setting) -> None:
    check(setting, setting.bench(embeddings="gap.csv"), 0)
    ran = neuco("score", "--embeddings", setting.folder / "gap.csv", "--task", "digits_class")
    assert "column numbers have a gap" in ran.err  # our own command refuses what is rarely meant


def test_two_classes_that_are_not_scaled_are_an_error_of_their_task(setting: Setting) -> None:
    """torchmetrics stops NeuCo-Bench's whole run there."""
    values = np.where(setting.x[:, 3] > 0.2, 2, 1)
    setting.write("m", [str(value) for value in values], "classification")
    ran = setting.bench("normalize_labels: false\n")
    assert (ran.code, sorted(setting.scores())) == (1, ["a", "z"])
    setting.labels["m"] = (values, "classification")
    with pytest.raises(RuntimeError, match="following values"):
        setting.loop(normalize=False)


def test_three_classes_have_a_number_that_upstream_has_not(setting: Setting) -> None:
    values = np.digitize(setting.x[:, 3], [-0.4, 0.4])
    setting.write("m", [str(value) for value in values], "classification")
    ran = setting.bench()
    assert ran.code == 0, ran.err
    assert "m: 3 classes: macro F1, a number that NeuCo-Bench does not have" in ran.err
    assert set(setting.scores()) == {"a", "m", "z"}


def test_two_rows_for_one_id_fail_their_own_task(setting: Setting) -> None:
    path = setting.folder / "labels" / "m__regr.csv"
    path.write_text((setting.folder / "labels" / "a__regr.csv").read_text() + "s000,1.5\n")
    ran = setting.bench()
    assert ran.code == 1
    assert "failed m" in ran.out
    assert "s000" in ran.out
    assert setting.scores()["a"] == pytest.approx(setting.loop()["a"], abs=2e-4)


def test_a_large_offset_is_lost_in_float32_upstream_and_not_here(setting: Setting) -> None:
    """R² with labels of 300 ± 0.5: torchmetrics subtracts two sums of about 90,000 per sample in float32."""
    import torch
    from torchmetrics.regression import R2Score

    from neuco_core.scoring.metrics import r2

    rng = np.random.default_rng(0)
    truth = (300 + 0.5 * rng.standard_normal(30)).astype(np.float32)
    guess = (truth + 0.25 * rng.standard_normal(30)).astype(np.float32)
    exact = 1 - np.square(guess - truth, dtype=np.float64).sum() / np.square(truth - truth.mean(dtype=np.float64)).sum()
    assert r2(truth, guess) == pytest.approx(exact, abs=1e-5)
    assert abs(R2Score()(torch.from_numpy(guess), torch.from_numpy(truth)).item() - exact) > 1e-3


def test_undefined_numbers_are_null(tmp_path: Path) -> None:
    from neuco_extensions.bench.outputs import write_json

    write_json(tmp_path / "a.json", {"q_stat": float("nan"), "q_t": [0.5, float("inf")]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"q_stat": None, "q_t": [0.5, None]}


SVM = yaml.safe_dump({"k_folds": K, "probe_type": "svm", "probe_params": SEARCH})


def reference(x: np.ndarray, y: np.ndarray, kind: str) -> tuple[list[float], dict[str, Any]]:
    """The search as NeuCo-Bench describes it, written out: max over the settings, split by split."""
    from skopt import BayesSearchCV
    from skopt.space import Categorical, Real

    space = {
        "C": Real(0.001, 1000, prior="log-uniform"),
        "degree": Categorical([2, 3]),
        "kernel": Categorical(["poly"]),
        "gamma": Real(0.0001, 10, prior="log-uniform"),
        "coef0": Real(-1, 2, prior="uniform"),
    }
    x = x.astype(np.float32)
    x = (x - np.float32(x.mean(dtype=np.float64))) / np.float32(x.std(dtype=np.float64))
    if kind == "regression":
        space["epsilon"] = Categorical([0.01, 0.05, 0.1, 0.5])
        y, machine, names = (y - y.min()) / (y.max() - y.min()), SVR(), ("r2", "neg_mean_squared_error")
    else:
        y, machine, names = np.where(y == 0, -1, 1), SVC(), ("f1", "accuracy")
    search = BayesSearchCV(
        machine,
        space,
        scoring={"metric": names[0], "scoring": names[1]},
        cv=ShuffleSplit(K, test_size=0.1, random_state=42),
        refit="scoring",
        return_train_score=True,
        random_state=42,
        n_iter=4,
        optimizer_kwargs={"base_estimator": "RF", "n_initial_points": 3},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(x, y)
    scores = [float(max(search.cv_results_[f"split{split}_test_metric"])) for split in range(K)]
    return scores, search.best_estimator_.get_params()


def test_upstreams_search_gives_upstreams_numbers(setting: Setting) -> None:
    setting.write("m", np.where(setting.x[:, 3] ** 2 + setting.x[:, 4] > 1, 1, 0), "classification")
    ran = setting.bench("task_filter: [a, m]\n", "--svm_search", "upstream", base=SVM)
    assert ran.code == 0, ran.err
    assert "the best of all settings on its own test part: too kind" in ran.err
    assert "ignored" not in ran.err
    for task, result in setting.results().items():
        scores, best = reference(setting.x, *setting.labels[task])
        assert result["q_t"] == pytest.approx(scores, abs=1e-12)
        assert result["mean_score"] == pytest.approx(np.mean(scores), abs=1e-12)
        assert result["hyperparamaters"] == best  # what NeuCo-Bench writes there


def test_our_own_search_says_what_it_does_not_use_and_what_it_found(setting: Setting) -> None:
    ran = setting.bench("standardize_embeddings: false\ntask_filter: [a]\n", base=SVM)
    assert ran.code == 0, ran.err
    assert (
        "the numbers are not NeuCo-Bench's; not used: " + ", ".join(f"probe_params.{key}" for key in SEARCH) in ran.err
    )
    assert "standardize_embeddings: false is not used" in ran.err
    settings = setting.results()["a"]["hyperparamaters"]
    assert len(settings["C"]) == len(settings["degree"]) == K
    score = setting.results("score")["a"]
    assert score["protocol"]["name"] == f"svm+k={K}"
    assert score["settings"] == {name: settings[name] for name in ("C", "degree")}


def test_without_scikit_optimize_the_extra_is_named(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skopt", None)
    ran = setting.bench("", "--svm_search", "upstream", base=SVM)
    assert ran.code != 0
    assert "pip install 'scikit-optimize" in ran.err
