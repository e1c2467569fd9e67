"""The network: convolutions that halve the image down to 4 × 4, a density of the code, and the way back."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

GRID = 4
WIDTH = 48


def halvings(size: int) -> int:
    """How often an image is halved to get from ``size`` to 4 × 4."""
    return round(math.log2(size / GRID))


def layer(inside: int, out: int, stride: int, back: bool = False) -> nn.Module:
    """A convolution that halves the image, or doubles it on the way back; with stride 1 it keeps the size."""
    if stride == 1:
        return nn.Conv2d(inside, out, 3, padding=1)
    kind = nn.ConvTranspose2d if back else nn.Conv2d
    return kind(inside, out, 4, stride=2, padding=1)


class FactorisedPrior(nn.Module):
    """One logistic density for each channel of the code: what an entropy coder would spend, in bits."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(channels, 1, 1))
        self.log_scale = nn.Parameter(torch.zeros(channels, 1, 1))

    def bits(self, code: Tensor) -> Tensor:
        """The bits of each value, rounded to whole numbers or with noise in place of the rounding."""
        scale = self.log_scale.exp() + 1e-3
        # Both ends on the falling side of the density: far out the difference of two values near 1 would be 0.
        distance = (code - self.mean).abs()
        mass = torch.sigmoid((0.5 - distance) / scale) - torch.sigmoid((-0.5 - distance) / scale)
        return -torch.log2(mass.clamp_min(1e-9))


class Compressor(nn.Module):
    """Images (n, band, size, size) to codes (n, channels, 4, 4) and back."""

    def __init__(self, bands: int, channels: int, size: int) -> None:
        super().__init__()
        # The first layer halves already: at full size a layer would cost more than all others together.
        steps = max(1, halvings(size))
        wide = [WIDTH] * (steps - 1)
        first = 2 if size > GRID else 1
        down: list[nn.Module] = []
        up: list[nn.Module] = [nn.Conv2d(channels, WIDTH, 3, padding=1), nn.LeakyReLU(0.1)]
        for inside, out, stride in zip([bands, *wide], [*wide, WIDTH], [first] + [2] * len(wide), strict=True):
            down += [layer(inside, out, stride), nn.LeakyReLU(0.1)]
        for inside, out, stride in zip([WIDTH, *wide], [*wide, bands], [2] * len(wide) + [first], strict=True):
            up += [layer(inside, out, stride, back=True), nn.LeakyReLU(0.1)]
        self.down = nn.Sequential(*down, nn.Conv2d(WIDTH, channels, 1))
        self.up = nn.Sequential(*up[:-1])
        self.prior = FactorisedPrior(channels)

    def loss(self, images: Tensor, noise: Tensor, fidelity: float) -> Tensor:
        """Bits for each value of the image plus ``fidelity`` times the squared error."""
        code = self.down(images) + noise
        rate = self.prior.bits(code).sum() / images.numel()
        return rate + fidelity * nn.functional.mse_loss(self.up(code), images)
