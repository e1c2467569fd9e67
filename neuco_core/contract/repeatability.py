"""Whether two runs of an encoder agree: bit for bit, or within the tolerance that its method declares."""

from __future__ import annotations

import numpy as np


def spread(values: np.ndarray) -> float:
    """How much embeddings differ between samples: the standard deviation of each dimension, their root mean square.

    One number for all dimensions: one that hardly changes must not ask for more digits than float32 has.
    """
    return float(np.sqrt(np.mean(np.square(np.std(values, axis=0, dtype=np.float64)))))


def apart(first: np.ndarray, again: np.ndarray) -> float:
    """The largest difference of two runs, as a part of the spread; infinite if their shapes differ."""
    if first.shape != again.shape:
        return float("inf")
    largest = float(np.abs(first.astype(np.float64) - again).max(initial=0.0))
    return 0.0 if largest == 0 else largest / max(spread(first), 1e-300)


def agree(first: np.ndarray, again: np.ndarray, tolerance: float) -> bool:
    return bool(np.array_equal(first, again)) if tolerance == 0 else apart(first, again) <= tolerance


def in_words(first: np.ndarray, again: np.ndarray) -> str:
    """How far two runs are apart."""
    if first.shape != again.shape:
        return f"{again.shape} values instead of {first.shape}"
    return f"off by {apart(first, again):.2g} of the spread of the embeddings"


def allowed(tolerance: float) -> str:
    return (
        f"at most {tolerance:g} of the spread, as declared"
        if tolerance
        else "the same bits, as it declares no tolerance"
    )
