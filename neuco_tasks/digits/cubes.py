"""The images, read from the scikit-learn that is installed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from neuco_core.cubes.cubes import CubeBatch
from neuco_core.errors import ChecksumError, DataError

# scikit-learn may not change its copy unnoticed: labels are matched to images by their position.
IMAGES_SHA256 = "8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3"
COUNT = 1797


class DigitCubes:
    """Grey values from 0 to 16."""

    version: str = f"1-{IMAGES_SHA256[:12]}"
    bands: tuple[str, ...] = ("grey/0",)
    seasons: tuple[str, ...] = ("scene",)

    @cached_property
    def _images(self) -> np.ndarray:
        # Only when an image is asked for: importing scikit-learn takes longer than everything else here.
        from sklearn.datasets import load_digits

        images: np.ndarray = load_digits().images.astype(np.uint8)
        found = hashlib.sha256(images.tobytes()).hexdigest()
        if found != IMAGES_SHA256:
            raise ChecksumError("scikit-learn's digits changed", where="digits", expected=IMAGES_SHA256, got=found)
        return images

    @cached_property
    def _row(self) -> dict[str, int]:
        return {f"digit-{row:04d}": row for row in range(COUNT)}

    def ids(self) -> tuple[str, ...]:
        return tuple(self._row)

    def read(self, ids: Sequence[str]) -> CubeBatch:
        unknown = [name for name in ids if name not in self._row]
        if unknown:
            raise DataError(f"no sample {unknown[0]!r}", where="digits", expected="digit-0000 to digit-1796")
        values = self._images[[self._row[name] for name in ids], None, None].astype(np.float32)
        return CubeBatch(tuple(ids), values, self.bands, self.seasons)
