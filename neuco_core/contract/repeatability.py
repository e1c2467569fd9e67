"""Whether two runs of an encoder agree, and what becomes of embeddings if samples have other names or images change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from neuco_core.cubes.cubes import CubeSource, Renamed, batches
from neuco_core.encode.encoding import check_output, make_encoder, one_thread
from neuco_core.encode.requirements import full_params

if TYPE_CHECKING:
    from neuco_core.specs import Method

SAMPLES = 32
NOISE = 1e-3  # relative; shipped encoders change a prediction by less than 0.0003 of the labels' variance


def apart(first: np.ndarray, again: np.ndarray) -> float:
    """The largest difference of two runs, as a part of the spread; infinite if their shapes differ.

    The spread is how much embeddings differ between samples: the standard deviation of each dimension, their root mean
    square. One number for all dimensions: one that hardly changes must not ask for more digits than float32 has.
    """
    if first.shape != again.shape:
        return float("inf")
    largest = float(np.abs(first.astype(np.float64) - again).max(initial=0.0))
    spread = float(np.sqrt(np.mean(np.square(np.std(first, axis=0, dtype=np.float64)))))
    return 0.0 if largest == 0 else largest / max(spread, 1e-300)


def disagreement(first: np.ndarray, again: np.ndarray, tolerance: float) -> dict[str, str]:
    """What is ``expected`` of two runs, and ``got``, if they do not agree: bit for bit without a tolerance."""
    if np.array_equal(first, again) or (tolerance > 0 and apart(first, again) <= tolerance):
        return {}
    expected = "the same bits, as it declares no tolerance"
    if tolerance > 0:
        expected = f"at most {tolerance:g} of the spread, as declared"
    got = f"off by {apart(first, again):.2g} of the spread of the embeddings"
    if first.shape != again.shape:
        got = f"{again.shape} values instead of {first.shape}"
    return {"expected": expected, "got": got}


def some_rows(count: int) -> np.ndarray:
    """The rows that are tried, spread over all samples."""
    return np.linspace(0, count - 1, min(SAMPLES, count)).astype(int)


def disturbed(method: Method, source: CubeSource) -> np.ndarray:
    """Embeddings of some samples (see ``some_rows``) by a fresh encoder: under other names, and with noise as well.

    What it learned of names and places is of no use afterwards: the samples come shuffled, under names of their own.
    """
    random = np.random.default_rng()
    with one_thread("torch" in method.requires):
        encoder = make_encoder(method, full_params(method, {}))
        if hasattr(encoder, "fit"):
            encoder.fit(source if method.uses_ids else Renamed(source))
        rows = some_rows(len(source.ids()))
        order = random.permutation(len(rows))
        batch = source.read([source.ids()[row] for row in rows[order]])
        if not method.uses_ids:
            batch = replace(batch, ids=tuple(random.bytes(8).hex() for _ in rows))
        calm = check_output(method, batch.ids, encoder.encode(batch))
        noisy = check_output(method, batch.ids, encoder.encode(replace(batch, values=with_noise(batch.values))))
    return np.stack([calm, noisy])[:, np.argsort(order)]


def with_noise(values: np.ndarray) -> np.ndarray:
    noise = NOISE * np.random.default_rng().standard_normal(values.shape)
    return np.asarray(values * (1 + noise), dtype=np.float32)


def plain_statistics(source: CubeSource) -> np.ndarray:
    """What anybody can see in an image: mean, deviation and quartiles of each band and season, one row a sample.

    Labels that these tell as well are no secret, and an embedding that has them is not suspicious.
    """
    parts = []
    for batch in batches(source, 64):
        pixels = batch.values.reshape(*batch.values.shape[:3], -1).astype(np.float64)
        quartiles = np.moveaxis(np.quantile(pixels, (0, 0.25, 0.5, 0.75, 1), axis=3), 0, -1)
        moments = np.stack([pixels.mean(axis=3), pixels.std(axis=3)], axis=-1)
        parts.append(np.concatenate([moments, quartiles], axis=-1).reshape(len(pixels), -1))
    return np.concatenate(parts).astype(np.float32)
