"""Mean, standard deviation and quantiles per band."""

from __future__ import annotations

import numpy as np

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encoders import check_seasons, encode_each, fit_standardizer, over_seasons

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


class BandStatisticsEncoder:
    """27 bands × 4 seasons × 9 statistics are 972 numbers."""

    def __init__(self, seasons: str = "concat") -> None:
        self.seasons = check_seasons(seasons)

    def fit(self, source: CubeSource) -> None:
        self._scale = fit_standardizer(source)

    def encode(self, batch: CubeBatch) -> np.ndarray:
        return encode_each(batch, lambda sample: over_seasons(self._scale(sample), self.seasons, statistics))


def statistics(images: np.ndarray) -> np.ndarray:
    """(season, band, y, x) to (season, band · 9): mean, standard deviation, then the quantiles from least to most."""
    flat = images.reshape(*images.shape[:2], -1)
    moments = np.stack([flat.mean(axis=-1), flat.std(axis=-1)])
    quantiles = np.quantile(flat, QUANTILES, axis=-1)
    return np.asarray(np.moveaxis(np.concatenate([moments, quantiles]), 0, -1).reshape(len(images), -1))
