"""NeuCo-Bench's own search for its svm (commit a89ba06): scikit-optimize's ``BayesSearchCV`` on the splits themselves.

Every setting that the search tries is judged on the test parts, and a split's score is the best of all settings on that
split's own test part. That is optimistic, more so the more settings are tried; ``neuco score --protocol svm`` searches
inside each training part instead.
"""

from __future__ import annotations

import contextlib
import math
import sys
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from neuco_core.env import how_to_install
from neuco_core.errors import DataError, DependencyError, ScoreError
from neuco_core.protocol import Protocol
from neuco_core.scoring.quality import summarize
from neuco_core.scoring.scorer import Score
from neuco_core.scoring.splits import Samples, join
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels

Range = tuple[float, float]
# NeuCo-Bench's keys → what scikit-learn calls them, and whether they span a range or list values.
RANGES = {"C_start_end": "C", "kernel_gamma_start_end": "gamma", "kernel_coef0_start_end": "coef0"}
LISTS = {"kernel_degree_list": "degree", "epsilon_list": "epsilon"}


class SearchSpace(Struct, frozen=True, kw_only=True):
    """The ``probe_params`` of an svm: ranges (cost and gamma on a log scale), lists of values, options."""

    C_start_end: Range
    epsilon_list: list[float] | float | None = None
    kernel_degree_list: list[int] | int
    kernel_gamma_start_end: Range | None = None
    kernel_coef0_start_end: Range | None = None
    opt_params: dict[str, Any] = {}

    @property
    def ranges(self) -> dict[str, Range]:
        return {name: span for key, name in RANGES.items() if (span := getattr(self, key)) is not None}

    @property
    def lists(self) -> dict[str, list[float]]:
        values = {name: getattr(self, key) for key, name in LISTS.items()}
        return {name: v if isinstance(v, list) else [v] for name, v in values.items() if v is not None}


def read_search(params: Mapping[str, Any], where: object) -> SearchSpace:
    values = {key: value for key, value in params.items() if value is not None}
    try:
        space = msgspec.convert(values, SearchSpace)
    except msgspec.ValidationError as error:
        raise DataError(f"bad probe_params: {error}".replace(" - at `$.", ", at `"), where=where) from error
    for key, name in RANGES.items():
        low, high = space.ranges.get(name, (0.0, 1.0))
        if not -math.inf < low < high < math.inf:
            raise DataError(f"bad probe_params.{key}", where=where, expected="[lowest, highest]", got=values[key])
    for key, name in LISTS.items():
        numbers = space.lists.get(name, [0.0])
        if not numbers or not all(map(math.isfinite, numbers)):
            raise DataError(f"bad probe_params.{key}", where=where, expected="a list of numbers", got=values[key])
    if 1 in space.lists["degree"] and {"gamma", "coef0"} & space.ranges.keys():
        hint = "Leave 1 out of kernel_degree_list, or do not search gamma and coef0"
        raise DataError("gamma and coef0 mean nothing for a kernel of degree 1", where=where, hint=hint)
    if "cv" in space.opt_params:
        raise DataError("bad probe_params.opt_params", where=where, expected="options of BayesSearchCV, without cv")
    return space


def check_skopt() -> None:
    try:
        import skopt  # noqa: F401
    except ImportError as error:
        hint = f"Run `{how_to_install('skopt')}`, or leave out `--svm_search upstream`"
        raise DependencyError("NeuCo-Bench's search needs scikit-optimize", hint=hint) from error


def score_svm(
    embeddings: Embeddings, labels: Labels, protocol: Protocol, search: SearchSpace, standardize_ids: Collection[str]
) -> tuple[Score, dict[str, Any]]:
    """The score of a task, and the parameters of the machine that is best over all splits."""
    samples = join(embeddings, labels, protocol, standardize_ids, allow_constant=not protocol.normalize_labels)
    if len(samples.classes) > 2:
        raise ScoreError("NeuCo-Bench's svm has no F1 for more than two classes", where=samples.task)
    x, y = samples.x, samples.y[:, 0]
    if protocol.standardize:
        x = (x - np.float32(samples.center)) / np.float32(samples.spread)
    if samples.kind == "classification":
        y = np.where(y == 0, -1.0, 1.0)
    elif protocol.normalize_labels:
        y = (y - y.min()) / np.ptp(y)
    # A config may ask for progress, and that goes to stdout, where --json has its document.
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-optimize about points it has tried before
        optimizer = _optimizer(samples, protocol, search).fit(x, y)
    return _score(samples, protocol, optimizer), dict(optimizer.best_estimator_.get_params())


def _optimizer(samples: Samples, protocol: Protocol, search: SearchSpace) -> Any:
    from sklearn.model_selection import ShuffleSplit
    from sklearn.svm import SVC, SVR
    from skopt import BayesSearchCV
    from skopt.space import Categorical, Real

    regression = samples.kind == "regression"
    space: dict[str, Any] = {"kernel": Categorical(["poly"])}
    for name, (low, high) in search.ranges.items():
        space[name] = Real(low, high, prior="uniform" if name == "coef0" else "log-uniform")
    for name, values in search.lists.items():
        if regression or name != "epsilon":  # a classifier has no tube
            space[name] = Categorical(list(values))
    scoring = ("r2", "neg_mean_squared_error") if regression else ("f1", "accuracy")
    return BayesSearchCV(
        SVR() if regression else SVC(),
        space,
        scoring=dict(zip(("metric", "scoring"), scoring, strict=True)),
        cv=ShuffleSplit(protocol.k, test_size=protocol.test_size, random_state=protocol.seed),
        refit="scoring",
        return_train_score=True,
        **{"random_state": protocol.seed, **search.opt_params},
    )


def _score(samples: Samples, protocol: Protocol, optimizer: Any) -> Score:
    """A row per split and a column per setting; the best column of each row is its score."""

    def rows(name: str) -> np.ndarray:
        return np.array([optimizer.cv_results_[f"split{split}_{name}"] for split in range(protocol.k)])

    metric = rows("test_metric")
    best = np.nanargmax(metric, axis=1)
    per_split = tuple(map(float, metric[np.arange(protocol.k), best]))
    tried = optimizer.cv_results_["params"]
    test = math.ceil(protocol.test_size * len(samples.y))
    mean, std, q = summarize(per_split) or (math.nan, math.nan, math.nan)
    return Score(
        task=samples.task,
        kind=samples.kind,
        metric="r2" if samples.kind == "regression" else "f1",
        protocol=protocol,
        per_split=per_split,
        mean=mean,
        std=std,
        q=q,
        metrics={},
        curves={"train_loss": -rows("train_scoring"), "test_loss": -rows("test_scoring"), "metric": metric},
        confusion=None,
        samples={**samples.counts, "train": len(samples.y) - test, "test": test},
        words=0,
        splits={"undefined": 0},
        epochs=tuple(map(int, best)),
        settings={name: tuple(float(tried[i][name]) for i in best) for name in tried[0] if name != "kernel"},
        classes=samples.classes,
    )
