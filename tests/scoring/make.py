"""Small embeddings and labels for the tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from neuco_core.plugins.catalog import catalog
from neuco_core.protocol import Protocol
from neuco_core.specs import Probe
from neuco_core.tables.embeddings import Embeddings, make_embeddings
from neuco_core.tables.labels import Labels


def names(n: int) -> tuple[str, ...]:
    return tuple(f"s{i:05d}" for i in range(n))


def embed(values: Any, ids: Sequence[str] | None = None) -> Embeddings:
    values = np.asarray(values, np.float32)
    return make_embeddings(ids or names(len(values)), values)


def label(values: Any, kind: str = "regression", ids: Sequence[str] | None = None, groups: Any = None) -> Labels:
    values = np.asarray(values, np.float64)
    return Labels("case", kind, tuple(ids or names(len(values))), values, "0" * 64, groups=groups)


def suited(protocols: Iterable[Protocol], *kinds: str) -> list[Protocol]:
    """Those that are for these kinds of task."""
    return [protocol for protocol in protocols if set(kinds) <= set(catalog().load(Probe, protocol.probe).kinds)]


def problem(
    n: int = 120, dim: int = 8, outputs: int = 1, noise: float = 0.3, seed: int = 0
) -> tuple[Embeddings, np.ndarray]:
    """Embeddings and a signal (n, outputs) that a linear model can read from them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, dim))
    return embed(x), x @ rng.standard_normal((dim, outputs)) / np.sqrt(dim) + noise * rng.standard_normal((n, outputs))
