"""``ridge`` on features that are nearly constant, with and without its rules for them, beside ``neuco-2025``.

    python benchmarks/sparse.py

Embeddings as somebody would make them in an afternoon. Of ``olinda``: histograms of 32 bins for each band, and a small
random network, two layers of 3 × 3 convolutions with ReLU, whose units fire ever more rarely. Of ``mini``: a network as
torch makes it, two layers of 128 filters with ReLU and the mean over the image, on the values as they are stored.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from neuco_core import list_tasks, load_dataset, load_method
from neuco_core.cubes.cubes import source_of
from neuco_core.scoring.probes import ridge
from neuco_core.scoring.quality import middle
from neuco_core.scoring.scorer import Score, score
from neuco_core.tables.embeddings import Embeddings, make_embeddings

BINS, UNITS, RAREST = 32, 64, 8.0
FILTERS, SEED = 128, 2


def histograms(ids: tuple[str, ...], images: np.ndarray) -> Embeddings:
    """How often a band's values fall into each of 32 equal bins of its range."""
    low, high = images.min(axis=(0, 2, 3)), images.max(axis=(0, 2, 3))
    ranges = list(zip(low, high, strict=True))
    rows = [[np.histogram(band, BINS, ends)[0] for band, ends in zip(image, ranges, strict=True)] for image in images]
    return make_embeddings(ids, np.array(rows).reshape(len(ids), -1) / images[0, 0].size)


def relu(ids: tuple[str, ...], images: np.ndarray) -> Embeddings:
    """A random network; the threshold of its units rises from the mean to ``RAREST`` standard deviations above it."""
    random = np.random.default_rng(0)
    hidden = np.maximum(_convolved(images, random.standard_normal((UNITS // 4, images.shape[1], 3, 3))), 0)
    out = _convolved(hidden, random.standard_normal((UNITS, UNITS // 4, 3, 3)))
    fired = np.maximum(out - np.linspace(0, RAREST, UNITS)[:, None, None], 0)
    return make_embeddings(ids, fired.mean(axis=(2, 3)))


def _convolved(images: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """Every other place of a 3 × 3 convolution, each filter's answers standardised over all images."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    found = np.einsum("nchwij,fcij->nfhw", windows, filters, optimize=True)
    place = {"axis": (0, 2, 3), "keepdims": True}
    return np.asarray((found - found.mean(**place)) / found.std(**place))


def torch_network(ids: tuple[str, ...], images: np.ndarray) -> Embeddings:
    """A network with torch's own random weights: of some seeds a unit fires for a handful of samples only."""
    import torch

    torch.manual_seed(SEED)
    first = torch.nn.Conv2d(images.shape[1], FILTERS, 3, padding=1)
    second = torch.nn.Conv2d(FILTERS, FILTERS, 3, padding=1)
    with torch.no_grad():
        pooled = torch.nn.functional.max_pool2d(first(torch.tensor(images)).relu(), 2)
        return make_embeddings(ids, second(pooled).relu().mean(dim=(2, 3)).numpy())


@contextmanager
def without_rules() -> Iterator[None]:
    """The probe without its rules about features that few samples carry."""
    now = ridge.CARRIERS, ridge.REACH
    ridge.CARRIERS, ridge.REACH = 0.0, 1e100
    try:
        yield
    finally:
        ridge.CARRIERS, ridge.REACH = now


def cases() -> Iterator[tuple[str, str, Embeddings]]:
    """The dataset, a name, and the embeddings."""
    source = source_of(load_dataset("olinda"))
    batch = source.read(source.ids())
    images = batch.values[:, 0].astype(np.float64)
    images = (images - images.mean(axis=(0, 2, 3), keepdims=True)) / images.std(axis=(0, 2, 3), keepdims=True)
    yield "olinda", "histograms", histograms(batch.ids, images)
    yield "olinda", "ReLU network", relu(batch.ids, images)
    yield "olinda", "band_statistics", load_method("band_statistics").embeddings("olinda")
    source = source_of(load_dataset("mini"))
    batch = source.read(source.ids())
    stacked = batch.values.reshape(len(batch.ids), -1, *batch.values.shape[-2:])  # seasons are further bands
    yield "mini", "torch network", torch_network(batch.ids, stacked)


def scores(dataset: str, embeddings: Embeddings) -> Iterator[tuple[str, Score, Score, Score]]:
    """By task: ``ridge`` without the rules, ``ridge``, and ``neuco-2025``."""
    for task in list_tasks(dataset=dataset):
        with without_rules():
            before = score(embeddings, task, "ridge")
        yield task.id, before, score(embeddings, task, "ridge"), score(embeddings, task, "neuco-2025")


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    print(f"{'embeddings':16} {'task':22} {'without the rules (median), Q':>34} {'ridge':>30} {'neuco-2025':>30}")
    for dataset, name, embeddings in cases():
        for task, *found in scores(dataset, embeddings):
            told = [f"{s.mean:.3f} ± {s.std:.3f} ({middle(s.per_split):.3f}), {s.q:.1f}" for s in found]
            print(f"{name:16} {task:22} {told[0]:>34} {told[1]:>30} {told[2]:>30}")


if __name__ == "__main__":
    main()
