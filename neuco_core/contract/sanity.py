"""Whether embeddings look like those of a network that works: measures of arrays, and the limits of each.

All is measured on a few dozen samples and without labels. A limit is a warning and no verdict: it says what is unusual
and where to look. ``benchmarks/sane.py`` measured the limits on right and deliberately wrong networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import entr

SAME = 1e-6  # of the spread: what float32 rounds
ALIKE = 0.99999  # correlation of two dimensions that are one
SEASONS = "response to the order of seasons"
NEIGHBOURS = "agreement with plain colours"


@dataclass(frozen=True)
class Limit:
    """A measure that is unusual below ``low`` or above ``high``: what that means, and what to look at."""

    measure: str
    means: str
    look: str
    low: float = -math.inf
    high: float = math.inf


# Measured by `python -m benchmarks.sane tune` on half of the networks; others are the test. Of 128 samples chance gives
# neighbours that agree by 1 ± 0.05.
LIMITS = (
    Limit("effective rank", "the samples differ in one direction only", "units, and the layer that is read", low=1.2),
    Limit("intrinsic dimension", "the samples lie on one curve", "units, and the layer that is read", low=0.5),
    Limit("relative spread", "the samples hardly differ", "units: inputs may be too small to matter", low=3e-4),
    Limit("dead dimensions", "most dimensions never change", "dead or unused outputs", high=0.9),
    Limit("duplicate dimensions", "most dimensions repeat others", "how features are put together", high=0.5),
    Limit("duplicate samples", "other images give the same row", "the order of ids, how images are read", high=0.1),
    Limit("largest norm", "one sample is far away from all others", "nodata and damaged images", high=100.0),
    Limit("saturated values", "many values stand at one bound", "units, and clipping", high=0.5),
    Limit(NEIGHBOURS, "images of like colours are no neighbours", "the order of ids", low=1.15),
    Limit("response to the image", "no change of the images changes a row", "what the network is given", low=0.01),
    Limit("gain of ×10,000", "in larger units samples differ far more", "the unit: inputs too small", high=30.0),
    Limit("gain of ÷10,000", "in smaller units samples differ far more", "the unit: inputs too large", high=30.0),
    Limit("response to bands", "bands in another order change nothing", "which bands are used", low=1e-4),
    Limit("response to no data", "a quarter without data moves samples far", "how nodata is handled", high=30.0),
)
# Of what a network is given. Right ones get inputs with a spread of 0.088 to 1.5. Weights that were loaded leave at
# most one layer that normalises as it was.
NETWORK_LIMITS = (
    Limit("training mode", "numbers depend on the batch", "model.eval(), which nobody called", high=0.0),
    Limit(
        "untrained layers",
        "layers that normalise are as they are before any training",
        "whether the weights are loaded, or declare pretraining=()",
        high=0.4,
    ),
    Limit("spread of the inputs", "networks want it near 1", "the unit, and mean and std", low=0.005, high=8.0),
)


def unusual(measures: Mapping[str, float], limits: Iterable[Limit] = LIMITS) -> Iterator[str]:
    """A sentence for each limit that is not kept."""
    for limit in limits:
        value = measures.get(limit.measure, math.nan)  # compares as false
        if value < limit.low or value > limit.high:
            bound = f"at least {limit.low:g}" if value < limit.low else f"at most {limit.high:g}"
            yield f"{limit.measure} {value:.3g} ({bound}): {limit.means}. Look at {limit.look}"


def spread(rows: np.ndarray) -> float:
    """How far rows are from their mean (root mean square); 0 if all are the same."""
    return float(np.sqrt(rows.var(axis=0, dtype=np.float64).sum()))


def relative_spread(rows: np.ndarray) -> float:
    """The spread as a part of the length of a row."""
    length = np.sqrt(np.mean(np.sum(np.square(rows, dtype=np.float64), axis=1)))
    return float(spread(rows) / max(length, 1e-300))


def effective_rank(rows: np.ndarray) -> float:
    """exp of the entropy of the singular values, as parts of their sum (Roy and Vetterli 2007): 1 for a line."""
    values = np.linalg.svd(rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64), compute_uv=False)
    return float(np.exp(entr(values / values.sum()).sum())) if values.any() else 1.0


def intrinsic_dimension(rows: np.ndarray) -> float:
    """TwoNN (Facco et al. 2017): from how much farther away the second neighbour of a sample is than the first."""
    near = np.sort(cdist(rows, rows), axis=1)[:, 1:3]
    near = near[near[:, 0] > 0]
    logs = np.log(near[:, 1] / near[:, 0])
    return float((len(logs) - 1) / logs.sum()) if len(logs) > 1 and logs.sum() > 0 else math.nan


def agreement(rows: np.ndarray, reference: np.ndarray) -> float:
    """How many of its nearest neighbours, a sixth of all, a sample shares with a reference: a multiple of chance."""
    scaled = (reference - reference.mean(axis=0)) / np.maximum(reference.std(axis=0), 1e-12)
    count = max(1, len(rows) // 6)
    no_own = np.diag(np.full(len(rows), np.inf))
    near = [np.argsort(cdist(each, each) + no_own, axis=1, kind="stable")[:, :count] for each in (rows, scaled)]
    shared = np.mean([len(set(mine) & set(theirs)) for mine, theirs in zip(*near, strict=True)])
    return float(shared * (len(rows) - 1) / count**2)


def measured(rows: np.ndarray, images: int) -> dict[str, float]:
    """All measures of embeddings (sample, dimension) of samples among which there are so many different images."""
    rows = rows.astype(np.float64)
    deviation = rows.std(axis=0)
    alive = deviation > SAME * max(deviation.max(), 1e-300)
    columns = (rows - rows.mean(axis=0))[:, alive] / deviation[alive]
    like = np.triu(np.abs(columns.T @ columns) / len(rows), 1) > ALIKE
    norms = np.linalg.norm(rows - np.median(rows, axis=0), axis=1)
    ends = (rows == rows.max()) | (rows == rows.min())
    found = {
        "effective rank": effective_rank(rows),
        "intrinsic dimension": intrinsic_dimension(rows),
        "relative spread": relative_spread(rows),
        "dead dimensions": 1 - alive.mean(),
        "duplicate dimensions": like.any(axis=0).mean() if alive.any() else 0.0,
        "duplicate samples": max(0.0, images - len(np.unique(rows, axis=0))) / len(rows),
        "largest norm": norms.max() / max(np.median(norms), 1e-300),
        "saturated values": (ends & (rows != 0)).mean(),
    }
    return {name: float(value) for name, value in found.items() if math.isfinite(value)}


def responses(base: np.ndarray, changed: Mapping[str, np.ndarray]) -> dict[str, float]:
    """How rows move if the images change, as a part of the spread between samples; ``changed`` are by kind of change.

    What collapses in its own unit and does not in another has the wrong one: that is the gain of a unit.
    """
    moved = {
        kind: float(np.sqrt(np.mean(np.sum((rows - base[: len(rows)]) ** 2, axis=1)))) / max(spread(base), 1e-300)
        for kind, rows in changed.items()
    }
    found = {"response to the image": max(moved.values(), default=math.inf)}
    for kind, name in (("up", "gain of ×10,000"), ("down", "gain of ÷10,000")):
        if kind in changed:
            found[name] = relative_spread(changed[kind]) / max(relative_spread(base), 1e-300)
    for kind, name in (("bands", "response to bands"), ("nodata", "response to no data"), ("seasons", SEASONS)):
        if kind in moved:
            found[name] = moved[kind]
    return {name: float(value) for name, value in found.items() if math.isfinite(value)}
