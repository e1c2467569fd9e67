"""Networks for these tests: small, with random weights of a fixed seed, run in batches as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from neuco_core.cubes.cubes import CubeBatch, CubeSource
from neuco_core.encode.device import mixed
from neuco_core.specs import Method


class Network:
    """A convolution, a normalisation over the batch that was never switched off (or was), and a mean."""

    def __init__(self, training: bool = False, precision: str = "float32") -> None:
        self.training, self.precision, self.device = training, precision, "cpu"

    def fit(self, source: CubeSource) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            layers = (torch.nn.Conv2d(len(source.bands), 16, 3), torch.nn.BatchNorm2d(16), torch.nn.GELU())
            self.model = torch.nn.Sequential(*layers)
        self.model.train(self.training)

    def to(self, device: str) -> None:
        self.model.to(device)
        self.device = device

    def encode(self, batch: CubeBatch) -> np.ndarray:
        images = torch.from_numpy(batch.values / np.float32(1000))
        with torch.inference_mode(), mixed(self.device, self.precision):
            features = self.model(images.flatten(0, 1).to(self.device)).mean(dim=(2, 3))
        return np.asarray(features.float().cpu().numpy().reshape(len(batch.ids), len(batch.seasons), -1).mean(axis=1))


def make(training: bool = False, precision: str = "float32") -> Any:
    return Network(training, precision)


PARAMS = {"training": False, "precision": "float32"}
NETWORK = Method(id="network", encoder=make, params=PARAMS, requires=("torch",), tolerance=1e-4)
