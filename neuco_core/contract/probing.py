"""An encoder on a few dozen cubes and on changed copies of them, and what its network is given meanwhile.

Most wrappers that are wrong leave little trace in the numbers: a network gives numbers for anything. What it is given
shows it: the mode that it is in, the size of its inputs, the band behind each of its channels, what its output is
pooled from. Torch tells that of every module that is called; nothing of the method is changed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from neuco_core.contract.repeatability import plain_statistics, some_rows
from neuco_core.contract.sanity import measured, responses
from neuco_core.cubes.cubes import CubeBatch, CubeSource, Selection
from neuco_core.encode.device import uses_torch
from neuco_core.encode.encoding import Encoding
from neuco_core.encode.requirements import full_params
from neuco_core.env import available_cores
from neuco_core.errors import NeucoError
from neuco_core.specs import Method

FEW = 8  # samples that are changed
UNIT = 10_000.0
NORMALISING = ("BatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "InstanceNorm")


class Channel(msgspec.Struct, frozen=True):
    """An input channel of a network: its mean and spread, and the band that it comes from as ``gain · x + bias``."""

    mean: float
    std: float
    band: str = ""
    gain: float = 0.0
    bias: float = 0.0


class Network(msgspec.Struct, frozen=True):
    """What was seen of a network: ``fresh`` of its ``norms`` layers that normalise are as a random network has them."""

    training: bool = False
    norms: int = 0
    fresh: int = 0
    pooling: str = ""
    channels: tuple[Channel, ...] = ()


class Probes(msgspec.Struct, frozen=True):
    """All that is known of an encoder after some dozens of samples; ``refused`` are changes that it cannot encode."""

    dataset: str
    samples: int
    measures: dict[str, float]
    refused: dict[str, str] = {}
    bands: dict[str, tuple[float, float]] = {}
    network: Network | None = None


class Changed:
    """Cubes of which something is changed on reading, as ``kind`` says."""

    def __init__(self, source: CubeSource) -> None:
        self.source, self.kind = source, ""
        self.version, self.bands, self.seasons = source.version, source.bands, source.seasons
        self.parallel = bool(getattr(source, "parallel", True))

    def ids(self) -> tuple[str, ...]:
        return self.source.ids()

    def read(self, ids: Any) -> CubeBatch:
        batch = self.source.read(ids)
        return replace(batch, values=change(batch.values, self.kind)) if self.kind else batch


def change(values: np.ndarray, kind: str) -> np.ndarray:
    """Cubes (sample, season, band, y, x) in another unit, with bands or seasons in reverse, or without data."""
    if kind == "up":
        return values * np.float32(UNIT)
    if kind == "down":
        return values / np.float32(UNIT)
    if kind == "bands":
        return values[:, :, ::-1]
    if kind == "seasons":
        return values[:, ::-1]
    values = values.copy()
    if kind == "zero":
        values[:] = 0
    else:
        values[..., : values.shape[-2] // 2, : values.shape[-1] // 2] = 0
    return values


def probe(method: Method, source: CubeSource, dataset: str) -> Probes:
    """Run an encoder on some samples, on changed copies of a few, and look at its network if it has one."""
    ids = tuple(source.ids()[row] for row in some_rows(len(source.ids())))
    cubes = Changed(source)
    encoding = Encoding(method, cubes, full_params(method, {}), FEW, available_cores(), learn=source)
    refused: dict[str, str] = {}
    changed: dict[str, np.ndarray] = {}
    few = ids[:: math.ceil(len(ids) / FEW)]
    kinds = ["up", "down", "zero", "nodata"]
    kinds += ["bands"] if len(source.bands) > 1 else []
    kinds += ["seasons"] if len(source.seasons) > 1 else []
    with encoding.running():
        pipeline = encoding.pipeline()
        watch = Watch() if uses_torch(method) else None
        with watch.watching() if watch else nullcontext():
            rows = encoding.encode(ids, lambda *_: None)
        base = rows[[ids.index(name) for name in few]]
        for kind in kinds:
            cubes.kind = kind
            try:
                # Images without anything are all the same.
                changed[kind] = encoding.encode(few[:1] if kind == "zero" else few, lambda *_: None)
            except NeucoError as error:
                refused[kind] = str(error)
        cubes.kind = ""
        images = source.read(few)
        seen = watch.network(pipeline.encoder, images) if watch and pipeline.needs_cubes else None
    pixels = images.values.astype(np.float64)
    found = measured(rows, plain_statistics(Selection(source, ids=frozenset(ids)))[_order(source, ids)])
    found |= responses(base, changed)
    means, stds = pixels.mean(axis=(0, 1, 3, 4)), pixels.std(axis=(0, 1, 3, 4))
    bands = {name: (float(mean), float(std)) for name, mean, std in zip(images.bands, means, stds, strict=True)}
    return Probes(dataset, len(ids), found, refused, bands, seen)


def _order(source: CubeSource, ids: tuple[str, ...]) -> list[int]:
    kept = [name for name in source.ids() if name in set(ids)]
    return [kept.index(name) for name in ids]


class _SeenEnoughError(Exception):
    """The network was given its input; what it makes of it is not wanted."""


class Watch:
    """What torch tells of the modules that are called: the inputs of the first one that has weights, and all outputs.

    An encoder calls from several threads. Each has its own images, and all of them call the same modules.
    """

    def __init__(self) -> None:
        self.first: Any = None
        self.inputs: list[list[Any]] = []
        self.tokens: list[Any] = []
        self.called: dict[int, Any] = {}
        self.only_inputs = False
        self._lock = threading.Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        import torch

        before = torch.nn.modules.module.register_module_forward_pre_hook(self._before)
        after = torch.nn.modules.module.register_module_forward_hook(self._after)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def _before(self, module: Any, args: Any) -> None:
        with self._lock:
            self.called[id(module)] = module
            if self.first is None and any(True for _ in module.parameters()) and list(images_in(args)):
                self.first = module
            if module is self.first:
                self.inputs.append([part.detach().float() for part in images_in(args)])
                if self.only_inputs:
                    raise _SeenEnoughError

    def _after(self, module: Any, args: Any, output: Any) -> None:
        if getattr(output, "ndim", 0) == 3:
            with self._lock:
                self.tokens = [*self.tokens[-3:], output.detach().float()]

    def network(self, encoder: Any, images: CubeBatch) -> Network | None:
        """What was seen so far, and what shows itself on images of one colour."""
        if self.first is None:
            return None
        norms = [m for m in self.called.values() if type(m).__name__.startswith(NORMALISING) and _learns(m)]
        given = [np.concatenate([_by_channel(part) for part in parts]) for parts in self.inputs]
        pixels = np.concatenate(given, axis=1) if len({len(part) for part in given}) == 1 else given[0]
        channels = [Channel(float(row.mean()), float(row.std())) for row in pixels]
        with self.watching():
            pooling = self._pooling(encoder, images.rows(0, 1))
            affine = self._affine(encoder, images.rows(0, 1), len(channels))
        if affine is not None:
            origins = zip(channels, affine, strict=True)
            channels = [msgspec.structs.replace(c, band=b, gain=g, bias=o) for c, (b, g, o) in origins]
        training = any(m.training for m in self.called.values())
        return Network(training, len(norms), sum(map(_is_fresh, norms)), pooling, tuple(channels))

    def _pooling(self, encoder: Any, image: CubeBatch) -> str:
        """Whether the row of one sample is the first token, or the mean or maximum of the others."""
        self.tokens = []
        (row,) = np.asarray(encoder.encode(image), dtype=np.float64)
        for tokens in reversed([part.double().numpy() for part in self.tokens]):
            pooled = {"class": tokens[:, 0], "mean": tokens[:, 1:].mean(axis=1), "max": tokens[:, 1:].max(axis=1)}
            pooled["mean of all"] = tokens.mean(axis=1)
            for name, rows in pooled.items():
                if rows.shape[1] == len(row) and np.allclose(rows.mean(axis=0), row, rtol=1e-3, atol=1e-4):
                    return name
        return ""

    def _affine(self, encoder: Any, image: CubeBatch, count: int) -> list[tuple[str, float, float]] | None:
        """For each channel the band that moves it, gain and bias; None if that is not what happens to images.

        A crop, a resize or a tile of an image of one colour has that colour: what is left is the normalisation.
        """
        bands = image.values.astype(np.float64)
        level = bands.mean(axis=(0, 1, 3, 4))
        step = np.maximum(bands.std(axis=(0, 1, 3, 4)), 0.1 * np.abs(level) + 1e-3)  # more than float32 rounds
        flat = np.broadcast_to(level[:, None, None], image.values.shape).astype(np.float32)
        start = self._channels(encoder, replace(image, values=flat))
        moves = []
        for band in range(len(level)):
            other = flat.copy()
            other[:, :, band] += np.float32(step[band])
            moves.append((self._channels(encoder, replace(image, values=other)) - start) / step[band])
        gains = np.array(moves)
        if gains.shape != (len(level), count) or not np.isfinite(gains).all():
            return None
        origin = np.abs(gains).argmax(axis=0)
        largest = gains[origin, np.arange(count)]
        second = np.sort(np.abs(gains), axis=0)[-2] if len(level) > 1 else np.zeros(count)
        if (second > 0.01 * np.abs(largest)).any() or (largest == 0).any():
            return None
        biases = start - largest * level[origin]
        return [(image.bands[b], float(g), float(o)) for b, g, o in zip(origin, largest, biases, strict=True)]

    def _channels(self, encoder: Any, images: CubeBatch) -> np.ndarray:
        """The mean of each channel that the network is given for some images; it is stopped there."""
        self.inputs, self.only_inputs = [], True
        try:
            encoder.encode(images)
        except _SeenEnoughError:
            pass
        finally:
            self.only_inputs = False
        return np.array([row.mean() for part in self.inputs[-1] for row in _by_channel(part)])


def images_in(args: Any) -> Iterator[Any]:
    """The tensors (image, channel, y, x), or with times between, that a module is called with."""
    if isinstance(args, dict):
        args = list(args.values())
    if isinstance(args, list | tuple):
        for part in args:
            yield from images_in(part)
    elif getattr(args, "ndim", 0) in (4, 5) and args.is_floating_point():
        yield args


def _by_channel(images: Any) -> np.ndarray:
    """(channel, pixel)"""
    values = np.moveaxis(images.cpu().double().numpy(), 1, 0)
    return np.asarray(values.reshape(len(values), -1))


def _learns(module: Any) -> bool:
    return getattr(module, "weight", None) is not None


def _is_fresh(module: Any) -> bool:
    """Whether a layer that normalises is as it is before any training: a scale of one, no shift, no statistics."""
    parts = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
    given = {name: getattr(module, name, None) for name in parts}
    return all(bool((value == parts[name]).all()) for name, value in given.items() if value is not None)
