"""The metrics, probes and splitters that come with neuco, registered like anybody's.

Light, because it is imported to list them: the work itself is imported when it is first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import KINDS, Metric, Probe, Splitter

REGRESSION, CLASSIFICATION, MULTILABEL = ("regression",), ("classification",), ("multilabel",)


def _call(module: str, name: str, *args: Any, **options: Any) -> Any:
    return getattr(importlib.import_module(module), name)(*args, **options)


def _later(module: str, name: str) -> Callable[..., Any]:
    """The function of that name, imported when it is first called."""
    return partial(_call, f"neuco_core.scoring.{module}", name)


@hookimpl
def neuco_metrics() -> Iterator[Metric]:
    yield Metric(id="r2", title="R²", kinds=REGRESSION, function=_later("metrics", "r2"), upper=1.0)
    for name, title in (("mse", "mean squared error"), ("mae", "mean absolute error")):
        function = _later("metrics", name)
        yield Metric(id=name, title=title, kinds=REGRESSION, function=function, greater_is_better=False, lower=0.0)
    kappa, title = _later("metrics", "kappa"), "quadratic-weighted kappa of grades"
    yield Metric(id="kappa", title=title, kinds=REGRESSION, function=kappa, lower=-1.0, upper=1.0)
    for name, title in (
        ("f1", "F1, macro if there are more than two classes"),
        ("accuracy", "accuracy"),
        ("precision", "precision"),
        ("recall", "recall"),
        ("roc_auc", "area under the ROC curve"),
    ):
        function = _later("metrics", name)
        yield Metric(id=name, title=title, kinds=CLASSIFICATION, function=function, lower=0.0, upper=1.0)
    for name, title in (
        ("average_precision", "average precision, mean over the labels"),
        ("f1_macro", "F1, mean over the labels"),
        ("f1_micro", "F1 over all labels together"),
    ):
        function = _later("metrics", name)
        yield Metric(id=name, title=title, kinds=MULTILABEL, function=function, lower=0.0, upper=1.0)


@hookimpl
def neuco_probes() -> Iterator[Probe]:
    yield Probe(id="linear", title="linear, AdamW", factory=_later("probes.linear", "LinearProbe"), kinds=KINDS)
    yield Probe(id="ridge", title="ridge, closed form", factory=_later("probes.ridge", "RidgeProbe"), kinds=KINDS)
    yield Probe(
        id="mlp", title="perceptron", factory=_later("probes.mlp", "MLPProbe"), kinds=KINDS, requires=("torch",)
    )
    yield Probe(id="svm", title="support vectors", factory=_later("probes.svm", "svm_probe"), kinds=KINDS)


@hookimpl
def neuco_splitters() -> Iterator[Splitter]:
    yield Splitter(id="shuffle", title="random samples", function=_later("splits", "shuffle"))
    yield Splitter(id="fixed", title="the task's own split", function=_later("splits", "fixed"), needs_split=True)
    yield Splitter(id="group", title="whole groups", function=_later("splits", "group"), needs_groups=True)
