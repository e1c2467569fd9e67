"""A probe on what comes back from a coder, so that a stored form is scored, recorded and cached like anything else.

A protocol names the probe ``coded``, the coder, and ``of``, the probe that learns: ``coded_protocol`` writes that. A
coder learns in each split from the training part alone, and codes the test part apart from it: no test sample can
reach what is learned. ``fit=all`` gives it all samples instead, to see what that is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from neuco_core.errors import NeucoError, ScoreError, UnknownIdError, UsageError
from neuco_core.files import hashed
from neuco_core.plugins.catalog import catalog
from neuco_core.protocol import Protocol
from neuco_core.records.fingerprint import component
from neuco_core.scoring.probes import Fit, Split
from neuco_core.specs import Coder, Probe, resolve

FEWEST = 10  # labels to learn from, where only a share of them is used
OURS = "coded-"
MOST_KEPT, LARGEST_KEPT = 50, 4_000_000  # coders that have learned, and bytes of each


def coded_protocol(base: Protocol, coder: str, *, share: float = 1.0, fit: str = "train") -> Protocol:
    """The protocol with embeddings as they come back from a coder, learning from a share of the labels.

    Values are coded as they are stored: a protocol that standardises does so to what comes back.
    """
    more: dict[str, Any] = {"standardize": False, "scale": True} if base.standardize else {}
    more |= {"share": share} if share < 1 else {}
    more |= {"fit": fit} if fit != "train" else {}
    measure = catalog().load(Probe, base.probe).metric  # of a retrieval, which predicts no labels
    return base.with_(probe=f"coded_{measure}" if measure else "coded", of=base.probe, coder=coder, **more)


def coder_spec(stage: str) -> Coder:
    """The coder that a stage of a chain names: ours by its short name, a plugin's by its id."""
    name = stage.partition("=")[0]
    try:
        return catalog().load(Coder, f"{OURS}{name}")
    except UnknownIdError:
        known = sorted(key.removeprefix(OURS) for key in catalog().all(Coder))
        if name not in known:
            raise UsageError("no such coder", expected=", ".join(known), got=repr(stage)) from None
        return catalog().load(Coder, name)


def key(protocol: Protocol) -> str:
    """What decides the numbers besides this package: the probe that learns, and the code of the coders."""
    probe = str(protocol.params.get("of"))
    stages = str(protocol.params.get("coder")).split("+")
    coders = [coder_spec(stage).id for stage in stages]
    theirs = [component(Coder, name, "factory") for name in coders if not name.startswith(OURS)]
    return hashed([component(Probe, probe, "factory"), *theirs])[:16]


class Chain:
    """Coders behind each other, as in ``pca=64+int8+entropy``: each takes what the one before it gives."""

    def __init__(self, text: str) -> None:
        self.stages: list[Any] = []
        for stage in text.split("+"):
            self.stages.append(resolve(coder_spec(stage).factory)(stage.partition("=")[2]))
        self.learns = any(hasattr(stage, "fit") for stage in self.stages)

    def width(self, dim: int) -> int:
        for stage in self.stages:
            dim = stage.width(dim) if hasattr(stage, "width") else dim
        return dim

    def fit(self, values: np.ndarray) -> None:
        for stage in self.stages:
            if hasattr(stage, "fit"):
                stage.fit(values)
            values = _encoded(stage, values)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """An array whose bytes are what is stored."""
        for stage in self.stages:
            values = _encoded(stage, values)
        return values

    def decode(self, codes: np.ndarray) -> np.ndarray:
        for stage in reversed(self.stages):
            codes = stage.decode(codes)
        return np.asarray(codes, np.float32)

    @property
    def shared_bytes(self) -> int:
        """Of all that the decoder needs besides the codes, such as codebooks."""
        return sum(array.nbytes for stage in self.stages for array in getattr(stage, "shared", ()))


def _encoded(stage: Any, values: np.ndarray) -> np.ndarray:
    if values.dtype != np.float32 and getattr(stage, "takes", "values") == "values":
        raise UsageError("a coder of values behind one that gives codes", got=type(stage).__name__)
    return np.asarray(stage.encode(values))


@dataclass
class Restored:
    """What came back, and what it took: bytes per sample, and bytes that all samples share."""

    values: np.ndarray
    cost: dict[str, float]


_learned: dict[str, Chain] = {}  # by coder and training values, of this process


