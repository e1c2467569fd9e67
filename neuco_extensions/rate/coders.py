"""What an embedding costs in bits, and what is left of it after coding: real coding, real decoding.

A coder is a function: it codes an (n, dim) block of float32, decodes it again, and returns ``Coded``. The bits of a
sample are those of its own values plus its share of everything the decoder needs (scales, levels, model parameters:
``side_bits``). A new one is a function here and a line in ``CODERS``; one with a parameter, such as ``entropy=0.5``,
takes it as its second argument and has a line in ``USUAL``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from neuco_core.env import how_to_install
from neuco_core.errors import DependencyError, ScoreError, UsageError

MOST_SYMBOLS = 1 << 20
FLOATS = 32.0  # bits of a float32


@dataclass(frozen=True)
class Coded:
    """What the decoder gives back, and the mean number of bits per sample, with the share of ``side_bits``."""

    values: np.ndarray
    bits: float
    side_bits: float


def float32(values: np.ndarray) -> Coded:
    return Coded(values, FLOATS * values.shape[1], 0.0)


def float16(values: np.ndarray) -> Coded:
    if np.abs(values).max() > np.finfo(np.float16).max:
        raise ScoreError("values too large for float16", expected="at most 65504", got=f"{np.abs(values).max():g}")
    return Coded(values.astype(np.float16).astype(np.float32), 16.0 * values.shape[1], 0.0)


def int8(values: np.ndarray) -> Coded:
    """256 even steps between the smallest and the largest value of each dimension; the decoder gets both."""
    low, high = values.min(axis=0), values.max(axis=0)
    step = (high.astype(np.float64) - low) / 255
    step[step == 0] = 1.0
    levels = np.rint((values - low) / step).astype(np.uint8)
    side = 2 * FLOATS * values.shape[1]
    return Coded((low + levels * step).astype(np.float32), 8.0 * values.shape[1] + side / len(values), side)


def binary(values: np.ndarray) -> Coded:
    """One bit: above the dimension's median or not; the decoder gets the means of the two halves."""
    above = values > np.median(values, axis=0)
    count = above.sum(axis=0)
    block = values.astype(np.float64)
    total, upper = block.sum(axis=0), np.where(above, block, 0).sum(axis=0)
    high = upper / np.maximum(count, 1)
    low = (total - upper) / np.maximum(len(values) - count, 1)
    side = 2 * FLOATS * values.shape[1]
    return Coded(np.where(above, high, low).astype(np.float32), values.shape[1] + side / len(values), side)


def entropy(values: np.ndarray, step: float) -> Coded:
    """Uniform quantiser and range coder with a Gaussian per dimension; ``step`` is in deviations of the whole block.

    Side information: mean and deviation of each dimension, the step, and the range of the symbols.
    """
    try:
        from constriction import stream  # optional extra
    except ImportError as error:
        hint = f"Run `{how_to_install('rates')}`, or leave entropy out of --rates"
        raise DependencyError("entropy coding needs the package constriction", hint=hint) from error
    mean = values.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = values.astype(np.float64) - mean
    width = np.float32(step * (centred.std() or 1.0))
    symbols = np.rint(centred / width)
    low, high = int(symbols.min()), int(symbols.max())
    if high - low >= MOST_SYMBOLS:
        raise ScoreError("the step of the entropy coder is too fine for these values", got=f"{high - low + 1} symbols")
    symbols = symbols.astype(np.int32)
    # At least 0.1, so that a model that is certain of one symbol can still code another.
    deviation = np.maximum(symbols.std(axis=0), 0.1).astype(np.float32)
    # One dimension after the other, so that no table of parameters as large as the block is needed.
    models = [stream.model.QuantizedGaussian(low, max(high, low + 1), 0.0, float(value)) for value in deviation]
    encoder = stream.queue.RangeEncoder()
    for column, model in zip(symbols.T, models, strict=True):
        encoder.encode(np.ascontiguousarray(column), model)
    compressed = encoder.get_compressed()
    decoder = stream.queue.RangeDecoder(compressed)
    decoded = np.stack([decoder.decode(model, len(symbols)) for model in models], axis=1)
    if not np.array_equal(decoded, symbols):
        raise ScoreError("the entropy coder did not return what it was given")
    side = 2 * FLOATS * values.shape[1] + FLOATS + 64
    restored = (decoded * np.float64(width) + mean).astype(np.float32)
    return Coded(restored, (32.0 * len(compressed) + side) / len(values), side)


CODERS: dict[str, Callable[..., Coded]] = {
    "float32": float32,
    "float16": float16,
    "int8": int8,
    "binary": binary,
    "entropy": entropy,
}
# By coder that has a parameter: its usual values. The plain name stands for all of them, one rate each.
USUAL = {"entropy": (0.25, 0.5, 1.0, 2.0)}


def installed_rates() -> tuple[tuple[str, ...], list[str]]:
    """The coders whose packages are here, and a line about those that are left out."""
    if find_spec("constriction"):
        return tuple(CODERS), []
    rates = tuple(name for name in CODERS if name != "entropy")
    return rates, [f"left out entropy: it needs the package constriction. Run `{how_to_install('rates')}`"]


def expand(names: tuple[str, ...]) -> tuple[str, ...]:
    rates: list[str] = []
    for name in names:
        rates += [f"{name}={value:g}" for value in USUAL[name]] if name in USUAL else [name]
    for rate in rates:
        coder_of(rate)  # raises
    return tuple(dict.fromkeys(rates))


def coder_of(rate: str) -> Callable[[np.ndarray], Coded]:
    name, equals, text = rate.partition("=")
    if name not in CODERS or bool(equals) != (name in USUAL):
        expected = ", ".join([*CODERS, *(f"{name}=NUMBER" for name in USUAL)])
        raise UsageError("no such rate", expected=expected, got=repr(rate))
    if not equals:
        return CODERS[name]
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError("bad number in a rate", expected="one above 0", got=repr(rate))
    return lambda values: CODERS[name](values, value)


def code(values: np.ndarray, rate: str) -> Coded:
    return coder_of(rate)(values)
