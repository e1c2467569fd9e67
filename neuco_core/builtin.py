"""The metrics, probes, splitters, engine and kinds of boards that come with neuco, registered like anybody's.

Their code is named here, not imported: this is read whenever such things are listed.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import KINDS, BoardKind, Engine, Metric, Probe, Splitter

METRICS = "neuco_core.scoring.metrics"
PROBES = "neuco_core.scoring.probes"
SPLITS = "neuco_core.scoring.splits"
SPATIAL = "neuco_core.scoring.spatial"


@hookimpl
def neuco_metrics() -> Iterator[Metric]:
    regression = ("regression",)
    yield Metric(id="r2", title="R²", kinds=regression, function=f"{METRICS}:r2", upper=1.0)
    for name, title in (("mse", "mean squared error"), ("mae", "mean absolute error")):
        function = f"{METRICS}:{name}"
        yield Metric(id=name, title=title, kinds=regression, function=function, greater_is_better=False, lower=0.0)
    title = "quadratic-weighted kappa of grades"
    yield Metric(id="kappa", title=title, kinds=regression, function=f"{METRICS}:kappa", lower=-1.0, upper=1.0)
    for kind, name, title in (
        ("classification", "f1", "F1, macro if there are more than two classes"),
        ("classification", "accuracy", "accuracy"),
        ("classification", "precision", "precision"),
        ("classification", "recall", "recall"),
        ("classification", "roc_auc", "area under the ROC curve"),
        ("multilabel", "average_precision", "average precision, mean over the labels"),
        ("multilabel", "f1_macro", "F1, mean over the labels"),
        ("multilabel", "f1_micro", "F1 over all labels together"),
    ):
        yield Metric(id=name, title=title, kinds=(kind,), function=f"{METRICS}:{name}", lower=0.0, upper=1.0)
    function, title = f"{METRICS}:mean_average_precision", "mean average precision of what is ranked"
    yield Metric(id="map", title=title, kinds=KINDS[1:], function=function, lower=0.0, upper=1.0)
    function, title = f"{METRICS}:v_measure", "agreement of groups with classes"
    yield Metric(id="v_measure", title=title, kinds=("classification",), function=function, lower=0.0, upper=1.0)


@hookimpl
def neuco_probes() -> Iterator[Probe]:
    yield Probe(id="linear", title="linear, AdamW", factory=f"{PROBES}.linear:LinearProbe", kinds=KINDS, epochs=True)
    yield Probe(id="ridge", title="ridge, closed form", factory=f"{PROBES}.ridge:RidgeProbe", kinds=KINDS)
    factory = f"{PROBES}.mlp:MLPProbe"
    yield Probe(id="mlp", title="perceptron", factory=factory, kinds=KINDS, epochs=True, requires=("torch",))
    yield Probe(id="svm", title="support vectors", factory=f"{PROBES}.svm:svm_probe", kinds=KINDS)
    yield Probe(id="knn", title="nearest neighbours", factory=f"{PROBES}.knn:NearestNeighbors", kinds=KINDS)
    yield Probe(id="logistic", title="logistic, L-BFGS", factory=f"{PROBES}.logistic:logistic_probe", kinds=KINDS[1:])
    yield Probe(id="shots", title="few labels", factory=f"{PROBES}.shots:FewShots", kinds=KINDS)
    yield Probe(
        id="retrieval", title="retrieval", factory=f"{PROBES}.retrieval:Retrieval", kinds=KINDS[1:], metric="map"
    )
    factory = f"{PROBES}.clustering:Clustering"
    yield Probe(id="clustering", title="k-means", factory=factory, kinds=("classification",), metric="v_measure")


@hookimpl
def neuco_splitters() -> Iterator[Splitter]:
    yield Splitter(id="shuffle", title="random samples", function=f"{SPLITS}:shuffle")
    yield Splitter(id="fixed", title="the task's own split", function=f"{SPLITS}:fixed", needs_split=True)
    yield Splitter(id="group", title="whole groups", function=f"{SPLITS}:group", needs_groups=True)
    yield Splitter(id="region-group", title="each group once", function=f"{SPLITS}:each_group", needs_groups=True)
    for name, title, params in (
        ("blocks", "whole blocks of a grid", {"size": 0, "margin": 0}),
        ("buffer", "random samples, nothing near them", {"r": 0}),
        ("region", "each region once", {"regions": 10, "margin": 0}),
    ):
        function = f"{SPATIAL}:{name.removesuffix('s')}_splits"
        yield Splitter(id=name, title=title, function=function, needs_positions=True, params=params)


@hookimpl
def neuco_engines() -> Iterator[Engine]:
    yield Engine(id="local", title="worker processes on this machine", factory="neuco_core.runs.engine:LocalEngine")


@hookimpl
def neuco_boards() -> Iterator[BoardKind]:
    options = {"weights": "all", "spread": "std", "ghost": 0.0, "coverage": "complete", "replicates": 1000}
    title = "NeuCo-Bench: ranks weighted by the spread of Q"
    yield BoardKind(id="neuco", title=title, rank="neuco_core.boards.kinds.neuco:rank_cells", options=options)
    title = "Places as others published them"
    yield BoardKind(id="standings", title=title, rank="neuco_core.boards.published:rank_as_printed")
