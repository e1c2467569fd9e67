"""A small seeded case, and the numbers that NeuCo-Bench (commit a89ba06, torch 2.13.0, CPU) gives for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels

SAMPLES, DIM, RANK = 700, 48, 6
EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "parity.json").read_text())
WHOLE, ALONE = EXPECTED["whole_run"], EXPECTED["single_task"]


def make_case() -> tuple[Embeddings, dict[str, Labels]]:
    """The same numbers on every machine, so the draws keep their order."""
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
    return make_embeddings(ids, np.round(values, 5).astype(np.float32)), labels


def agree(per_split: list[float], q: float, expected: dict[str, Any]) -> None:
    assert per_split == pytest.approx(expected["per_split"], abs=2e-4)
    assert q == pytest.approx(expected["q"], abs=1e-2, rel=1e-3)
