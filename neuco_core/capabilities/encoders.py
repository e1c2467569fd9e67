"""The encoders of the capabilities-encoding paper: methods and tasks are points, and their distance is the gap Δ.

Many tables are fitted at once, since all folds of a cross-validation have the same shape. The numbers are those of the
paper's code: Adam with 100 steps of warm-up and a cosine to 0 over 500 steps. Its Poincaré gradient is scaled by the
norm of all parameters together, where that of each point is meant; it is so here too, that numbers can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from neuco_core.errors import UsageError

STEPS, WARM_UP, RATE = 500, 100, 0.05


def fit_gaps(gaps: np.ndarray, known: np.ndarray, distance: str, dimension: int = 5, seed: int = 0) -> np.ndarray:
    """Predicted gaps (fold, method, task), learnt from the known ones of each fold; both arguments have that shape."""
    import torch

    if dimension < 1 or distance not in DISTANCES:
        raise UsageError("bad encoder", expected=f"one of {', '.join(DISTANCES)}, dimension 1 or more", got=distance)
    generator = torch.Generator().manual_seed(seed)
    folds, methods, tasks = gaps.shape
    points = [_start(torch, (folds, size, dimension), distance, generator) for size in (methods, tasks)]
    places = torch.from_numpy(np.stack(np.nonzero(known.any(0))))
    weights = torch.from_numpy(known[:, *places].astype(np.float32))
    weights = weights / weights.sum(1, keepdim=True)
    wanted = torch.from_numpy(np.nan_to_num(gaps)[:, *places].astype(np.float32))
    optimiser = torch.optim.Adam(points, lr=RATE)
    between = DISTANCES[distance]
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = _rate(step)
        optimiser.zero_grad()
        found = between(points[0][:, places[0]], points[1][:, places[1]])
        (weights * (found - wanted) ** 2).sum().backward()
        if distance == "poincare":
            _rescale(torch, points)
        optimiser.step()
    with torch.no_grad():
        rows, columns = points
        return np.asarray(between(rows[:, :, None], columns[:, None]).numpy(), np.float64)


def _rate(step: int) -> float:
    if step < WARM_UP:
        return RATE * (0.01 + 0.99 * step / WARM_UP)
    return RATE * 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / (STEPS - WARM_UP)))


def _start(torch: Any, shape: tuple[int, ...], distance: str, generator: Any) -> Any:
    if distance == "poincare":
        values = torch.rand(shape, generator=generator) * 0.001 - 0.0005
    else:
        values = torch.randn(shape, generator=generator) * 0.1
    return values.requires_grad_()


def _rescale(torch: Any, points: list[Any]) -> None:
    """Of each fold by itself; both kinds of points together."""
    with torch.no_grad():
        squares = sum((part**2).sum(dim=(1, 2)) for part in points)
        factor = ((1 - squares) ** 2 / 4)[:, None, None]
        for part in points:
            part.grad *= factor


def _l2(rows: Any, columns: Any) -> Any:
    return ((rows - columns) ** 2).sum(-1).add(1e-24).sqrt().clamp(0, 1)


def _cosine(rows: Any, columns: Any) -> Any:
    import torch

    return (0.5 - torch.nn.functional.cosine_similarity(rows, columns, dim=-1)).clamp(0, 1)


def _poincare(rows: Any, columns: Any) -> Any:
    import torch

    apart = ((rows - columns) ** 2).sum(-1)
    inside = (1 - (rows**2).sum(-1)).clamp_min(1e-5) * (1 - (columns**2).sum(-1)).clamp_min(1e-5)
    return torch.acosh(1 + 2 * apart / inside + 1e-7)


DISTANCES: dict[str, Callable[[Any, Any], Any]] = {"l2": _l2, "cosine": _cosine, "poincare": _poincare}
