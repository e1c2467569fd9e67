"""NeuCo-Bench's own numbers: every split of every task, alone and in a run over all tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.protocol import load_protocol
from neuco_core.scoring.probes.linear import WordStream
from neuco_core.scoring.scorer import Score, score
from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels

SAMPLES, DIM, RANK = 700, 48, 6
EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "parity.json").read_text())
PROTOCOL = load_protocol("neuco-2025").with_(k=8, epochs=12, lr=0.01)


def make_case() -> tuple[Embeddings, dict[str, Labels]]:
    rng = np.random.default_rng(2025)
    ids = tuple(f"s{i:04d}" for i in range(SAMPLES))
    latent = rng.standard_normal((SAMPLES, RANK))
    values = latent @ rng.standard_normal((RANK, DIM)) + 0.3 * rng.standard_normal((SAMPLES, DIM)) + 0.5
    labels = {}
    for name, kind, rows, noise in (
        ("alpha", "regression", 643, 0.5),
        ("beta", "regression", 320, 2.0),
        ("gamma", "classification", 500, 0.8),
        ("delta", "regression", 700, 0.1),
    ):
        chosen = rng.choice(SAMPLES, rows, replace=False)
        signal = latent[chosen] @ rng.standard_normal(RANK) + noise * rng.standard_normal(rows)
        label = np.round(signal, 5) if kind == "regression" else (signal > np.quantile(signal, 0.7)).astype(float)
        labels[name] = Labels(name, kind, tuple(ids[i] for i in chosen), label, sha256="0" * 64)
    return Embeddings(ids, np.round(values, 5).astype(np.float32), sha256="0" * 64), labels


def agree(got: Score, expected: dict[str, object]) -> None:
    assert got.per_split == pytest.approx(expected["per_split"], abs=2e-4)
    assert got.q == pytest.approx(expected["q"], abs=1e-2, rel=1e-3)
    assert got.mean == pytest.approx(expected["mean"], abs=2e-4)


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma", "delta"])
def test_each_task_alone(name: str) -> None:
    embeddings, labels = make_case()
    agree(score(embeddings, labels[name], PROTOCOL), EXPECTED["single_task"][name])


def test_whole_run_with_one_stream() -> None:
    embeddings, labels = make_case()
    kept = {name for task in labels.values() for name in task.ids}
    stream, words = WordStream(PROTOCOL.seed), 0
    for name in sorted(labels):
        got = score(embeddings, labels[name], PROTOCOL, stream=stream, standardize_ids=kept)
        agree(got, EXPECTED["whole_run"][name])
        words += got.words
        assert stream.position == words
