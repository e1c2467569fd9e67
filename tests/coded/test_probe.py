"""Embeddings as they come back from a coder are scored by any probe, split by split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuco_core import load_protocol, score
from neuco_core.errors import UsageError
from neuco_core.plugins import catalog
from neuco_core.records.fingerprint import CellInputs
from neuco_core.scoring.splits import join
from neuco_core.scoring.splits import shuffle as splits_of
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels
from neuco_extensions.coded.probe import code, coded_protocol
from tests.plugins.helpers import Tree

STRANGER = """
from neuco_core import Coder, hookimpl
import numpy as np

class Rounded:
    def __init__(self, setting):
        self.digits = int(setting or 0)

    def fit(self, values):
        self.shared = (np.abs(values).max(axis=0),)

    def encode(self, values):
        return np.rint(values / self.shared[0] * 10**self.digits).astype(np.int16)

    def decode(self, codes):
        return codes.astype(np.float32) / 10**self.digits * self.shared[0]

@hookimpl
def neuco_coders():
    yield Coder(id="soil_rounded", factory=Rounded)
"""


@pytest.fixture(scope="module")
def data() -> tuple[Embeddings, Labels]:
    random = np.random.default_rng(5)
    ids = [f"s{number}" for number in range(300)]
    values = random.standard_normal((300, 12)).astype(np.float32)
    truth = values @ random.standard_normal(12) + random.standard_normal(300)
    return make_embeddings(ids, values), Labels("made", "regression", tuple(ids), truth, sha256="0" * 64)


def test_it_is_the_probe_on_values_that_were_coded_by_hand(data: tuple[Embeddings, Labels]) -> None:
    embeddings, labels = data
    base = load_protocol("ridge").with_(k=3)
    scored = score(embeddings, labels, coded_protocol(base, "int4"))
    samples = join(embeddings, labels, base)
    for split, (train, test) in enumerate(splits_of(300, base, None)):
        coded, _ = code("int4", samples.x, train, train, test)
        by_hand = score(make_embeddings(labels.ids, coded), labels, base)
        assert scored.per_split[split] == pytest.approx(by_hand.per_split[split], abs=1e-9)
    assert set(scored.settings["bytes_per_sample"]) == {6.0}
    assert set(scored.settings["shared_bytes"]) == {12 * 2 * 4.0}


def test_what_is_learned_from_all_samples_is_another_number_with_another_name(data: tuple[Embeddings, Labels]) -> None:
    base = load_protocol("ridge").with_(k=3)
    honest, leaky = (score(*data, coded_protocol(base, "pq=3", fit=fit)) for fit in ("train", "all"))
    assert leaky.protocol.name == "ridge+coder=pq=3,fit=all,k=3,of=ridge,probe=coded"
    assert leaky.mean > honest.mean  # the quantiser has seen the rows that are tested


@pytest.mark.parametrize("base", ["neuco-2025", "neuco-strict", "ridge"])
def test_float32_is_the_embedding_itself(base: str, data: tuple[Embeddings, Labels]) -> None:
    protocol = load_protocol(base).with_(k=3, epochs=3)
    plain, coded = score(*data, protocol), score(*data, coded_protocol(protocol, "float32"))
    assert coded.per_split == pytest.approx(plain.per_split, abs=1e-5)
    assert load_protocol(coded.protocol.name) == coded.protocol


def test_fewer_dimensions_are_those_cut_by_hand(data: tuple[Embeddings, Labels]) -> None:
    embeddings, labels = data
    base = load_protocol("neuco-2025").with_(k=3, epochs=3)
    prefix = score(embeddings, labels, coded_protocol(base, "prefix=5"))
    by_hand = score(make_embeddings(labels.ids, embeddings.values[:, :5]), labels, base)
    assert prefix.per_split == pytest.approx(by_hand.per_split, abs=1e-5)


@pytest.mark.parametrize("coder", ["binary", "pq=3"])
def test_a_retrieval_searches_what_comes_back(coder: str, data: tuple[Embeddings, Labels]) -> None:
    """Of product quantisation these are its symmetric distances, of one bit a Hamming distance with weights."""
    embeddings, labels = data
    classes = Labels("made", "classification", labels.ids, (labels.values > 0).astype(float), sha256="0" * 64)
    base = load_protocol("retrieval").with_(k=3)
    scored, samples = score(embeddings, classes, coded_protocol(base, coder)), join(embeddings, classes, base)
    assert scored.metric == "map"
    for split, (train, test) in enumerate(splits_of(300, base, None)):
        coded, _ = code(coder, samples.x, train, train, test)
        by_hand = score(make_embeddings(labels.ids, coded), classes, base)
        assert scored.per_split[split] == pytest.approx(by_hand.per_split[split], abs=1e-6)


def test_a_stranger_adds_a_coder_in_a_file(data: tuple[Embeddings, Labels], tree: Tree) -> None:
    tree.install("neuco-soil", {"neuco.coders": {"soil": "soil_coder"}}, {"soil_coder": STRANGER})
    catalog.catalog.cache_clear()
    protocol = coded_protocol(load_protocol("ridge").with_(k=3), "soil_rounded=2+entropy")
    scored = score(*data, protocol)
    assert scored.mean == pytest.approx(score(*data, load_protocol("ridge").with_(k=3)).mean, abs=0.02)
    assert all(1 < size < 24 for size in scored.settings["bytes_per_sample"])
    before = CellInputs(protocol).shared["probe_code"]
    assert before == CellInputs(protocol).shared["probe_code"]
    # Its code is part of what a record is compared by.
    file = Path(tree.installed) / "soil_coder.py"
    file.write_text(STRANGER.replace("np.rint", "np.floor"))
    assert CellInputs(protocol).shared["probe_code"] != before
    other = coded_protocol(load_protocol("neuco-strict"), "int8")
    assert (
        CellInputs(other).shared["probe_code"]
        != CellInputs(coded_protocol(load_protocol("ridge"), "int8")).shared["probe_code"]
    )


def test_a_wrong_coder_is_refused_before_anything_runs() -> None:
    from neuco_core.plugins.catalog import check_variant

    with pytest.raises(UsageError, match="no such coder"):
        check_variant(coded_protocol(load_protocol("ridge"), "int5"))
