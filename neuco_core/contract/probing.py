"""An encoder on a few dozen cubes and on changed copies of them, and what its network is given meanwhile.

Most wrappers that are wrong leave little trace in the numbers: a network gives numbers for anything. What it is given
shows it: the mode that it is in, the size of its inputs, the band behind each of its channels, what its output is
pooled from. Torch tells that of every module that is called; nothing of the method is changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from neuco_core.contract.repeatability import some_rows
from neuco_core.contract.sanity import measured, responses
from neuco_core.cubes.cubes import Changed, CubeBatch, CubeSource, batches
from neuco_core.encode.device import uses_torch
from neuco_core.encode.encoding import Encoding
from neuco_core.encode.requirements import full_params
from neuco_core.env import available_cores
from neuco_core.errors import NeucoError
from neuco_core.specs import Method

FEW = 4  # samples that are changed
NORMALISING = ("BatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "InstanceNorm")
FRESH = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}  # of a layer that normalises


class Channel(msgspec.Struct, frozen=True):
    """An input channel of a network: ``gain · x + bias`` of a band."""

    band: str
    gain: float
    bias: float


class Network(msgspec.Struct, frozen=True):
    """What was seen of a network; ``channels`` are None if its inputs are not made of single bands."""

    measures: dict[str, float]
    pooling: str = ""
    channels: tuple[Channel, ...] | None = None


class Probes(msgspec.Struct, frozen=True):
    """All that is known of an encoder after some dozens of samples; ``refused`` are changes that it cannot encode."""

    dataset: str
    bands: tuple[str, ...]
    measures: dict[str, float]
    refused: dict[str, str] = {}
    network: Network | None = None


def without_a_quarter(batch: CubeBatch) -> np.ndarray:
    values = batch.values.copy()
    values[..., : values.shape[-2] // 2, : values.shape[-1] // 2] = 0
    return values


CHANGES: Mapping[str, Callable[[CubeBatch], np.ndarray]] = {
    "up": lambda batch: batch.values * np.float32(10_000),
    "down": lambda batch: batch.values / np.float32(10_000),
    "zero": lambda batch: np.zeros_like(batch.values),
    "nodata": without_a_quarter,
    "bands": lambda batch: batch.values[:, :, ::-1],
    "seasons": lambda batch: batch.values[:, ::-1],
}


def probe(method: Method, source: CubeSource, dataset: str) -> Probes:
    """Run an encoder on some samples, on changed copies of a few, and look at its network if it has one."""
    ids = tuple(source.ids()[row] for row in some_rows(len(source.ids())))
    some = list(range(0, len(ids), -(-len(ids) // FEW)))
    few = tuple(ids[row] for row in some)
    cubes, threads = Changed(source), available_cores()
    # Batches so small that even those of a few samples keep all cores busy.
    encoding = Encoding(method, cubes, full_params(method, {}), max(1, FEW // threads), threads, learn=source)
    refused: dict[str, str] = {}
    changed: dict[str, np.ndarray] = {}
    with encoding.running():
        pipeline = encoding.pipeline()
        watch = Watch() if uses_torch(method) else None
        with watch.watching() if watch else nullcontext():
            rows = encoding.encode(ids, lambda *_: None)
        for kind, cubes.change in CHANGES.items():
            if {"bands": len(source.bands), "seasons": len(source.seasons)}.get(kind) == 1:
                continue
            try:
                # Images without anything are all the same.
                changed[kind] = encoding.encode(few[:1] if kind == "zero" else few, lambda *_: None)
            except NeucoError as error:
                refused[kind] = str(error)
        network = watch.network(pipeline.encoder, source.read(few)) if watch and pipeline.needs_cubes else None
    images = len({batch.values.tobytes() for batch in batches(source, 1, ids)})
    return Probes(dataset, source.bands, measured(rows, images) | responses(rows[some], changed), refused, network)


class _SeenEnoughError(Exception):
    """The network was given its input; what it makes of it is not wanted."""


class Watch:
    """What torch tells of the modules that are called: the inputs of the first one that has weights, and all outputs.

    An encoder calls from several threads. Each has its own images, and all of them call the same modules.
    """

    def __init__(self) -> None:
        self.first: Any = None
        self.called: dict[int, Any] = {}
        self.moments: list[np.ndarray] = []  # of each call: mean and mean square by channel
        self.tokens: list[Any] = []
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
            parts = [part.detach().transpose(0, 1).flatten(1).double() for part in images_in(args)]
            moments = [np.stack([part.mean(1).cpu(), part.square().mean(1).cpu()]) for part in parts]
            self.moments.append(np.concatenate(moments, axis=1))
            if self.only_inputs:
                raise _SeenEnoughError

    def _after(self, module: Any, args: Any, output: Any) -> None:
        if getattr(output, "ndim", 0) == 3:
            with self._lock:
                self.tokens = [*self.tokens[-3:], output.detach()]

    def network(self, encoder: Any, images: CubeBatch) -> Network | None:
        """What was seen so far, and what shows itself on an image, and on images of one colour."""
        if self.first is None:
            return None
        mean, square = np.mean([m for m in self.moments if m.shape == self.moments[0].shape], axis=0)
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
        norms = [m for m in self.called.values() if type(m).__name__.startswith(NORMALISING)]
        norms = [m for m in norms if getattr(m, "weight", None) is not None]
        measures = {
            "training mode": float(any(module.training for module in self.called.values())),
            "untrained layers": float(np.mean([_is_fresh(module) for module in norms])) if norms else 0.0,
            "spread of the inputs": float(np.median(deviation)),
        }
        image = images.rows(0, 1)
        with self.watching():
            return Network(measures, self._pooling(encoder, image), self._channels(encoder, image, len(mean)))

    def _pooling(self, encoder: Any, image: CubeBatch) -> str:
        """Whether the row of one sample is the first token, or the mean or maximum of the others."""
        self.tokens = []
        (row,) = np.asarray(encoder.encode(image), dtype=np.float64)
        for tokens in reversed([part.double().cpu().numpy() for part in self.tokens]):
            pooled = {"class": tokens[:, 0], "mean": tokens[:, 1:].mean(axis=1), "max": tokens[:, 1:].max(axis=1)}
            pooled["mean of all"] = tokens.mean(axis=1)
            for name, rows in pooled.items():
                if rows.shape[1] == len(row) and np.allclose(rows.mean(axis=0), row, rtol=1e-3, atol=1e-4):
                    return name
        return ""

    def _channels(self, encoder: Any, image: CubeBatch, count: int) -> tuple[Channel, ...] | None:
        """For each channel the band that moves it, gain and bias; None if that is not what happens to images.

        A crop, a resize or a tile of an image of one colour has that colour: what is left is the normalisation.
        """
        level, deviation = (part(axis=(0, 1, 3, 4), dtype=np.float64) for part in (image.values.mean, image.values.std))
        step = np.maximum(deviation, 0.1 * np.abs(level) + 1e-3)  # more than float32 rounds
        colours = np.stack([level, *(level + np.diag(step))])
        seen = [self._given(encoder, image, colour) for colour in colours]
        if len({len(means) for means in seen}) > 1 or len(seen[0]) != count or not np.isfinite(seen).all():
            return None
        gains = (np.array(seen[1:]) - seen[0]) / step[:, None]
        origin = np.abs(gains).argmax(axis=0)
        largest = gains[origin, np.arange(count)]
        others = np.abs(gains).sum(axis=0) - np.abs(largest)
        if (others > 0.01 * np.abs(largest)).any() or (largest == 0).any():
            return None
        biases = seen[0] - largest * level[origin]
        return tuple(
            Channel(image.bands[band], float(gain), float(bias))
            for band, gain, bias in zip(origin, largest, biases, strict=True)
        )

    def _given(self, encoder: Any, image: CubeBatch, colour: np.ndarray) -> np.ndarray:
        """The mean of each channel that the network is given for an image of one colour; it is stopped there."""
        flat = np.broadcast_to(colour[:, None, None], image.values.shape).astype(np.float32)
        self.moments, self.only_inputs = [], True
        try:
            encoder.encode(replace(image, values=flat))
        except _SeenEnoughError:
            pass
        finally:
            self.only_inputs = False
        return self.moments[-1][0] if self.moments else np.empty(0)


def images_in(args: Any) -> Iterator[Any]:
    """The tensors (image, channel, y, x), or with times between, that a module is called with."""
    if isinstance(args, dict):
        args = list(args.values())
    if isinstance(args, list | tuple):
        for part in args:
            yield from images_in(part)
    elif getattr(args, "ndim", 0) in (4, 5) and args.is_floating_point():
        yield args


def _is_fresh(module: Any) -> bool:
    """Whether a layer is as it is before any training: a scale of one, no shift, no statistics."""
    given = {name: getattr(module, name, None) for name in FRESH}
    return all(bool((value == FRESH[name]).all()) for name, value in given.items() if value is not None)
