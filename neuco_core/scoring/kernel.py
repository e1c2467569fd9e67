"""The linear probe, compiled: one call trains one split from first to last epoch, without the interpreter.

Everything is float32, as in the loop that it replaces. Rows go four at a time, so that one read of the weights
(or of the gradient) serves four rows, and their backward pass finds them in the processor's first cache. Sums may be
reordered, which is what lets them run in vector registers, but nothing here assumes finite numbers: a NaN stays a
NaN. All of it is in one file because the compiler's cache looks at one file.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from neuco_core.plugins.compiled import compiled, first_call

FAST = {"reassoc", "contract", "arcp", "nsz"}


_compiled = compiled(keep=False, fastmath=FAST, error_model="numpy")


@_compiled
def _forward(x, rows, start, count, weight, bias, out):  # type: ignore[no-untyped-def]
    """out[i] = weight · x[rows[start + i]] + bias for ``count`` rows."""
    dim = x.shape[1]
    fours = count - count % 4
    for o in range(weight.shape[0]):
        for i in range(0, fours, 4):
            r0, r1 = rows[start + i], rows[start + i + 1]
            r2, r3 = rows[start + i + 2], rows[start + i + 3]
            s0 = s1 = s2 = s3 = np.float32(0)
            for j in range(dim):
                w = weight[o, j]
                s0 += w * x[r0, j]
                s1 += w * x[r1, j]
                s2 += w * x[r2, j]
                s3 += w * x[r3, j]
            out[i, o] = s0 + bias[o]
            out[i + 1, o] = s1 + bias[o]
            out[i + 2, o] = s2 + bias[o]
            out[i + 3, o] = s3 + bias[o]
        for i in range(fours, count):
            r0 = rows[start + i]
            s0 = np.float32(0)
            for j in range(dim):
                s0 += weight[o, j] * x[r0, j]
            out[i, o] = s0 + bias[o]


@_compiled
def _backward(x, rows, start, count, delta, gradient, bias_gradient):  # type: ignore[no-untyped-def]
    """gradient += Σ delta[i] x[rows[start + i]] over ``count`` rows, and the same for the bias."""
    dim = x.shape[1]
    fours = count - count % 4
    for o in range(gradient.shape[0]):
        for i in range(0, fours, 4):
            r0, r1 = rows[start + i], rows[start + i + 1]
            r2, r3 = rows[start + i + 2], rows[start + i + 3]
            d0, d1, d2, d3 = delta[i, o], delta[i + 1, o], delta[i + 2, o], delta[i + 3, o]
            for j in range(dim):
                gradient[o, j] += d0 * x[r0, j] + d1 * x[r1, j] + d2 * x[r2, j] + d3 * x[r3, j]
        for i in range(fours, count):
            r0, d0 = rows[start + i], delta[i, o]
            for j in range(dim):
                gradient[o, j] += d0 * x[r0, j]
        for i in range(count):
            bias_gradient[o] += delta[i, o]


@_compiled
def _loss(y, rows, start, count, kind, out, scale):  # type: ignore[no-untyped-def]
    """The sum of the rows' losses; if ``scale`` is not 0, ``out`` becomes the loss's derivative times it."""
    total = np.float64(0)
    outputs = out.shape[1]
    for i in range(count):
        r = rows[start + i]
        if kind == 2:
            top = out[i, 0]
            for o in range(1, outputs):
                top = max(top, out[i, o])
            norm = np.float32(0)
            for o in range(outputs):
                norm += np.exp(out[i, o] - top)
            right = int(y[r, 0])
            total += np.log(norm) + top - out[i, right]
            if scale != 0:
                for o in range(outputs):
                    share = np.exp(out[i, o] - top) / norm
                    out[i, o] = (share - np.float32(o == right)) * scale
            continue
        for o in range(outputs):
            z, t = out[i, o], y[r, o]
            if kind == 0:
                total += np.float64(z - t) * np.float64(z - t)
                derivative = np.float32(2) * (z - t)
            else:
                e = np.exp(-abs(z))
                total += max(z, np.float32(0)) - z * t + np.log1p(e)
                derivative = (np.float32(1) if z >= 0 else e) / (np.float32(1) + e) - t
            if scale != 0:
                out[i, o] = derivative * scale
    return total


@_compiled
def _adamw(p, g, m, v, step, lr, decay):  # type: ignore[no-untyped-def]
    """One AdamW step in place, with betas 0.9 and 0.999 and eps 1e-8."""
    keep = np.float32(1.0 - lr * decay)
    rate = np.float32(lr / (1.0 - 0.9**step))
    root = np.float32(1.0 / np.sqrt(1.0 - 0.999**step))
    b1, b2, c2, eps = np.float32(1 - 0.9), np.float32(0.999), np.float32(1 - 0.999), np.float32(1e-8)
    for j in range(p.size):
        gj = g[j]
        mj = m[j] + b1 * (gj - m[j])
        vj = b2 * v[j] + c2 * gj * gj
        m[j] = mj
        v[j] = vj
        p[j] = keep * p[j] - rate * mj / (np.sqrt(vj) * root + eps)


@_compiled
def _shuffle(words, at, source, rows):  # type: ignore[no-untyped-def]
    """rows = source in the order of torch.randperm; returns where the next word is."""
    n = source.size
    for i in range(n):
        rows[i] = source[i]
    for i in range(n - 1):
        j = i + words[at + i] % np.uint32(n - i)
        rows[i], rows[j] = rows[j], rows[i]
    return at + max(n - 1, 0)


@_compiled
def _initial(words, weight, bias):  # type: ignore[no-untyped-def]
    """torch's start of a linear layer: uniform in ±1/√dim, from the low 24 bits of each word; weights, then biases."""
    outputs, dim = weight.shape
    bound, unit = np.float32(1.0 / np.sqrt(np.float64(dim))), np.float32(2.0**-24)
    for k in range(outputs * (dim + 1)):
        value = np.float32(words[k] & np.uint32(0xFFFFFF)) * unit * (bound + bound) - bound
        if k < outputs * dim:
            weight[k // dim, k % dim] = value
        else:
            bias[k - outputs * dim] = value


@_compiled
def _gradients(x, y, rows, start, count, kind, weight, bias, out, gradient, bias_gradient):  # type: ignore[no-untyped-def]
    """The gradients of a batch's mean loss; returns the sum of its rows' losses.

    Forward and backward pass go together, four rows at a time, so that the second finds the rows in the first cache.
    """
    gradient[:] = np.float32(0)
    bias_gradient[:] = np.float32(0)
    scale = np.float32(1.0 / (count * (gradient.shape[0] if kind == 0 else 1)))
    total = np.float64(0)
    for i in range(start, start + count, 4):
        few = min(4, start + count - i)
        _forward(x, rows, i, few, weight, bias, out)
        total += _loss(y, rows, i, few, kind, out, scale)
        _backward(x, rows, i, few, out, gradient, bias_gradient)
    return total


@compiled(keep=True, fastmath=FAST, error_model="numpy")
def fit(x, y, train, test, words, kind, epochs, batch, lr, decay, scratch, weights, biases, predictions, losses):  # type: ignore[no-untyped-def]
    """Train one split. Fills per epoch: weights, biases, predictions of the test part, losses (train, test).

    ``scratch`` is room for four arrays of the weights' shape.
    """
    outputs, dim = weights.shape[1], weights.shape[2]
    weight, gradient, m, v = scratch[0], scratch[1], scratch[2].reshape(-1), scratch[3].reshape(-1)
    m[:], v[:] = np.float32(0), np.float32(0)
    bias = np.empty(outputs, np.float32)
    bias_gradient = np.empty_like(bias)
    _initial(words, weight, bias)
    bias_m, bias_v = np.zeros_like(bias), np.zeros_like(bias)
    rows, out = np.empty_like(train), np.empty((4, outputs), np.float32)
    at, step, spread = outputs * (dim + 1), 0, outputs if kind == 0 else 1
    for epoch in range(epochs):
        at = _shuffle(words, at + 2, train, rows)
        total = np.float64(0)
        for start in range(0, train.size, batch):
            count = min(batch, train.size - start)
            total += _gradients(x, y, rows, start, count, kind, weight, bias, out, gradient, bias_gradient)
            step += 1
            _adamw(weight.reshape(-1), gradient.reshape(-1), m, v, step, lr, decay)
            _adamw(bias, bias_gradient, bias_m, bias_v, step, lr, decay)
        losses[0, epoch] = total / (train.size * spread)
        at += 2 + max(test.size - 1, 0)
        weights[epoch] = weight
        biases[epoch] = bias
    # Four rows for all epochs, then the next four: each row comes from memory once.
    for start in range(0, test.size, 4):
        count = min(4, test.size - start)
        for epoch in range(epochs):
            _forward(x, test, start, count, weights[epoch], biases[epoch], predictions[epoch, start:])
    for epoch in range(epochs):
        losses[1, epoch] = _loss(y, test, 0, test.size, kind, predictions[epoch], np.float32(0)) / (test.size * spread)


@cache
def warm() -> None:
    """Compile, or load what was compiled before, so that a compiler that fails does so here."""
    x, y, rows = np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32), np.arange(2, dtype=np.uint32)
    words, losses = np.zeros(8, np.uint32), np.empty((2, 1))
    filled = [np.empty(shape, np.float32) for shape in ((4, 1, 1), (1, 1, 1), (1, 1), (1, 1, 1))]
    first_call(fit, x, y, rows[:1], rows[1:], words, 0, 1, 1, 0.001, 0.01, *filled, losses)
