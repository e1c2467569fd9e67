"""A stranger's probe, metric and splitter, installed and used by name; the documentation is their source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuco_core.errors import PluginError, ScoreError, UnknownIdError
from neuco_core.plugins import catalog
from neuco_core.protocol import Protocol, load_protocol
from neuco_core.scoring.cell import score_cell
from neuco_core.scoring.quality import split_count
from neuco_core.scoring.scorer import score
from neuco_core.specs import Remote, Task
from tests.installed import install
from tests.scoring.make import embed, label, problem

WRONG = """
from neuco_core import Probe, hookimpl

class Wrong:
    def fit(self, split):
        from neuco_core.scoring.probes import Fit
        return Fit(split.y[split.test])  # two axes where three are needed

@hookimpl
def neuco_probes():
    yield Probe(id="wrong", factory=lambda protocol: Wrong())
"""

FOREST = """\
from neuco_core import Probe, hookimpl


def make(protocol):
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    from neuco_core.scoring.probes import EstimatorProbe, parameters

    rules = {"n_estimators": parameters(protocol, trees=100)["trees"], "random_state": protocol.seed}
    return EstimatorProbe(lambda: ExtraTreesRegressor(**rules), lambda: ExtraTreesClassifier(**rules))


@hookimpl
def neuco_probes():
    yield Probe(id="forest", title="extra trees", factory=make)
"""

WITHIN = """\
from neuco_core import Metric, hookimpl


def within(truth, prediction):
    return float((abs(prediction - truth) < truth.std() / 2).mean())


@hookimpl
def neuco_metrics():
    yield Metric(id="within", function=within, kinds=("regression",), lower=0.0, upper=1.0)
"""

HALVES = """\
from neuco_core import Splitter, hookimpl


def halves(n, protocol, groups):
    import numpy as np

    order = np.random.RandomState(protocol.seed).permutation(n)
    return [(order[: n // 2], order[n // 2 :]), (order[n // 2 :], order[: n // 2])]


@hookimpl
def neuco_splitters():
    yield Splitter(id="halves", function=halves)
"""

# A probe that predicts no labels: its splits share work, and it brings the metric that is measured.
RANKS = """
import numpy as np
from neuco_core import Metric, Probe, hookimpl
from neuco_core.scoring.probes import Fit

class Ranks:
    def prepare(self, splits, threads):
        x = splits[0].x
        self.order = np.argsort(np.square(x[:, None] - x).sum(axis=2), axis=1, kind="stable")

    def fit(self, split):
        y, found = split.y[:, 0], []
        for row in split.test:
            ranked = y[[other for other in self.order[row] if other in set(split.train)]]
            found.append(1 / (1 + np.argmax(ranked == y[row])))
        return Fit(measures={"ranks": np.mean(found), "ranks_first": np.mean(np.equal(found, 1))})

@hookimpl
def neuco_probes():
    yield Probe(id="ranks", factory=lambda protocol: Ranks(), kinds=("classification",), metric="ranks")

@hookimpl
def neuco_metrics():
    yield Metric(id="ranks", function=lambda truth, found: float(np.mean(1 / found)), kinds=("classification",))
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes, a metric and a splitter of strangers, as installed packages."""
    blocks = (("neuco_forest", FOREST), ("neuco_within", WITHIN), ("neuco_halves", HALVES))
    groups = {"neuco_within": ("metrics",), "neuco_halves": ("splitters",), "neuco_ranks": ("probes", "metrics")}
    for name, source in (*blocks, ("neuco_wrong", WRONG), ("neuco_ranks", RANKS)):
        install(tmp_path, name, source, *groups.get(name, ("probes",)))
    monkeypatch.syspath_prepend(str(tmp_path))
    catalog.catalog.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_strangers_probe() -> None:
    embeddings, signal = problem(200, dim=3, noise=0.05)
    rules = load_protocol("ridge+probe=forest,trees=20,k=3")
    assert score(embeddings, label(signal[:, 0]), rules).mean > 0.7
    assert score(embeddings, label(signal[:, 0] > 0, "classification"), rules).mean > 0.7
    classes = label(np.digitize(signal[:, 0], [-0.5, 0.5]), "classification")
    assert score(embeddings, classes, rules).mean > 0.6


@pytest.mark.usefixtures("installed")
def test_a_strangers_probe_that_predicts_no_labels() -> None:
    assert len(RANKS.strip().splitlines()) <= 40
    embeddings, signal = problem(100, noise=0.05)
    got = score(embeddings, label(signal[:, 0] > 0, "classification"), "ridge+probe=ranks,k=3")
    assert got.metric == "ranks"
    assert 0.7 < got.mean < 1
    assert list(got.metrics) == ["ranks_first"]
    assert score_cell(embeddings, label(signal[:, 0]), "ridge+probe=ranks").status == "not-applicable"


@pytest.mark.usefixtures("installed")
def test_a_strangers_metric() -> None:
    embeddings, signal = problem(200, noise=0.05)
    got = score(embeddings, label(signal[:, 0]), "ridge+k=3", metric="within")
    assert got.metric == "within"
    assert 0.5 < got.mean <= 1
    linear = score(embeddings, label(signal[:, 0]), "neuco-2025+k=3,epochs=4", metric="within")
    assert linear.per_split == pytest.approx(linear.curves["metric"].max(axis=1))


@pytest.mark.usefixtures("installed")
def test_a_strangers_splitter() -> None:
    embeddings, signal = problem(50)
    got = score(embeddings, label(signal[:, 0]), load_protocol("ridge").with_(splitter="halves"))
    assert split_count(got.per_split) == "2"  # whatever k says
    assert (got.samples["train"], got.samples["test"]) == (25, 25)


@pytest.mark.usefixtures("installed")
def test_a_probe_that_gives_the_wrong_shape_is_named() -> None:
    embeddings, signal = problem(50)
    with pytest.raises(PluginError, match="wrong shape"):
        score(embeddings, label(signal[:, 0]), Protocol(name="case", probe="wrong"))


def test_unknown_names() -> None:
    embeddings, signal = problem(50)
    for change in ({"probe": "liner"}, {"splitter": "shufle"}):
        with pytest.raises(UnknownIdError, match="Did you mean"):
            score(embeddings, label(signal[:, 0]), load_protocol("neuco-2025").with_(**change))


def test_a_metric_for_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(id="case", dataset="any", kind="regression", source=Remote("https://example.org/x.csv"), metric="f1")
    monkeypatch.setattr(Task, "labels", lambda self: label([0.0, 1.0, 2.0]))
    with pytest.raises(ScoreError, match="'f1' is not for regression"):
        score(embed(np.eye(3)), task)


def test_where_less_is_better_the_least_is_chosen() -> None:
    embeddings, signal = problem(100)
    got = score(embeddings, label(signal[:, 0]), "neuco-2025+k=3,epochs=5,lr=0.1", metric="mae")
    assert got.per_split == pytest.approx(got.curves["metric"].min(axis=1))
    assert got.mean > 0 > got.q
