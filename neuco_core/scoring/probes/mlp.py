"""A small neural network as a probe: one or two hidden layers, trained with torch like the linear probe."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from neuco_core.env import how_to_install
from neuco_core.errors import DependencyError, UsageError
from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import Fit, Split, parameters
from neuco_core.versions import versioned

if TYPE_CHECKING:
    import torch


@versioned(1)
class MLPProbe:
    """``layers`` hidden layers of ``width`` rectified units. Every split has a generator of its own."""

    def __init__(self, protocol: Protocol) -> None:
        chosen = parameters(protocol, layers=1, width=256)
        if chosen["layers"] < 1 or chosen["width"] < 1:
            raise UsageError("bad parameters of the mlp probe", expected="layers and width of at least 1", got=chosen)
        try:
            import torch
        except ImportError as error:
            hint = f"Run `{how_to_install('torch')}`"
            raise DependencyError("the mlp probes need torch", where=protocol.name, hint=hint) from error
        self.protocol, self.torch = protocol, torch
        self.hidden = [chosen["width"]] * chosen["layers"]

    def fit(self, split: Split) -> Fit:
        torch, rules = self.torch, self.protocol
        generator = torch.Generator().manual_seed(rules.seed + split.index)
        outputs = split.classes if split.classes > 2 else split.y.shape[1]
        x, y = torch.from_numpy(split.x), torch.from_numpy(split.y)
        train, test = torch.from_numpy(split.train.copy()), torch.from_numpy(split.test.copy())
        weights = self._initial([x.shape[1], *self.hidden, outputs], generator)
        optimizer = torch.optim.AdamW(weights, lr=rules.lr, weight_decay=rules.weight_decay)
        predictions, losses = [], np.empty((2, rules.epochs))
        for epoch in range(rules.epochs):
            total = 0.0
            for rows in train[torch.randperm(len(train), generator=generator)].split(rules.batch_size):
                split.check()
                optimizer.zero_grad()
                loss = self._loss(self._forward(x[rows], weights), y[rows], split)
                torch.autograd.backward(loss)
                optimizer.step()
                total += loss.item() * len(rows)
            with torch.no_grad():
                out = self._forward(x[test], weights)
                losses[:, epoch] = total / len(train), self._loss(out, y[test], split).item()
                predictions.append(self._predicted(out, split))
        return Fit(np.stack(predictions), losses[0], losses[1])

    def _initial(self, sizes: list[int], generator: torch.Generator) -> list[torch.Tensor]:
        """Weights and biases, uniform in ±1/√inputs: torch's default for a linear layer."""
        tensors = []
        for inputs, outputs in pairwise(sizes):
            bound = 1 / math.sqrt(inputs)
            for shape in ((outputs, inputs), (outputs,)):
                tensor = self.torch.empty(shape).uniform_(-bound, bound, generator=generator)
                tensors.append(tensor.requires_grad_())
        return tensors

    def _forward(self, x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
        linear: Callable[..., torch.Tensor] = self.torch.nn.functional.linear
        for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            x = linear(x, weight, bias).relu()
        return linear(x, weights[-2], weights[-1])

    def _loss(self, out: torch.Tensor, y: torch.Tensor, split: Split) -> torch.Tensor:
        functional = self.torch.nn.functional
        if split.kind == "regression":
            loss: torch.Tensor = functional.mse_loss(out, y)
        elif split.classes == 2 or split.kind == "multilabel":
            loss = functional.binary_cross_entropy_with_logits(out, y)
        else:
            loss = functional.cross_entropy(out, y[:, 0].long())
        return loss

    def _predicted(self, out: torch.Tensor, split: Split) -> np.ndarray:
        if split.kind == "multilabel":
            out = out.sigmoid()
        elif split.kind == "classification":
            out = out.softmax(1) if split.classes > 2 else self.torch.cat([-out, out], 1).sigmoid()
        return out.numpy()
