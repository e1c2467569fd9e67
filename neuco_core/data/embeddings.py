"""Embeddings as a typed value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Embeddings:
    """One float32 row per id; ``sha256`` is of ids and values; ``replaced`` counts values that became 0, by reason."""

    ids: tuple[str, ...]
    values: np.ndarray
    sha256: str
    replaced: Mapping[str, int] = field(default_factory=dict)
