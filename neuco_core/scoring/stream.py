"""torch's random numbers without torch: the 32-bit words of its CPU generator, which is MT19937."""

from __future__ import annotations

import numpy as np


class WordStream:
    """The words that ``torch.manual_seed(seed)`` starts, from the ``skip``-th on."""

    def __init__(self, seed: int, skip: int = 0) -> None:
        self._generator = np.random.RandomState(seed & 0xFFFFFFFF)._bit_generator
        self.skip(skip)

    def take(self, count: int) -> np.ndarray:
        words: np.ndarray = self._generator.random_raw(count)
        return words.astype(np.uint32)

    def skip(self, count: int) -> None:
        if count:
            self._generator.random_raw(count, output=False)


def linear_words(dim: int, outputs: int, train: int, test: int, epochs: int) -> int:
    """How many words one split of the linear probe uses.

    The weights, the biases, then per epoch a seed of two words and a permutation for each of the two loaders.
    """
    return (dim + 1) * outputs + epochs * (2 + max(train - 1, 0) + 2 + max(test - 1, 0))
