"""Training on the dataset, and rounded codes as embeddings."""

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
    spread_ids,
)
from neuco_core.errors import UsageError
from neuco_methods.autoencoder.model import GRID, Compressor

IMAGES = 1024  # at most so many are held in memory for training
BATCH = 32
LARGEST = 32
RATE = 2e-3


class AutoencoderEncoder:
    """``fit`` trains for a fixed number of steps with its own generator: the same codes every time."""

    def __init__(self, seasons: str, channels: int, steps: int, fidelity: float, seed: int) -> None:
        if channels < 1 or steps < 0 or fidelity <= 0:
            raise UsageError("channels, steps and fidelity must be positive", got=(channels, steps, fidelity))
        self.seasons = check_seasons(seasons)
        self.channels = channels
        self.steps = steps
        self.fidelity = fidelity
        self.seed = seed

    def fit(self, source: CubeSource) -> None:
        self._scale = fit_standardizer(source)
        images = torch.from_numpy(self._images(source))
        size = images.shape[-1]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.model = Compressor(len(source.bands), self.channels, size)
            self._train(images)
        self.model.eval()

    def _train(self, images: torch.Tensor) -> None:
        optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(self.steps, 1))
        for _ in range(self.steps):
            batch = images[torch.randint(len(images), (BATCH,))]
            noise = torch.rand(BATCH, self.channels, GRID, GRID) - 0.5
            loss = self.model.loss(batch, noise, self.fidelity)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimizer.step()
            schedule.step()

    def encode(self, batch: CubeBatch) -> np.ndarray:
        return encode_each(batch, lambda sample: over_seasons(self._prepare(sample), self.seasons, self._code))

    def bits(self, batch: CubeBatch) -> np.ndarray:
        """What the learned prior would spend on each sample's codes."""
        with torch.inference_mode():
            codes = [torch.from_numpy(self._code(self._prepare(sample))) for sample in batch.values]
            shape = (-1, self.channels, GRID, GRID)
            return np.array([float(self.model.prior.bits(code.reshape(shape)).sum()) for code in codes])

    def _code(self, images: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            # Rounded as for the entropy coder: what is not in the code is not in the embedding.
            code = torch.round(self.model.down(torch.from_numpy(images)))
        return np.asarray(code.reshape(len(images), -1).numpy())

    def _prepare(self, sample: np.ndarray) -> np.ndarray:
        """Scaled images of 4, 8, 16 or 32 pixels: the largest that the image fills."""
        size = GRID
        while size * 2 <= min(LARGEST, *sample.shape[-2:]):
            size *= 2
        return resize(shrink(self._scale(sample), size), size, size)

    def _images(self, source: CubeSource) -> np.ndarray:
        ids = spread_ids(source, max(1, IMAGES // len(source.seasons)))
        images = np.concatenate([self._prepare(source.read([name]).values[0]) for name in ids])
        return np.ascontiguousarray(images, dtype=np.float32)
