"""NeuCo-Bench's run over several tasks as a plain torch loop, written from its description (commit a89ba06).

Unlike ``tests/scoring/oracle.py`` it uses torch's own loaders and torchmetrics, and it knows of labels that are odd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from sklearn.model_selection import ShuffleSplit
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset
from torchmetrics.classification import BinaryF1Score
from torchmetrics.regression import R2Score

BATCH = 64


def run(
    x: np.ndarray,
    tasks: Mapping[str, tuple[Sequence[int], np.ndarray, str]],
    *,
    splits: int,
    epochs: int,
    lr: float,
    normalize: bool = True,
    store: bool = False,
) -> dict[str, list[float]]:
    """Scores by task: the best epoch of each split. A task is the rows of ``x``, their labels, and its kind."""
    x = ((x - x.mean()) / x.std()).astype(np.float32)
    with torch.random.fork_rng():
        torch.manual_seed(42)
        return {name: _task(x, *tasks[name], splits, epochs, lr, normalize, store) for name in sorted(tasks)}


def _task(
    x: np.ndarray,
    rows: Sequence[int],
    labels: np.ndarray,
    kind: str,
    splits: int,
    epochs: int,
    lr: float,
    normalize: bool,
    store: bool,
) -> list[float]:
    with np.errstate(invalid="ignore"):
        y = (labels - labels.min()) / (labels.max() - labels.min()) if normalize else labels
    data = TensorDataset(torch.from_numpy(x[list(rows)]), torch.from_numpy(y.astype(np.float32)))
    parts = ShuffleSplit(splits, test_size=0.1, random_state=42).split(np.arange(len(y)))
    scores = [_split(data, train, test, kind, epochs, lr) for train, test in parts]
    if store:  # one more model, trained on everything
        nn.Linear(x.shape[1], 1)
        for _ in range(epochs):
            for _ in DataLoader(data, batch_size=BATCH):
                pass
    return scores


def _split(data: TensorDataset, train: np.ndarray, test: np.ndarray, kind: str, epochs: int, lr: float) -> float:
    loaders = [DataLoader(data, batch_size=BATCH, sampler=SubsetRandomSampler(part.tolist())) for part in (train, test)]
    model = nn.Linear(data.tensors[0].shape[1], 1)
    loss = nn.MSELoss() if kind == "regression" else nn.BCEWithLogitsLoss()
    metric = R2Score() if kind == "regression" else BinaryF1Score()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    best = float("-inf")
    for _ in range(epochs):
        for inputs, targets in loaders[0]:
            optimizer.zero_grad()
            loss(model(inputs).view(-1), targets).backward()
            optimizer.step()
        with torch.no_grad():
            seen = [(model(inputs).view(-1), targets) for inputs, targets in loaders[1]]
        predicted, truth = (torch.cat(part) for part in zip(*seen, strict=True))
        best = max(best, metric(predicted, truth if kind == "regression" else truth.int()).item())
    return best
