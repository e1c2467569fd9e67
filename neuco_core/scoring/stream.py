"""torch's random numbers without torch: the 32-bit words of its CPU generator, which is MT19937."""

from __future__ import annotations

import numpy as np


class WordStream:
    """The words that ``torch.manual_seed(seed)`` starts; ``position`` is how many were taken."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.RandomState(seed & 0xFFFFFFFF)._bit_generator
        self.position = 0

    def take(self, count: int) -> np.ndarray:
        words: np.ndarray = self._generator.random_raw(count)
        self.position += count
        return words.astype(np.uint32)

    def move_to(self, position: int) -> None:
        """Leave out words up to a position that was not passed yet."""
        self._generator.random_raw(position - self.position, output=False)
        self.position = position


def linear_words(dim: int, outputs: int, train: int, test: int, epochs: int) -> int:
    """How many words one split of the linear probe uses.

    The weights, the biases, then per epoch a seed of two words and a permutation for each of the two loaders.
    """
    return (dim + 1) * outputs + epochs * (2 + max(train - 1, 0) + 2 + max(test - 1, 0))
