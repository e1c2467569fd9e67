"""Numbers as a board's file holds them: rounded by a fixed rule, so that every machine writes the same bytes."""

from __future__ import annotations

import math
from typing import Any

# Sums of the same numbers may differ in the last bits between machines; what comes out of random replicates also
# depends on how a quantile falls, so it is not given more precisely than it is known.
EXACT = 10
RANDOM = 4


def number(value: object, digits: int = EXACT) -> float | None:
    """A float for the file: rounded, -0.0 as 0.0; undefined is ``None``."""
    if value is None or not math.isfinite(float(value)):  # type: ignore[arg-type]
        return None
    return round(float(value), digits) + 0.0  # type: ignore[arg-type]


def interval(low: Any, high: Any, digits: int = RANDOM) -> list[float | None]:
    return [number(low, digits), number(high, digits)]


def whole(low: Any, high: Any) -> list[int]:
    """An interval of ranks."""
    return [int(low), int(high)]
