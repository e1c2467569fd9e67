"""The protocol as a plain torch loop, written from its description alone: what the compiled kernel must agree with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn


@dataclass(frozen=True)
class Trained:
    """Per split: raw outputs of the test part after every epoch (epochs, n_test, outputs), and mean losses."""

    outputs: np.ndarray
    train_loss: np.ndarray
    test_loss: np.ndarray


def train_splits(
    x: np.ndarray,
    y: np.ndarray,
    splits: list[tuple[np.ndarray, np.ndarray]],
    *,
    loss: nn.Module,
    seed: int = 42,
    **options: Any,
) -> list[Trained]:
    """All splits one after the other from one global generator, as NeuCo-Bench trains them."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        inputs, targets = torch.from_numpy(x), torch.from_numpy(y)
        return [train_split(inputs, targets, split, loss, **options) for split in splits]


def train_split(
    x: torch.Tensor,
    y: torch.Tensor,
    split: tuple[np.ndarray, np.ndarray],
    loss: nn.Module,
    *,
    epochs: int,
    batch_size: int,
    lr: float,
    outputs: int = 1,
    weight_decay: float = 0.01,
) -> Trained:
    train, test = (torch.from_numpy(np.ascontiguousarray(part)) for part in split)
    model = nn.Linear(x.shape[1], outputs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)
    seen, losses = [], []
    for _ in range(epochs):
        _loader_seed()
        total = 0.0
        for rows in torch.split(train[torch.randperm(len(train))], batch_size):
            optimizer.zero_grad()
            value = loss(model(x[rows]), y[rows])
            value.backward()
            optimizer.step()
            total += value.item() * len(rows)
        _loader_seed()
        torch.randperm(len(test))
        with torch.no_grad():
            out = model(x[test])
            losses.append((total / len(train), loss(out, y[test]).item()))
            seen.append(out.numpy().copy())
    curves = np.array(losses)
    return Trained(np.stack(seen), curves[:, 0], curves[:, 1])


def _loader_seed() -> None:
    """What a DataLoader draws when an epoch begins."""
    torch.empty((), dtype=torch.int64).random_()
