"""A probe on what comes back from a coder, so that a stored form is scored, recorded and cached like anything else.

A protocol names the probe ``coded``, the coder, and ``of``, the probe that learns: ``coded_protocol`` writes that. A
coder learns in each split from the training part alone, and codes the test part apart from it: no test sample can
reach what is learned. ``fit=all`` gives it all samples instead, to see what that is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from neuco_core.errors import NeucoError, ScoreError, UnknownIdError, UsageError
from neuco_core.files import hashed
from neuco_core.plugins.catalog import catalog
from neuco_core.protocol import Protocol
from neuco_core.records.fingerprint import component
from neuco_core.scoring.probes import Fit, Split
from neuco_core.specs import Coder, Probe, resolve

OURS = "coded-"


def coded_protocol(base: Protocol, coder: str, *, fit: str = "train") -> Protocol:
    """The protocol with embeddings as they come back from a coder.

    Values are coded as they are stored: a protocol that standardises does so to what comes back.
    """
    more: dict[str, Any] = {"standardize": False, "scale": True} if base.standardize else {}
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
        self.text = text
        self.stages = [resolve(coder_spec(stage).factory)(stage.partition("=")[2]) for stage in text.split("+")]
        self.learns = any(hasattr(stage, "fit") for stage in self.stages)

    def width(self, dim: int) -> int:
        """The dimensions that come back; an error if the embedding has too few."""
        for stage in self.stages:
            dim = stage.width(dim) if hasattr(stage, "width") else dim
        return dim

    def is_for(self, dim: int) -> bool:
        try:
            return self.width(dim) > 0
        except NeucoError:
            return False

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


def _encoded(stage: Any, values: np.ndarray) -> np.ndarray:
    if values.dtype != np.float32 and getattr(stage, "takes", "values") == "values":
        raise UsageError("a coder of values behind one that gives codes", got=type(stage).__name__)
    return np.asarray(stage.encode(values))


def code(coder: str, x: np.ndarray, learn: np.ndarray, *parts: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """The rows of the parts as they come back from a coder that has learned from those of ``learn``; others are 0.

    The second is what it took: bytes per sample, and bytes that all samples share, such as codebooks.
    """
    chain, stored = Chain(coder), 0
    chain.fit(x[learn])
    values = np.zeros((len(x), chain.width(x.shape[1])), np.float32)
    for rows in parts:
        codes = chain.encode(x[rows])
        values[rows] = chain.decode(codes)
        stored += codes.nbytes
    if not np.isfinite(values).all():
        raise ScoreError("a coder gave back values that are not finite", got=coder)
    shared = sum(array.nbytes for stage in chain.stages for array in getattr(stage, "shared", ()))
    return values, {"bytes_per_sample": stored / sum(map(len, parts)), "shared_bytes": float(shared)}


class CodedProbe:
    def __init__(self, protocol: Protocol) -> None:
        rest = dict(protocol.params)
        self.coder, of = str(rest.pop("coder", "float32")), str(rest.pop("of", "linear"))
        self.scale, self.by_part = bool(rest.pop("scale", False)), protocol.scale_on == "train"
        self.chain = Chain(self.coder)
        # What does not depend on a split is coded once.
        self._once = rest.pop("fit", "train") == "all" or not self.chain.learns
        self._coded: tuple[np.ndarray, dict[str, float]] | None = None
        self._make, self._inner = resolve(catalog().load(Probe, of).factory), replace(protocol, probe=of, params=rest)
        self._probe = self._make(self._inner)

    def words(self, dim: int, outputs: int, train: int, test: int) -> int:
        words = getattr(self._probe, "words", None)
        return words(self.chain.width(dim), outputs, train, test) if words else 0

    def prepare(self, splits: Sequence[Split], threads: int) -> None:
        if not self._once:
            return
        rows = np.arange(len(splits[0].x))
        values, cost = code(self.coder, splits[0].x, rows, rows)
        if not self.by_part:
            values = self._scaled(values, rows)
        self._coded = values, cost
        if hasattr(self._probe, "prepare") and not (self.scale and self.by_part):
            self._probe.prepare([replace(split, x=values) for split in splits], threads)

    def fit(self, split: Split) -> Fit:
        values, cost = self._coded or code(self.coder, split.x, split.train, split.train, split.test)
        probe = self._probe
        if not self._coded or (self.scale and self.by_part):
            seen = split.train if self.by_part else np.concatenate([split.train, split.test])
            values, probe = self._scaled(values, seen), self._make(self._inner)
        fit: Fit = probe.fit(replace(split, x=values))
        return replace(fit, settings={**fit.settings, **cost})

    def _scaled(self, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
        if not self.scale:
            return x
        mean, std = x[seen].mean(dtype=np.float64), x[seen].std(dtype=np.float64)
        return np.asarray((x - np.float32(mean)) / np.float32(std or 1.0), np.float32)
