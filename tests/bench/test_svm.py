"""``probe_type: svm``: NeuCo-Bench's own search as an option, our own otherwise, and what was found in the results."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit
from sklearn.svm import SVC, SVR

from neuco_core.errors import DataError
from neuco_extensions.bench.config import parse_config
from tests.bench.helpers import only
from tests.command import Said
from tests.command import neuco_here as neuco

SAMPLES, DIM, K = 60, 5, 3
# The keys of NeuCo-Bench's sample config, with a shorter search.
SEARCH: dict[str, Any] = {
    "C_start_end": [0.001, 1000],
    "epsilon_list": [0.01, 0.05, 0.1, 0.5],
    "kernel_degree_list": [2, 3],
    "kernel_gamma_start_end": [0.0001, 10],
    "kernel_coef0_start_end": [-1, 2],
    "opt_params": {
        **{"n_iter": 4, "n_jobs": 1, "n_points": 1, "verbose": 1},
        "optimizer_kwargs": {"base_estimator": "RF", "n_initial_points": 3},
    },
}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("svm")
    rng = np.random.default_rng(3)
    x = np.round(rng.standard_normal((SAMPLES, DIM)), 4)
    np.save(folder / "x.npy", x)
    lines = [f"s{i:02d}," + ",".join(map(str, row)) for i, row in enumerate(x)]
    (folder / "x.csv").write_text("\n".join(["id," + ",".join(map(str, range(DIM))), *lines]) + "\n")
    (folder / "labels").mkdir()
    curved = np.round(x[:, 0] ** 2 + x[:, 1] + 0.1 * rng.standard_normal(SAMPLES), 4)
    for name, values in {"a__regr": curved, "b__cls": (curved > 1).astype(int)}.items():
        rows = [f"s{i:02d},{value}" for i, value in enumerate(values)]
        (folder / "labels" / f"{name}.csv").write_text("\n".join(["id,label", *rows]) + "\n")
        np.save(folder / f"{name[0]}.npy", values)
    return folder


def bench(case: Path, out: Path, params: Mapping[str, Any], *words: str, **more: Any) -> Said:
    config = {"k_folds": K, "probe_type": "svm", "probe_params": dict(params), "enable_plots": False, **more}
    (out / "config.yaml").write_text(json.dumps({**config, "output_fold_results": True}))
    inputs = ("--annotation_path", case / "labels", "--submission_file", case / "x.csv", *words)
    return neuco("bench", *inputs, "--config", out / "config.yaml", "--output_dir", out / "out")


def results(out: Path) -> dict[str, dict[str, Any]]:
    files = sorted(only(out / "out" / "results").glob("*/*_result.json"))
    return {path.parent.name: json.loads(path.read_text()) for path in files}


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


def test_upstreams_search_gives_upstreams_numbers(case: Path, tmp_path: Path) -> None:
    ran = bench(case, tmp_path, SEARCH, "--svm_search", "upstream")
    assert ran.code == 0, ran.err
    assert "the best of all settings on its own test part: too kind" in ran.err
    assert "ignored" not in ran.err
    for task, kind in (("a", "regression"), ("b", "classification")):
        scores, best = reference(np.load(case / "x.npy"), np.load(case / f"{task}.npy"), kind)
        result = results(tmp_path)[task]
        assert result["q_t"] == pytest.approx(scores, abs=1e-12)
        assert result["mean_score"] == pytest.approx(np.mean(scores), abs=1e-12)
        assert result["hyperparamaters"] == best  # what NeuCo-Bench writes there


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C_start_end": None}, "missing required field `C_start_end`"),
        ({"kernel_degree_list": None}, "missing required field `kernel_degree_list`"),
        ({"C_start_end": [10, 1]}, "bad probe_params.C_start_end"),
        ({"C_start_end": [1, math.inf]}, "bad probe_params.C_start_end"),
        ({"kernel_degree_list": [2.5]}, "Expected `int`, got `float`, at `kernel_degree_list"),
        ({"kernel_degree_list": [1, 2]}, "degree 1"),
        ({"kernel_degree_list": []}, "bad probe_params.kernel_degree_list"),
        ({"epsilon_list": ["a"]}, "at `epsilon_list"),
        ({"opt_params": {"cv": 3}}, "opt_params"),
    ],
)
def test_its_conditions_are_upstreams(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_config({"k_folds": 3, "probe_type": "svm", "probe_params": SEARCH | change}, svm_search="upstream")


def test_our_own_search_says_what_it_does_not_use_and_what_it_found(case: Path, tmp_path: Path) -> None:
    ran = bench(case, tmp_path, SEARCH, standardize_embeddings=False, task_filter=["a"])
    assert ran.code == 0, ran.err
    for key in SEARCH:
        assert f"probe_params.{key}" in ran.err
    assert "standardize_embeddings: false is not used" in ran.err
    settings = results(tmp_path)["a"]["hyperparamaters"]
    assert len(settings["C"]) == len(settings["degree"]) == K
    score = json.loads(next(only(tmp_path / "out" / "results").glob("a/*_score.json")).read_text())
    assert score["settings"] == {name: settings[name] for name in ("C", "degree")}


def test_without_scikit_optimize_the_extra_is_named(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "skopt", None)
    ran = bench(case, tmp_path, SEARCH, "--svm_search", "upstream")
    assert ran.code != 0
    assert "pip install 'scikit-optimize" in ran.err
