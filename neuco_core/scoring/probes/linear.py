"""The linear probe of NeuCo-Bench: y = w·x + b, trained with AdamW, in torch's own random order."""

from __future__ import annotations

import numpy as np

from neuco_core.errors import UsageError
from neuco_core.protocol import Protocol
from neuco_core.scoring.probes import Fit, Split, parameters
from neuco_core.scoring.splits import aligned
from neuco_core.versions import versioned

MSE, BCE, SOFTMAX = 0, 1, 2  # as the kernel numbers its losses


class WordStream:
    """The 32-bit words that ``torch.manual_seed(seed)`` starts; ``position`` is how many were taken.

    torch's generator on a CPU is MT19937, so its numbers can be had without torch.
    """

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


@versioned(1)
class LinearProbe:
    """Trains each split in one call of the compiled kernel."""

    def __init__(self, protocol: Protocol) -> None:
        sigmoid = parameters(protocol, sigmoid="torchmetrics")["sigmoid"]
        if sigmoid not in ("torchmetrics", "always"):
            expected = "torchmetrics or always"
            raise UsageError("bad parameter 'sigmoid'", where=protocol.name, expected=expected, got=sigmoid)
        self.protocol = protocol
        self._always = sigmoid == "always"
        from neuco_core.scoring import kernel  # numba takes half a second to import

        kernel.warm()
        self._fit = kernel.fit

    def words(self, dim: int, outputs: int, train: int, test: int) -> int:
        return linear_words(dim, outputs, train, test, self.protocol.epochs)

    def fit(self, split: Split) -> Fit:
        rules, dim = self.protocol, split.x.shape[1]
        outputs = split.classes if split.classes > 2 else split.y.shape[1]
        # Each of several labels has a loss of its own, and the sum is that of so many probes of one label each.
        binary = outputs == 1 or split.kind == "multilabel"
        loss = MSE if split.kind == "regression" else BCE if binary else SOFTMAX
        weights = np.empty((rules.epochs, outputs, dim), np.float32)
        biases = np.empty((rules.epochs, outputs), np.float32)
        out = np.empty((rules.epochs, len(split.test), outputs), np.float32)
        losses = np.empty((2, rules.epochs), np.float64)
        train, test = split.train.astype(np.uint32), split.test.astype(np.uint32)
        settings = (loss, rules.epochs, rules.batch_size, float(rules.lr), float(rules.weight_decay))
        scratch = aligned((4, outputs, dim))
        self._fit(split.x, split.y, train, test, split.words, *settings, scratch, weights, biases, out, losses)
        if loss == BCE:
            out = probabilities(out, always=self._always)
            out = out if split.kind == "multilabel" else np.concatenate([1 - out, out], axis=2)
        elif loss == SOFTMAX:
            out = softmax(out)
        return Fit(out, losses[0], losses[1], {"weight": weights, "bias": biases})


def probabilities(logits: np.ndarray, *, always: bool) -> np.ndarray:
    """From the logits (steps, n, labels) of what is there, or of the positive class.

    torchmetrics takes logits that all lie in [0, 1] as probabilities; ``always`` applies the sigmoid even then.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        positive = 1 / (1 + np.exp(-logits))
        if not always:
            inside = ((logits >= 0) & (logits <= 1)).all(axis=(1, 2), keepdims=True)
            positive = np.where(inside, logits, positive)
    return np.asarray(positive)


def softmax(logits: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
