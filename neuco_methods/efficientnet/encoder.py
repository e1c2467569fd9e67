"""False-colour images of a cube, and what a network for photographs sees in them."""

from __future__ import annotations

import numpy as np
import torch

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encoders import (
    check_seasons,
    encode_each,
    fit_standardizer,
    over_seasons,
    resize,
    shrink,
)
from neuco_core.errors import UsageError
from neuco_core.specs import Remote

# Red, green and blue of each image. Sentinel-2 as surface reflectance if it is there, else as seen from above the air.
COMPOSITES = (
    (("s2l2a/B04", "s2l2a/B03", "s2l2a/B02"), ("s2l2a/B8A", "s2l2a/B11", "s2l2a/B04"), ("s1/VV", "s1/VH", "s1/VV")),
    (("s2l1c/B04", "s2l1c/B03", "s2l1c/B02"), ("s2l1c/B8A", "s2l1c/B11", "s2l1c/B04"), ("s1/VV", "s1/VH", "s1/VV")),
    (("s2l2a/B04", "s2l2a/B03", "s2l2a/B02"), ("s2l2a/B8A", "s2l2a/B11", "s2l2a/B04")),
    (("s2l1c/B04", "s2l1c/B03", "s2l1c/B02"), ("s2l1c/B8A", "s2l1c/B11", "s2l1c/B04")),
    (("etm/B3", "etm/B2", "etm/B1"), ("etm/B4", "etm/B5", "etm/B3")),
)


class EfficientNetEncoder:
    """320 pooled features for each false-colour image."""

    def __init__(self, weights: Remote, seasons: str, size: int) -> None:
        if size < 32:
            raise UsageError(
                "bad parameter size", expected="at least 32: the network halves an image five times", got=size
            )
        self.weights = weights
        self.seasons = check_seasons(seasons)
        self.size = size

    def fit(self, source: CubeSource) -> None:
        from neuco_core.fetch.fetch import fetch
        from neuco_methods.efficientnet.model import load

        self.model = load(str(fetch(self.weights)))
        self._scale = fit_standardizer(source)
        self._index = composites(source.bands)

    def encode(self, batch: CubeBatch) -> np.ndarray:
        return encode_each(batch, lambda sample: over_seasons(self._scale(sample), self.seasons, self._features))

    def _features(self, images: np.ndarray) -> np.ndarray:
        """(season, band, y, x) to (season, composite · 320)."""
        # The network wants -1 to 1; two standard deviations on either side cover most of a band.
        colour = np.clip(images[:, self._index] / 2, -1, 1)
        colour = resize(shrink(colour, self.size), self.size, self.size)
        with torch.inference_mode():
            flat = torch.from_numpy(np.ascontiguousarray(colour.reshape(-1, 3, self.size, self.size)))
            return np.asarray(self.model.features(flat).reshape(len(images), -1).numpy())


def composites(bands: tuple[str, ...]) -> np.ndarray:
    """(composite, 3) positions of bands; unknown bands are taken one modality at a time, up to three of each."""
    for choice in COMPOSITES:
        if all(band in bands for image in choice for band in image):
            return np.array([[bands.index(band) for band in image] for image in choice])
    groups: dict[str, list[int]] = {}
    for position, band in enumerate(bands):
        groups.setdefault(band.partition("/")[0], []).append(position)
    return np.array([[group[min(i, len(group) - 1)] for i in range(3)] for group in list(groups.values())[:3]])
