"""What the pages on protocols say, done."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core import load_task
from neuco_core.protocol import PROTOCOLS, Protocol, load_protocol
from neuco_core.scoring.metrics import NOTHING, r2, total_sum
from neuco_core.scoring.probes import logistic
from neuco_core.scoring.probes.clustering import Clustering
from neuco_core.scoring.probes.knn import NearestNeighbors
from neuco_core.scoring.probes.retrieval import Retrieval
from neuco_core.scoring.probes.svm import COSTS, DEGREES, FOLDS
from neuco_core.scoring.splits import shuffle
from neuco_core.tables.embeddings import make_embeddings, write_embeddings


def test_the_first_example(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = load_task("olinda_elevation_mean").labels().ids
    values = np.random.default_rng(0).standard_normal((len(ids), 4)).astype(np.float32)
    write_embeddings(make_embeddings(ids, values), tmp_path / "mine.csv")
    monkeypatch.chdir(tmp_path)
    code = re.findall(
        r"```python\n(from neuco_core import load_task.*?)```", (root / "docs/ref/protocols.md").read_text(), re.S
    )
    exec(compile(code[0], "docs/ref/protocols.md", "exec"), {})
    mean, std, q = map(float, capsys.readouterr().out.split())
    assert mean < 0.1  # noise tells nothing
    assert q == pytest.approx(100 * 0.02 * mean / (std + 0.02))


def test_every_protocol_and_every_named_variant_is_documented(root: Path) -> None:
    text = (root / "docs/ref/protocols.md").read_text()
    for name in PROTOCOLS:
        assert f"`{name}`" in text
    for variant in re.findall(
        r"`((?:neuco|ridge|mlp|svm|knn|logistic|shots|retrieval|clustering)[a-z0-9-]*\+[^`]*)`", text
    ):
        assert load_protocol(variant).name.startswith(variant.partition("+")[0] + "+")


def test_the_wild_label(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints what the comment behind it says; and by NeuCo-Bench's thresholds it was as the page tells."""
    text = (root / "docs/why/q-and-protocols.md").read_text()
    (code,) = re.findall(r"```python\n(import numpy as np\n.*?)```", text, re.S)
    names: dict[str, Any] = {}
    exec(compile(code, "docs/why/q-and-protocols.md", "exec"), names)
    assert capsys.readouterr().out.strip() == code.rsplit("# ", 1)[1].strip()
    x, y, kept = names["x"].astype(np.float64), names["y"], []
    for train, test in shuffle(300, load_protocol("ridge")):
        scaled = (y - y[train].min()) / np.ptp(y[train])
        if total_sum(scaled[test])[0] > NOTHING:
            # The wild label is in the test part: what a plain fit to the others gets.
            design = np.c_[x, np.ones(300)]
            weight = np.linalg.lstsq(design[train], scaled[train], rcond=None)[0]
            kept.append(r2(scaled[test], design[test] @ weight))
    sentence = re.search(
        r"(\d+) of the 40 test parts\nhad no score, and the other (\w+).* gave a harmless −(\d\.\d+)", text
    )
    assert sentence is not None
    assert (int(sentence[1]), sentence[2]) == (40 - len(kept), {3: "three"}[len(kept)])
    assert np.mean(kept) == pytest.approx(-float(sentence[3]), abs=5e-3)


@pytest.fixture
def text(root: Path) -> str:
    return " ".join((root / "docs/ref/protocols.md").read_text().split())


def test_the_sizes_of_the_networks(text: str) -> None:
    inputs, width = 1024, PROTOCOLS["mlp-1"].params["width"]
    assert f"one or two hidden layers of {width}" in text
    one = (inputs + 1) * width + width + 1
    two = one + (width + 1) * width
    times = [round(size / (inputs + 1)) for size in (one, two)]
    assert f"they have {times[0]} and {times[1]} times the parameters of the linear probe" in text


def test_the_ranges_of_the_svm(text: str) -> None:
    assert f"polynomial kernel of degree {DEGREES[0]} to {DEGREES[-1]}" in text
    assert f"from {DEGREES[0]} to {DEGREES[-1]} the cost rises tenfold from {COSTS[0]:g}" in text
    assert f"to {COSTS[-1]:,.0f} at most" in text
    assert {3: "three-fold"}[FOLDS] in text
    assert all(b == pytest.approx(10 * a) for a, b in pairwise(COSTS))


def test_what_knn_logistic_and_retrieval_do_by_default(text: str) -> None:
    protocol = Protocol(name="case")
    near, found = NearestNeighbors(protocol), Retrieval(protocol)
    assert f"`neighbors={near.neighbors}`, `metric={near.metric}` or `l2`, `weights={near.weights}` or" in text
    assert f"`precision_at_{found.at}` and `recall_at_{found.at}`" in text
    assert f"the best of `starts={Clustering(protocol).starts}`" in text
    assert f"the one of {logistic.COSTS[0]:g} to {logistic.COSTS[-1]:g}, in tenfold steps" in text
    assert all(b == pytest.approx(10 * a) for a, b in pairwise(logistic.COSTS))
    assert (logistic.FOLDS, logistic.USUAL) == (3, 1)
    assert f"`search_samples={logistic.logistic_probe(protocol)._make['classification']().most}`" in text


def test_the_common_values(text: str) -> None:
    for protocol in PROTOCOLS.values():
        assert (protocol.k, protocol.test_size, protocol.seed) == (40, 0.1, 42)
    assert "All use 40 splits (`k=40`, the paper's development phase), a test part of a tenth, and seed 42" in text
    assert "linear, AdamW, 20 epochs" in text
    assert "AdamW on batches of 64" in text