def learned(chain: str, values: np.ndarray) -> Chain:
    """A coder that has learned from these values. Tasks on the same samples have the same splits: it learns once."""
    name = chain + sha256(values.tobytes()).hexdigest() + str(values.shape)
    coder = _learned.get(name)
    if coder is None:
        coder = Chain(chain)
        coder.fit(values)
        if coder.shared_bytes < LARGEST_KEPT:
            _learned[name] = coder
        while len(_learned) > MOST_KEPT:
            _learned.pop(next(iter(_learned)), None)
    return coder


def code(chain: str, x: np.ndarray, learn: np.ndarray, *parts: np.ndarray) -> Restored:
    """The rows of the parts as they come back from a coder that has learned from those of ``learn``; others are 0."""
    coder = learned(chain, x[learn])
    values, stored = np.zeros((len(x), coder.width(x.shape[1])), np.float32), 0
    for rows in parts:
        codes = coder.encode(x[rows])
        values[rows] = coder.decode(codes)
        stored += codes.nbytes
    if not np.isfinite(values).all():
        raise ScoreError("a coder gave back values that are not finite", got=chain)
    cost = {"bytes_per_sample": stored / sum(map(len, parts)), "shared_bytes": float(coder.shared_bytes)}
    return Restored(values, cost)


class CodedProbe:
    def __init__(self, protocol: Protocol) -> None:
        rest = dict(protocol.params)
        self.coder, of = str(rest.pop("coder", "float32")), str(rest.pop("of", "linear"))
        self.share, self.everything = float(rest.pop("share", 1.0)), rest.pop("fit", "train") == "all"
        self.scale = bool(rest.pop("scale", False))
        self.by_part = protocol.scale_on == "train"
        if not 0 < self.share <= 1:
            raise UsageError("bad share of the labels", expected="above 0 and at most 1", got=self.share)
        self.chain = Chain(self.coder)
        self._make, self._inner = resolve(catalog().load(Probe, of).factory), replace(protocol, probe=of, params=rest)
        self._once = self.everything or not self.chain.learns
        self._coded: Restored | None = None
        self._probe = self._make(self._inner)

    def words(self, dim: int, outputs: int, train: int, test: int) -> int:
        words = getattr(self._probe, "words", None)
        return words(self.chain.width(dim), outputs, math.ceil(self.share * train), test) if words else 0

    def prepare(self, splits: Sequence[Split], threads: int) -> None:
        """What does not depend on a split is coded once."""
        if self._once:
            rows = np.arange(len(splits[0].x))
            self._coded = code(self.coder, splits[0].x, rows, rows)
            if not (self.scale and self.by_part):
                self._coded.values = self._scaled(self._coded.values, rows)
                if hasattr(self._probe, "prepare"):
                    self._probe.prepare([self._seen(split, self._coded.values) for split in splits], threads)

    def fit(self, split: Split) -> Fit:
        coded, probe = self._coded, self._probe
        if coded is None:
            coded = code(self.coder, split.x, split.train, split.train, split.test)
        x = coded.values
        if self._coded is None or (self.scale and self.by_part):
            seen = split.train if self.by_part else np.concatenate([split.train, split.test])
            x, probe = self._scaled(x, seen), self._make(self._inner)
        fit: Fit = probe.fit(self._seen(split, x))
        return replace(fit, settings={**fit.settings, **coded.cost})

    def _seen(self, split: Split, x: np.ndarray) -> Split:
        """The split with these values and fewer labels; a smaller share lies in a larger one."""
        train = split.train[: math.ceil(self.share * len(split.train))]
        if self.share < 1 and len(train) < FEWEST:
            got = f"{len(train)} of {len(split.train)}"
            raise ScoreError("too few labels to learn from", expected=FEWEST, got=got)
        return replace(split, x=x, train=train)

    def _scaled(self, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
        if not self.scale:
            return x
        mean, std = x[seen].mean(dtype=np.float64), x[seen].std(dtype=np.float64)
        return np.asarray((x - np.float32(mean)) / np.float32(std or 1.0), np.float32)


def fits(coder: str, dim: int | None) -> str:
    """Why a coder is not for embeddings of this size; "" if it is."""
    chain = Chain(coder)
    try:
        for stage in chain.stages:
            if hasattr(stage, "parts"):
                stage.parts(dim)
            dim = stage.width(dim) if hasattr(stage, "width") and dim else dim
    except NeucoError as error:
        return str(error)
    return ""
