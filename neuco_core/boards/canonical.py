"""Numbers as a board's file holds them: rounded by a fixed rule, so that every machine writes the same bytes."""

from __future__ import annotations

import math
from typing import Any

# Sums of the same numbers may differ in the last bits between machines; what comes out of random replicates also
# depends on how a quantile falls, so a kind rounds it to what is known.
EXACT = 10
RANDOM = 4


def number(value: object, digits: int = EXACT) -> float | None:
    """A float for the file: rounded, -0.0 as 0.0; undefined is ``None``."""
    if value is None or not math.isfinite(float(value)):  # type: ignore[arg-type]
        return None
    return round(float(value), digits) + 0.0  # type: ignore[arg-type]


def rounded(value: Any) -> Any:
    """JSON values with all floats as the file holds them."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value
