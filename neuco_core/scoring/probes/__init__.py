"""What a probe is.

A probe plugin registers ``Probe(id=…, factory=f)``; ``f(protocol)`` gives an object with

    fit(split: Split) -> Fit

It is called once per split, from several threads at once, and must not change what it is given. It may also have

    words(dim, outputs, train, test) -> int     how many words of torch's generator a split needs (``Split.words``)
    prepare(x) -> None                          called once before the first split, with all samples

``neuco_core.scoring.probes.estimator.EstimatorProbe`` makes a probe of anything that looks like a scikit-learn
estimator; ``parameters`` below reads and checks what a protocol says for a probe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from neuco_core.errors import ScoreError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from neuco_core.protocol import Protocol


@dataclass(frozen=True)
class Split:
    """One split as a probe sees it: scaled samples, and which of them to learn from and to predict.

    ``x`` is float32, (n, dim). ``y`` is float32, (n, outputs); for a classification (n, 1) with class numbers.
    A probe that takes long may call ``check`` now and then: it ends the split if the run was interrupted.
    """

    x: np.ndarray
    y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    kind: str
    classes: int
    index: int
    words: np.ndarray | None = None
    stop: Event = field(default_factory=Event)

    def check(self) -> None:
        if self.stop.is_set():
            raise ScoreError("interrupted")


@dataclass(frozen=True)
class Fit:
    """What a probe learned: predictions of the test part, after every epoch or once.

    ``predictions`` is (steps, n_test, outputs), for a classification (steps, n_test, classes) with probabilities;
    the losses are (steps,) or None; ``parameters`` (e.g. weight, bias) have one row per step; ``settings`` is what a
    search inside the training part chose, e.g. a cost.
    """

    predictions: np.ndarray
    train_loss: np.ndarray | None = None
    test_loss: np.ndarray | None = None
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)


def parameters(protocol: Protocol, **defaults: Any) -> dict[str, Any]:
    """The probe's parameters: the defaults, and what the protocol says instead; unknown ones are errors."""
    for name, value in protocol.params.items():
        if name not in defaults:
            known = ", ".join(sorted(defaults)) or "no parameters"
            what = f"neither the protocol nor its probe {protocol.probe!r} has {name!r}"
            hint = "Fields of a protocol are k, seed, test_size, splitter, epochs, lr and others: see docs/protocols.md"
            raise UsageError(what, where=protocol.name, expected=known, hint=hint)
        if type(value) is not type(defaults[name]) and not (isinstance(defaults[name], float) and type(value) is int):
            expected = f"{type(defaults[name]).__name__}, as in {name}={defaults[name]}"
            raise UsageError(f"bad parameter {name!r}", where=protocol.name, expected=expected, got=repr(value))
    return {**defaults, **protocol.params}
