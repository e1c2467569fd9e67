"""Entropy coding behind any other coder: a range coder with a table of how often each byte occurs in each place."""

from __future__ import annotations

import numpy as np

from neuco_core.env import how_to_install
from neuco_core.errors import DependencyError, ScoreError
from neuco_extensions.coded.coders import BaseCoder

SMOOTHING = 32.0  # samples that the smooth shape counts for, beside those that were seen
LARGEST = 65535  # of the frequencies: two bytes each


class Entropy(BaseCoder):
    """The stream begins with the number of samples (4 bytes). All of it is decoded again before it counts."""

    takes = "codes"

    def __init__(self, setting: str = "") -> None:
        super().__init__(setting)
        try:
            from constriction import stream  # optional extra
        except ImportError as error:
            hint = f"Run `{how_to_install('rates')}`, or leave the coders with entropy out"
            raise DependencyError("entropy coding needs the package constriction", hint=hint) from error
        self._stream = stream

    def fit(self, codes: np.ndarray) -> None:
        """The frequencies of training samples, smoothed: most by a bell about their mean, a little by a constant."""
        columns, self._like = as_bytes(codes), codes[:0]
        seen = np.stack([np.bincount(column, minlength=256) for column in columns])
        mean, spread = columns.mean(axis=1, keepdims=True), columns.std(axis=1, keepdims=True)
        bell = np.exp(-0.5 * ((np.arange(256) - mean) / np.maximum(spread, 0.3)) ** 2)
        smooth = 0.95 * bell / bell.sum(axis=1, keepdims=True) + 0.05 / 256
        share = (seen + SMOOTHING * smooth) / (len(codes) + SMOOTHING)
        self.shared = (np.maximum(np.rint(LARGEST * share), 1).astype(np.uint16),)

    def encode(self, codes: np.ndarray) -> np.ndarray:
        encoder = self._stream.queue.RangeEncoder()
        for column, model in zip(as_bytes(codes), self._models(), strict=True):
            encoder.encode(column.astype(np.int32), model)
        head = np.array([len(codes)], "<u4").view(np.uint8)
        coded = np.concatenate([head, encoder.get_compressed().astype("<u4").view(np.uint8)])
        if not np.array_equal(self.decode(coded), codes):
            raise ScoreError("the entropy coder did not return what it was given")
        return coded

    def decode(self, coded: np.ndarray) -> np.ndarray:
        count, decoder = int(coded[:4].view("<u4")[0]), self._stream.queue.RangeDecoder(coded[4:].view("<u4").copy())
        columns = [decoder.decode(model, count).astype(np.uint8) for model in self._models()]
        rows = np.ascontiguousarray(np.stack(columns, axis=1))
        return rows.view(self._like.dtype).reshape(count, *self._like.shape[1:])

    def _models(self) -> list[object]:
        categorical = self._stream.model.Categorical
        return [categorical(table / table.sum(dtype=np.float64), perfect=False) for table in self.shared[0]]


def as_bytes(codes: np.ndarray) -> np.ndarray:
    """A row for each place of a sample's bytes."""
    return np.ascontiguousarray(codes).view(np.uint8).reshape(len(codes), -1).T
