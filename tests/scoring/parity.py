"""The parity case: four seeded tasks over one embedding, for which NeuCo-Bench's own scores are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from neuco_core.tables.embeddings import Embeddings
from neuco_core.tables.labels import Labels

SAMPLES, DIM, RANK = 700, 48, 6
EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "parity.json").read_text())


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
