"""EfficientNet-Lite0 up to its last block, with the names that the published weights have."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu6

# Repeats, kernel, stride, expansion, channels out: EfficientNet-B0 without squeeze-and-excitation.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM = 32
HEAD = 1280
CLASSES = 1000


class Conv(nn.Conv2d):
    """A convolution padded as TensorFlow does it: what is uneven goes to the right and below."""

    def forward(self, values: Tensor) -> Tensor:
        sides: list[int] = []
        for axis in (1, 0):
            length, kernel, stride = values.shape[2 + axis], self.kernel_size[axis], self.stride[axis]
            total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
            sides += [total // 2, total - total // 2]
        return super().forward(pad(values, sides))


def norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


class Block(nn.Module):
    """Widen, filter each channel, narrow; add the input where the shapes allow."""

    def __init__(self, inside: int, out: int, kernel: int, stride: int, expand: int) -> None:
        super().__init__()
        wide = inside * expand
        if expand > 1:
            self._expand_conv = Conv(inside, wide, 1, bias=False)
            self._bn0 = norm(wide)
        self._depthwise_conv = Conv(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = norm(wide)
        self._project_conv = Conv(wide, out, 1, bias=False)
        self._bn2 = norm(out)
        self.expands = expand > 1
        self.skips = stride == 1 and inside == out

    def forward(self, values: Tensor) -> Tensor:
        wide = relu6(self._bn0(self._expand_conv(values))) if self.expands else values
        wide = relu6(self._bn1(self._depthwise_conv(wide)))
        new: Tensor = self._bn2(self._project_conv(wide))
        return new + values if self.skips else new


class EfficientNetLite0(nn.Module):
    """``features`` gives (n, 320); the whole network is here so that the weights can be loaded without a gap."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = Conv(3, STEM, 3, 2, bias=False)
        self._bn0 = norm(STEM)
        blocks: list[nn.Module] = []
        inside = STEM
        for repeats, kernel, stride, expand, out in STAGES:
            for i in range(repeats):
                blocks.append(Block(inside, out, kernel, stride if i == 0 else 1, expand))
                inside = out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = Conv(inside, HEAD, 1, bias=False)
        self._bn1 = norm(HEAD)
        self._fc = nn.Linear(HEAD, CLASSES)

    def _trunk(self, images: Tensor) -> Tensor:
        values = relu6(self._bn0(self._conv_stem(images)))
        for block in self._blocks:
            values = block(values)
        return values

    def features(self, images: Tensor) -> Tensor:
        return self._trunk(images).mean(dim=(2, 3))

    def forward(self, images: Tensor) -> Tensor:
        head = relu6(self._bn1(self._conv_head(self._trunk(images))))
        logits: Tensor = self._fc(head.mean(dim=(2, 3)))
        return logits


def load(path: str) -> EfficientNetLite0:
    """The network with published weights; ``weights_only`` lets the file bring tensors and no code."""
    model = EfficientNetLite0()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model.eval()
