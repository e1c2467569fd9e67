"""The linear probe in plain NumPy, for where there is no compiler: the same steps, many times slower."""

from __future__ import annotations

import numpy as np

MSE, BCE, SOFTMAX = 0, 1, 2
BETAS, EPS = (0.9, 0.999), 1e-8


def fit(
    x: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    words: np.ndarray,
    kind: int,
    epochs: int,
    batch: int,
    lr: float,
    decay: float,
    weights: np.ndarray,
    biases: np.ndarray,
    predictions: np.ndarray,
    losses: np.ndarray,
) -> None:
    """Train one split; what is filled is the same as in the compiled ``kernel.fit``."""
    outputs, dim = weights.shape[1:]
    bound = np.float32(1 / np.sqrt(dim))
    drawn = (words[: (dim + 1) * outputs] & 0xFFFFFF).astype(np.float32) * np.float32(2.0**-24)
    parameters = drawn * (bound + bound) - bound
    weight, bias = parameters[:-outputs].reshape(outputs, dim), parameters[-outputs:]
    gradient, m, v = (np.zeros_like(parameters) for _ in range(3))
    slope, bias_slope = gradient[:-outputs].reshape(outputs, dim), gradient[-outputs:]
    at, step = (dim + 1) * outputs, 0
    with np.errstate(all="ignore"):
        for epoch in range(epochs):
            rows, at = _shuffled(train, words, at + 2)
            total = 0.0
            for start in range(0, len(rows), batch):
                chosen = rows[start : start + batch]
                loss, delta = _loss(x[chosen] @ weight.T + bias, y[chosen], kind)
                total += loss * len(chosen)
                np.matmul(delta.T, x[chosen], out=slope)
                np.sum(delta, axis=0, out=bias_slope)
                step += 1
                _adamw(parameters, gradient, m, v, step, lr, decay)
            predictions[epoch] = x[test] @ weight.T + bias
            losses[:, epoch] = total / len(train), _loss(predictions[epoch], y[test], kind)[0]
            weights[epoch], biases[epoch] = weight, bias
            at += 2 + max(len(test) - 1, 0)


def _shuffled(source: np.ndarray, words: np.ndarray, at: int) -> tuple[np.ndarray, int]:
    """The rows in the order of torch.randperm, and where the next word is."""
    rows, n = source.tolist(), len(source)
    steps = words[at : at + n - 1] % np.arange(n, 1, -1, dtype=np.uint32)
    for i, step in enumerate(steps.tolist()):
        rows[i], rows[i + step] = rows[i + step], rows[i]
    return np.array(rows, dtype=np.int64), at + max(n - 1, 0)


def _loss(z: np.ndarray, y: np.ndarray, kind: int) -> tuple[float, np.ndarray]:
    """The mean loss and its derivative by z."""
    if kind == MSE:
        return float(np.square(z - y).mean(dtype=np.float64)), 2 * (z - y) / np.float32(z.size)
    if kind == BCE:
        small = np.exp(-abs(z))
        loss = np.maximum(z, 0) - z * y + np.log1p(small)
        return float(loss.mean(dtype=np.float64)), (np.where(z >= 0, 1, small) / (1 + small) - y) / np.float32(len(z))
    right = (np.arange(len(z)), y[:, 0].astype(np.int64))
    z = z - z.max(axis=1, keepdims=True)
    share = np.exp(z)
    norm = share.sum(axis=1, keepdims=True)
    loss = np.log(norm[:, 0]) - z[right]
    share /= norm
    share[right] -= 1
    return float(loss.mean(dtype=np.float64)), share / np.float32(len(z))


def _adamw(p: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, step: int, lr: float, decay: float) -> None:
    m += np.float32(1 - BETAS[0]) * (g - m)
    v *= np.float32(BETAS[1])
    v += np.float32(1 - BETAS[1]) * g * g
    root = np.float32(1 / np.sqrt(1 - BETAS[1] ** step))
    p *= np.float32(1 - lr * decay)
    p -= np.float32(lr / (1 - BETAS[0] ** step)) * m / (np.sqrt(v) * root + np.float32(EPS))
