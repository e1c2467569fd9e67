"""NeuCo-Bench's run over several tasks, written from its description (commit a89ba06), with labels that are odd.

The training is the torch loop of ``tests/scoring/oracle.py``; scores are torchmetrics' own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from sklearn.model_selection import ShuffleSplit
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryF1Score
from torchmetrics.regression import R2Score

from tests.scoring.oracle import train_split

BATCH = 64


def run(
    x: np.ndarray,
    tasks: Mapping[str, tuple[np.ndarray, str]],
    *,
    splits: int,
    epochs: int,
    lr: float,
    normalize: bool = True,
    store: bool = False,
) -> dict[str, list[float]]:
    """Scores by task: the best epoch of each split. A task is a label for each row of ``x``, and its kind."""
    inputs = torch.from_numpy(((x - x.mean()) / x.std()).astype(np.float32))
    scores: dict[str, list[float]] = {}
    with torch.random.fork_rng():
        torch.manual_seed(42)
        for name, (labels, kind) in sorted(tasks.items()):
            with np.errstate(invalid="ignore"):
                y = (labels - labels.min()) / (labels.max() - labels.min()) if normalize else labels
            targets = torch.from_numpy(y.astype(np.float32)[:, None])
            loss = nn.MSELoss() if kind == "regression" else nn.BCEWithLogitsLoss()
            scores[name] = []
            for train, test in ShuffleSplit(splits, test_size=0.1, random_state=42).split(inputs):
                trained = train_split(inputs, targets, (train, test), loss, epochs=epochs, batch_size=BATCH, lr=lr)
                curve = [_metric(kind, torch.from_numpy(out[:, 0]), targets[test, 0]) for out in trained.outputs]
                scores[name].append(max([float("-inf"), *curve]))
            if store:  # one more model, trained on everything
                nn.Linear(x.shape[1], 1)
                for _ in range(epochs):
                    for _ in DataLoader(TensorDataset(inputs, targets), batch_size=BATCH):
                        pass
    return scores


def _metric(kind: str, predicted: torch.Tensor, truth: torch.Tensor) -> float:
    if kind == "regression":
        return float(R2Score()(predicted, truth))
    return float(BinaryF1Score()(predicted, truth.int()))
