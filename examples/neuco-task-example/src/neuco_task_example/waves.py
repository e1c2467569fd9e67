"""The images, and an encoder for them."""

from collections.abc import Sequence

import numpy as np

from neuco_core.cubes.cubes import CubeBatch

SIZE = 16
SAMPLES = 240


def frequency(index: int) -> float:
    """Periods per image: what the task asks for."""
    return round(0.5 + 5.0 * float(np.random.default_rng([7, index]).random()), 4)


class Waves:
    """A CubeSource: it names its samples and reads some of them at a time, in any order."""

    version = "1"
    bands = ("grey/0",)
    seasons = ("scene",)

    def ids(self) -> tuple[str, ...]:
        return tuple(f"wave-{index:03d}" for index in range(SAMPLES))

    def read(self, ids: Sequence[str]) -> CubeBatch:
        images = np.stack([_image(int(sample.removeprefix("wave-"))) for sample in ids])
        return CubeBatch(tuple(ids), images[:, None, None].astype(np.float32), self.bands, self.seasons)


def _image(index: int) -> np.ndarray:
    # Seeded by sample, so that one image is the same whichever others are read with it.
    random = np.random.default_rng([8, index])
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    angle, phase = random.uniform(0, np.pi), random.uniform(0, 2 * np.pi)
    wave = np.sin(2 * np.pi * frequency(index) * (x * np.cos(angle) + y * np.sin(angle)) + phase)
    return wave + 0.3 * random.standard_normal((SIZE, SIZE))


class Spectrum:
    """An encoder: samples in, one row of numbers out for each."""

    def encode(self, batch: CubeBatch) -> np.ndarray:
        power = np.abs(np.fft.rfft2(batch.values[:, 0, 0])) ** 2
        return np.log1p(power).reshape(len(batch.ids), -1).astype(np.float32)
