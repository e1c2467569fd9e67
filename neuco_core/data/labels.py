"""Labels as a typed value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from neuco_core.specs import Task


@dataclass(frozen=True)
class Labels:
    """Labels in the order of their file. ``values`` is float64, (n,) or (n, outputs); ``sha256`` is of the content."""

    task: str
    kind: str
    ids: tuple[str, ...]
    values: np.ndarray
    sha256: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    groups: np.ndarray | None = None


def load_labels(task: Task) -> Labels:
    raise NotImplementedError
